"""The dataset store. Rules: store.py; layout: keys.py; how it is kept: create.py with folder.py or s3.py."""

from corpusmill.store.parquet import TableWriter
from corpusmill.store.receipts import Draft, Output, Receipt, Unit
from corpusmill.store.store import Store, open_store

__all__ = ["Draft", "Output", "Receipt", "Store", "TableWriter", "Unit", "open_store"]
