"""Values of an Arrow column as JSON has them: converted at once, and value by value where one of them has no form.

Dates and times since 1970 become their form (`corpusmill/readers/dates.py`) without the calendar of Python, which ends
in the year 9999 and knows neither nanoseconds nor foreign zones. What cannot be converted is `Unread`, with what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corpusmill.readers.dates import of_epoch
from tasks.acquire.rows.fields import Unread

if TYPE_CHECKING:
    import pyarrow as pa

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY_S = 86_400


def values(array: pa.Array) -> list[Any]:
    """The values of a column: null as None, binary as text, a value without a form as Unread."""
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.ExtensionType):
        return values(array.storage)
    if pa.types.is_dictionary(kind):
        return _of_dictionary(array)
    if pa.types.is_timestamp(kind):
        numbers = array.cast(pa.timestamp(kind.unit)).cast(pa.int64()).to_pylist()
        return [_instant(number, PER_SECOND[kind.unit], kind) for number in numbers]
    if pa.types.is_date32(kind):
        return [_instant(day, 1, kind, DAY_S) for day in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_date64(kind):
        return [_instant(number, 1000, kind) for number in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _texts(array, kind)
    if _is_binary(kind):
        return [value if value is None else _text(value) for value in array.to_pylist()]
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return [
            None if valid is False else Unread("no_text_column", str(kind)) for valid in array.is_valid().to_pylist()
        ]
    try:
        found: list[Any] = array.to_pylist()
    except Exception:  # Arrow's own errors, those of Python's calendar, of UTF-8, of zones
        found = list(_one_by_one(array))
    return found


def _texts(array: pa.Array, kind: pa.DataType) -> list[Any]:
    import pyarrow as pa

    try:
        found: list[Any] = array.to_pylist()
    except UnicodeDecodeError:
        plain = array.cast(pa.large_string()) if pa.types.is_string_view(kind) else array
        wide = pa.large_binary() if pa.types.is_large_string(plain.type) else pa.binary()
        found = [value if value is None else _text(value) for value in plain.view(wide).to_pylist()]
    return found


def _text(value: bytes) -> str | Unread:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return Unread("bad_encoding", value[:100].decode("utf-8", "replace"))


def _of_dictionary(array: pa.Array) -> list[Any]:
    """Each entry that is used is converted once: a long one may stand in every row."""
    used = array.indices.unique().drop_null()
    entries = dict(zip(used.to_pylist(), values(array.dictionary.take(used)), strict=True))
    return [None if index is None else entries[index] for index in array.indices.to_pylist()]


def _instant(number: int | None, per_second: int, kind: pa.DataType, scale: int = 1) -> str | Unread | None:
    if number is None:
        return None
    return of_epoch(number * scale, per_second) or Unread("no_text_column", f"{number} ({kind})")


def _one_by_one(array: pa.Array) -> Iterator[Any]:
    for value in array:
        try:
            yield value.as_py()
        except Exception:
            yield Unread("no_text_column", str(array.type))


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, or bytes that may be one."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or _is_binary(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
