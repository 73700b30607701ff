"""Paths that verbs write to: they are of this machine."""

from __future__ import annotations

import re
from pathlib import Path

from corpusmill.errors import UsageError


def on_this_machine(_: object, path: Path | None) -> None:
    """A validator of options: an address would be taken for the name of a folder.

    Raises:
        UsageError: the path begins like an address: s3://, file://, hdfs://.
    """
    address = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):/", str(path or ""))
    if address:
        raise UsageError(
            f"{str(path).replace(':/', '://', 1)} is an address, not a path",  # Path has made one slash of two
            "expected a file or folder of this machine; only --store takes an address",
            "Write it to a folder and copy it, for example with `aws s3 cp`."
            if address[1].lower() == "s3"
            else "Give the path without a scheme.",
        )


def written(file: Path, text: str) -> None:
    """Write a text file that the user named.

    Raises:
        UsageError: there can be no file of this name.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as err:
        raise UsageError(f"{file} cannot be written", err.strerror or str(err), "Choose another path.") from err


def folder(_: object, path: Path) -> None:
    """A validator of options that name a folder to work in.

    Raises:
        UsageError: it is an address, or a file.
    """
    on_this_machine(_, path)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file", "expected a folder", "Choose another path.")
