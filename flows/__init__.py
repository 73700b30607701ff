"""Orchestration: the only package that imports Prefect.

The order of the stages is in `tasks.chain`; this package turns it into runs that people can watch.
"""

from corpusmill import extras

extras.explain("flows")
