"""How a flow run that is ended from outside tells its state.

Prefect's engine logs "Finished in state ..." from its own copy of the run. Where a runner cancels, the runner sets the
states on the server and the engine leaves its copy alone, so a cancelled run said "Finished in state Running()".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prefect import get_client
from prefect.context import FlowRunContext
from prefect.exceptions import TerminationSignal


@contextmanager
def true_state() -> Iterator[None]:
    """Around the body of a flow: if a signal ends it, the engine's copy of its state becomes the server's."""
    try:
        yield
    except TerminationSignal:
        with suppress(Exception):  # a server that is gone does not keep a run from ending
            _refresh()
        raise


def _refresh() -> None:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return
    with get_client(sync_client=True) as client:
        context.flow_run.state = client.read_flow_run(context.flow_run.id).state
