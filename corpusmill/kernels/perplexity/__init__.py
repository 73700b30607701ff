"""Perplexity: an n-gram language model, estimated (`counts`, `estimate`), stored (`table`, `arpa`), asked (`score`)."""
