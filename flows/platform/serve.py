"""The Prefect server on a socket that is already open: `python -m flows.platform.serve FD`.

The starting process owns the port before the ten seconds in which the server migrates its database. Otherwise
two platforms that start at once would choose the same port, and one of them would take the other's server for its own.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from prefect.server.api.server import create_app


def main(descriptor: int) -> None:
    """Serve until SIGTERM."""
    listener = socket.socket(fileno=descriptor)
    uvicorn.Server(uvicorn.Config(create_app(final=True), timeout_keep_alive=5)).run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
