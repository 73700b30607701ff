"""Orchestration: what runs after what. The only importer of Prefect; no data passes through it, only receipts."""
