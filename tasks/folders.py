"""Folders that results of commands are written to."""

from __future__ import annotations

from pathlib import Path

from corpusmill.errors import UsageError


def made(folder: Path) -> Path:
    """The folder, made where it is not there.

    Raises:
        UsageError: there can be no folder of this name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as err:
        raise UsageError(f"{folder} cannot be a folder", str(err), "Choose another path.") from err
    return folder
