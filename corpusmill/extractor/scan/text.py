"""Text between two tags: its bytes copied with blanks made one, its characters classed and counted."""

from __future__ import annotations

from corpusmill.compiled import inner
from corpusmill.extractor.scan.bytes import OFFSET, PRIME
from corpusmill.extractor.scan.letters import (
    BLANK,
    CAPITAL,
    COMMA,
    DIGIT,
    ENTITY,
    IDEOGRAPH,
    LETTER,
    OPEN,
    SEPARATOR,
    SPACELESS,
    STOP,
    SYMBOL,
    WIDE,
    beyond_ascii,
    entity,
    two_byte_letter,
)
from corpusmill.extractor.scan.state import TITLE_SLOTS, Line, State, add, get, put, store8
from corpusmill.kernels.bytes.bytehash import U, load8, load64


@inner(forceinline=True)
def _hashed(word, at, stop):  # type: ignore[no-untyped-def]
    """Hash of a word with some more bytes."""
    while at < stop:
        c = load8(at)
        c += U(32) if U(65) <= c <= U(90) else U(0)
        word = ((word if word != U(0) else OFFSET) ^ c) * PRIME
        at += U(1)
    return word


@inner
def _title_slot(title, word):  # type: ignore[no-untyped-def]
    """Address of the slot where a word of the title is, or would be."""
    slot = word & U(TITLE_SLOTS - 1)
    while load64(title + U(8) * slot) != U(0) and load64(title + U(8) * slot) != word:
        slot = (slot + U(1)) & U(TITLE_SLOTS - 1)
    return title + U(8) * slot


@inner
def end_word(page, word):  # type: ignore[no-untyped-def]
    """Add a word to the line's hash and look it up in the title."""
    put(page, Line.HASH, (get(page, Line.HASH) ^ word) * PRIME + U(1))
    if get(page, State.N_TITLE) > U(0):
        add(page, Line.TITLE_WORDS, load64(_title_slot(get(page, State.TITLE), word)) == word)


@inner(forceinline=True)
def begins_tag(at, end):  # type: ignore[no-untyped-def]
    """Whether a `<` begins a tag."""
    c = load8(at + U(1)) if at + U(1) < end else U(0)
    return U(97) <= (c | U(32)) <= U(122) or c == U(47) or c == U(33) or c == U(63)


@inner
def read_title(page, at):  # type: ignore[no-untyped-def]
    """Note the words of the title up to its end or the next tag; returns where it stopped."""
    end, title_end, title = get(page, State.END), get(page, State.TITLE_END), get(page, State.TITLE)
    classes, word, run = get(page, State.CLASSES), get(page, State.WORD), get(page, State.RUN)
    while True:
        c = load8(at)
        cls, width, sort = load8(classes + c), U(1), U(0)
        if cls == U(OPEN):
            if begins_tag(at, end):
                break
            cls = U(SYMBOL)
        elif cls == U(WIDE):
            width, cls, sort = beyond_ascii(at, c, end)
        elif cls == U(ENTITY):
            width, cls = entity(at, end)
            sort = IDEOGRAPH if cls == U(WIDE) else U(0)
            cls = U(LETTER) if cls == U(WIDE) else cls
            width = max(width, U(1))
        if sort == SPACELESS:
            run += U(1)
        alone = sort == IDEOGRAPH or (sort == SPACELESS and run % U(4) == U(1))
        is_word = U(LETTER) <= cls <= U(DIGIT)
        if is_word:
            word = _hashed(word, at, at + width)
        if (not is_word or alone or at + width >= title_end) and word != U(0):
            slot = _title_slot(title, word)
            if load64(slot) == U(0) and get(page, State.N_TITLE) < U(TITLE_SLOTS // 2):
                _keep_word(page, slot, word)
            word = U(0)
        at += width
        if at >= title_end:
            put(page, State.IN_TITLE, U(0))
            word = U(0)
            break
    put(page, State.WORD, word)
    put(page, State.RUN, run)
    return at


@inner(forceinline=True)
def _keep_word(page, slot, word):  # type: ignore[no-untyped-def]
    put(slot, 0, word)
    add(page, State.N_TITLE, U(1))


@inner
def read_text(page, at):  # type: ignore[no-untyped-def]
    """Add text to the line, up to the next tag, the end of a formula or of the page; returns where it stopped."""
    end, limit = get(page, State.END), get(page, State.END)
    jump = get(page, State.JUMP_AT)
    if jump != U(0) and at <= jump:
        limit = jump
    data, text, classes = get(page, State.DATA), get(page, State.TEXT), get(page, State.CLASSES)
    to, chars, last = text + get(page, State.USED), get(page, Line.CHARS), get(page, Line.LAST)
    pre, pending = get(page, State.IN_PRE) != U(0), get(page, State.PENDING) != U(0)
    word, run = get(page, State.WORD), get(page, State.RUN)
    shown = words = digits = capitals = letters = commas = separators = symbols = ends = U(0)
    while at < limit:
        c = load8(at)
        cls, width, sort = load8(classes + c), U(1), U(0)
        if cls == U(BLANK) and not pre:
            if word != U(0):
                end_word(page, word)
                word = run = U(0)
            pending = True
            at += U(1)
            while at < limit and load8(classes + load8(at)) == U(BLANK):
                at += U(1)
            continue
        if cls == U(OPEN):
            if jump == U(0) and begins_tag(at, end):
                break
            cls = U(SYMBOL)
        in_run = U(LETTER) <= cls <= U(DIGIT) or (cls == U(WIDE) and two_byte_letter(c, at, limit))
        if not in_run and cls == U(WIDE):
            width, cls, sort = beyond_ascii(at, c, end)
        elif cls == U(ENTITY):
            width, cls = entity(at, end)
            sort = IDEOGRAPH if cls == U(WIDE) else U(0)
            cls = U(LETTER) if cls == U(WIDE) else cls
            width = max(width, U(1))
        if cls == U(BLANK):
            if pre and ((chars > U(0) and c != U(13)) or c == U(32) or c == U(9)):  # or: indentation of the first line
                store8(to, c if width == U(1) else U(32))
                to += U(1)
                chars += U(chars > U(0))
            pending = True
        else:
            if chars == U(0):
                put(page, Line.PLACE, at - data)
                put(page, Line.FIRST, U(LETTER) if cls == U(WIDE) else cls)
                if not pre:
                    to = text + get(page, Line.START)
            elif pending and not pre:
                store8(to, U(32))
                to += U(1)
                chars += U(1)
                shown += U(1)
            pending = False
        if in_run:
            if word == U(0):
                words += U(1)
                capitals += U(cls == U(CAPITAL))
                word = OFFSET
            count = U(0)
            while True:
                store8(to, c)
                to += U(1)
                at += U(1)
                if cls == U(WIDE):
                    word = (word ^ c) * PRIME
                    c = load8(at)
                    store8(to, c)
                    to += U(1)
                    at += U(1)
                    cls = U(LETTER)
                elif cls == U(CAPITAL):
                    c += U(32)
                word = (word ^ c) * PRIME
                digits += U(cls == U(DIGIT))
                count += U(1)
                last = cls
                if at >= limit:
                    break
                c = load8(at)
                cls = load8(classes + c)
                if not (U(LETTER) <= cls <= U(DIGIT)) and not (cls == U(WIDE) and two_byte_letter(c, at, limit)):
                    break
            chars += count
            shown += count
            letters += count
            continue
        is_word = cls == U(LETTER)
        alone = False
        if cls != U(BLANK):
            k = U(0)
            while k < width:
                store8(to + k, load8(at + k))
                k += U(1)
            to += width
            chars += U(1)
            shown += U(1)
            last = cls
            if cls == U(COMMA):
                commas += U(1)
            elif cls == U(SEPARATOR):
                separators += U(1)
            elif cls == U(SYMBOL):
                symbols += U(1)
            elif cls == U(STOP):
                ends += U(c >= U(0x80) or at + U(1) >= end or _ends_sentence(load8(at + U(1))))
        if is_word:
            if sort == SPACELESS:
                run += U(1)
            alone = sort == IDEOGRAPH or (sort == SPACELESS and run % U(4) == U(1))
            letters += U(1)
            words += U(word == U(0) or alone)
            word = _hashed(word, at, at + width)
        if (not is_word or alone) and word != U(0):
            end_word(page, word)
            word = U(0)
            if not is_word:
                run = U(0)
        at += width
    if shown > U(0) and get(page, State.NEW_LINK) != U(0):
        add(page, Line.LINKS, U(1))
        put(page, State.NEW_LINK, U(0))
    put(page, State.USED, to - text)
    put(page, State.PENDING, U(pending))
    put(page, State.WORD, word)
    put(page, State.RUN, run)
    put(page, Line.CHARS, chars)
    put(page, Line.LAST, last)
    add(page, Line.WORDS, words)
    add(page, Line.DIGITS, digits)
    add(page, Line.CAPITALS, capitals)
    add(page, Line.TEXT_CHARS, letters)
    add(page, Line.COMMAS, commas)
    add(page, Line.SEPARATORS, separators)
    add(page, Line.SYMBOLS, symbols)
    add(page, Line.ENDS, ends)
    if get(page, State.IN_LINK) != U(0):
        add(page, Line.LINK_CHARS, shown)
        add(page, Line.LINK_WORDS, words)
    if get(page, State.IN_BOLD) != U(0):
        add(page, Line.BOLD_CHARS, shown)
    return at


@inner(forceinline=True)
def _ends_sentence(c):  # type: ignore[no-untyped-def]
    """Whether what follows a full stop lets it end a sentence."""
    return c <= U(32) or c == U(60) or c == U(34) or c == U(38)
