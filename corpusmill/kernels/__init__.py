"""Kernels: pure functions from Arrow batches and settings to Arrow, a folder for each family; they know no store, clock
or environment.

`bytes` and `words` are the ground: the others stand on them, and seldom on each other. `packing` puts documents into
rows.
"""
