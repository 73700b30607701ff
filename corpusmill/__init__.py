"""Corpusmill: raw web crawls in, training-ready token shards with a verifiable history out."""

__version__ = "0.1.0"
