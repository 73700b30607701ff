"""What is wrong with a file's sections: all of it at once, in plain words.

A check that looks at several keys runs only where each key by itself is right. So the search drops what was found to be
wrong and goes on, until what is left is right.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args

from pydantic import ValidationError

from corpusmill.config.section import PATTERNS, Section

S = TypeVar("S", bound=Section)
Key = tuple[str | int, ...]
"""Where a value is: names of sections and keys, positions in lists."""

ROUNDS = 50
"""More than this many layers of faults below each other are reported another time."""


@dataclass(frozen=True)
class Fault:
    """One fault: where, and what."""

    key: Key
    says: str

    @property
    def place(self) -> str:
        """The key as it is written: `source.web.root`."""
        return ".".join(map(str, self.key))


@dataclass
class Found(Generic[S]):
    """What a search found: the faults, and the section without the values that have them (None: nothing is left)."""

    faults: list[Fault] = field(default_factory=list)
    section: S | None = None
    dropped: set[Key] = field(default_factory=set)


def search(kind: type[S], data: Mapping[str, Any]) -> Found[S]:
    """All faults of a section that is a mapping."""
    left, found, known = copy.deepcopy(dict(data)), Found[S](), set[Fault]()
    for _ in range(ROUNDS):
        try:
            found.section = kind.model_validate(left)
            break
        except ValidationError as err:
            count = len(found.dropped)
            ours = {key[:length] for key in found.dropped for length in range(len(key) + 1)}  # what is gone by us
            for fault, drop in [one for given in err.errors(include_url=False) for one in _read(given, kind)]:
                if fault.key not in ours and fault not in known:
                    known.add(fault)
                    found.faults.append(fault)
                for key in [key for key in drop if _holds(left, key)] or drop[:1]:
                    _drop(left, key, kind, found.dropped)
            if len(found.dropped) == count:
                break
    return found


def _read(given: Any, kind: type[Section]) -> Iterator[tuple[Fault, list[Key]]]:
    """A fault as pydantic reports it, and the values to go on without."""
    loc, context = given["loc"], given.get("ctx", {})
    if loc[:1] == ("source",):  # the kind of a source stands after its name: source.crawl.common-crawl.root
        loc = loc[:2] + loc[3:]
    if loc[-1:] == ("[key]",):
        loc = loc[:-1]
    keys = [(*loc, *key.split(".")) for key in context.get("keys", ())]
    says = _says(given, kind)
    if given["type"].startswith("union_tag"):
        yield Fault((*loc, "kind"), says), [loc]
    else:
        yield Fault(keys[0] if keys else loc, says), keys or [loc]


def _holds(data: Any, key: Key) -> bool:
    for part in key:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _drop(data: dict[str, Any], key: Key, kind: type[Section], dropped: set[Key]) -> None:
    """Take a value away; where there is none, the section that lacks it, or put what stands for it."""
    if key in dropped and len(key) > 1:
        key = key[:-1]
    dropped.add(key)
    if not key:
        return
    holder: Any = data
    if not _holds(data, key[:-1]):
        return
    for part in key[:-1]:
        holder = holder[part]
    if isinstance(holder, dict) and key[-1] in holder:
        del holder[key[-1]]
    elif len(key) > 1:  # an entry of a list goes with its list
        _drop(data, key[:-1], kind, dropped)
    if len(key) == 1 and key[0] in kind.stand_ins:
        data[str(key[0])] = copy.deepcopy(kind.stand_ins[str(key[0])])


def _says(given: Any, kind: type[Section]) -> str:
    """What was expected and what came."""
    what, context, value = given["type"], given.get("ctx", {}), given["input"]
    came = "" if isinstance(value, (dict, Section)) else f", given {_shown(value)}"
    match what:
        case "extra_forbidden":
            return f"unknown key{_instead(given['loc'][-1], _known_keys(kind, given['loc'][:-1]))}"
        case "missing":
            return "missing"
        case "union_tag_not_found":
            return f"missing; expected {_or(_tags(kind))}"
        case "union_tag_invalid":
            tags = _tags(kind)
            return f"expected {_or(tags)}, given {_shown(context['tag'])}{_near(context['tag'], tags)}"
        case "literal_error":
            words = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
            return f"expected {_or(words)}{came}{_near(value, words)}"
        case "string_pattern_mismatch":
            return f"expected {PATTERNS.get(context['pattern'], 'another form')}{came}"
        case "tuple_type":
            return f'expected a list, for example ["a", "b"] (in quotes after --set){came}'
        case "fault":
            return str(context["says"])
        case "value_error":
            return str(given["msg"]).removeprefix("Value error, ") + came
    for types, expected in _WORDS.items():
        if what in types:
            return expected.format(**context) + came
    return f"{given['msg'][:1].lower()}{given['msg'][1:]}{came}"


_WORDS: dict[tuple[str, ...], str] = {
    ("int_type", "int_from_float", "int_parsing"): "expected a whole number",
    ("float_type", "float_parsing", "finite_number"): "expected a number",
    ("bool_type", "bool_parsing"): "expected true or false",
    ("string_type",): "expected a text in quotes",
    ("dict_type", "model_type", "model_attributes_type", "mapping_type"): "expected a section with keys",
    ("greater_than_equal",): "expected {ge:g} or more",
    ("less_than_equal",): "expected {le:g} or less",
    ("greater_than",): "expected more than {gt:g}",
    ("less_than",): "expected less than {lt:g}",
    ("too_short", "string_too_short"): "expected {min_length} or more of them",
    ("too_long", "string_too_long"): "expected {max_length} of them or fewer",
}


def _shown(value: Any) -> str:
    """A value as it stands in the file."""
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        shown = str(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _near(word: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def _instead(word: object, known: Sequence[str]) -> str:
    return _near(word, known) or f"; known: {', '.join(known)}"


def _tags(kind: type[Section]) -> list[str]:
    """Kinds of sources, in the order in which they are declared."""
    found: list[str] = []
    for source in _sections(kind.model_fields["source"].annotation):
        found += get_args(source.model_fields["kind"].annotation)
    return found


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
