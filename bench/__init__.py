"""Benchmarks: one script a subject, each paired with its peer in one run; floors in floors.toml."""
