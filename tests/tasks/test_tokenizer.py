"""The tokenizer of a dataset: a given one is read and tried before a page is, and refused where it loses text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from tokenizers import normalizers

from corpusmill.config import Recipe, parse_recipe
from corpusmill.errors import NotFound, UsageError
from corpusmill.store import Store, open_store
from corpusmill.tokens.tokenizer import Tokenizer, train_tokenizer
from mill.cli import run as mill
from tasks import chain, tokenizer
from tests import golden

END = "<｜end▁of▁sentence｜>"


@pytest.fixture(scope="module")
def sound() -> bytes:
    return train_tokenizer(["It stood by the river, and nobody asked why. " * 9], 512)


@pytest.fixture
def lossy(sound: bytes, tmp_path: Path) -> Path:
    made = tokenizers.Tokenizer.from_str(sound.decode())
    made.normalizer = normalizers.NFKC()
    return written(tmp_path / "nfkc.json", made.to_str().encode())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def written(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


def recipe(file: Path | None, **pack: object) -> Recipe:
    source = {"a": {"kind": "jsonl", "root": str(file.parent) if file else "."}}
    given = {"tokenizer": str(file)} if file else {}
    return parse_recipe({"name": "r", "source": source, "pack": {**given, **pack}}, "r")


def test_one_that_loses_text_ends_a_build_before_a_page_is_read(lossy, store, tmp_path):
    """B116: NFKC passed in silence."""
    golden.write_crawl(tmp_path / "crawl")
    wanted = golden.recipe(tmp_path / "crawl")
    wanted = wanted.model_copy(update={"pack": wanted.pack.model_copy(update={"tokenizer": str(lossy)})})

    def refuse(stage, fn, units):
        raise AssertionError(f"{len(units)} units of {stage} were run")

    with pytest.raises(
        UsageError, match=r"nfkc\.json loses text: '.*½.*' comes back from its tokens as '.*1⁄2"
    ) as told:
        chain.build(wanted, store, refuse)
    assert "pack.lossy = true" in told.value.do
    assert store.list("receipts/") == []


def test_loss_is_accepted_by_the_recipe_that_says_so_and_by_no_other(lossy, store):
    done = tokenizer.given(recipe(lossy, lossy=True, encoder="tokenizers"), store)
    assert done.receipt.facts["changed"]["texts"] > 2
    assert tokenizer.given(recipe(lossy, lossy=True, encoder="tokenizers"), store).reused
    with pytest.raises(UsageError, match="loses text"):
        tokenizer.given(recipe(lossy), store)
    with pytest.raises(UsageError, match="loses text"):
        tokenizer.check(recipe(lossy))
    tokenizer.check(recipe(lossy, lossy=True, encoder="tokenizers"))
    for tried in (tokenizer.check, lambda wanted: tokenizer.given(wanted, store)):
        with pytest.raises(UsageError, match=r'(?s)tokie does not fit.*pack\.encoder = "tokenizers"'):
            tried(recipe(lossy, lossy=True))


def test_the_name_of_the_end_is_part_of_what_is_packed(sound, store, tmp_path):
    made = tokenizers.Tokenizer.from_str(sound.decode())
    made.add_special_tokens([END])
    file = written(tmp_path / "two.json", made.to_str().encode())
    known, named = (tokenizer.given(recipe(file, **keys), store).receipt for keys in ({}, {"eos": END}))
    assert [r.facts["eos"] for r in (known, named)] == ["<|endoftext|>", END]
    assert known.key != named.key
    with pytest.raises(UsageError, match=r"no token '</s>'"):
        tokenizer.check(recipe(file, eos="</s>"))


def test_missing_file_is_named(tmp_path, store):
    with pytest.raises(NotFound, match=r"no tokenizer .*none\.json"):
        tokenizer.given(recipe(tmp_path / "none.json"), store)
    assert tokenizer.given(recipe(None), store) is None
    address = recipe(None, tokenizer="s3://models/tokenizer.json")
    with pytest.raises(NotFound, match=r"no tokenizer s3://models/tokenizer\.json\n.* on this machine"):
        tokenizer.given(address, store)
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(NotFound, match=r"it is a folder\n.*\nDid you mean .*tokenizer\.json\?"):
        tokenizer.given(recipe(tmp_path), store)


def test_the_end_of_a_trained_one_is_no_single_byte():
    assert recipe(None, eos="<|end|>").pack.eos == "<|end|>"
    with pytest.raises(UsageError, match="two characters or more"):
        recipe(None, eos="a")


@pytest.mark.parametrize("verb", [["plan"], ["recipe", "check"], ["build", "--workers", "1"]])
def test_verbs_that_take_a_recipe_say_what_it_loses(lossy, tmp_path, verb, capsys, monkeypatch):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    text = f'name = "r"\n[source.a]\nkind = "jsonl"\nroot = "{tmp_path}"\n[pack]\ntokenizer = "{lossy}"\n'
    file = written(tmp_path / "r.toml", text.encode())
    monkeypatch.chdir(tmp_path)
    assert mill([*verb, str(file)]) == 2
    assert "½" in capsys.readouterr().err


def test_packed_documents_come_back_whatever_tokens_they_spell(store, sound, tmp_path):
    """B50, with the tokenizer of B116 and the end of B126."""
    made = tokenizers.Tokenizer.from_str(sound.decode())
    made.add_tokens(["<|im_start|>", END])
    file = written(tmp_path / "chat.json", made.to_str().encode())
    receipt = tokenizer.given(recipe(file, eos=END), store).receipt
    read = Tokenizer(store.bytes(receipt.outputs["tokenizer"]), receipt.facts["eos"])
    texts = [f"<|im_start|>user\n{END} or <|endoftext|>", "plain"]
    stream = np.concatenate(read.encode(texts))
    ends = (stream == receipt.facts["eos_id"]).nonzero()[0]
    assert [read.decode(piece) for piece in np.split(stream, ends[:-1] + 1)] == texts
