"""Training on packed shards. The only importer of torch; started as a process, never imported by flows."""

from corpusmill import extras

extras.explain("train")
