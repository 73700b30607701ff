"""Scheduled ingestion: new crawls are found, fetched once, and published as documents."""
