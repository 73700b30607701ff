"""Orchestration: the only package that imports Prefect.

The order of the stages is in `tasks.chain`; this package turns it into runs that people can watch.
"""

from corpusmill import extras
from corpusmill.redact import guard_logs

guard_logs()  # what Prefect's handlers send to the server and print
extras.explain("flows")
