"""The text kernels again in plain Python, slowly and obviously: what the compiled ones must equal, number by number."""

from __future__ import annotations

from corpusmill.kernels.unicode_table import FOLD_MASK, KIND_SHIFT, PUNCTUATION, Kind, entry_of

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
        + any(c not in PUNCTUATION for c in token) * 2  # controls, also in datatrove's list, are in no token
        + word * 4
    )


def folded_hash(token: str, word: bool) -> int:
    return hash_bytes((fold(token) if word else token).encode())
