"""What the scanner holds while it reads a page: 64-bit words in one block of memory, which its parts share by address.

Counting references to arrays at each call of a part costs more than the part itself, and a tuple of forty numbers reads
worse than their names. The first words are the line being read, in the order of `Line`.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from corpusmill.compiled import intrinsic, ir, types


class Line(IntEnum):
    """Columns of the lines."""

    START = 0  # first byte in the text
    STOP = auto()
    CHARS = auto()
    WORDS = auto()  # an ideograph, kana or Hangul syllable is one; four letters of Thai, Lao, Khmer or Burmese are one
    LINK_CHARS = auto()
    LINK_WORDS = auto()
    LINKS = auto()
    ENDS = auto()  # sentence ends
    COMMAS = auto()
    DIGITS = auto()
    CAPITALS = auto()  # words that begin with an ASCII capital
    SEPARATORS = auto()  # | • · » ›
    FIRST = auto()  # class of the first character: see scan_letters.py
    LAST = auto()
    KIND = auto()  # vocabulary.KINDS
    LIST_DEPTH = auto()
    DEPTH = auto()
    CONTAINER = auto()
    BOLD_CHARS = auto()
    TITLE_WORDS = auto()  # words that the page's title has too
    ROW = auto()  # number of the table row, 0 outside of tables
    CELL = auto()  # number of the cell in the row
    SOFT = auto()  # 1: begins after <br>
    PLACE = auto()  # byte in the page where it begins
    ROLES = auto()  # of the leaf and the inline elements in it
    HASH = auto()  # of its words
    SYMBOLS = auto()
    TEXT_CHARS = auto()  # characters that are letters or digits


class Box(IntEnum):
    """Columns of the containers; number 0 is the page."""

    PARENT = 0
    TAG = auto()
    OWN_ROLES = auto()
    ROLES = auto()  # with those of all containers around it
    SIGNATURE = auto()  # of tag and class words
    FIRST_LINE = auto()
    LAST_LINE = auto()  # the line after its last
    DEPTH = auto()


class Frame(IntEnum):
    """Words of an open container on the stack."""

    TAG = 0
    CONTAINER = auto()
    ROW = auto()
    CELL = auto()
    LIST_DEPTH = auto()
    KIND = auto()


class State(IntEnum):
    """Words after those of the line."""

    # the page, and where results go: addresses
    DATA = len(Line)
    END = auto()
    TEXT = auto()
    LINES = auto()
    BOXES = auto()
    STACK = auto()
    TITLE = auto()  # hashes of the title's words, open addressing
    OPEN = auto()  # of each tag, how many containers are open
    UNCLOSED = auto()  # of each tag, whether no end tag follows
    CLASSES = auto()
    TAG_KEYS = auto()
    TAG_VALUES = auto()
    TAG_MASK = auto()
    WORD_KEYS = auto()
    WORD_VALUES = auto()
    WORD_MASK = auto()
    ACTIONS = auto()
    KINDS = auto()
    TAG_ROLES = auto()
    NEEDLES = auto()
    # how many there are of what was found
    N_LINES = auto()
    N_BOXES = auto()
    N_TITLE = auto()
    N_ROWS = auto()
    # where we are
    USED = auto()  # bytes of text written
    LEVEL = auto()
    OVERFLOW = auto()
    LEAF_ROLES = auto()
    INLINE_ROLES = auto()
    IN_LINK = auto()  # level of the open link + 1; 0: none
    IN_BOLD = auto()
    NEW_LINK = auto()
    IN_PRE = auto()
    IN_TITLE = auto()
    TITLE_END = auto()
    JUMP_AT = auto()  # where the source of a formula ends; 0: none
    JUMP_TO = auto()
    PENDING = auto()  # a blank is due before the next character
    WORD = auto()  # hash of the word being read, 0 between words
    RUN = auto()  # letters of it in scripts without blanks


N_LINE, N_BOX, N_FRAME = len(Line), len(Box), len(Frame)
N_STATE = N_LINE + len(State)
TITLE_SLOTS = 256
MAX_DEPTH = 1024
"""Containers nested deeper are not distinguished."""


def _place(builder: Any, args: Any, bits: int) -> Any:
    words = builder.mul(args[1], ir.Constant(ir.IntType(64), 8))
    return builder.inttoptr(builder.add(args[0], words), ir.IntType(bits).as_pointer())


@intrinsic
def get(context: Any, at: Any, word: Any) -> Any:
    """A word of a block."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(builder, args, 64), align=8)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def put(context: Any, at: Any, word: Any, value: Any) -> Any:
    """Set a word of a block."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(builder, args, 64), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), codegen


@intrinsic
def add(context: Any, at: Any, word: Any, value: Any) -> Any:
    """Add to a word of a block."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(builder, args, 64)
        builder.store(builder.add(builder.load(place, align=8), args[2]), place, align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), codegen


@intrinsic
def store8(context: Any, address: Any, byte: Any) -> Any:
    """Write a byte at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.IntType(8)
        builder.store(builder.trunc(args[1], eight), builder.inttoptr(args[0], eight.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen
