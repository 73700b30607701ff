"""How large a file of a source is, without reading it."""

from __future__ import annotations

from corpusmill.errors import NotFound, Unavailable
from tasks.acquire import http
from tasks.acquire.transport import address_of, folder_of, is_http, tree_files


def size_of(root: str, locator: str) -> int | None:
    """Bytes of a file or tree below a root, None where nobody says; on a server it costs one request of one byte.

    Raises:
        Unavailable: it is listed but not there, or the server does not answer.
    """
    try:
        if is_http(root):
            return http.length(address_of(root, locator))
        path = folder_of(root) / locator
        if path.is_dir():
            return sum(file.stat().st_size for _, file in tree_files(path))
        return path.stat().st_size
    except (NotFound, OSError) as err:
        raise Unavailable(
            f"file {locator} is missing at {root}", str(err), "Bring it back, or take it off the list."
        ) from err
