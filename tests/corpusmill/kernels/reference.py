"""The text kernels again in plain Python, slowly and obviously: what the compiled ones must equal, number by number."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter

from corpusmill.kernels.bytes.unicode_table import END_MARKS, FOLD_MASK, KIND_SHIFT, PUNCTUATION, Kind, entry_of
from corpusmill.kernels.words.plain_form import plain_text

MASK = 2**64 - 1


def kind_of(character: str) -> Kind:
    return Kind(entry_of(ord(character)) >> KIND_SHIFT & 7)


def fold(word: str) -> str:
    folded = [entry_of(ord(c)) & FOLD_MASK for c in word]
    return "".join(chr(code) for code in folded if code)


def tokens(text: str) -> list[tuple[str, bool]]:
    """Each token and whether it is a word."""
    out = []
    i = 0
    while i < len(text):
        kind = kind_of(text[i])
        if kind in (Kind.SEPARATOR, Kind.FORMAT):
            i += 1
            continue
        word = kind in (Kind.WORD, Kind.MARK)
        end = i + 1
        run = not word and kind != Kind.SINGLE
        last = text[i]  # the last character that is no mark or invisible one
        while end < len(text):
            c = text[end]
            k = kind_of(c)
            if k in (Kind.MARK, Kind.FORMAT):
                run = False
            elif word and k == Kind.WORD:
                last = c
            elif word and end + 1 < len(text) and joins(k, last, text[end + 1]):
                pass
            elif not (run and c == text[i]):
                break
            end += 1
        out.append((text[i:end], word or kind == Kind.SINGLE))
        i = end
    return out


def joins(kind: Kind, before: str, after: str) -> bool:
    if kind == Kind.JOINER:
        return kind_of(after) == Kind.WORD
    return kind == Kind.NUMERIC and before.isdecimal() and after.isdecimal() and kind_of(after) == Kind.WORD


def sentences(text: str) -> int:
    """By the definition in kernels/measures/page_counts.py, token by token."""
    count, place, end = 0, 0, 0
    begun = marked = needs_gap = False
    for token, word in tokens(text):
        place = text.index(token, place)
        gap = text[end:place]
        if begun and len(("x" + gap + "x").splitlines()) > 1:
            begun = False
        if not begun:
            count, begun, marked = count + 1, True, False
        if word:
            count += marked and (bool(gap) or not needs_gap)
            marked = False
        elif token[0] in END_MARKS and not (token[0] == "." and len(token) > 1):
            marked, needs_gap = True, ord(token[0]) < 0x80
        elif marked and gap:
            needs_gap = False
        end = place = place + len(token)
    return count


def words(text: str) -> list[str]:
    return [token for token, word in tokens(text) if word]


def mix64(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ (x >> 33)


def hash_bytes(data: bytes) -> int:
    h = 0x243F6A8885A308D3 ^ len(data)
    for i in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[i : i + 8], "little")) * 0x9E3779B97F4A7C15 & MASK
        h ^= h >> 32
    return mix64(h)


def flags(token: str, word: bool) -> int:
    return (
        any(c.isalpha() for c in token) * 1
        + any(c not in PUNCTUATION | END_MARKS for c in token)
        * 2  # controls, also in datatrove's list, are in no token
        + word * 4
    )


def folded_hash(token: str, word: bool) -> int:
    return hash_bytes((fold(token) if word else token).encode())


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def measures(text: str) -> dict[str, float]:
    """Every column of schema.MEASURES, by the wording of the definitions; of the text in normal form C."""
    size, text = len(text.encode()), unicodedata.normalize("NFC", text)
    found = [token for token, _ in tokens(text)]
    plain = [t for t in found if any(c not in PUNCTUATION | END_MARKS for c in t)]
    lines = text.splitlines()
    segments = re.split("\n+", text)
    paragraphs = re.split("\n{2,}", text.strip())
    dup_lines, dup_line_chars = duplicates(segments)
    dup_paragraphs, dup_paragraph_chars = duplicates(paragraphs)
    out: dict[str, float] = {
        "text_bytes": size,
        "word_total": len(words(text)),
        "word_count": len(plain),
        "mean_word_chars": ratio(sum(map(len, plain)), len(plain)),
        "hash_ratio": ratio(text.count("#"), len(found)),
        "ellipsis_ratio": ratio(text.count("...") + text.count("…"), len(found)),
        "bullet_line_ratio": ratio(sum(line.lstrip().startswith(("•", "-")) for line in lines), len(lines)),
        "ellipsis_line_ratio": ratio(sum(line.rstrip().endswith(("...", "…")) for line in lines), len(lines)),
        "alpha_word_ratio": ratio(sum(any(c.isalpha() for c in t) for t in found), len(found)),
        "stop_word_count": len({"the", "be", "to", "of", "and", "that", "have", "with"} & set(found)),
        "dup_line_ratio": ratio(dup_lines, len(segments)),
        "dup_paragraph_ratio": ratio(dup_paragraphs, len(paragraphs)),
        "dup_line_char_ratio": ratio(dup_line_chars, len(text)),
        "dup_paragraph_char_ratio": ratio(dup_paragraph_chars, len(text)),
    }
    return out | repeats(found, len(text))


def repeats(found: list[str], chars: int) -> dict[str, float]:
    """Shares of repeated n-grams of these words in a text of some characters."""
    top = {f"top_{n}gram_char_ratio": ratio(top_ngram(found, n), chars) for n in (2, 3, 4)}
    return top | {f"dup_{n}gram_char_ratio": ratio(dup_ngrams(found, n), chars) for n in range(5, 11)}


def duplicates(parts: list[str]) -> tuple[int, int]:
    again = [part for i, part in enumerate(parts) if part in parts[:i]]
    return len(again), sum(map(len, again))


def top_ngram(found: list[str], n: int) -> int:
    grams = Counter(" ".join(found[i : i + n]) for i in range(len(found) - n + 1))
    if not grams:
        return 0
    gram, times = grams.most_common(1)[0]
    return len(gram) * times


def dup_ngrams(found: list[str], n: int) -> int:
    met, chars, i = set(), 0, 0
    while i + n <= len(found):
        gram = tuple(found[i : i + n])
        if gram in met:
            chars += sum(map(len, gram))
            i += n
        else:
            met.add(gram)
            i += 1
    return chars


def shingles(text: str, ngram: int) -> list[int]:
    """Hash of every shingle, in text order."""
    hashes = [folded_hash(word, True) for word in words(plain_text(text))]
    return [mix64(polynomial(hashes[i : i + ngram])) for i in range(len(hashes) - ngram + 1)]


def polynomial(hashes: list[int]) -> int:
    value = 0
    for h in hashes:
        value = (value * 0x9E3779B97F4A7C15 + h) & MASK
    return value


def signature(text: str, ngram: int, permutations: list[tuple[int, int]]) -> list[int]:
    found = set(shingles(text, ngram))
    return [min(((a * (h >> 32) + b) % 2**32 for h in found), default=0xFFFFFFFF) for a, b in permutations]


def text_digest(text: str) -> bytes:
    text = plain_text(text)
    normal = " ".join(fold(word) for word in words(text)) or text.strip()
    return hashlib.sha256(normal.encode()).digest()[:16]
