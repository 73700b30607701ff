"""Extras of the package (pyproject.toml): which of them brings what is missing, in one line.

All code is in every install; an extra brings the packages that some of it needs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import TracebackType

from corpusmill.errors import Unavailable

BRINGS = {
    "flows": ("prefect", "httpx", "uvicorn", "yaml"),
    "train": ("torch",),
}
"""Extra -> the modules that our code imports of its packages."""


MEGABYTES = {"flows": 110, "train": 740}
"""Extra -> what its packages take on the disk beside the base install; torch as its CPU build."""


def need(*extras: str) -> None:
    """Go on only where the packages of these extras are installed.

    Raises:
        Unavailable: one is not; the message names the extras.
    """
    if absent := [extra for extra in extras if _absent(extra)]:
        raise _unavailable(absent)


def missing(error: BaseException) -> Unavailable | None:
    """What to say of a failed import, if an extra brings what was to be imported."""
    module = (getattr(error, "name", None) or "").partition(".")[0]
    extras = [extra for extra, modules in BRINGS.items() if module in modules]
    return _unavailable(extras) if isinstance(error, ModuleNotFoundError) and extras else None


def explain(extra: str) -> None:
    """Let a program that ends because this extra is missing say so in one line, with the exit code of `mill`."""
    if not _absent(extra):
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if said := missing(error):
            print(f"error[{said.id}] {said}", file=sys.stderr)
            raise SystemExit(said.exit_code)
        before(kind, error, trace)

    sys.excepthook = hook


def _absent(extra: str) -> bool:
    return any(find_spec(module) is None for module in BRINGS[extra])


def _unavailable(extras: list[str]) -> Unavailable:
    names, size = ",".join(extras), sum(MEGABYTES[extra] for extra in extras)
    return Unavailable(
        f"this needs packages of the extra{'s' if len(extras) > 1 else ''} {names}: pip install 'corpusmill[{names}]' "
        f"(about {size} MB)"
    )
