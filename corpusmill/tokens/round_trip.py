"""Texts that a tokenizer has to give back from its tokens: what pages contain, and what normalisers lose."""

from __future__ import annotations

SAMPLES = (
    "The quick brown fox jumps over the lazy dog, and THE DOG DOES NOT MIND.",  # lower case
    "Brücke über den Fluß, garçon, Zażółć gęślą jaźń",  # strip accents
    "caf\u0065\u0301 n\u0303ino",  # accents as characters of their own
    "ﬁnd № ½ of x² + H₂O ≠ ① Ａ７ ™ … Å",  # NFKC and NFKD
    "ẞ İ ı ς Σ ǅ",  # letters with more than one lower or upper case
    "‘single’ “double” «angle» — dash – minus − hyphen‐ ''two'' ``back``",  # punctuation made ASCII
    "one two  three   four    five",  # runs of spaces
    " begins and ends with a space ",
    "def f(x):\n    if x:\n\treturn  [1]\n\n\n# end\n",  # indentation, tabs, empty lines
    "line one\r\nline two\u2028line three\u00a0no break\u3000wide",
    "soft\u00adhyphen zero\u200bwidth joiner\u200d mark\ufeff right\u200fto left",  # removed as invisible
    "Price: $1,234.56 (-12%) ~ a_b/c\\d|e {f} [g] <h> @i #j ^k &amp; *l* `m` \"n\" 'o' =p+q;r:s?t!",
    "don't can't we'll  I'm . , ! ? ' s",  # spaces that decoders clean up
    "https://www.example.org/a/very-long-path/" + "segment" * 20 + "/index.html?q=1",  # longer than a word may be
    "3.14159 00123 1e-9 0xFF 2026-01-02T03:04:05Z 1234567890123456789",
    "Привет, мир! Ёлка. Γειά σου, Κόσμε. Բարեւ. გამარჯობა",
    "שָׁלוֹם עולם مرحبًا بالعالَم، ۱۲۳",
    "नमस्ते दुनिया। বাংলা தமிழ் తెలుగు ภาษาไทย ພາສາລາວ မြန်မာ ភាសាខ្មែរ",  # vowel signs are marks
    "東京と大阪。你好，世界！안녕하세요 한국어 ㈱ ﾊﾝｶｸ カタカナ が",
    "👍🏽 👨‍👩‍👧 🇩🇪 ❤️ 𝔘𝔫𝔦 𐍈 🙂",  # beyond 16 bits, joined
    "<unk> </s> <s> <pad> [UNK] [CLS] [SEP] [MASK] <|endoftext|> <|im_start|>user",  # names of others' tokens
    "<0x41> <0x0A> Ġa Ċb",  # how tokenizers write bytes, spaces, line breaks
)
"""Each is short, so that an example in a message is; a comment says who loses it."""
