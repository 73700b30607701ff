"""What stands in the bytes of a page or a head, found in one compiled pass each: signs that spare costlier looks.

Positions and counts are of bytes. The functions take `bytes` as they are; each call costs half a microsecond.
"""

from __future__ import annotations

import numpy as np

from corpusmill.compiled import inner, kernel

CONTROLS, RETURNS, HIGH, HTML = 1, 2, 4, 8
ROBOTS, OBJECTION, RESERVATION, REFRESH = 16, 32, 64, 128
"""Signs of `survey`."""

HEAD_SEARCHED = 64 * 1024
"""Bytes of a page in which its head is looked for."""

SNIFFED = 1024
"""Bytes of a page that tell what it is."""

_DOCTYPE = np.frombuffer(b"<!doctype html", np.uint8)
_HEAD = np.frombuffer(b"head", np.uint8)
_ROOT = np.frombuffer(b"<html", np.uint8)
_MATTER = (b"content-type", b"content-encoding", b"transfer-encoding", b"x-robots-tag", b"tdm-reservation")
_NAMES = np.array([list(name.ljust(17)) for name in _MATTER], np.uint8)
_SIZES = np.array([len(name) for name in _MATTER])


@kernel
def survey(page: bytes) -> int:
    """What occurs in the bytes of a page.

    Returns:
        The sum of
        CONTROLS: C0 controls other than tab, newline and carriage return;
        RETURNS: carriage returns;
        HIGH: bytes from 0x80 on;
        HTML: it begins with `<html` or `<!doctype html`, but for blanks and a UTF-8 byte order mark;
        ROBOTS, OBJECTION, RESERVATION, REFRESH: before `</head` there is what may be robots; noindex, noai or none;
        tdm-reservation; refresh: their first four letters, in any case.
    """
    size = len(page)
    controls, returns, high = False, False, False
    for i in range(size):
        byte = page[i]
        controls |= (byte < 32) & (byte != 9) & (byte != 10) & (byte != 13)
        returns |= byte == 13
        high |= byte > 127
    signs = CONTROLS * controls + RETURNS * returns + HIGH * high
    end = min(size, HEAD_SEARCHED)
    for i in range(end - 5):
        if page[i] == 60 and page[i + 1] == 47 and _spells(page, i + 2, _HEAD):
            end = i
            break
    robots, objection, reservation, refresh = False, False, False, False
    for i in range(end - 3):
        a, b, c, d = page[i] | 32, page[i + 1] | 32, page[i + 2] | 32, page[i + 3] | 32
        robots |= (a == 114) & (b == 111) & (c == 98) & (d == 111)
        no = (a == 110) & (b == 111)
        objection |= no & ((c == 105) & (d == 110) | (c == 97) & (d == 105) | (c == 110) & (d == 101))
        reservation |= (a == 116) & (b == 100) & (c == 109) & (d == 45)
        refresh |= (a == 114) & (b == 101) & (c == 102) & (d == 114)
    signs += ROBOTS * robots + OBJECTION * objection + RESERVATION * reservation + REFRESH * refresh
    i = 3 if size > 2 and page[0] == 0xEF and page[1] == 0xBB and page[2] == 0xBF else 0
    while i < size and (page[i] == 32 or 9 <= page[i] <= 13):
        i += 1
    if _begins(page, i, _DOCTYPE) or _begins(page, i, _ROOT):
        signs += HTML
    return signs


@inner
def _begins(page: bytes, at: int, word: np.ndarray) -> bool:
    """Whether a word stands at a place within the sniffed bytes, and a blank, `/` or `>` behind it."""
    end = at + len(word)
    if end >= min(len(page), SNIFFED) or not _spells(page, at, word):
        return False
    behind = page[end]
    return behind == 62 or behind == 47 or behind == 32 or 9 <= behind <= 13


@inner
def _spells(data: bytes, at: int, word: np.ndarray) -> bool:
    """Whether the bytes at a place are those of a word of small letters, in any case."""
    for k in range(len(word)):
        byte = data[at + k]
        if byte != word[k] and not (65 <= byte <= 90 and byte + 32 == word[k]):
            return False
    return True


@kernel
def plain_http_head(block: bytes, limit: int) -> tuple[int, int, int, int, int]:
    """Where the parts of an HTTP response are, if its head is plain.

    Plain is a head of ASCII lines, none of them folded, with at most one Content-Type and no other header that says
    something about the body: encodings, robots, reservations.

    Args:
        block: the response.
        limit: a head of more bytes is not plain.

    Returns:
        (status, end of the head, begin of the body, begin and end of the Content-Type's value, 0 and 0 without one);
        status is -1 where the head is not plain.
    """
    none, size = (-1, 0, 0, 0, 0), min(len(block), limit)
    if size < 13 or block[0] != 72 or block[1] != 84 or block[2] != 84 or block[3] != 80 or block[4] != 47:
        return none  # HTTP/
    if not _is_digit(block[5]) or block[6] != 46 or not _is_digit(block[7]) or block[8] != 32:
        return none
    if not (_is_digit(block[9]) and _is_digit(block[10]) and _is_digit(block[11])) or _is_digit(block[12]):
        return none
    status = (int(block[9]) - 48) * 100 + (int(block[10]) - 48) * 10 + int(block[11]) - 48
    type_begin, type_end, line, colon = 0, 0, 0, 0
    for i in range(12, size):
        byte = block[i]
        if byte == 58 and colon == 0:
            colon = i
        elif byte == 10:
            if line > 0 and colon > 0:
                name = _which(block, line, colon)
                if name > 0 or (name == 0 and type_end > 0):
                    return none
                if name == 0:
                    type_begin, type_end = colon + 1, i
            line, colon = i + 1, 0
            k = line
            while k < size and k < line + 2 and block[k] == 13:
                k += 1
            if k < size and block[k] == 10:
                return status, i, k + 1, type_begin, type_end
            if line < size and (block[line] == 32 or block[line] == 9):
                return none
        elif byte > 126 or (byte < 32 and byte != 9 and not (byte == 13 and i + 1 < size and block[i + 1] in (10, 13))):
            return none
    return none


@inner
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@inner
def _which(block: bytes, begin: int, end: int) -> int:
    """Which of the headers that matter has its name between two places, but for blanks; -1 for others."""
    while begin < end and block[begin] <= 32:
        begin += 1
    while begin < end and block[end - 1] <= 32:
        end -= 1
    for n in range(len(_SIZES)):
        if end - begin == _SIZES[n] and _spells(block, begin, _NAMES[n, : _SIZES[n]]):
            return n
    return -1


@kernel
def high_runs(data: bytes) -> tuple[int, int]:
    """(bytes from 0x80 on, those of them in runs of three and more)."""
    high, in_runs, run = 0, 0, 0
    for i in range(len(data)):
        if data[i] > 127:
            high += 1
            run += 1
            in_runs += 3 if run == 3 else 1 if run > 3 else 0
        else:
            run = 0
    return high, in_runs


@kernel
def high_bytes(data: bytes) -> np.ndarray:
    """bool[128]: which of the bytes 0x80 to 0xFF occur."""
    used = np.zeros(128, np.bool_)
    for i in range(len(data)):
        if data[i] > 127:
            used[data[i] - 128] = True
    return used


@kernel
def mostly_utf8(data: bytes) -> bool:
    """Whether `text = data.decode("utf-8", "replace")` has saved more than four bytes for each U+FFFD in it.

    Characters save bytes: their length in UTF-8 less one. What cannot be a part of a character becomes one U+FFFD for
    each longest beginning of one (Unicode 16, section 3.9, as Python does). Ends as soon as the rest cannot turn the
    answer.
    """
    saved, bad, i, size = 0, 0, 0, len(data)
    while i < size:
        lead = data[i]
        if lead < 0x80:
            i += 1
            continue
        want = 1 if lead < 0xC2 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF5 else 1
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        have = 1
        while have < want and i + have < size and low <= data[i + have] <= high:
            low, high = 0x80, 0xBF
            have += 1
        if have < want or want == 1 or (lead == 0xEF and data[i + 1] == 0xBF and data[i + 2] == 0xBD):
            bad += 1  # the last of these a page brings along
            if 4 * bad - saved >= size - i:
                return False
        saved += have - 1
        i += have
    return saved > 4 * bad
