"""Looking through 64 bytes at a time equals plain Python, wherever the bytes lie, and reads no page beyond them."""

from __future__ import annotations

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.kernels.bytes.bytehash import U, address_of
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span, lowest_bit


@numba.njit(nogil=True)
def _found(at: U, end: U, bits: U, low: U, count: U) -> list[int]:
    """Places of the bytes of a span, and at the end how many there are."""
    found, total, i = [U(0) for _ in range(0)], U(0), at
    while i < end:
        place, shift, keep = block(i, end)
        bits_there = (in_span(place, bits, low, count) >> shift) & keep
        total += bit_count(bits_there)
        while bits_there != U(0):
            found.append(i + lowest_bit(bits_there) - at)
            bits_there &= bits_there - U(1)
        i += U(64)
    found.append(total)
    return found


@numba.njit(nogil=True)
def _block(at: U, end: U) -> tuple[U, U, U]:
    return block(at, end)


@numba.njit(nogil=True)
def _lowest(bits: U) -> U:
    return lowest_bit(bits)


SPANS = st.tuples(st.sampled_from([0, 0x20, 0xFE]), st.integers(0, 255), st.integers(0, 255))


@given(st.binary(max_size=200), st.integers(0, 9), SPANS)
def test_bytes_of_a_span_are_found_and_counted(data: bytes, before: int, span: tuple[int, int, int]) -> None:
    bits, low, count = span
    held = np.frombuffer(bytes([low]) * before + data + bytes([low]) * 64, np.uint8)
    at = int(address_of(held)) + before
    *found, total = _found(U(at), U(at + len(data)), U(bits), U(low), U(count))
    assert found == [i for i, byte in enumerate(data) if ((byte | bits) - low) % 256 < count]
    assert total == len(found)


@given(st.integers(4096, 3 * 4096), st.integers(1, 200))
def test_no_page_is_read_that_the_text_does_not_reach_into(at: int, size: int) -> None:
    place, shift, keep = (int(one) for one in _block(U(at), U(at + size)))
    assert at // 4096 <= place // 4096
    assert (place + 63) // 4096 <= (at + size - 1) // 4096
    assert place + shift == at
    assert keep == 2 ** min(size, 64) - 1
    assert min(size, 64) <= 64 - shift  # all that is kept was read


def test_the_lowest_bit_is_the_first() -> None:
    assert [int(_lowest(U(bits))) for bits in (1, 6, 1 << 63, 0)] == [0, 1, 63, 64]
