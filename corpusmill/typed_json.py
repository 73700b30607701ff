"""Frozen dataclasses from JSON and back: types are the schema, every fault says where it is and what was expected.

A field without a default must be there; one of type `X | None` may be null. A field whose default is None is optional:
it is left out where it is None. Integers pass as floats, nothing else is converted. Reading compiles one closure a
type, so a manifest of many shards is read at about a microsecond a value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

Read = Callable[[Any], Any]
T = TypeVar("T")

NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


class Mismatch(ValueError):
    """A value that is not of its type: `place` within the JSON, what was `expected` there, and what `came`."""

    def __init__(self, expected: str, came: str, place: str = "") -> None:
        super().__init__(expected, came, place)
        self.expected, self.came, self.place = expected, came, place

    def inside(self, key: str | int) -> Mismatch:
        """The same fault, seen from the value around."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        return Mismatch(self.expected, self.came, step + self.place)


def read(kind: type[T], value: object) -> T:
    """A dataclass from parsed JSON.

    Raises:
        Mismatch: the first value that is missing, unknown or of another type.
    """
    found: T = _reader(cast(Hashable, kind))(value)
    return found


def written(value: Any) -> Any:
    """The JSON of a dataclass, list, mapping or plain value; `read` gives an equal one back."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((name, getattr(value, name)) for name in _names(type(value)))
        return {name: written(inner) for name, inner in pairs if not (inner is None and name in _optional(type(value)))}
    if isinstance(value, Mapping):
        return {key: written(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [written(inner) for inner in value]
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _optional(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind) if field.default is None)


@cache
def _reader(kind: Any) -> Read:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if kind in NAMES:
        return _scalar(kind)
    if origin is UnionType:
        return _either([_reader(arg) for arg in args])
    if origin is tuple:
        return _items(_reader(args[0]))
    if origin is Mapping:
        return _values(_reader(args[1]))
    return _object(kind)


def _scalar(kind: type) -> Read:
    kinds = {int, float} if kind is float else {kind}  # by type: True is no number

    def scalar(value: Any) -> Any:
        if type(value) not in kinds:
            raise Mismatch(NAMES[kind], _said(value))
        return value

    return scalar


def _either(readers: list[Read]) -> Read:
    def either(value: Any) -> Any:
        expected = []
        for reader in readers:
            try:
                return reader(value)
            except Mismatch as fault:
                if fault.place or fault.came != _said(value):  # the kind fits, something inside does not
                    raise
                expected.append(fault.expected)
        raise Mismatch(" or ".join(expected), _said(value))

    return either


def _items(item: Read) -> Read:
    def items(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise Mismatch("a list", _said(value))
        found = []
        for i, inner in enumerate(value):
            try:
                found.append(item(inner))
            except Mismatch as fault:
                raise fault.inside(i) from None
        return tuple(found)

    return items


def _values(item: Read) -> Read:
    def values(value: Any) -> dict[str, Any]:
        found = {}
        for key, inner in _mapping(value).items():
            try:
                found[key] = item(inner)
            except Mismatch as fault:
                raise fault.inside(key) from None
        return found

    return values


def _object(kind: type) -> Read:
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _names(kind)}
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]

    def instance(value: Any) -> Any:
        mapping = _mapping(value)
        given = {}
        for key, inner in mapping.items():
            if key not in readers:
                raise Mismatch(f"only {', '.join(readers)}", f"the unknown key {key!r}")
            try:
                given[key] = readers[key](inner)
            except Mismatch as fault:
                raise fault.inside(key) from None
        for name in needed:
            if name not in given:
                raise Mismatch(f"a key {name!r}", f"only {', '.join(given) or 'an empty object'}")
        return kind(**given)

    return instance


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Mismatch("an object", _said(value))
    return value


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    return repr(value)[:80]
