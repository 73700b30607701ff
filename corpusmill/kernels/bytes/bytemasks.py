"""Sixty-four bytes at a time in compiled kernels: a bit for each byte that lies in a span of values.

Written as vectors of LLVM, so the processor's widest instructions do it (AVX2: a dozen for 64 bytes), on any machine.
Walk a piece of text as

    while at < end:
        place, shift, keep = block(at, end)
        found = (in_span(place, U(0), U(0x30), U(10)) >> shift) & keep  # bit i: the byte at `at + i` is a digit
        at += U(64)

Frozen like `bytehash`, and for the same reason: Numba's cache does not see when a function of another file changes.
"""

from __future__ import annotations

from typing import Any

from corpusmill.compiled import inner, intrinsic, ir, types
from corpusmill.kernels.bytes.bytehash import U

_ALL = U(0xFFFFFFFFFFFFFFFF)
_PAGE = U(0xFFF)


def _in_span(context: Any, place: Any, bits: Any, low: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, wide = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)
        undefined = ir.Constant(wide, ir.Undefined)

        def copies(value: Any) -> Any:
            one = builder.insert_element(undefined, builder.trunc(value, byte), ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64))

        loaded = builder.load(builder.inttoptr(args[0], wide.as_pointer()), align=1)
        moved = builder.sub(builder.or_(loaded, copies(args[1])), copies(args[2]))
        return builder.bitcast(builder.icmp_unsigned("<", moved, copies(args[3])), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64, types.uint64, types.uint64), codegen


in_span: Any = intrinsic(_in_span)
"""Which of the 64 bytes at an address, with some bits set in each, are one of `count` values from `low` on."""


def _lowest_bit(context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


lowest_bit: Any = intrinsic(_lowest_bit)
"""Number of the lowest bit that is set; 64 where there is none."""


def _bit_count(context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


bit_count: Any = intrinsic(_bit_count)
"""How many bits are set."""


def _store32(context: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = ir.IntType(32)
        builder.store(builder.trunc(args[1], bits), builder.inttoptr(args[0], bits.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


store32: Any = intrinsic(_store32)
"""Write the low 32 bits of a number to an address, a multiple of four."""


@inner(forceinline=True)
def block(at: U, end: U) -> tuple[U, U, U]:
    """How to read up to 64 bytes at an address before `end`, none of a page that they do not reach into: where from,
    by how much to shift what is found, and which bits to keep. at < end."""
    place = at
    if (at ^ (end - U(1))) <= _PAGE:  # the text ends in this page
        place = min(at, (at | _PAGE) - U(63))
    return place, at - place, _ALL >> (U(64) - min(end - at, U(64)))
