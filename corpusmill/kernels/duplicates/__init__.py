"""Duplicates: signatures, bands, exact similarity and keepers of near ones; digests and URL keys of equal ones;
repeated passages.
"""
