"""Encoders: tokie gives the ids of `tokenizers` for texts of all scripts, or the build ends and says what to do."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from corpusmill.errors import Unavailable, UsageError
from corpusmill.tokens import encoders, round_trip
from corpusmill.tokens.encoders import Differ, Tokie, encoder
from corpusmill.tokens.tokenizer import Tokenizer, train_tokenizer

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def trained() -> bytes:
    return train_tokenizer(
        [*round_trip.SAMPLES * 9, "It's what they'll say; don't we've 12345 words?\n\n\t" * 99], 1024
    )


def changed(data: bytes, **parts: object) -> bytes:
    made = tokenizers.Tokenizer.from_str(data.decode())
    for name, part in parts.items():
        setattr(made, name, part)
    return made.to_str().encode()


def texts(seed: int) -> Iterator[str]:
    """Strings of all scripts: characters of every plane, words of many languages, blanks, marks, names of tokens."""
    draw = random.Random(seed)
    words = [word for sample in round_trip.SAMPLES for word in sample.split(" ")]
    blanks = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u3000", "\u00a0", "\x85", "\u2028", "\v", "\f", "\0", "\u200d"]
    pieces = (
        lambda: draw.choice(words),
        lambda: " " + draw.choice(words),
        lambda: draw.choice(blanks),
        lambda: chr(draw.randrange(0x20, 0x7F)) * draw.randint(1, 4),
        lambda: chr(draw.randrange(0x80, 0xD800)),
        lambda: chr(draw.choice((draw.randrange(0xE000, 0x20000), draw.randrange(0x20000, 0x110000)))),
        lambda: chr(draw.randrange(0x300, 0x370)),
        lambda: draw.choice(("'s", "'LL", "’t", "007", "²", "Ⅷ", "<|endoftext|>"[: draw.randint(1, 13)])),
    )
    weights = (6, 8, 6, 4, 4, 1, 1, 2)
    while True:
        yield "".join(piece() for piece in draw.choices(pieces, weights, k=draw.randint(0, 16)))


def compare_with(fast: Tokie, read: Tokenizer, given: list[str]) -> None:
    for text, ours, theirs in zip(given, fast.encode(given), read.encode(given), strict=True):
        assert np.array_equal(ours, theirs), f"{text!r}: {ours.tolist()} is not {theirs.tolist()}"


def compare(read: Tokenizer, given: list[str]) -> int:
    """How many texts tokie encoded, all of them as `tokenizers` does."""
    fast = Tokie(read)
    compare_with(fast, read, given)
    return sum(not fast._is_routed(text) for text in given)


def test_ids_are_those_of_tokenizers_for_20_000_generated_texts(trained):
    assert compare(Tokenizer(trained), list(islice(texts(1), 20_000))) > 10_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_ids_are_those_of_tokenizers_for_a_million_generated_texts():
    read, made = Tokenizer(train_tokenizer(islice(texts(4), 20_000), 16_384)), texts(2)
    assert sum(compare(read, list(islice(made, 20_000))) for _ in range(50)) > 500_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_ids_are_those_of_tokenizers_for_every_character(trained):
    read = Tokenizer(trained)
    for begin in range(0, 0x110000, 0x4000):
        every = (chr(code) for code in range(begin, begin + 0x4000) if not 0xD800 <= code < 0xE000)
        compare(read, [f"a{char}b 1{char}1 .{char}. {char}'s {char} \n{char}\n" for char in every])


def test_another_splitter_is_refused_before_it_encodes(trained):
    """Llama 3's gave 392 differences in 100,000 texts: too many kinds to look for."""
    split = pre_tokenizers.Split(tokenizers.Regex(LLAMA_3), "isolated")
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    read = Tokenizer(changed(trained, pre_tokenizer=pre_tokenizers.Sequence([split, pieces])))
    with pytest.raises(UsageError, match=r'(?s)split as in GPT-2.*pack\.encoder = "tokenizers"'):
        encoder("tokie", read)


def test_a_vocabulary_with_tokens_over_boundaries_is_refused(trained):
    described = json.loads(trained)
    described["model"]["vocab"]["a1"] = 1_024
    described["model"]["merges"].append(["a", "1"])
    with pytest.raises(UsageError, match=r"(?s)its token 'a1' is over a boundary"):
        encoder("tokie", Tokenizer(json.dumps(described).encode()))


@pytest.mark.parametrize("text", ["\t's", "  \v", "\n\n\fx", "\U00033451's", "Ⓐ's", "Ⅷb"])
def test_what_tokie_is_known_to_encode_otherwise_goes_to_tokenizers(trained, text):
    read = Tokenizer(trained)
    fast = Tokie(read)
    assert np.array_equal(fast.encode([text])[0], read.encode([text])[0])
    assert fast._is_routed(text)


def test_around_what_looks_like_a_contraction_a_text_is_cut_where_its_splitter_cuts_it(trained):
    """Blanks of all kinds before and behind, at both ends, and several words of the kind beside one another."""
    read = Tokenizer(trained)
    fast, draw = Tokie(read), random.Random(7)
    blanks = ["", " ", "  ", "\n", "\n\n", " \n", "\n ", "\t", "\r\n", "\u00a0", "\u3000 ", " \x85", "\x1c", "  \n\t "]
    words = [
        "x'l",
        "'round",
        "the 'v",
        "o'r's",
        "'l'l'l",
        "they'll",
        "we've",
        "a1'v2",
        "漢'l字",
        "don't",
        "plain",
        "!'r!",
    ]
    made = [
        "".join(draw.choice(blanks) + draw.choice(words) for _ in range(n % 6)) + draw.choice(blanks)
        for n in range(20_000)
    ]
    compare_with(fast, read, made)
    assert not any(map(fast._is_routed, [text for text in made if "\t'" not in text]))
    cut = encoders._pieces("it was 'round \n\n'l end")
    assert cut == ((False, "it was"), (True, " 'round"), (False, " \n"), (True, "\n'l"), (False, " end"))
    assert encoders._pieces("plain") == ((False, "plain"),)


@pytest.mark.parametrize("many", [1, 100, 10_000])
def test_texts_that_spell_special_tokens_go_to_tokenizers(trained, many):
    made = tokenizers.Tokenizer.from_str(trained.decode())
    made.add_special_tokens([f"<|{number}|>" for number in range(many)])
    made.add_tokens(["\n\n"])
    read = Tokenizer(made.to_str().encode())
    given = ["a <|endoftext|> b", f"a<|{many - 1}|>\n\n", "no\n\nspecial token", "\0added token 0\0"]
    assert compare(read, given) == 2


def test_one_document_in_a_thousand_is_compared_across_batches(trained, monkeypatch):
    read = Tokenizer(trained)
    fast = Tokie(read)
    asked: list[str] = []
    exact = read.encode
    monkeypatch.setattr(read, "encode", lambda given: asked.extend(given) or exact(given))
    every = [f"document {number}" for number in range(5_000)]
    for begin in range(0, 5_000, 512):
        fast.encode(every[begin : begin + 512])
    assert asked == [f"document {number}" for number in range(0, 5_000, 1_000)]


def test_a_difference_names_the_document_and_the_first_position(trained):
    read = Tokenizer(trained)
    fast = Tokie(read)
    fast.encode(["an ordinary text"] * 1_999)
    fast._fast = Tokie(Tokenizer(changed(trained, normalizer=normalizers.Lowercase())), tried=False)._fast
    with pytest.raises(
        Differ, match=r"(?s)begins 'abc DEF'.*from position \d+ on .*pack\.encoder = \"tokenizers\""
    ) as told:
        fast.encode(["none", "abc DEF"])
    assert (told.value.number, told.value.exit_code) == (1, 1)


OTHERS = {
    "wordpiece": models.WordPiece({"[UNK]": 0, "</s>": 1, "a": 2, "##b": 3}, unk_token="[UNK]"),
    "unigram": models.Unigram([("<unk>", 0.0), ("</s>", 0.0), ("a", -1.0), ("▁", -2.0), ("b", -3.0)], unk_id=0),
    "word level": models.WordLevel({"[UNK]": 0, "</s>": 1, "a": 2}, unk_token="[UNK]"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_model_is_encoded_alike_or_refused(name):
    made = tokenizers.Tokenizer(OTHERS[name])
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.add_special_tokens(["</s>"])
    read = Tokenizer(made.to_str().encode(), "</s>")
    fits(read)


NORMALIZERS = {
    "NFC": normalizers.NFC(),
    "NFD": normalizers.NFD(),
    "NFKC": normalizers.NFKC(),
    "lower case": normalizers.Lowercase(),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "spaces": normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
    "edges": normalizers.Strip(),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_normalizer_is_encoded_alike_or_refused(trained, name):
    fits(Tokenizer(changed(trained, normalizer=NORMALIZERS[name])))


def fits(read: Tokenizer) -> None:
    try:
        fast = encoder("tokie", read)
    except UsageError as err:
        refused = err
    else:
        compare_with(fast, read, list(islice(texts(3), 500)))
        return
    assert 'pack.encoder = "tokenizers"' in refused.do
    assert encoder("tokenizers", read) is read


def test_dropout_in_the_file_makes_no_difference(trained):
    described = tokenizers.Tokenizer.from_str(trained.decode())
    described.model.dropout = 0.5
    assert compare(Tokenizer(described.to_str().encode()), list(round_trip.SAMPLES)) > 15


def test_a_missing_tokie_is_an_error_that_says_what_to_do(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokie", None)
    with pytest.raises(Unavailable, match=r'(?s)tokie cannot be imported.*pack\.encoder = "tokenizers"'):
        encoder("tokie", Tokenizer(trained))
    with pytest.raises(Unavailable):
        encoders.libraries("tokie")
    assert encoders.libraries("tokenizers") == ("tokenizers",)
