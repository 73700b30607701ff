"""A recipe and its rule file together: the rules it names, and whether the two fit each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from corpusmill import languages
from corpusmill.config import Recipe, find_file
from corpusmill.errors import UsageError
from corpusmill.kernels.measures.families import BASE, FAMILY_OF
from corpusmill.kernels.rules.bounds import Bound, looser
from corpusmill.kernels.rules.rules import LanguageRules, Rule, RuleSet, load_rules

COSTLY = ("quality_", "perplexity_")
"""Measures that are null where a document is spared by a floor."""


@lru_cache(maxsize=8)
def rules_of(setting: str) -> RuleSet:
    """The rule file that a recipe names.

    Raises:
        NotFound, UsageError: there is none, or it has faults.
    """
    return load_rules(find_file(setting, "rules", ".toml", "rule file"))


def rules_to_json(rules: RuleSet) -> dict[str, Any]:
    """What a dataset keeps of its rules: everything but what edits do, which its texts show."""
    languages = {
        code: {
            "bounds": {name: None if b is None else list(b) for name, b in sorted(table.bounds.items())},
            "stop_words": list(table.stop_words),
        }
        for code, table in sorted(rules.languages.items())
    }
    return {
        "name": rules.name,
        "version": rules.version,
        "digest": rules.digest,
        "edits_digest": rules.edits_digest,
        "rules": [asdict(rule) for rule in rules.rules],
        "languages": languages,
    }


def rules_from_json(data: Mapping[str, Any]) -> RuleSet:
    """Read what `rules_to_json` made; without the edits."""
    languages = {
        code: LanguageRules(
            {name: None if b is None else (b[0], b[1]) for name, b in table["bounds"].items()},
            tuple(table["stop_words"]),
        )
        for code, table in data["languages"].items()
    }
    rules = tuple(Rule(**rule) for rule in data["rules"])
    return RuleSet(data["name"], data["version"], data["digest"], rules, (), data["edits_digest"], languages)


def check(recipe: Recipe, taken: Collection[str]) -> RuleSet:
    """The rules of a recipe, which fit it.

    Args:
        recipe: which names them.
        taken: names of reasons that are no rule's.

    Raises:
        NotFound, UsageError: no such rules; a rule or edit whose name is taken; rules about a measure that the
            recipe does not compute; a floor on no
            measure of the raw text, or one that is tighter than a rule, so that the rule would not be what decides.
    """
    rules = rules_of(recipe.filter.rules)
    if faults := list(_faults(recipe, rules, taken)):
        raise UsageError(
            f"recipe {recipe.name!r} and rules {rules.name!r} do not match: "
            f"{len(faults)} fault{'s' if len(faults) > 1 else ''}",
            "\n".join(f"  {fault}" for fault in faults),
            "Change judge.* in the recipe, or the rule file.",
        )
    return rules


def _faults(recipe: Recipe, rules: RuleSet, taken: Collection[str]) -> Iterator[str]:
    judge = recipe.judge
    known = languages.codes_of(recipe.language.model) or frozenset(languages.NAMES)
    if said := languages.unknown((code for code in rules.languages if not languages.may_be_given(code)), known):
        yield f"[language.CODE] of rules {rules.name}: no model knows a language {said}"
    for name in (*(edit.name for edit in rules.edits), *(rule.name for rule in rules.rules)):
        if name in taken:
            yield f"{name}: the name is taken: it is that of a reason of every build"
    offered = {
        "quality_": {f"quality_{name}" for name in judge.quality},
        "own_": {f"own_{name}" for name in judge.own},
        "perplexity_": {"perplexity_bits"} if judge.perplexity else set(),
        "pii_": {f"pii_{kind}" for kind in judge.personal_data.kinds} | {"pii_total"}
        if judge.personal_data.kinds
        else set(),
        "removed_": {"removed_words", "removed_word_ratio"} if rules.edits else set(),
    }
    for rule in rules.rules:
        for prefix, names in offered.items():
            if rule.measure.startswith(prefix) and rule.measure not in names:
                has = ", ".join(sorted(names)) or "none"
                yield f"rule {rule.name}: the recipe computes no {rule.measure}; of this kind it has: {has}"
    if judge.personal_data.drop_above is not None and not judge.personal_data.kinds:
        yield "judge.personal_data.drop_above: nothing is counted without judge.personal_data.kinds"
    for name, floor in sorted(judge.floors.items()):
        if name not in BASE and name not in FAMILY_OF:
            yield f"judge.floors.{name}: no measure of the raw text; known: {', '.join((*BASE, *FAMILY_OF))}"
            continue
        for bound in rules.bounds():
            yield from looser(bound, Bound("filter", "below_floor", name, floor.min, floor.max))
