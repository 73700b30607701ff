"""Canonical JSON (RFC 8785) and digests of Arrow tables that do not depend on the file format.

`digest` names bytes; `content` names rows. A pyarrow patch release changes a Parquet footer and so every `digest`;
`content` stays, which is why unit keys, golden tests and dataset identity use it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MAX_SAFE_INTEGER = 2**53


def canonical_json(value: object) -> bytes:
    """Bytes of `value` in RFC 8785 form: keys sorted by UTF-16 code units, no spaces, shortest floats.

    Raises:
        ValueError: NaN, an infinity, an integer beyond 2**53, or a type without a canonical form.
    """
    return "".join(_parts(value, "$")).encode("utf-8")


def _parts(value: Any, path: str) -> list[str]:
    if value is None or isinstance(value, bool):
        return [{None: "null", True: "true", False: "false"}[value]]
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise ValueError(f"{path}: integer {value} is beyond 2**53; store it as a string")
        return [str(value)]
    if isinstance(value, float):
        return [_number(value, path)]
    if isinstance(value, str):
        return [_string(value, path)]
    if isinstance(value, (list, tuple)):
        inner = [part for i, item in enumerate(value) for part in (*_parts(item, f"{path}[{i}]"), ",")]
        return ["[", *inner[:-1], "]"]
    if isinstance(value, Mapping):
        out: list[str] = []
        for key in sorted(value, key=lambda k: _utf16(k, path)):
            out += [_string(key, path), ":", *_parts(value[key], f"{path}.{key}"), ","]
        return ["{", *out[:-1], "}"]
    raise ValueError(f"{path}: {type(value).__name__} has no canonical form")


def _utf16(key: object, path: str) -> bytes:
    if not isinstance(key, str):
        raise ValueError(f"{path}: key {key!r} is not a string")
    return key.encode("utf-16-be")


_QUOTED = json.JSONEncoder(ensure_ascii=False).encode
"""RFC 8785 escapes what JSON must escape, in the short form where there is one; so does this, in C."""


def _string(text: str, path: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        raise ValueError(f"{path}: lone surrogate at character {err.start}") from err
    return _QUOTED(text)


def _number(value: float, path: str) -> str:
    """ECMAScript Number::toString, which RFC 8785 prescribes."""
    if not math.isfinite(value):
        raise ValueError(f"{path}: {value} has no canonical form")
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= point <= 21:
        return sign + digits + "0" * (point - k)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + digits[0] + ("." + digits[1:] if k > 1 else "") + power


def parse_canonical(data: bytes) -> Any:
    """The value of canonical JSON, such that its canonical JSON is `data` again.

    A float like 2.0**60 is written without point or exponent; read as an integer it would be beyond 2**53.
    """
    return json.loads(
        data, parse_int=lambda digits: int(digits) if abs(int(digits)) <= MAX_SAFE_INTEGER else float(digits)
    )


def sha256(data: bytes) -> str:
    """Hex sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: object) -> str:
    """Hex sha256 of the canonical JSON of a value."""
    return sha256(canonical_json(value))


class ContentHasher:
    """Digest of rows, fed batch by batch; batch boundaries, dictionaries and offsets do not matter.

    Per column and per nested level it hashes the type, validity (one byte a slot), lengths (int64) and the values of
    valid slots; then sha256 over canonical JSON of them.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns = [_ColumnHasher(field.type) for field in schema]
        self.rows = 0

    def update(self, data: pa.RecordBatch | pa.Table) -> None:
        """Add rows; the columns must be those of the schema, in its order."""
        self.rows += data.num_rows
        for hasher, column in zip(self._columns, data.columns, strict=True):
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                hasher.update(chunk)

    def hexdigest(self) -> str:
        """The content digest of all rows so far."""
        columns = [
            {"name": field.name, **hasher.summary()} for field, hasher in zip(self._schema, self._columns, strict=True)
        ]
        return digest_of({"content": 1, "rows": self.rows, "columns": columns})


class _ColumnHasher:
    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self.validity, self.lengths, self.values = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
        self.child = _ColumnHasher(self.kind.value_type) if _is_list(self.kind) else None
        self.fields = [_ColumnHasher(f.type) for f in self.kind] if pa.types.is_struct(self.kind) else []
        if not (self.child or self.fields or _is_text(self.kind) or _is_fixed_width(self.kind)):
            raise ValueError(f"columns of type {kind} have no content digest")

    def update(self, array: pa.Array) -> None:
        if len(array) == 0:
            return
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        self.validity.update(array.is_valid().to_numpy(zero_copy_only=False).tobytes())
        array = array.drop_null() if array.null_count else array
        if len(array) == 0:
            return
        if self.child is not None:
            if not pa.types.is_fixed_size_list(self.kind):
                self.lengths.update(pc.cast(pc.list_value_length(array), pa.int64()).to_numpy().tobytes())
            self.child.update(array.flatten())
        elif self.fields:
            for hasher, column in zip(self.fields, array.flatten(), strict=True):
                hasher.update(column)
        elif _is_text(self.kind):
            array = pc.cast(array, pa.large_binary())
            self.lengths.update(pc.cast(pc.binary_length(array), pa.int64()).to_numpy().tobytes())
            offsets = memoryview(array.buffers()[1]).cast("B").cast("q")[array.offset : array.offset + len(array) + 1]
            if offsets[-1] > offsets[0]:
                self.values.update(memoryview(array.buffers()[2])[offsets[0] : offsets[-1]])
        elif pa.types.is_boolean(self.kind):
            self.values.update(pc.cast(array, pa.uint8()).to_numpy(zero_copy_only=False).tobytes())
        else:
            width = self.kind.bit_width // 8
            self.values.update(
                memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
            )

    def summary(self) -> dict[str, object]:
        out: dict[str, object] = {
            "type": "list" if self.child else "struct" if self.fields else str(self.kind),
            "validity": self.validity.hexdigest(),
            "lengths": self.lengths.hexdigest(),
            "values": self.values.hexdigest(),
        }
        if self.child is not None:
            out["child"] = self.child.summary()
        if self.fields:
            out["fields"] = [f.summary() for f in self.fields]
        return out


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_text(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind)


def _is_fixed_width(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_null(kind) or t.is_primitive(kind) or t.is_fixed_size_binary(kind) or t.is_decimal(kind)


def content_digest(table: pa.Table) -> str:
    """Content digest of a whole table."""
    hasher = ContentHasher(table.schema)
    hasher.update(table)
    return hasher.hexdigest()
