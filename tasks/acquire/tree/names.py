"""Names of files in a source: which fit a pattern, and which belong to nobody's text, whatever the pattern.

Beside data lie files of tools: hidden ones, downloads that have not ended, backups, checksums, indexes, marks of other
programs. They are left out and counted, unless the pattern asks for their ending or their dot.
"""

from __future__ import annotations

import fnmatch
import re

PACKED = r"(\.(gz|bz2|xz|zst|zstd))?$"
"""What streams.py unpacks (tasks/acquire/streams.py)."""

HIDDEN = "hidden"
_TOOLS = {
    "unfinished": r"\.(tmp|temp|part|partial|crdownload|download|filepart|incomplete|inprogress|aria2|open|lock)$",
    "backup": r"\.(bak|backup|orig|old|save|sw[po])$|~$|^#.*#$",
    "checksum": r"\.(md5|sha1|sha224|sha256|sha384|sha512|crc|crc32|sfv|asc|sig)(sums?)?(\.txt)?$"
    r"|^(md5|sha\d*|b2|checksum)[-_.]?(sums?)?(\.txt)?$",
    "index": r"\.(idx|index|cdxj?|gzi|tbi)(\.gz)?$",
    "mark": r"^(_success|_(committed|started)_.*|_(common_)?metadata|thumbs\.db|desktop\.ini)$",
}
_NOT_DATA = {why: re.compile(pattern, re.IGNORECASE) for why, pattern in _TOOLS.items()}
_FOLDERS = re.compile(
    r"^(_temporary|_delta_log|_spark_metadata|__macosx|__pycache__|lost\+found|@eadir|\$recycle\.bin)$", re.IGNORECASE
)
_SUFFIX = re.compile(r"((\.[A-Za-z0-9]{1,10})?\.(gz|bz2|xz|zst|zstd|lz4)|\.[\w+~-]{1,12})$", re.IGNORECASE)


def suffix(name: str) -> str:
    """What a name ends with, in small letters: `.jsonl.gz`, `.txt`; "(none)" where it has no suffix."""
    found = _SUFFIX.search(name.rpartition("/")[2])
    return found[0].lower() if found else "(none)"


def not_data(name: str, pattern: str | None) -> str | None:
    """Why a file of this name is left out, whatever stands in it; None if it is not.

    Args:
        name: without folders.
        pattern: of the recipe; it may ask for such files by their ending (`*.tmp`), or for hidden ones (`.*`).
    """
    if _is_hidden(name, pattern):
        return HIDDEN
    asked = re.split(r"[*?\]]", (pattern or "*").rpartition("/")[2])[-1]
    for why, names in _NOT_DATA.items():
        if names.search(name) and not (asked and names.search(asked)):
            return why
    return None


def no_folder_of_data(name: str, pattern: str | None) -> str | None:
    """Why a folder of this name is not entered; None if it is."""
    if _is_hidden(name, pattern):
        return HIDDEN
    return "mark" if _FOLDERS.search(name) and name not in (pattern or "").split("/") else None


def _is_hidden(name: str, pattern: str | None) -> bool:
    asked = (part for part in (pattern or "").split("/") if part.startswith("."))
    return name.startswith(".") and not any(fnmatch.fnmatchcase(name, part) for part in asked)


def fits(path: str, pattern: str) -> bool:
    """Whether a path fits a glob: `*`, `?` and `[...]` within a name, `**/` for any number of folders."""
    return _fits(tuple(path.split("/")), tuple(pattern.split("/")))


def _fits(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    if patterns[0] == "**":
        return any(_fits(names[skip:], patterns[1:]) for skip in range(len(names)))
    return fnmatch.fnmatchcase(names[0], patterns[0]) and _fits(names[1:], patterns[1:])


def may_hold(folder: str, pattern: str) -> bool:
    """Whether a path below a folder may fit a glob."""
    return _may_hold(tuple(folder.split("/")), tuple(pattern.split("/")))


def _may_hold(names: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not names or not patterns or patterns[0] == "**":
        return bool(patterns)
    return fnmatch.fnmatchcase(names[0], patterns[0]) and _may_hold(names[1:], patterns[1:])
