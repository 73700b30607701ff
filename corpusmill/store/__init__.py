"""The dataset store: see store.py for the rules, keys.py for the layout, create.py and folder.py or s3.py for how it is kept."""

from corpusmill.store.parquet import TableWriter
from corpusmill.store.receipts import Draft, Output, Receipt, Unit
from corpusmill.store.store import Store, open_store

__all__ = ["Draft", "Output", "Receipt", "Store", "TableWriter", "Unit", "open_store"]
