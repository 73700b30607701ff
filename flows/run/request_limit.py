"""The request limit of a cluster: how many requests to servers of sources run at once, over all machines, by a global
concurrency limit of the Prefect server.

`tasks/acquire/fetch/rate_limit.py` enters `http` around each request where CORPUSMILL_HTTP_REQUEST_LIMIT names it;
`held` sets it for the processes of a flow run. The deployments' set-up creates the limit once; people may change
its number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from corpusmill.errors import Unavailable, UsageError

LIMIT = "corpusmill-http"
AT_ONCE = 8
"""Requests at once when the limit is made. `prefect gcl update corpusmill-http --limit N` changes it."""
VARIABLE, HERE = "CORPUSMILL_HTTP_REQUEST_LIMIT", "flows.run.request_limit:http"


@contextmanager
def held() -> Iterator[None]:
    """Hold the requests of this process and its children to the limit within the block, if a Prefect server has it.

    A limit that the environment names already stays, also an empty one, which means none.
    """
    from prefect.settings import get_current_settings

    if VARIABLE in os.environ or not get_current_settings().api.url:
        yield
        return
    os.environ[VARIABLE] = HERE
    try:
        yield
    finally:
        del os.environ[VARIABLE]


@contextmanager
def http(host: str) -> Iterator[None]:
    """One request, body included, under the limit; after a kill its slot is released five minutes later.

    Raises:
        UsageError: the server has no such limit.
        Unavailable: the server does not answer.
    """
    from prefect.concurrency.sync import concurrency  # a worker process that asks nobody does without Prefect

    with ExitStack() as stack:
        try:
            stack.enter_context(concurrency(LIMIT, strict=True, raise_on_lease_renewal_failure=False))
        except Exception as err:  # Prefect's error is private, and its cause tells the two apart
            if type(err).__name__ != "ConcurrencySlotAcquisitionError":
                raise
            if err.__cause__ is None:
                raise UsageError(
                    f"the Prefect server has no global concurrency limit {LIMIT!r}",
                    f"it limits the requests of all machines together; a request to {host} needs a slot",
                    f"`mill up` and `python -m flows.platform.deploy` create it; or set {VARIABLE} to an empty string.",
                ) from err
            raise Unavailable(
                f"could not get a slot of the Prefect server's limit {LIMIT!r}",
                f"{err}: {err.__cause__}",
                "Check the server; finished work is kept.",
            ) from err
        yield
