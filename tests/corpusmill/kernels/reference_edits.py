"""Line edits again in plain Python: lists of characters with their places, one rule after the other."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from corpusmill.kernels.edits.rules import EditRule
from tests.corpusmill.kernels import reference

Line = list[tuple[str, int]]
"""Characters that are left of a line, each with its byte in the text."""

WORD_BYTES = string.ascii_letters + string.digits + "_"


def edited(text: str, edits: Sequence[EditRule]) -> tuple[list[tuple[int, int, str]], str]:
    """Pieces that are removed (unmerged characters as (start, end, kind)), and what is left."""
    places, at = [], 0
    for c in text:
        places.append(at)
        at += len(c.encode())
    gone: dict[int, str] = {}  # index of a character -> kind
    seen: set[str] = set()
    kept: list[tuple[int, int, bool]] = []  # first index, index after the break, whether something is left
    index, feeds = 0, 0
    trimming = next((edit.name for edit in edits if edit.test == "blanks"), None)
    any_kept, tail_removed = False, False
    for whole in text.splitlines(keepends=True):
        body = whole.splitlines()[0] if whole.splitlines() else ""
        feeds = feeds + 1 if not body and feeds else 1
        if whole[len(body) :] != "\n":
            feeds = 0
        line = [(c, index + i) for i, c in enumerate(body)]
        kind, cut = apply_rules(line, edits, feeds, seen, any_kept)
        after = index + len(whole)
        if kind is not None:
            gone |= dict.fromkeys(range(index, after), kind)
            tail_removed = True
        else:
            gone |= cut
            left = len(body) - len(cut)
            tail_removed = False
            if trimming is None or left:
                kept.append((index, index + len(body), bool(left)))
                any_kept = True
        index = after
    if trimming is not None or tail_removed:
        end = 0
        if kept:
            first, end, left = kept[-1]
            while left and end - 1 in gone and end > first:
                end -= 1
        for i in range(end, len(text)):
            gone.setdefault(i, "")  # the break before a removed tail: of the kind beside it
    pieces = [(places[i], places[i] + len(text[i].encode()), gone[i]) for i in sorted(gone)]
    return pieces, "".join(c for i, c in enumerate(text) if i not in gone)


def apply_rules(
    line: Line, edits: Sequence[EditRule], feeds: int, seen: set[str], any_kept: bool
) -> tuple[str | None, dict[int, str]]:
    """The rule that removes the line, or None and what is cut from it."""
    cut: dict[int, str] = {}
    for edit in edits:
        if edit.test == "newlines" and feeds > edit.settings["max"]:
            return edit.name, {}
    for edit in edits:
        text, s = "".join(c for c, _ in line), edit.settings
        words = text.split()
        parts: list[tuple[int, int]] = []
        gone = False
        if edit.test == "blanks":
            begin = len(text) - len(text.lstrip())
            parts = [(0, begin), (max(len(text.rstrip()), begin), len(text))]
            gone = not text.strip() and not any_kept
        elif edit.test == "long_word":
            gone = any(len(word) > s["max_chars"] for word in words)
        elif edit.test == "few_words":
            gone = len(words) < s["min_words"] and not (s["keep_empty"] and not text)
        elif edit.test == "no_end_mark":
            end = text.rstrip() if s["blanks"] else text
            gone = not end.endswith(s["marks"]) or end.endswith(s["unless"])
            gone = gone and not (s["keep_empty"] and not text)
        elif edit.test in ("capitals", "digits"):
            count = sum(c.isupper() if edit.test == "capitals" else c.isdigit() for c in text)
            gone = bool(text) and count / len(text) > s["max_ratio"]
        elif edit.test == "counter":
            units = "|".join(map(re.escape, s["units"]))
            gone = bool(re.search(rf"^\W*\d(?:,|\.|\d)*[KkMmBb]?\s+(?i:{units})\W*$", text))
        elif edit.test == "citation":
            forms = [re.escape(phrase) for phrase in s["phrases"]] + [r"\d*"] * s["numbers"]
            parts = [m.span() for m in re.finditer(rf"\[(?:{'|'.join(forms)})\]", text)]
        elif edit.test == "repeated_line":
            key = lower(text.strip())
            gone = bool(key) and key in seen
            if not gone:
                seen.add(key)
        elif edit.test == "phrase":
            gone, parts = phrase(text, s, len(words))
        elif edit.test == "address":
            parts = addresses(text, s["endings"])
        for a, b in parts:
            cut |= {line[i][1]: edit.name for i in range(a, b)}
        removed = {line[i][1] for a, b in parts for i in range(a, b)}
        line = [(c, i) for c, i in line if i not in removed]
        if edit.test == "phrase" and parts and not "".join(c for c, _ in line).strip():
            gone = True
        if gone:
            return edit.name, {}
    return None, cut


def lower(text: str) -> str:
    return text.translate(str.maketrans(string.ascii_uppercase, string.ascii_lowercase))


def phrase(text: str, s: Mapping[str, Any], words: int) -> tuple[bool, list[tuple[int, int]]]:
    if (s["max_words"] and words > s["max_words"]) or any(lower(p) in lower(text) for p in s["unless"]):
        return False, []
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        hit = next((len(p) for p in s["phrases"] if matches(text, at, p, s)), 0)
        if hit:
            found.append((at, at + hit))
        at += hit or 1
    if s["at"] == "end":  # the first of the list that ends the line
        ends = [p for p in s["phrases"] if len(p) <= len(text) and matches(text, len(text) - len(p), p, s)]
        found = [(len(text) - len(ends[0]), len(text))] if ends else []
    if s["cut"] == "line" or not found:
        return bool(found), []
    parts, floor = [], 0
    for a, b in found:
        if s["at"] == "start":
            b += text[b : b + 1].isspace()
        elif a and text[a - 1].isspace():
            a -= 1
        parts.append((max(a, floor), b))
        floor = b
    return False, parts


def matches(text: str, at: int, p: str, s: Mapping[str, Any]) -> bool:
    if lower(text[at : at + len(p)]) != lower(p) or (s["at"] == "start" and at):
        return False
    if s["at"] == "end" and at + len(p) != len(text):
        return False
    beside = text[max(at - 1, 0) : at] + text[at + len(p) : at + len(p) + 1]
    return not (s["whole_words"] and any(c in WORD_BYTES or ord(c) >= 0x80 for c in beside))


def addresses(text: str, endings: Sequence[str]) -> list[tuple[int, int]]:
    parts, floor = [], 0
    for m in re.finditer(r"\S+", text):
        a, b = m.span()
        while a < b and ord(text[a]) < 0x80 and text[a] not in WORD_BYTES:
            a += 1
        while a < b and ord(text[b - 1]) < 0x80 and text[b - 1] not in WORD_BYTES and text[b - 1] != "/":
            b -= 1
        if not is_url(text[a:b], endings):
            continue
        if a == m.start():
            for _ in range(10):
                if a > floor and text[a - 1].isspace():
                    a -= 1
        parts.append((a, b))
        floor = b
    return parts


def is_url(word: str, endings: Sequence[str]) -> bool:
    if len(word.encode()) < 4:
        return False
    if re.match(r"[A-Za-z]+://.", word, re.DOTALL) or re.match(r"(?i:www)\..", word, re.DOTALL):
        return True
    host = re.match(r"[A-Za-z0-9._@-]*", word)[0]
    if host != word and word[len(host)] not in "/:?#":
        return False
    if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host, re.ASCII):
        return True
    return any(len(host) > len(e) + 1 and host.endswith("." + e) for e in endings)


def removed_words(text: str, pieces: Sequence[tuple[int, int, str]]) -> int:
    """Words that begin in one of the pieces."""
    gone = {at for start, end, _ in pieces for at in range(start, end)}
    at, count, place = 0, 0, 0
    for token, word in reference.tokens(text):
        place = text.index(token, place)
        at = len(text[:place].encode())
        count += word and at in gone
        place += len(token)
    return count
