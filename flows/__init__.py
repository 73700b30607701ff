"""Orchestration: the only package that imports Prefect.

What runs after what lives in `tasks.chain`; here it becomes runs that people can see.
"""

from corpusmill import extras

extras.explain("flows")
