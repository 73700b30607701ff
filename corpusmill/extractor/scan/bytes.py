# ruff: noqa: SIM109 (compiled code: comparing with a tuple is slower)
"""Finding bytes in a page: 32 at a time, since most of a page is scripts, styles and addresses that are skipped.

All places are addresses. A read may pass the end of the page but not that of its 4 KiB of memory, so what is read
exists.
"""

from __future__ import annotations

from typing import Any

from corpusmill.compiled import inner, intrinsic, ir, types
from corpusmill.kernels.bytes.bytehash import U, load8

LANES = 32
_LAST_SAFE = U(4096 - LANES)
OFFSET, PRIME = U(0xCBF29CE484222325), U(0x100000001B3)
"""FNV-1a."""


@intrinsic
def equal_bytes(context: Any, address: Any, byte: Any) -> Any:
    """A bit for each of the 32 bytes at an address: whether it is this one; the lowest bit is the first byte."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight, vector = ir.IntType(8), ir.VectorType(ir.IntType(8), LANES)
        wanted = builder.insert_element(
            ir.Constant(vector, ir.Undefined), builder.trunc(args[1], eight), ir.Constant(ir.IntType(32), 0)
        )
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        wanted = builder.shuffle_vector(wanted, ir.Constant(vector, ir.Undefined), first)
        held = builder.load(builder.inttoptr(args[0], vector.as_pointer()), align=1)
        bits = builder.bitcast(builder.icmp_unsigned("==", held, wanted), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def lowest_bit(context: Any, word: Any) -> Any:
    """Number of the lowest bit of a word that has one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def _count_bits(context: Any, word: Any) -> Any:
    """How many bits a word has."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@inner
def count_tags(at: U, size: U, but_end_tags: bool) -> U:
    """Number of `<`, but for those that begin an end tag if so wanted."""
    count, end = U(0), at + size
    while at < end:
        if at & U(0xFFF) < _LAST_SAFE and at + U(LANES) < end:
            found = equal_bytes(at, U(60))
            if but_end_tags:
                found &= ~equal_bytes(at + U(1), U(47))
            count += _count_bits(found)
            at += U(LANES)
        else:
            is_end = but_end_tags and at + U(1) < end and load8(at + U(1)) == U(47)
            count += U(load8(at) == U(60) and not is_end)
            at += U(1)
    return count


@inner
def find(at: U, end: U, byte: U) -> U:
    """Where a byte is first; `end` where it is not."""
    while at < end:
        if at & U(0xFFF) <= _LAST_SAFE:
            found = equal_bytes(at, byte)
            if found != U(0):
                return min(at + lowest_bit(found), end)
            at += U(LANES)
        elif load8(at) == byte:
            return at
        else:
            at += U(1)
    return end


@inner
def find_any(at: U, end: U, a: U, b: U, c: U) -> U:
    """Where one of three bytes is first; `end` where none is."""
    while at < end:
        if at & U(0xFFF) <= _LAST_SAFE:
            found = equal_bytes(at, a) | equal_bytes(at, b) | equal_bytes(at, c)
            if found != U(0):
                return min(at + lowest_bit(found), end)
            at += U(LANES)
        else:
            byte = load8(at)
            if byte == a or byte == b or byte == c:
                return at
            at += U(1)
    return end


@inner(forceinline=True)
def same_letters(a: U, b: U, length: U) -> bool:
    """Whether two runs of ASCII are the same but for case."""
    k = U(0)
    while k < length and (load8(a + k) | U(32)) == (load8(b + k) | U(32)):
        k += U(1)
    return k == length


@inner
def find_text(at: U, end: U, needle: U, length: U) -> U:
    """Where a lower-case ASCII string begins in a range, in either case; `end` where it does not."""
    first = load8(needle)
    while at + length <= end:
        at = find_any(at, end, first, first ^ U(32), first)
        if at + length > end:
            break
        if same_letters(at, needle, length):
            return at
        at += U(1)
    return end


@inner
def holds(at: U, end: U, needle: U, length: U, rare: U) -> bool:
    """Whether a byte string occurs in a range; looked for are its bytes `rare` and `rare` + 1, which should be rare."""
    first, second = load8(needle + rare), load8(needle + rare + U(1))
    last = end - length + rare  # where the two may be at the most
    at += rare
    while at <= last:
        if at & U(0xFFF) < _LAST_SAFE:
            found = equal_bytes(at, first) & equal_bytes(at + U(1), second)
            width = U(LANES)
        else:
            found = U(load8(at) == first and load8(at + U(1)) == second)
            width = U(1)
        while found != U(0):
            place = at + lowest_bit(found)
            k = U(0)
            while place <= last and k < length and load8(place - rare + k) == load8(needle + k):
                k += U(1)
            if k == length:
                return True
            found &= found - U(1)
        at += width
    return False


@inner
def find_end_tag(at: U, end: U, name: U, length: U) -> U:
    """Where the end tag of a name begins; `end` where there is none."""
    while at + length + U(2) <= end:
        at = find(at, end, U(60))
        if at + length + U(2) > end:
            break
        if load8(at + U(1)) == U(47) and same_letters(at + U(2), name, length):
            return at
        at += U(1)
    return end


@inner
def tag_end(at: U, end: U) -> U:
    """Place of the `>` that ends a tag; values in quotes, which follow `=`, may hold one."""
    begin = at
    while True:
        at = find_any(at, end, U(62), U(34), U(39))
        if at >= end:
            return end
        quote = load8(at)
        if quote == U(62):
            return at
        k = at
        while k > begin and load8(k - U(1)) <= U(32):
            k -= U(1)
        at += U(1)
        if k > begin and load8(k - U(1)) == U(61):
            at = find(at, end, quote) + U(1)
            if at > end:
                return end
            begin = at


@inner
def after(at: U, end: U, byte: U) -> U:
    """The place after the next such byte; `end` where none is."""
    return min(find(at, end, byte) + U(1), end)


@inner
def comment_end(at: U, end: U) -> U:
    """The place after the `-->` of a comment whose text begins here."""
    at += U(2)
    while at < end:
        at = find(at, end, U(62))
        if at < end and load8(at - U(1)) == U(45) and load8(at - U(2)) == U(45):
            return at + U(1)
        at += U(1)
    return end


@inner
def hash_name(at: U, end: U) -> U:
    """FNV-1a of a lower-cased ASCII name."""
    h = OFFSET
    while at < end:
        c = load8(at)
        if U(65) <= c <= U(90):
            c += U(32)
        h = (h ^ c) * PRIME
        at += U(1)
    return h
