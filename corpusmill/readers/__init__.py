"""Readers: from archives and files to records with one outcome each: WARC, ARC, text; bodies, charsets, URL screens."""
