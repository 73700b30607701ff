"""Licences of source files as SPDX expressions, and whether a recipe accepts them.

A file's own SPDX-License-Identifier comes first, then licence files of its folder or the nearest above, then what the
package says of itself at its root. Licence files are compared with the texts that `identify` ships, by Sørensen-Dice
of their word pairs, as licensee and askalono do. If a folder has several licence files, all must be accepted.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from corpusmill.errors import UsageError
from corpusmill.extractor.extraction import Extraction

LIBRARIES = ("identify", "license-expression")
MIN_DICE = 0.95  # licensee asks 0.98 of lines, askalono 0.9; two- and three-clause BSD are 0.93 alike
HEAD_BYTES = 4096
MAX_LICENCE_BYTES = 2**20
MAX_EXPRESSION = 2000  # characters
ANY = "*"

IS_LICENCE = re.compile(r"(?i)^(un)?licen[cs]es?([._-].*)?$|^copying([._-].*)?$")
METADATA = ("PKG-INFO", "METADATA", "package.json", "Cargo.toml", "pyproject.toml")
"""Files at a package's root in which it names its licence, the best first."""

_IDENTIFIER = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9 .+()-]{2,200})")
_NOT_TERMS = re.compile(
    r"(?im)^[^\w\n]*(copyright\s*(\(c\)|©|\d|[\[<:]|by\b)|\(c\)|©|all rights reserved"
    r"|(the )?[\w -]{0,20}licen[cs]e( \(?[\w -]+\)?)?[^\w\n]*$).*$"
)
_WORD = re.compile(r"[a-z0-9]+")
_APPENDIX = "end of terms and conditions"
_OLD_IDS = re.compile(r"^((?:A|L)?GPL-\d\.\d)$")


def file_licence(head: str, folder: str, found: Mapping[str, str]) -> str | None:
    """The licence of a source file, by what it says itself or what holds in its folder.

    Args:
        head: the file's beginning.
        folder: path of its folder in the tree, "" for the root.
        found: folder -> expression, from `folder_licences`.
    """
    if match := _IDENTIFIER.search(head):
        return expression(match[1].strip(" -")) or match[1].strip()
    path = PurePosixPath(folder)
    for place in (path, *path.parents):
        if licence := found.get(str(place)):
            return licence
    return None


def folder_licences(files: Mapping[str, str]) -> dict[str, str]:
    """Which licence holds in which folder of a tree ("." is its root).

    Args:
        files: path -> what `found_in` gives of the tree's licence files and metadata (`is_evidence`).
    """
    by_folder: dict[str, set[str]] = {}
    stated: dict[str, tuple[int, str]] = {}
    for path, licence in sorted(files.items()):
        place, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
        if name in METADATA:
            rank = METADATA.index(name)
            if licence and rank < stated.get(place, (len(METADATA), ""))[0]:
                stated[place] = rank, licence
        elif licence:
            by_folder.setdefault(place, set()).add(licence)
    found = {place: licence for place, (_, licence) in stated.items()}
    return {**found, **{place: " AND ".join(sorted(names)) for place, names in by_folder.items() if place not in found}}


def is_evidence(path: str) -> bool:
    """Whether a file of a tree may say under which licence the tree is."""
    name = PurePosixPath(path).name
    return name in METADATA or IS_LICENCE.match(name) is not None


def found_in(request: str) -> Extraction:
    """What a licence file or a package's metadata says, "" for nothing, for a process of its own.

    Args:
        request: name of the file, a newline, and its text.
    """
    name, _, text = request.partition("\n")
    return Extraction((_stated(name, text) if name in METADATA else text_licence(text)) or "")


def text_licence(text: str) -> str | None:
    """SPDX id of a licence's text; None where it is none that is known, or several."""
    words = _pairs(text)
    best, name = 0.0, None
    for known, reference in _references():
        both = words.total() + reference.total()
        if 2 * min(words.total(), reference.total()) < MIN_DICE * both:
            continue  # it cannot be alike
        dice = 2 * sum((reference & words).values()) / max(1, both)
        if dice > best:
            best, name = dice, known
    return name if best >= MIN_DICE else None


@lru_cache(maxsize=4096)
def expression(text: str) -> str | None:
    """An SPDX expression in its normal form; None where it is none."""
    from license_expression import ExpressionError

    if len(text) > MAX_EXPRESSION:
        return None
    try:
        parsed = _spdx().parse(text, validate=True)
    except (ExpressionError, ValueError, RecursionError):
        return None
    return None if parsed is None else str(parsed)


@lru_cache(maxsize=4096)
def is_let_in(licence: str, allowed: tuple[str, ...]) -> bool:
    """Whether an expression is satisfied by the accepted licences: AND requires all, OR one.

    An exception only adds permissions, so `X WITH Y` is accepted if X is.
    """
    if ANY in allowed:
        return True
    from license_expression import ExpressionError

    try:
        return _satisfied(_spdx().parse(licence), allowed)
    except (ExpressionError, ValueError, RecursionError):
        return False


def check_allowed(allowed: Collection[str], source: str) -> None:
    """Raise UsageError if a recipe accepts something that is not an SPDX id."""
    unknown = [name for name in allowed if name != ANY and expression(name) != name]
    if unknown:
        raise UsageError(
            f"source {source!r}: licences {', '.join(unknown)}",
            f"expected exact SPDX ids: {', '.join(map(_with_nearest, unknown))}",
            "See https://spdx.org/licenses; for all forms of the GPL name GPL-2.0-only and GPL-2.0-or-later.",
        )


def _with_nearest(name: str) -> str:
    known = {key.lower(): key for key in map(str, _spdx().known_symbols)}
    like = expression(name) or next((known[key] for key in difflib.get_close_matches(name.lower(), known, n=1)), None)
    return f'"{name}"' + (f' (did you mean "{like}"?)' if like else "")


def _satisfied(node: Any, allowed: tuple[str, ...]) -> bool:
    if hasattr(node, "license_symbol"):
        return str(node.license_symbol.key) in allowed or str(node) in allowed
    if hasattr(node, "key"):
        return str(node.key) in allowed
    met = [_satisfied(part, allowed) for part in node.args]
    return all(met) if type(node).__name__ == "AND" else any(met)


def _stated(name: str, text: str) -> str | None:
    """The expression in a package's metadata."""
    try:
        if name in ("PKG-INFO", "METADATA"):
            head = text.partition("\n\n")[0]
            match = re.search(r"(?m)^License-Expression: *(.+)$", head) or re.search(r"(?m)^License: *(.+)$", head)
            said = match[1] if match else None
        elif name == "package.json":
            said = json.loads(text).get("license")
        else:
            table = tomllib.loads(text)
            said = table.get("package" if name == "Cargo.toml" else "project", {}).get("license")
    except (ValueError, AttributeError, RecursionError):
        return None
    return expression(said.strip().replace("/", " OR ")) if isinstance(said, str) else None


@lru_cache(maxsize=1)
def _spdx() -> Any:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


@lru_cache(maxsize=1)
def _references() -> list[tuple[str, Counter[tuple[str, str]]]]:
    from identify.vendor.licenses import LICENSES

    return [(_OLD_IDS.sub(r"\1-only", name), _pairs(text)) for name, text in LICENSES]


def _pairs(text: str) -> Counter[tuple[str, str]]:
    """Pairs of neighbouring words of the terms, without titles, owners and the appendix on how to apply them."""
    words = _WORD.findall(_NOT_TERMS.sub("", text[:MAX_LICENCE_BYTES].lower().partition(_APPENDIX)[0]))
    return Counter(pairwise(words))
