"""Tokenizers: documents come back as they were, each time from the same ids, whatever tokens their text spells."""

from __future__ import annotations

import gzip
import json
import time

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers

from corpusmill.errors import UsageError
from corpusmill.tokens import round_trip, tokenizer
from corpusmill.tokens.tokenizer import Tokenizer, train_tokenizer

SAMPLE = [
    "The quick brown fox jumps over the lazy dog; the dog does not mind.",
    "Shards, rows and tokens: a row holds seq_len + 1 tokens.\n\n    indented code()\n",
    "Ünïcode: Ärger mit Öl, 東京と大阪, Привет мир, 🙂🙃",
] * 20


@pytest.fixture(scope="module")
def trained() -> bytes:
    return train_tokenizer(SAMPLE, 384)


@pytest.fixture(scope="module")
def encoder(trained) -> Tokenizer:
    return Tokenizer(trained)


def hostile_lines(data_dir, name: str) -> list[dict]:
    return [json.loads(line) for line in (data_dir / "hostile" / name).read_text(encoding="utf-8").split("\n") if line]


def test_training_gives_one_tokenizer_for_any_order_of_the_sample(trained):
    assert train_tokenizer(SAMPLE[::-1], 384) == trained
    assert train_tokenizer(iter(SAMPLE), 384) == trained


def test_trained_tokenizer_has_eos_first_and_all_bytes(encoder):
    assert (encoder.vocab_size, encoder.eos, encoder.eos_id) == (384, "<|endoftext|>", 0)
    assert encoder.dtype == np.dtype("<u2")
    (encoded,) = encoder.encode(["".join(chr(c) for c in (0, 7, 0x7F, 0x300, 0xFFFD, 0x10FFFF))])
    assert encoder.decode(encoded) == "\0\x07\x7f\u0300\ufffd\U0010ffff"


def test_training_does_not_stall_on_a_run_without_spaces(data_dir, encoder):
    """A run of 2 MB took over 5 minutes, as each of the merges walked it."""
    with gzip.open(data_dir / "hostile" / "B53-long-run.txt.gz", "rt", encoding="utf-8") as file:
        run = file.read()
    began = time.process_time()
    data = train_tokenizer([*SAMPLE, run, " " * 1_000_000, "1" * 1_000_000, "=_" * 500_000], 384)
    assert time.process_time() - began < 20
    assert Tokenizer(data).vocab_size == 384


@given(st.lists(st.tuples(st.sampled_from("aé東1٣-_ \n\u3000\x1c\x85"), st.sampled_from([1, 3, 255, 256, 257, 400]))))
def test_texts_without_long_runs_are_told_apart_from_those_with(parts):
    text = "".join(char * count for char, count in parts)
    assert tokenizer._without_long_runs(text) == tokenizer._LONG_RUN.sub(tokenizer._cut, text)


def test_long_run_is_encoded_in_time(data_dir, encoder):
    with gzip.open(data_dir / "hostile" / "B53-long-run.txt.gz", "rt", encoding="utf-8") as file:
        run = file.read()
    assert len(run) == 2_000_000
    began = time.process_time()
    (encoded,) = encoder.encode([run])
    assert time.process_time() - began < 15
    assert encoder.decode(encoded) == run


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(["<|endoftext|>", "<|", "a"]), max_size=6).map("".join))
def test_documents_come_back_and_end_with_their_only_eos(encoder, text):
    (encoded,) = encoder.encode([text])
    if text:
        assert (encoded == encoder.eos_id).nonzero()[0].tolist() == [len(encoded) - 1]
    else:
        assert len(encoded) == 0
    assert encoder.decode(encoded) == text


def test_special_token_text_is_text(data_dir, encoder):
    documents = [row["text"] for row in hostile_lines(data_dir, "B50-special-token-text.jsonl")]
    stream = np.concatenate(encoder.encode(documents))
    ends = (stream == encoder.eos_id).nonzero()[0].tolist()
    assert len(ends) == 3
    pieces = np.split(stream, [end + 1 for end in ends[:-1]])
    assert [encoder.decode(piece) for piece in pieces] == documents
    assert [encoder.has_special_text(d) for d in documents] == [True, True, False]


def test_batches_do_not_change_the_tokens(encoder, monkeypatch):
    whole = encoder.encode(SAMPLE[:9])
    monkeypatch.setattr(tokenizer, "ENCODE_BYTES", 50)
    assert all(np.array_equal(a, b) for a, b in zip(whole, encoder.encode(SAMPLE[:9]), strict=True))
    assert encoder.encode([]) == []


def given_tokenizer(trained: bytes, eos: str, *, special: bool) -> bytes:
    """A tokenizer.json as others make them: begins texts with a token, cuts them, pads them."""
    described = json.loads(trained)
    described["added_tokens"][0].update(content=eos, special=special)
    vocabulary = described["model"]["vocab"]
    vocabulary[eos] = vocabulary.pop("<|endoftext|>")
    made = tokenizers.Tokenizer.from_str(json.dumps(described))
    made.post_processor = tokenizers.processors.TemplateProcessing(f"{eos} $A", special_tokens=[(eos, 0)])
    made.enable_truncation(4)
    made.enable_padding(length=16)
    return made.to_str().encode()


@pytest.mark.parametrize("special", [True, False])
def test_given_tokenizer_neither_begins_nor_cuts_nor_pads_documents(trained, encoder, special):
    given = Tokenizer(given_tokenizer(trained, "</s>", special=special))
    assert (given.eos, given.eos_id) == ("</s>", 0)
    text = "The end is </s> not here, but there: " + SAMPLE[0]
    (encoded,) = given.encode([text])
    assert (encoded == 0).sum() == 1
    assert np.array_equal(encoded, encoder.encode([text])[0])


def test_large_vocabulary_takes_four_bytes(trained):
    described = json.loads(trained)
    described["added_tokens"].append({**described["added_tokens"][0], "id": 65_535, "content": "<|last|>"})
    described["model"]["vocab"]["<|last|>"] = 65_535
    large = Tokenizer(json.dumps(described).encode())
    assert large.vocab_size == 65_536
    assert large.dtype == np.dtype("<u4")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not json", "the tokenizer file cannot be read\nJSONDecodeError"),
        (b"{}", "the tokenizer file cannot be read\nKeyError: 'added_tokens'"),
        (b'{"added_tokens": []}', "the tokenizer file cannot be read\nKeyError: 'model'"),
        (b'{"added_tokens": [], "model": {"vocab": 3}}', "the tokenizer file cannot be read\nTypeError"),
    ],
)
def test_file_that_is_no_tokenizer_is_refused(data, message):
    with pytest.raises(UsageError, match=message.replace("|", "\\|")):
        Tokenizer(data)


def other(data: bytes, change) -> bytes:
    """A tokenizer.json after `change` of the library's object."""
    made = tokenizers.Tokenizer.from_str(data.decode())
    change(made)
    return made.to_str().encode()


def with_added(data: bytes, *names: str, special: bool = False, **flags: bool) -> bytes:
    tokens = [tokenizers.AddedToken(name, special=special, **flags) for name in names]
    return other(data, lambda made: made.add_special_tokens(tokens) if special else made.add_tokens(tokens))


CHAT = "<|im_start|>user says <|im_start|>"


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("flags", [{}, {"lstrip": True, "rstrip": True}, {"single_word": True}, {"normalized": True}])
def test_text_that_looks_like_an_added_token_is_text(trained, encoder, special, flags):
    """B116: one with `special = false` became the id of the added token."""
    read = Tokenizer(with_added(trained, "<|im_start|>", "\n\n", "  ", special=special, **flags))
    for text in (CHAT, "a \n\n  b", "<|im_start|>"):
        (ids,) = read.encode([text])
        assert np.array_equal(ids, encoder.encode([text])[0])
        assert read.decode(ids) == text
    assert read.has_special_text(CHAT)
    assert read.changed() == []


@pytest.mark.parametrize("eos", ["<|im_start|>", "<|endoftext|>"])
def test_text_is_no_added_token_where_the_model_itself_knows_its_name(eos):
    """A Unigram model holds `</s>` with the best of all scores, so it takes the text for the end of the document."""
    chars = sorted({*"".join(round_trip.SAMPLES), "▁"} - {" "})
    vocabulary = [("<unk>", 0.0), ("<|endoftext|>", 0.0), ("<|im_start|>", 0.0), *((char, -5.0) for char in chars)]
    made = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=0))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.add_special_tokens(["<unk>", "<|endoftext|>"])
    read = Tokenizer(made.to_str().encode(), eos)  # the second name is in the vocabulary only
    (ids,) = read.encode(["of <|endoftext|> and <|im_start|>, <unk>"])
    assert set(ids[:-1].tolist()).isdisjoint({0, 1} | {read.eos_id})
    assert (read.eos_id, ids[-1]) == (vocabulary.index((eos, 0.0)),) * 2
    assert read.decode(ids) == "of <|endoftext|> and <|im_start|>, <unk>"


def bpe(pieces: str, merges: list[tuple[str, str]], **settings) -> tokenizers.Tokenizer:
    """BPE without pre-tokenizer, over the characters of the samples."""
    names = dict.fromkeys([*pieces.split(), *sorted({*"".join(round_trip.SAMPLES)}), *("".join(m) for m in merges)])
    made = tokenizers.Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, merges, **settings))
    made.decoder = decoders.Fuse()
    return made


def test_text_is_no_special_token_where_a_whole_word_or_merges_give_its_name():
    whole = bpe("</s> <unk>", [], ignore_merges=True, unk_token="<unk>")
    merged = bpe("<unk>", [("<", "/"), ("s", ">"), ("</", "s>"), ("\n", "\n")], unk_token="<unk>")
    for made in (whole, merged):
        made.add_special_tokens(["</s>", "<unk>"])
        made.add_tokens(["\n\n"])
        read = Tokenizer(made.to_str().encode())
        for text in ("</s>", "a</s>b\n\n"):
            (ids,) = read.encode([text])
            assert (ids == read.eos_id).nonzero()[0].tolist() == [len(ids) - 1]
            assert read.decode(ids) == text
    (ids,) = read.encode(["\n\n"])
    assert len(ids) == 2, "what merges make is an ordinary piece too, and one more token is the end"


def test_a_document_has_the_same_ids_each_time(trained, encoder):
    """B116: with dropout in the file, merges are left out by chance."""
    described = json.loads(trained)
    described["model"]["dropout"] = 0.5
    read = Tokenizer(json.dumps(described).encode())
    for _ in range(5):
        assert [ids.tolist() for ids in read.encode(SAMPLE[:3])] == [ids.tolist() for ids in encoder.encode(SAMPLE[:3])]


LOSING = {
    "NFKC": normalizers.NFKC(),
    "NFKD": normalizers.NFKD(),
    "lower case": normalizers.Lowercase(),
    "marks": normalizers.StripAccents(),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "bert": normalizers.BertNormalizer(lowercase=False, strip_accents=False, handle_chinese_chars=False),
    "edges": normalizers.Strip(),
    "nmt": normalizers.Nmt(),
    "spaces": normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
    "line ends": normalizers.Replace(tokenizers.Regex("\r\n"), "\n"),
    "quotes": normalizers.Replace("``", '"'),
}


@pytest.mark.parametrize("name", LOSING)
def test_normalizer_that_loses_text_is_found_with_an_example(trained, name):
    changed = Tokenizer(other(trained, lambda made: setattr(made, "normalizer", LOSING[name]))).changed()
    assert changed
    assert all(text != back for text, back in changed)


def without_decoder(made: tokenizers.Tokenizer) -> None:
    made.decoder = decoders.WordPiece()


def at_blanks(made: tokenizers.Tokenizer) -> None:
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


@pytest.mark.parametrize("change", [without_decoder, at_blanks])
def test_text_that_the_splitter_or_the_decoder_loses_is_found(trained, change):
    assert Tokenizer(other(trained, change)).changed()


def test_characters_that_the_vocabulary_lacks_are_found():
    made = tokenizers.Tokenizer(models.BPE({"[UNK]": 0, "</s>": 1, **{chr(c): c for c in range(32, 127)}}, []))
    made.decoder = decoders.Fuse()
    made.add_special_tokens(["</s>", "[UNK]"])
    changed = Tokenizer(made.to_str().encode()).changed()
    assert ("Brücke über den Fluß", "Brcke ber den Flu") in [(text[:20], back[:17]) for text, back in changed]
    made.model = models.WordPiece({"[UNK]": 0, "</s>": 1}, unk_token="[UNK]")
    assert len(Tokenizer(made.to_str().encode()).changed()) == len(round_trip.SAMPLES) + 2  # and the two names


@pytest.mark.parametrize("normalizer", [normalizers.NFC(), normalizers.NFD()])
def test_another_form_of_the_same_characters_and_a_space_in_front_are_no_loss(trained, normalizer):
    assert Tokenizer(other(trained, lambda made: setattr(made, "normalizer", normalizer))).changed() == []
    spaced = pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert Tokenizer(other(trained, lambda made: setattr(made, "pre_tokenizer", spaced))).changed() == []


END = "<｜end▁of▁sentence｜>"


@pytest.mark.parametrize("special", [True, False])
def test_the_recipe_names_the_end_of_a_document(trained, special):
    """B126."""
    data = with_added(trained, "<x>", END, special=special)
    read = Tokenizer(data, END)
    assert (read.eos, read.eos_id) == (END, 385)
    (ids,) = read.encode([f"It ends {END} not, nor <|endoftext|>."])
    assert (ids == 385).nonzero()[0].tolist() == [len(ids) - 1]
    assert 0 not in ids
    assert Tokenizer(data).eos == "<|endoftext|>"


def test_the_end_of_a_document_may_be_a_piece_of_the_vocabulary(trained):
    described = json.loads(trained)
    described["added_tokens"] = []
    read = Tokenizer(json.dumps(described).encode(), "<|endoftext|>")
    assert (read.eos_id, read.vocab_size, read.changed()) == (0, 384, [])
    with pytest.raises(UsageError, match=r'(?s)no end-of-text token of a known name.*are none; .*pack\.eos = "'):
        Tokenizer(json.dumps(described).encode())


def test_a_name_that_the_tokenizer_lacks_is_refused_with_the_nearest(trained):
    data = with_added(trained, *(f"<x{i}>" for i in range(20)), END)
    with pytest.raises(
        UsageError, match=r"(?s)no token '<｜end of sentence｜>', which pack\.eos names; did you mean"
    ) as told:
        Tokenizer(data, "<｜end of sentence｜>")
    assert f"'<|endoftext|>', {END!r}, '<x0>'" in told.value.why, "those that look like an end come first"
    assert "and 12 more" in told.value.why


def test_a_trained_tokenizer_takes_the_name_too():
    read = Tokenizer(train_tokenizer(SAMPLE, 384, END), END)
    assert (read.eos, read.eos_id, read.changed()) == (END, 0, [])
