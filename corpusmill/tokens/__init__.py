"""Tokens: tokenizers (`tokenizer`), packed shards (`shards`), and the order of rows in training (`order`)."""
