"""Tokens: tokenizers and packed shards (`shards`), and the order in which training sees the rows (`order`)."""
