"""The scanner in plain Python, byte by byte: what corpusmill/extractor/scan/scan.py must equal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.scan import Box, Line

OFFSET, PRIME, ALL = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
BLANK, LETTER, CAPITAL, DIGIT, STOP, COMMA, SEPARATOR, SYMBOL = range(8)
TITLE_WORDS, MAX_DEPTH = 128, 1024
WORD_ROLES: dict[str, int] = {}
for role, words in v.ROLES.items():
    for word in words.split():
        WORD_ROLES[word] = WORD_ROLES.get(word, 0) | v.ROLE_BITS[role]
LI, TR, TD, TH, TABLE, UL, OL, PRE = (v.TAGS[t] for t in ("li", "tr", "td", "th", "table", "ul", "ol", "pre"))


def lower(data: bytes) -> bytes:
    """As the scanner compares letters: with their sixth bit set."""
    return bytes(c | 32 for c in data)


def hash_on(state: int, data: bytes) -> int:
    """FNV-1a of lower-cased ASCII."""
    for c in data.lower():
        state = (state ^ c) * PRIME & ALL
    return state


def signed(number: int) -> int:
    return number - 2**64 if number >> 63 else number


def find(data: bytes, needle: bytes, at: int, end: int) -> int:
    """Where a needle is, but for case; `end` where it is not."""
    place = lower(data[at:end]).find(lower(needle))
    return end if place < 0 else at + place


def tag_end(data: bytes, at: int, size: int) -> int:
    quote, after_equals = 0, False
    while at < size:
        c = data[at]
        if quote:
            if c == quote:
                quote, after_equals = 0, False
        elif c == ord(">"):
            return at
        elif c in b"\"'" and after_equals:
            quote = c
        elif c == ord("="):
            after_equals = True
        elif c > 32:
            after_equals = False
        at += 1
    return size


def closing(data: bytes, at: int, name: bytes) -> int:
    """Where the end tag of a name begins."""
    while True:
        at = data.find(b"</", at)
        if at < 0 or at + len(name) + 2 > len(data):
            return len(data)
        if lower(data[at + 2 : at + 2 + len(name)]) == lower(name):
            return at
        at += 1


def value_words(value: bytes) -> tuple[int, int, bool]:
    roles, signature, half, last = 0, 0x9E3779B97F4A7C15, False, ""
    for found in re.findall(rb"[A-Z]*[a-z]+|[A-Z]+", value):
        word = found.decode().lower()
        roles |= WORD_ROLES.get(word, 0)
        signature = (signature ^ v.word_hash(word)) * PRIME & ALL
        half |= last == "katex" and word == "html"
        last = word
    return roles, signature, half


ATTRIBUTE = re.compile(
    rb"""[\x00-\x20/]*(?:([^\x00-\x20=/]+)[\x00-\x20]*(?:=[\x00-\x20]*(?:"([^"]*)"?|'([^']*)'?|([^\x00-\x20"'][^\x00-\x20]*)?))?|=)"""
)


def attributes(tag: bytes) -> tuple[int, int, bool, bool]:
    """Roles, signature, whether it is KaTeX's visible half, whether it is TeX."""
    roles, signature, half, tex = 0, 0, False, False
    for name, *values in ATTRIBUTE.findall(tag):
        value = next((one for one in values if one), b"")
        name = name.lower()
        if name in (b"class", b"id", b"role", b"itemprop"):
            found, sign, katex = value_words(value)
            roles |= found
            half |= katex
            signature = sign if name == b"class" else signature
        elif name == b"style":
            if any(lower(said) in lower(value) for said in (b"display:none", b"display: none")):
                roles |= v.HIDDEN
        elif name == b"hidden" or (name == b"aria-hidden" and value[:1] in (b"t", b"T")):
            roles |= v.HIDDEN
        elif name == b"type" and lower(b"math/tex") in lower(value):
            tex = True
    return roles, signature, half, tex


def entity(data: bytes, at: int) -> tuple[int, int, bool]:
    """Length, class and whether it is an ideograph."""
    if found := re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));?").match(data, at):
        code = int(found[1], 16) if found[1] else int(found[2])
        if code in (160, 32) or code <= 13:
            return len(found[0]), BLANK, False
        if code < 128:
            return len(found[0]), LETTER if chr(code).isalpha() else SYMBOL, False
        if code < 192 or 0x2000 <= code < 0x2C00:
            return len(found[0]), SYMBOL, False
        return len(found[0]), LETTER, 0x3040 <= code < 0xD800
    found = re.compile(rb"&([a-zA-Z0-9]{2,10});").match(data, at)
    if not found:
        return 1, SYMBOL, False
    if len(found[1]) == 4 and found[1][:2] == b"nb":
        return len(found[0]), BLANK, False
    return len(found[0]), LETTER if len(found[1]) >= 4 and found[1][-1] in b"eclgh" else SYMBOL, False


@dataclass
class Plain:
    """A page while it is read."""

    data: bytes
    lines: list[list[int]] = field(default_factory=list)
    boxes: list[list[int]] = field(default_factory=lambda: [[0] * len(Box)])
    text: bytearray = field(default_factory=bytearray)
    title: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.line = [0] * len(Line)
        self.stack = [[0, 0, 0, 0, 0, 0]]  # tag, container, row, cell, list depth, kind
        self.overflow = self.rows = self.leaf_roles = self.inline_roles = self.word = self.run = 0
        self.link = self.bold = -1
        self.new_link = self.in_pre = self.in_title = self.pending = False
        self.title_end = 0
        self.jump: tuple[int, int] | None = None
        self.unclosed: set[int] = set()
        self.read()

    def add(self, column: Line, count: int = 1) -> None:
        self.line[column] += count

    def read(self) -> None:
        at, size = 0, len(self.data)
        while at < size or (self.jump and at == self.jump[0]):
            if self.jump and at == self.jump[0]:
                if self.jump[1] > at:
                    if self.line[Line.CHARS]:
                        self.mark(b"$")
                    at = self.jump[1]
                self.jump = None
            elif self.data[at] == ord("<") and not self.jump and re.compile(rb"<[a-zA-Z/!?]").match(self.data, at):
                at = min(self.tag(at), size)
            else:
                at = self.character(at)
        self.flush()
        self.close(0)
        self.boxes[0][Box.LAST_LINE] = len(self.lines)

    def mark(self, data: bytes) -> None:
        self.text += data
        self.add(Line.CHARS)

    def classed(self, at: int) -> tuple[int, int, bool]:
        """Width, class and whether it is a word of its own, of the character here."""
        c = self.data[at]
        if c == ord("&"):
            return entity(self.data, at)
        if c < 0x80:
            letter = chr(c)
            cls = LETTER if letter.islower() else CAPITAL if letter.isupper() else DIGIT if letter.isdigit() else SYMBOL
            other = {9: BLANK, 10: BLANK, 12: BLANK, 13: BLANK, 32: BLANK, ord(","): COMMA, ord("|"): SEPARATOR}
            return 1, other.get(c, STOP if letter in ".!?" else cls), False
        width = 4 if c >= 0xF0 else 3 if c >= 0xE0 else 2 if c >= 0xC0 else 1
        width = min(width, len(self.data) - at)
        raw = self.data[at : at + width]
        code = (c & 31) << 6 | raw[1] & 63 if width == 2 else 0
        if width == 2:
            special = {0xA0: BLANK, 0xB7: SEPARATOR, 0xBB: SEPARATOR} if c == 0xC2 else {}
            if c == 0xC2:
                return 2, special.get(raw[1], SYMBOL), False
            stops = {(0xD8, 0x8C): COMMA, (0xD8, 0x9F): STOP, (0xDB, 0x94): STOP}
            return 2, stops.get((c, raw[1]), LETTER), False
        if width == 3:
            code = (c & 15) << 12 | (raw[1] & 63) << 6 | raw[2] & 63
            if 0x2000 <= code < 0x2C00:
                blank = code <= 0x200B or code in (0x2028, 0x2029)
                return 3, SEPARATOR if code in (0x2022, 0x203A, 0x2502) else BLANK if blank else SYMBOL, False
            if 0x3000 <= code < 0x3040:
                return 3, {0x3000: BLANK, 0x3001: COMMA, 0x3002: STOP}.get(code, SYMBOL), False
            if 0x3040 <= code < 0xD800 or 0xF900 <= code < 0xFB00:
                return 3, LETTER, True
            if 0xFF00 <= code < 0xFF66:
                return 3, {0xFF01: STOP, 0xFF1F: STOP, 0xFF0E: STOP, 0xFF0C: COMMA}.get(code, SYMBOL), False
            if 0x0E00 <= code < 0x0F00 or 0x1000 <= code < 0x10A0 or 0x1780 <= code < 0x1800:
                self.run += 1
                return 3, LETTER, self.run % 4 == 1
            return 3, STOP if code == 0x0964 else LETTER, False
        if width == 4:
            wide = c == 0xF0 and raw[1] >= 0xA0
            return 4, LETTER if wide else SYMBOL, wide
        return width, LETTER, False

    def end_word(self) -> None:
        if self.word:
            self.line[Line.HASH] = (self.line[Line.HASH] ^ self.word) * PRIME + 1 & ALL
            self.add(Line.TITLE_WORDS, self.word in self.title)
            self.word = 0

    def character(self, at: int) -> int:
        c = self.data[at]
        width, cls, alone = self.classed(at)
        raw, is_word = self.data[at : at + width], cls in (LETTER, CAPITAL, DIGIT)
        if self.in_title:
            if is_word:
                self.word = hash_on(self.word or OFFSET, raw)
            if (not is_word or alone or at + width >= self.title_end) and self.word:
                if len(self.title) < TITLE_WORDS:
                    self.title.add(self.word)
                self.word = 0
            if at + width >= self.title_end:
                self.in_title, self.word = False, 0
            return at + width
        if cls == BLANK:
            if self.in_pre and self.line[Line.CHARS] and c != 13:
                self.mark(raw if width == 1 else b" ")
            elif self.in_pre and c in b" \t":
                self.text += raw
            self.pending = True
        else:
            if not self.line[Line.CHARS]:
                self.line[Line.PLACE], self.line[Line.FIRST] = at, cls
                if not self.in_pre:
                    del self.text[self.line[Line.START] :]
            elif self.pending and not self.in_pre:
                self.mark(b" ")
                self.add(Line.LINK_CHARS, self.link >= 0)
                self.add(Line.BOLD_CHARS, self.bold >= 0)
            self.pending = False
            self.mark(raw)
            self.line[Line.LAST] = cls
            self.add(Line.LINK_CHARS, self.link >= 0)
            self.add(Line.BOLD_CHARS, self.bold >= 0)
            self.add(Line.COMMAS, cls == COMMA)
            self.add(Line.SEPARATORS, cls == SEPARATOR)
            self.add(Line.SYMBOLS, cls == SYMBOL)
            if cls == STOP:
                after = self.data[at + 1 : at + 2]
                self.add(Line.ENDS, c >= 0x80 or not after or after[0] <= 32 or after in b'<"&')
            self.add(Line.LINKS, self.new_link)
            self.new_link = False
        if is_word:
            self.add(Line.TEXT_CHARS)
            self.add(Line.DIGITS, cls == DIGIT)
            if not self.word or alone:
                self.add(Line.WORDS)
                self.add(Line.LINK_WORDS, self.link >= 0)
                self.add(Line.CAPITALS, not self.word and cls == CAPITAL)
            self.word = hash_on(self.word or OFFSET, raw)
        if (not is_word or alone) and self.word:
            self.end_word()
            self.run = self.run if is_word else 0
        return at + width

    def flush(self) -> None:
        self.end_word()
        self.run = 0
        line, frame = self.line, self.stack[-1]
        if line[Line.CHARS]:
            line[Line.STOP] = len(self.text)
            line[Line.LIST_DEPTH], line[Line.CONTAINER] = frame[4], frame[1]
            line[Line.ROW], line[Line.CELL] = frame[2], frame[3]
            line[Line.DEPTH] = len(self.stack) - 1 + self.overflow
            line[Line.ROLES] = self.leaf_roles | self.inline_roles
            self.lines.append([*line[: Line.HASH], signed(line[Line.HASH]), *line[Line.HASH + 1 :]])
            line[Line.START], line[Line.SOFT] = len(self.text), 0
        del self.text[line[Line.START] :]
        kept = {Line.START, Line.STOP, Line.FIRST, Line.LAST, Line.KIND, Line.SOFT, Line.PLACE}
        self.line = [number if column in kept else 0 for column, number in enumerate(line)]
        self.inline_roles, self.pending = 0, False

    def tag(self, at: int) -> int:
        data, size = self.data, len(self.data)
        if data[at : at + 4] == b"<!--":
            stop = at + 5 if data[at + 4 : at + 5] == b">" else data.find(b"-->", at + 4) + 3
            return stop if stop > at + 3 else size
        if data[at + 1] in b"!?":
            return data.find(b">", at) + 1 or size
        is_end = data[at + 1] == ord("/")
        name_at = at + 1 + is_end
        name = re.compile(rb"[^\x00-\x20>/]*").match(data, name_at)[0]  # type: ignore[index]
        if not name:
            return name_at + 1
        tag = v.TAGS.get(name.decode("latin-1").lower() if name.isascii() else "?", 0)
        tag = v.CUSTOM if not tag and b"-" in name else tag
        action, name_end = v.ACTIONS[tag], name_at + len(name)
        stop = tag_end(data, name_end, size)
        if self.in_title:
            self.in_title, self.word = False, 0
        roles = signature = 0
        if not is_end:
            roles, signature, half, tex = attributes(data[name_end:stop])
            roles |= v.TAG_ROLES[tag]
            signature = (signature ^ tag) * PRIME & ALL
            if half:
                return self.after_half(stop)
            if action in (v.SKIPPED, v.RAW, v.MATH):
                if place := self.skipped(tag, action, name, stop, tex):
                    return place
                action = v.INLINE
            if action == v.TITLE:
                until = size if tag in self.unclosed else closing(data, stop, name)
                if until >= size:
                    self.unclosed.add(tag)
                else:
                    self.unclosed.discard(tag)
                self.in_title = not self.title and stop + 1 < until < size
                self.title_end, self.word = until, 0
                return stop + 1 if self.in_title or until >= size else until
        if action in (v.CONTAINER, v.LEAF, v.BREAK, v.RULE):
            if self.in_pre and tag != PRE:
                if self.line[Line.CHARS] and not is_end:
                    self.mark(b"\n")
                    self.pending = True
                    if self.word:
                        self.line[Line.HASH] = (self.line[Line.HASH] ^ self.word) * PRIME + 1 & ALL
                        self.word = 0
                if not is_end or action != v.CONTAINER:
                    return stop + 1
            self.flush()
        self.apply(tag, action, is_end, roles, signature)
        return stop + 1

    def after_half(self, at: int) -> int:
        nested = 1
        while nested:
            at = self.data.find(b"<", at + 1)
            if at < 0:
                return len(self.data)
            if at + 6 <= len(self.data):
                closes = self.data[at + 1] == ord("/")
                name = lower(self.data[at + 1 + closes : at + 4 + closes])
                nested += (name == b"spa") * (-1 if closes else 1)
        return at

    def skipped(self, tag: int, action: int, name: bytes, stop: int, tex: bool) -> int:
        data, size = self.data, len(self.data)
        until = size
        if data[stop - 1] == ord("/") and action != v.RAW:
            until = stop
        elif tag not in self.unclosed:
            until = closing(data, stop, name)
            if until >= size and action != v.RAW:
                self.unclosed.add(tag)
        if until >= size and action != v.RAW:
            return 0
        begin = end = until
        if action == v.MATH:
            begin = find(data, b"application/x-tex", stop, until)
            if begin < until:
                begin = tag_end(data, begin, until) + 1
                end = data.find(b"<", begin, until) if data.find(b"<", begin, until) >= 0 else max(until, begin)
        elif action == v.RAW and tex:
            begin = stop + 1
        after = min(tag_end(data, until, size) + 1, size)
        if begin >= end:
            return after
        if self.line[Line.CHARS] and self.pending:
            self.mark(b" ")
        if not self.line[Line.CHARS]:
            del self.text[self.line[Line.START] :]
            self.line[Line.PLACE] = begin
        self.pending = False
        self.mark(b"$")
        self.jump = end, after
        return begin

    def close(self, target: int) -> None:
        while len(self.stack) - 1 > target:
            self.boxes[self.stack.pop()[1]][Box.LAST_LINE] = len(self.lines)
        self.link = -1 if self.link > target else self.link
        self.bold = -1 if self.bold > target else self.bold

    def apply(self, tag: int, action: int, is_end: bool, roles: int, signature: int) -> None:
        level = len(self.stack) - 1
        if action == v.LINK:
            self.link, self.new_link = -1 if is_end else level, not is_end
            self.inline_roles |= roles
        elif action == v.BOLD:
            self.bold = -1 if is_end else level
        elif action == v.INLINE:
            self.inline_roles |= roles
        elif action == v.BREAK:
            self.line[Line.SOFT] = 1
        elif action == v.LEAF:
            self.in_pre = tag == PRE and not is_end
            self.line[Line.SOFT] = 0
            self.line[Line.KIND] = self.stack[-1][5] if is_end else v.TAG_KINDS[tag]
            self.leaf_roles = 0 if is_end else roles
        elif action == v.CONTAINER:
            self.in_pre = False
            self.line[Line.SOFT] = 0
            tags = [frame[0] for frame in self.stack]
            if is_end and self.overflow:
                self.overflow -= 1
            elif is_end and tag in tags[1:]:
                self.close(len(tags) - 2 - tags[::-1].index(tag))
            elif not is_end:
                self.open(tag, roles, signature)
            self.line[Line.KIND], self.leaf_roles = self.stack[-1][5], 0

    def open(self, tag: int, roles: int, signature: int) -> None:
        is_cell = tag in (TD, TH)
        if is_cell or tag in (LI, TR):
            bars = {TABLE} | ({UL, OL} if tag == LI else {TR} if is_cell else set())
            for level in range(len(self.stack) - 1, max(0, len(self.stack) - 33), -1):
                other = self.stack[level][0]
                if other == tag or (is_cell and other in (TD, TH)):
                    self.close(level - 1)
                    break
                if other in bars:
                    break
        if len(self.stack) > MAX_DEPTH:
            self.overflow += 1
            return
        outer = self.stack[-1]
        frame = [tag, len(self.boxes), outer[2], outer[3], outer[4] + (tag in (UL, OL)), v.TAG_KINDS[tag] or outer[5]]
        if tag == TR:
            self.rows += 1
            frame[2:4] = self.rows, 0
        elif is_cell:
            outer[3] += 1
            frame[3] = outer[3]
        above, n = self.boxes[outer[1]], len(self.lines)
        self.boxes.append([outer[1], tag, roles, roles | above[Box.ROLES], signed(signature), n, n, len(self.stack)])
        self.stack.append(frame)


def plain_scan(html: bytes) -> tuple[bytes, np.ndarray, np.ndarray, int]:
    """Text, lines, containers and number of title words of a page."""
    page = Plain(html)
    lines = np.array(page.lines, np.int64).reshape(-1, len(Line))
    return bytes(page.text), lines, np.array(page.boxes, np.int64), len(page.title)
