"""Code of the user's that a recipe names: found, and known by what its results rest on."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from corpusmill.errors import NotFound, UsageError


@lru_cache(maxsize=16)
def module(name: str) -> ModuleType:
    """A module by its name.

    Raises:
        NotFound: there is none. UsageError: it cannot be imported, or declares no VERSION.
    """
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError as err:
        raise NotFound(f"no module {name}", str(err), "Install its package, or put its folder on PYTHONPATH.") from err
    except Exception as err:
        raise UsageError(
            f"module {name} cannot be imported", f"{type(err).__name__}: {err}", "Correct the module."
        ) from err
    version = getattr(found, "VERSION", None)
    if isinstance(version, bool) or not isinstance(version, int):
        raise UsageError(f"{name} declares no VERSION", f"expected a whole number, got {version!r}", "Add VERSION = 1.")
    return found


def named(name: str) -> Any:
    """What `package.module:name` names.

    Raises:
        NotFound, UsageError: as `module`; or it has no such name.
    """
    place, _, part = name.partition(":")
    found = getattr(module(place), part, None)
    if not callable(found):
        raise NotFound(f"no function {name}", f"module {place} has no function of that name", "Check the recipe.")
    return found


@lru_cache(maxsize=16)
def identity(name: str) -> dict[str, Any]:
    """What the results of a module rest on: the VERSION it declares, the version of its package (empty where it is in
    none), the sha256 of its file."""
    found = module(name)
    try:
        package = importlib.metadata.version(name.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        package = ""
    digest = hashlib.sha256(Path(str(found.__file__)).read_bytes()).hexdigest()
    return {"module": name, "version": found.VERSION, "package": package, "sha256": digest}
