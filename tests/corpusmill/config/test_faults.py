"""Faults of a file: all at once, each at its key and line, in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill.config import Recipe, load_recipe, read_recipe
from corpusmill.config.places import line_of
from corpusmill.config.section import NAME, PATTERNS
from corpusmill.errors import NotFound, UsageError
from training.config import load_train_config

KINDS = "common-crawl, files, jsonl, parquet, code, mediawiki, latex, text or own"
RECIPE = """\
name = "x"
[source.a]
kind = "jsonl"
root = "."
"""


def faults(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    file = tmp_path / "r.toml"
    file.write_text(text, encoding="utf-8")
    return read_recipe(file, overrides).lines()


LAYERS = """\
name = "My Web"
colour = 3
[source.a]
kind = "jsonl"
rot = "data"
[source.b]
kind = "jsnl"
[source.heldout]
kind = "text"
root = "x"
[language]
keep = "en"
[deduplicate]
bands = 13
prefer = ["quality:good", "oldest", "newest"]
policy = "within"
index = true
substring_words = 7
[judge.floors.word_count]
[pack]
eos = "x"
seq_len = 8
"""


def test_a_fault_hides_no_other_one(tmp_path):
    """Checks of several keys ran only once all keys were right, and stopped at their first fault."""
    assert faults(tmp_path, LAYERS) == [
        f'line 1: name: expected {PATTERNS[NAME]}, given "My Web"',
        f"line 2: colour: unknown key; known: {', '.join(sorted(Recipe.model_fields))}",
        "line 3: source.a.root: missing",
        'line 5: source.a.rot: unknown key; did you mean "root"?',
        f'line 7: source.b.kind: expected {KINDS}, given "jsnl"; did you mean "jsonl"?',
        "line 8: source.heldout: a source must not be named heldout: that is the name of a partition",
        'line 12: language.keep: expected a list, for example ["a", "b"] (in quotes after --set), given "en"',
        "line 14: deduplicate.bands: num_perm 112 is not a multiple of bands 13",
        "line 15: deduplicate.prefer: expected each key once in exact and prefer, and at most one of oldest and newest",
        'line 16: deduplicate.policy: "within" compares with no other snapshot: remove index and against',
        "line 18: deduplicate.substring_words: expected 0, or 50 and more (shorter passages are quotations), given 7",
        "line 19: judge.floors.word_count: expected min or max",
        "line 21: pack.eos: expected two characters or more: a trained tokenizer has a token for each byte; given 'x'",
        "line 22: pack.seq_len: expected 16 or more, given 8",
    ]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("[pack]\nseq_len = 16.5", "line 6: pack.seq_len: expected a whole number, given 16.5"),
        ("[pack]\nlossy = 1", "line 6: pack.lossy: expected true or false, given 1"),
        ("[pack]\ntokenizer = 3", "line 6: pack.tokenizer: expected a text in quotes, given 3"),
        ("[pack]\neos = ''", 'line 6: pack.eos: expected 1 or more of them, given ""'),
        ("[extract]\nmode = 'quick'", "expected auto, fast, resiliparse, trafilatura, plain or union, given"),
        ("[judge]\nquality = []", "line 6: judge.quality: expected a section with keys, given []"),
        ("[judge.own.mine]\nfunction = 'f'", "line 6: judge.own.mine.function: expected package.module:function"),
        ("[decontaminate]\nmin_share = 'x'", 'line 6: decontaminate.min_share: expected a number, given "x"'),
        ("[judge.quality.Q]\nmodel = 'm'", "line 5: judge.quality.Q: expected a name: small letters"),
        (
            "[[decontaminate.benchmark]]\n[[decontaminate.benchmark]]\nname = 1",
            "line 7: decontaminate.benchmark.1.name",
        ),
        ("[source.b]\nroot = '.'", "line 5: source.b.kind: missing; expected common-crawl"),
        ("[source.b]\nkind = 'own'\nmodule = 'a b'", "line 7: source.b.module: expected package.module, given"),
    ],
)
def test_words_are_those_of_people_and_the_line_is_right(tmp_path, added, said):
    found = faults(tmp_path, RECIPE + added)
    assert any(said in fault for fault in found), found
    assert not any(word in fault for fault in found for word in ("Input", "valid", "tag", "pattern"))


def test_what_a_recipe_lacks_altogether_hides_nothing_either(tmp_path):
    assert faults(tmp_path, "[pack]\nseq_len = 8") == [
        "name: missing",
        "source: missing",
        "line 2: pack.seq_len: expected 16 or more, given 8",
    ]
    assert faults(tmp_path, "") == ["name: missing", "source: missing"]


def test_an_override_has_no_line(tmp_path):
    assert faults(tmp_path, RECIPE + "[pack]\nseq_len = 8", "pack.seq_len=9", "language.keep=en") == [
        '--set language.keep: expected a list, for example ["a", "b"] (in quotes after --set), given "en"',
        "--set pack.seq_len: expected 16 or more, given 9",
    ] or set(faults(tmp_path, RECIPE, "pack.seq_len=9")) == {"--set pack.seq_len: expected 16 or more, given 9"}


TOML = """\
name = "x"  # name = 2
"quoted key" = 1
dotted.key = 1
text = \"\"\"
[not.a.table]
name = 1
\"\"\"
[a."b.c"]
d = [
  "e",
]
[[list]]
x = 1
[[list]]
x = 2
[list.sub]
y = 3
[ spaced . out ]
z = 1
inline = { key = 1 }
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 1),
        (("quoted key",), 2),
        (("dotted", "key"), 3),
        (("dotted", "other"), 3),
        (("not", "a", "table"), None),
        (("a", "b.c", "d"), 9),
        (("a", "b.c", "d", 0), 9),
        (("list", 0, "x"), 13),
        (("list", 1, "x"), 15),
        (("list", 1, "sub", "y"), 17),
        (("spaced", "out", "z"), 19),
        (("spaced", "out", "inline", "key"), 20),
        (("spaced", "out", "none"), 18),
        (("nowhere",), None),
        ((), None),
    ],
)
def test_line_of_a_key(key, line):
    assert line_of(TOML, key) == line


def test_ten_thousand_faults_are_found_in_time(tmp_path):
    many = "".join(f"k{i} = {i}\n" for i in range(10_000))
    assert len(faults(tmp_path, many + RECIPE)) == 10_000


def test_training_configs_are_no_recipes_and_recipes_are_no_training_configs():
    """`mill build nope` offered train-crawl and train-demo."""
    for load, one, others in (
        (load_recipe, "recipe", ("train-demo", "train-crawl")),
        (load_train_config, "training config", ("demo", "crawl", "gopher")),
    ):
        with pytest.raises(NotFound) as told:
            load("nope")
        names = told.value.why.removeprefix("it is neither a file nor one of ").split(", ")
        assert names
        assert not set(names) & set(others)
        with pytest.raises(UsageError, match=rf"{others[0]} is a .*, not a {one}"):
            load(others[0])


def test_a_folder_is_named_as_one(tmp_path):
    with pytest.raises(NotFound, match="is a folder, not a recipe"):
        load_recipe(tmp_path)
