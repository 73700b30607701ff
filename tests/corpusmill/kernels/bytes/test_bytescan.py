"""Looking through bytes eight at a time equals plain Python, wherever the bytes lie, and reads nothing beyond them."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.kernels.bytes.bytehash import U, address_of
from corpusmill.kernels.bytes.bytescan import ONES, count_byte, count_characters, equal_bytes, find_byte, lowest_byte
from corpusmill.kernels.bytes.bytescan import trim_left as _trim_left
from corpusmill.kernels.bytes.bytescan import trim_right as _trim_right

SOME = st.lists(st.sampled_from([0x00, 0x09, 0x0A, 0x0B, 0x61, 0x7F, 0x80, 0x8A, 0xFF]), max_size=40).map(bytes)


@numba.njit(nogil=True)
def _equal(chunk: U, copies: U) -> U:
    return equal_bytes(chunk, copies)


@numba.njit(nogil=True)
def _lowest(bits: U) -> U:
    return lowest_byte(bits)


@numba.njit(nogil=True)
def _trimmed(at: U, end: U) -> tuple[U, U]:
    return _trim_left(at, end), _trim_right(at, end)


def _placed(data: bytes, before: int, after: bytes = b"\n\n\n\n\n\n\n\n") -> tuple[np.ndarray, int]:
    """The bytes between others that would be found."""
    held = np.frombuffer(b"\n" * before + data + after, np.uint8)
    return held, int(address_of(held)) + before


@given(SOME, st.integers(0, 9), st.sampled_from([0x00, 0x0A, 0x0B, 0x80, 0xFF]))
def test_a_byte_is_found_and_counted_as_bytes_does(data: bytes, before: int, byte: int) -> None:
    held, at = _placed(data, before, bytes([byte]) * 9)
    found = int(find_byte(U(at), U(at + len(data)), U(byte))) - at
    assert found == (data.find(byte) if byte in data else len(data)), held
    assert int(count_byte(U(at), U(at + len(data)), U(byte))) == data.count(byte)


@given(st.text(max_size=30), st.integers(0, 9))
def test_characters_are_those_of_the_text(text: str, before: int) -> None:
    data = text.encode()
    held, at = _placed(data, before)
    assert int(count_characters(U(at), U(at + len(data)))) == len(text), held


@given(st.binary(min_size=8, max_size=8), st.integers(0, 255))
def test_equal_bytes_are_marked_exactly(data: bytes, byte: int) -> None:
    data = data[:4] + bytes([byte]) + data[5:]
    marks = int(_equal(U(int.from_bytes(data, "little")), U(byte) * ONES))
    assert marks.to_bytes(8, "little") == bytes(0x80 if one == byte else 0 for one in data)
    assert int(_lowest(U(marks))) == data.index(byte)


@pytest.mark.parametrize("text", ["", " ", "a", " a b ", "\u3000a\u3000", "é", "\u00a0é\u2003", "\t\n", "a\x1f", "…"])
def test_trimming_is_that_of_str_strip(text: str) -> None:
    data = text.encode()
    held, at = _placed(data, 3)
    left, right = (int(one) - at for one in _trimmed(U(at), U(at + len(data))))
    assert data[left:] == text.lstrip().encode(), held
    assert data[:right] == text.rstrip().encode()
