"""Docs are complete and true: generated pages are current, links lead somewhere, every name is explained."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from corpusmill import config, errors
from mill import cli
from tasks import stages
from training import config as train

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted([REPOSITORY / "README.md", *DOCS.rglob("*.md")])


def reference(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def test_reference_is_what_make_docs_would_write():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run `make docs`"


def test_every_command_is_explained():
    verbs = [*cli.COMMANDS, *(f"{group} {verb}" for group, (_, verbs) in cli.GROUPS.items() for verb in verbs)]
    for verb in verbs:
        assert f"## `mill {verb}`" in reference("commands.md")


def test_every_reason_and_every_rule_is_explained():
    text = reference("reasons.md")
    for reason in stages.REASONS:
        assert f"| `{reason}` |" in text
    files = sorted((REPOSITORY / "rules").glob("*.toml"))
    assert files
    for file in files:
        for rule in tomllib.loads(file.read_text(encoding="utf-8"))["rule"]:
            assert f"| `{rule['name']}` | `{rule['measure']}` |" in text


def test_every_exit_code_is_explained():
    for kind in errors.MillError.__subclasses__():
        assert f"| {kind.exit_code} | `{kind.id}` |" in reference("exit-codes.md")


def test_every_recipe_key_is_explained():
    text = reference("recipe.md")
    sources = get_args(get_args(config.Source)[0])
    assert len(sources) == 9
    for model in (*sources, config.Select, config.Recipe, config.Extract, config.Pack, config.Benchmark, config.Judge):
        for key in model.model_fields:
            assert f"| `{key}` |" in text


EXPLAINED = re.compile(r"\| (what|where) \| [A-Za-z].+ \|$")
"""A row of a page of keys whose meaning is a text, and not its bounds alone."""


def test_every_training_key_is_explained():
    keys = [line for line in reference("training.md").splitlines() if line.startswith("| `")]
    there = {line.split(" | ")[0] for line in keys}
    for model in (train.TrainConfig, train.Model, train.Optim, train.Mixture, train.MixtureStage, train.Run):
        assert {f"| `{key}`" for key in model.model_fields} <= there
    assert [line for line in keys if not EXPLAINED.search(line)] == []
    assert not EXPLAINED.search("| `mute` | integer | `3` | what | (at least 1) |")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files_that_are_there(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_make_verb_and_mill_command_on_a_page_exists(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for verb in re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^(?:\$ )?make ([a-z-]+)", text, re.MULTILINE):
        assert verb in targets
    for verb in re.findall(r"(?:^|`)(?:\$ )?mill ([a-z]+)", text, re.MULTILINE):
        assert verb in cli.COMMANDS or verb in cli.GROUPS


def test_readme_shows_the_two_commands_and_fits_two_screens():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
    assert len(text.splitlines()) <= 130
