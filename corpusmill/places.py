"""Where things lie: what ships with the package, the user's cache, and our own code for a Python that we start.

What ships (recipes, rules, deployments, settings of the platform) lies at the root of a clone, and in
`corpusmill/data/` of a wheel (pyproject.toml, force-include). Nothing is ever written there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(str(files("corpusmill"))).resolve()

SHIPPED = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _PACKAGE.parent
"""The folder that holds `recipes/`, `rules/`, `prefect.yaml` and `infra/`."""


def has_home() -> bool:
    """Whether the user has a home: HOME may be unset in a container, and the user unknown there."""
    try:
        Path.home()
    except RuntimeError:
        return False
    return True


def cache_folder() -> Path | None:
    """`corpusmill` below the user's cache folder (XDG): what can be had again, for all projects of the user. None where
    the user has no home; it need not be writable."""
    given = os.environ.get("XDG_CACHE_HOME")
    if not given and not has_home():
        return None
    return Path(given or Path.home() / ".cache") / "corpusmill"


def python_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of a Python that we start: it finds this very package, and no module of the working folder; names of
    files are UTF-8 to it whatever the locale says.

    Args:
        base: else the environment of this process.
    """
    env = {**(os.environ if base is None else base), "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    root = _PACKAGE.parent
    if root.name not in ("site-packages", "dist-packages"):  # there it is found anyway, behind the standard library
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), env.get("PYTHONPATH"))))
    return env
