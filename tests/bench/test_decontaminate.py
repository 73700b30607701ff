"""The benchmark of the screen: floors, what both sides must agree on, a quick run of our side."""

from __future__ import annotations

import json
import tomllib

import pytest

from bench.common import FLOORS
from bench.decontaminate import __main__ as decontaminate
from bench.peer import VENV, Peer
from corpusmill.errors import CheckFailed

WORDS = "the keeper counts his lamps at night and nobody asks how many there are on the island"


def test_every_floor_is_measured():
    ratios = {"mb_per_s", "mb_per_s_short_items", *decontaminate.PEERS.values()}
    assert set(tomllib.loads(FLOORS.read_text())["decontaminate"]) == ratios


def test_sides_that_find_other_texts_are_not_compared():
    good = decontaminate.Arm(1.0, (0, 40))
    decontaminate.check({"ours": [good, good]}, (0, 40))
    with pytest.raises(CheckFailed, match="theirs names 1 texts"):
        decontaminate.check({"ours": [good], "theirs": [decontaminate.Arm(1.0, (0,))]}, (0, 40))


def test_made_up_items_have_as_many_keys_as_asked_for():
    items = decontaminate.made_up(40, 1)
    grams = {tuple(w[k : k + 13]) for w in map(str.split, items) for k in range(len(w) - 12)}
    assert len(grams) == 40 * (decontaminate.WORDS - decontaminate.NGRAM + 1)
    assert items == decontaminate.made_up(40, 1) != decontaminate.made_up(40, 2)


def test_our_side_finds_what_is_planted(tmp_path, monkeypatch):
    items = decontaminate.made_up(3, 5)
    monkeypatch.setattr(decontaminate, "REPEAT_BYTES", 1000)
    arms = decontaminate._arms(items, [WORDS, f"{WORDS} {items[1]}"], None, tmp_path)
    assert set(arms) == {"ours", "ours, short items too"}
    assert {arm().found for arm in arms.values()} == {(1,)}


@pytest.mark.skipif(not VENV.is_dir(), reason="the peers are not installed: make bench-setup")
def test_the_peer_finds_what_is_planted(tmp_path):
    items = decontaminate.made_up(3, 5)
    for name, values in (("items", items), ("texts", [WORDS, f"{WORDS} {items[1]}"])):
        (tmp_path / name).write_text("".join(json.dumps(value) + "\n" for value in values))
    with Peer("datatrove_decont", tmp_path / "log") as peer:
        for by in decontaminate.PEERS:
            request = {"by": by, "ngram": 13, "items": str(tmp_path / "items"), "texts": str(tmp_path / "texts")}
            assert peer.ask(request)["found"] == [1]
