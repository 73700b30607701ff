"""Measures: numbers about documents, which rules read. A kernel says in `MEASURES` what it measures; `families` makes
all tables of names from that, without Numba; `measures` measures texts.
"""
