"""Verbs for what builds depend on: recipes, model files, the store itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from corpusmill.errors import NotFound, UsageError
from mill.common import InStore, Output, noted

if TYPE_CHECKING:
    from corpusmill.config import Fault


def recipe_check(
    file: Annotated[str, Parameter(help="A TOML file, or the name of one in recipes/.")],
    /,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", help="Override a key: key.path=value.")] = (),
    options: Output = Output(),
) -> None:
    """Report all faults of a recipe at once: the key, what was expected and what was given."""
    from corpusmill.config import read_recipe
    from tasks import checks

    read = read_recipe(file, set_)
    if read.found.section:
        named = [*checks.faults(read.found.section, read.found.dropped), *_training_faults(read.found.section.train)]
        if named:
            raise read.error(named)
    recipe = read.section()
    notes = checks.to_fetch(recipe)
    options.answer(
        {"ok": True, "recipe": recipe.what(), "notes": notes},
        f"{file}: no faults; it builds {recipe.name!r}{noted(notes)}",
    )


def _training_faults(config: str | None) -> list[Fault]:
    """What is wrong with the training config that a recipe names; that there is none `checks` says."""
    from corpusmill.config import Fault
    from training.config import load_train_config

    try:
        if config is not None:
            load_train_config(config)
    except UsageError as err:
        return [Fault(("train",), "; ".join([err.what, *map(str.strip, err.why.split("\n"))]))]
    except NotFound:
        pass
    return []


def recipe_schema(*, options: Output = Output()) -> None:
    """Print the JSON schema of recipes, for the TOML settings of an editor: it then completes and checks keys."""
    import json

    from corpusmill.config import recipe_schema as schema

    document: dict[str, Any] = schema()
    options.answer(document, json.dumps(document, indent=2, sort_keys=True))


def models_fetch(*, options: Output = Output()) -> None:
    """Fetch the language model unless it is there, check its sha256, and show its licence."""
    from corpusmill.models import fetch

    fetched = fetch("lid.176.ftz")
    options.answer(
        {"model": fetched.name, "file": str(fetched.path), "sha256": fetched.sha256, "licence": fetched.licence},
        f"{fetched.path}\nsha256 {fetched.sha256}\nlicence: {fetched.licence}",
    )


def doctor_store(*, options: InStore = InStore()) -> None:
    """Check what a store must do: create-if-absent under a race, digests, listing, deletes, clock."""
    from corpusmill.errors import CheckFailed
    from corpusmill.store.doctor import probe

    store = options.open()
    checks = probe(store)
    if bad := [check for check in checks if not check.ok]:
        raise CheckFailed(
            f"{store.uri}: {bad[0].name} fails",
            "\n".join(f"{check.name}: {'ok' if check.ok else 'FAILS'}: {check.says}" for check in checks),
            "Datasets in this store may be damaged: use another server, or change its configuration.",
        )
    options.answer(
        {"store": store.uri, "ok": True, "checks": [{"name": c.name, "ok": c.ok, "says": c.says} for c in checks]},
        "\n".join([store.uri, *(f"  ok  {check.name}: {check.says}" for check in checks)]),
    )
