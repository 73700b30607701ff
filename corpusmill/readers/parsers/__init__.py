"""Parsers of texts with markup, as functions that run in a process of their own: wikitext, LaTeX, licences."""
