"""Measures: numbers about documents, a family each, which rules read. `families` lists them; `measures` is the first
family.
"""
