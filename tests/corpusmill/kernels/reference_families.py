"""Families of measures in plain Python, by the wording of their sources, on our words where those have a tokenizer."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median

from corpusmill.kernels.bytes.unicode_table import ALPHA, DIGIT, END_MARKS, FOLD_MASK, UPPER, Kind, entry_of
from corpusmill.kernels.measures.char_counts import POLICIES
from corpusmill.schema import QUALITY_MEASURES, REPETITION_MEASURES
from tests.corpusmill.kernels import reference
from tests.corpusmill.kernels.reference import ratio, tokens
from tests.corpusmill.kernels.reference_edits import lower

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}


def is_letter(c: str) -> bool:
    return bool(entry_of(ord(c)) & ALPHA)


def is_alnum(c: str) -> bool:
    return is_letter(c) or reference.kind_of(c) in (Kind.WORD, Kind.SINGLE)


def fineweb(text: str) -> dict[str, float]:
    lines = [line for line in text.split("\n") if line.strip()]
    _, dup_chars = reference.duplicates(lines)
    return {
        "end_mark_line_ratio": ratio(sum(line.endswith(tuple(END_MARKS)) for line in lines), len(lines)),
        "short_line_ratio": ratio(sum(len(line) <= 30 for line in lines), len(lines)),
        "dup_line_body_ratio": ratio(dup_chars, len(text.replace("\n", ""))),
        "line_break_ratio": text.count("\n") / max(len(tokens(text)), 1),
    }


def page(text: str) -> dict[str, float]:
    return {
        "char_count": len(text),
        "sentence_count": reference.sentences(text),
        "curly_bracket_count": text.count("{"),
        "lorem_ipsum_count": lower(text).count("lorem ipsum"),
    }


def code(text: str) -> dict[str, float]:
    lines = text.splitlines()
    return {
        "code_mean_line_chars": ratio(sum(map(len, lines)), len(lines)),
        "code_max_line_chars": max(map(len, lines), default=0),
        "code_alnum_ratio": ratio(sum(map(is_alnum, text)), len(text)),
        "code_letters_per_token": ratio(sum(map(is_letter, text)), len(tokens(text))),
        "code_encoded_ratio": ratio(sum(map(len, re.findall(r"[A-Za-z0-9+/=]{64,}", text))), len(text)),
        "code_xml": "<?xml version=" in text[:100],
    }


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(n)), strict=False))


def letters(gram: Sequence[str]) -> int:
    return sum(map(len, gram))


def dolma(text: str) -> dict[str, float]:
    words, lines = text.split(), text.split("\n") if text else []
    chars, copies = letters(words), Counter(lines)
    found: dict[str, float] = {
        "word_count": len(words),
        "median_word_chars": median(map(len, words)) if words else 0,
        "symbol_ratio": ratio(sum("#" in w or "…" in w for w in words), len(words)),
        "alpha_word_ratio": ratio(sum(any(map(is_letter, w)) for w in words), len(words)),
        "stop_word_count": sum(w in STOP_WORDS for w in words),
        "bullet_line_ratio": ratio(sum(line.startswith(("*", "-")) for line in lines), len(lines)),
        "ellipsis_line_ratio": ratio(sum(line.endswith("…") for line in lines), len(lines)),
        "dup_line_ratio": ratio(sum(c for c in copies.values() if c > 1), len(lines)),
        "dup_line_char_ratio": sum(len(line) * c for line, c in copies.items() if c > 1) / max(chars, 1),
    }
    for n in range(2, 11):
        grams = Counter(ngrams(words, n))
        if n < 5:
            top, times = grams.most_common(1)[0] if grams else ((), 0)
            found[f"top_{n}gram_char_ratio"] = ratio(times * letters(top), chars)
        else:
            whole = sum(letters(g) * c for g, c in grams.items())
            found[f"dup_{n}gram_char_ratio"] = ratio(sum(letters(g) * c for g, c in grams.items() if c > 1), whole)
    return {f"dolma_{name}": value for name, value in found.items()}


def covered(words: Sequence[str], longest_of_equals: bool) -> dict[str, float]:
    found, chars = {}, letters(words)
    for n in range(2, 11):
        grams = ngrams(words, n)
        counts = Counter(grams)
        most = max(counts.values(), default=0)
        if n < 5:
            tops = [letters(g) for g, c in counts.items() if c == most] or [0]
            top = max(tops) if longest_of_equals else tops[0]
            found[f"top_{n}gram_char_ratio"] = ratio(top * most if most > 1 else 0, chars)
        else:
            inside = {i + k for i, g in enumerate(grams) if counts[g] > 1 for k in range(n)}
            found[f"dup_{n}gram_char_ratio"] = ratio(sum(len(words[i]) for i in inside), chars)
    return found


def copies(kind: str, parts: list[str]) -> dict[str, float]:
    counts = Counter(parts)
    if len(parts) < 2:
        return {f"dup_{kind}_ratio": 0, f"dup_{kind}_char_ratio": 0}
    return {
        f"dup_{kind}_ratio": sum(c for c in counts.values() if c > 1) / len(parts),
        f"dup_{kind}_char_ratio": sum(len(p) * c for p, c in counts.items() if c > 1) / sum(map(len, parts)),
    }


def dclm(text: str) -> dict[str, float]:
    words = text.split()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    symbols = sum(text.count(s) for s in ("#", "...", ". . .", "…"))
    found: dict[str, float] = {
        "word_count": sum(is_alnum(w[0]) for w in words),
        "mean_word_chars": ratio(letters(words), len(words)),
        "symbol_ratio": ratio(symbols, len(words)) if words else symbols,
        "alpha_word_ratio": ratio(sum(any(map(is_letter, w)) for w in words), len(words)),
        "stop_word_count": sum(lower(w) in STOP_WORDS for w in words),
        "bullet_line_ratio": ratio(sum(line.startswith(("●", "•", "*", "-")) for line in lines), len(lines)),
        "ellipsis_line_ratio": ratio(sum(line.endswith(("...", ". . .", "…")) for line in lines), len(lines)),
        **copies("line", lines),
        **copies("paragraph", [p.strip() for p in text.split("\n\n") if p.strip()]),
        **covered(reference.words(text), longest_of_equals=True),
    }
    return {f"dclm_{name}": value for name, value in found.items()}


def nemo(text: str) -> dict[str, float]:
    words, lines, paragraphs = text.split(), [x for x in text.split("\n") if x.strip()], text.split("\n\n")
    ends = ("...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more")
    urls = re.findall(r"https?://(?:[a-zA-Z]|[0-9]|[$-_@.&+]|[!*\(\),]|(?:%[0-9a-fA-F][0-9a-fA-F]))+", text)
    size = len(text)
    with_phrase = sum(any(p in lower(part) for p in POLICIES) for part in paragraphs)
    dup_lines, dup_line_chars = reference.duplicates(lines)
    dup_paragraphs, dup_paragraph_chars = reference.duplicates(paragraphs)

    def share(part: float) -> float:
        return part / size if size else 1.0

    found: dict[str, float] = {
        "word_count": len(words),
        "mean_word_chars": ratio(letters(words), len(words)),
        "symbol_ratio": ratio(sum(w in (*ends, "#") for w in words), len(words)),
        "alpha_word_ratio": ratio(sum(any(map(is_letter, w)) for w in words), len(words)),
        "stop_word_count": sum(w in STOP_WORDS for w in words),
        "bullet_line_ratio": ratio(sum(x.strip().startswith(tuple("•‣⁃⁌⁍∙○●◘◦⦾⦿")) for x in lines), len(lines)),
        "ellipsis_line_ratio": ratio(sum(lower(x.strip()).endswith(ends) for x in lines), len(lines)),
        "dup_line_ratio": ratio(dup_lines, len(lines)),
        "dup_line_char_ratio": ratio(dup_line_chars, sum(map(len, lines))),
        "dup_paragraph_ratio": dup_paragraphs / len(paragraphs),
        "dup_paragraph_char_ratio": ratio(dup_paragraph_chars, sum(map(len, paragraphs))),
        "non_alnum_ratio": 1.0 - len(re.findall(r"[a-zA-Z0-9\n?!,.]", text)) / size if size else 1.0,
        "digit_ratio": share(sum(bool(entry_of(ord(c)) & DIGIT) for c in text)),
        "url_ratio": share(sum(map(len, urls))),
        "space_ratio": share(sum(c in "\t\n\r\b " for c in text)),
        "bracket_ratio": share(sum(c in "{}⟨⟩[]()" for c in text)),
        "boilerplate_ratio": 1.0 if "lorem ipsum" in lower(text) else with_phrase / len(paragraphs),
        "no_end_mark_ratio": ratio(sum(not x.strip().endswith((*".?!\"'",)) for x in lines), len(lines)),
        "longest_word_chars": max(map(len, words), default=0),
    }
    for n in range(2, 11):
        grams = ngrams(words, n)
        if not grams:
            value = 1.0
        elif n < 5:
            top = " ".join(Counter(grams).most_common(1)[0][0])
            value = (size - len(text.replace(top, ""))) / size
        else:
            value = nemo_duplicates(grams, n) / size
        found[f"{'top' if n < 5 else 'dup'}_{n}gram_char_ratio"] = value
    return {f"nemo_{name}": value for name, value in found.items()}


def nemo_duplicates(grams: list[tuple[str, ...]], n: int) -> int:
    met, chars, overlap = set(), 0, 0
    for gram in grams:
        if gram in met:
            chars += letters(gram[overlap:]) + min(n - overlap, n - 1)
            overlap = n
        met.add(gram)
        overlap = max(overlap - 1, 0)
    return chars


def redpajama(text: str) -> dict[str, float]:
    raw, lines = tokens(text), re.findall(r"[^\n]*\n|[^\n]+$", text)
    words = []
    for word in text.split():
        small = "".join(chr(entry_of(ord(c)) & FOLD_MASK or ord(c)) for c in word if c not in string.punctuation)
        words += [small] if small else []
    symbols = sum(text.count(s) for s in ("#", "...", "…"))
    bullets = tuple("•‣▶◀◦■□▪▫–")
    found: dict[str, float] = {
        "word_count": len(words),
        "mean_word_chars": ratio(letters(words), len(words)),
        "symbol_ratio": ratio(symbols, len(raw)),
        "alpha_word_ratio": ratio(sum(any(map(is_letter, w)) for w, _ in raw), len(raw)),
        "bullet_line_ratio": ratio(sum(line.lstrip().startswith(bullets) for line in lines), len(lines)),
        "ellipsis_line_ratio": ratio(sum(line.rstrip().endswith(("...", "…")) for line in lines), len(lines)),
        **covered(words, longest_of_equals=False),
    }
    return {f"redpajama_{name}": value for name, value in found.items()}


def body(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line.strip()]
    return {"bullet_body_ratio": ratio(sum(line.lstrip().startswith(("•", "-")) for line in lines), len(lines))}


def between_blanks(text: str) -> list[str]:
    """Runs without a separator, invisible characters before them left out."""
    found, word = [], ""
    for c in f"{text} ":
        kind = reference.kind_of(c)
        if kind == Kind.SEPARATOR:
            found += [word] if word else []
            word = ""
        elif word or kind != Kind.FORMAT:
            word += c
    return found


def paper(text: str) -> dict[str, float]:
    words = between_blanks(text)
    found = reference.measures(text)
    found |= reference.repeats(words, len(text))
    found |= {
        "word_count": len(words),
        "mean_word_chars": ratio(letters(words), len(words)),
        "hash_ratio": text.count("#") / max(len(words), 1),
        "ellipsis_ratio": (text.count("...") + text.count("…")) / max(len(words), 1),
        "alpha_word_ratio": ratio(sum(any(map(is_letter, w)) for w in words), len(words)),
        "stop_word_count": len(STOP_WORDS & set(words)),
    }
    return {f"paper_{name}": found[name] for name in (*QUALITY_MEASURES, *REPETITION_MEASURES)}


def is_address(word: str) -> bool:
    """Whether "//" stands right after ":" and a word somewhere before it."""
    found = tokens(word)
    return any(
        token == "//" and found[i - 1][0][-1] == ":" and any(is_word for _, is_word in found[:i])
        for i, (token, _) in enumerate(found)
        if i
    )


def refinedweb(text: str) -> dict[str, float]:
    noisy = 0
    for line in text.split("\n"):
        capitals = sum(bool(entry_of(ord(c)) & UPPER) for c in line)
        if len(between_blanks(line)) == 1 or 2 * capitals > len(line):
            noisy += len(reference.words(line))
        else:
            noisy += sum(len(reference.words(w)) for w in between_blanks(line) if is_address(w))
    return {"refinedweb_noisy_word_ratio": ratio(noisy, len(reference.words(text)))}


FAMILIES: dict[str, Callable[[str], dict[str, float]]] = {
    "body": body,
    "fineweb": fineweb,
    "page": page,
    "code": code,
    "dolma": dolma,
    "dclm": dclm,
    "nemo": nemo,
    "redpajama": redpajama,
    "paper": paper,
    "refinedweb": refinedweb,
}


def stop_words(text: str, words: Sequence[str]) -> int:
    """Different stop words, as sequences of touching tokens."""
    placed, place = [], 0
    for token, _ in tokens(text):
        place = text.index(token, place)
        placed.append((place, token))
        place += len(token)
    found = set()
    for word in set(words):
        cut = [token for token, _ in tokens(word)]
        for i in range(len(placed) - len(cut) + 1):
            here = placed[i : i + len(cut)]
            touching = all(here[k][0] + len(here[k][1]) == here[k + 1][0] for k in range(len(cut) - 1))
            if touching and [token for _, token in here] == cut:
                found.add(word)
    return len(found)
