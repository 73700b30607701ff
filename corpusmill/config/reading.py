"""Sections read from TOML files and checked; all faults are reported at once."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from corpusmill.config.section import Section
from corpusmill.errors import NotFound, UsageError
from corpusmill.places import SHIPPED

S = TypeVar("S", bound=Section)


def read_section(kind: type[S], path: str | Path, overrides: Sequence[str], noun: str) -> S:
    """Read a TOML file (or the name of one in `recipes/`) as a section; errors are reported as for a recipe.

        Args:
    kind: the section type of the whole file.
            overrides: `key.path=value`, the value as TOML or a bare string.
    noun: word for the file in messages.
    """
    file = find_file(path, "recipes", ".toml", noun)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{path}: not a TOML file", str(err)) from err
    for override in overrides:
        _override(data, override)
    return parse_section(kind, data, str(path), noun)


def parse_section(kind: type[S], data: Mapping[str, Any], origin: str, noun: str) -> S:
    """Check a section that is already a mapping; messages contain `origin` and `noun`."""
    try:
        return kind.model_validate(data)
    except ValidationError as err:
        faults = list(_faults(err, kind, noun))
        raise UsageError(
            f"{origin}: {len(faults)} fault{'s' if len(faults) > 1 else ''} in the {noun}",
            "\n".join(f"  {fault}" for fault in faults),
            f"All keys: {kind.all_keys}",
        ) from None


def find_file(path: str | Path, folder: str, suffix: str, noun: str) -> Path:
    """A file by path, or by its name in a folder: of the working folder first, then of what ships."""
    given = Path(path)
    own, shipped = Path(folder), SHIPPED / folder
    for candidate in (given, own / f"{path}{suffix}", shipped / f"{path}{suffix}", SHIPPED / given):
        if candidate.is_file():
            return candidate
    known = sorted({p.stem for place in (own, shipped) for p in place.glob(f"*{suffix}")})
    raise NotFound(
        f"no {noun} {str(path)!r}",
        f"it is neither a file nor one of {', '.join(known)}",
        f"Give a path, or a name in {folder}/.",
    )


def _override(data: dict[str, Any], text: str) -> None:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise UsageError(f"--set {text!r}", "expected key.path=value, for example extract.mode=trafilatura")
    *parents, leaf = key.strip().split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise UsageError(f"--set {text!r}", f"{parent} is a value, not a section")
    try:
        data[leaf] = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        data[leaf] = value


def _faults(err: ValidationError, kind: type[Section], noun: str) -> Iterator[str]:
    for fault in err.errors(include_url=False):
        loc, given = fault["loc"], fault["input"]
        if loc[:1] == ("source",):  # pydantic names the kind of source after its name: source.crawl.common-crawl.root
            loc = loc[:2] + loc[3:]
        place = ".".join(str(part) for part in loc) or noun
        if fault["type"] == "extra_forbidden":
            known = _known_keys(kind, fault["loc"][:-1])
            near = difflib.get_close_matches(str(loc[-1]), known, n=1)
            yield f"{place}: unknown key" + (f'; did you mean "{near[0]}"?' if near else f"; known: {', '.join(known)}")
        elif fault["type"] == "missing":
            yield f"{place}: missing"
        elif fault["type"] == "tuple_type":
            yield f'{place}: expected a list, for example ["a", "b"] (in quotes after --set), given {given!r}'
        else:
            shown = "" if isinstance(given, (dict, BaseModel)) else f", given {given!r}"
            yield f"{place}: {fault['msg'].removeprefix('Value error, ')}{shown}"


def _known_keys(section: type[Section], loc: Sequence[Any]) -> list[str]:
    """Keys of the section at a location below another; its elements are fields, names, numbers and kinds of a union."""
    choices = [section]
    for part in loc:
        if len(choices) > 1:  # part is a name, a number, or a kind of a union
            choices = [c for c in choices if part in get_args(c.model_fields["kind"].annotation)] or choices
        elif part in choices[0].model_fields:
            choices = list(_sections(choices[0].model_fields[part].annotation))
    return sorted({key for choice in choices for key in choice.model_fields})


def _sections(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from _sections(inner)
