"""Verbs about what the work depends on: recipes, model files, the store itself."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from mill.common import InStore, Output


def recipe_check(
    file: Annotated[str, Parameter(help="A TOML file, or the name of one in recipes/.")],
    /,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", help="Override a key: key.path=value.")] = (),
    options: Output = Output(),
) -> None:
    """All faults of a recipe at once, with key, what is expected and what is given."""
    from corpusmill.config import load_recipe
    from corpusmill.rulebook import check

    recipe = load_recipe(file, set_)
    check(recipe)
    options.answer({"ok": True, "recipe": recipe.what()}, f"{file}: no faults; it builds {recipe.name!r}")


def recipe_schema(*, options: Output = Output()) -> None:
    """JSON schema of recipes: name it in an editor's TOML settings and keys complete themselves."""
    import json

    from corpusmill.config import recipe_schema as schema

    document: dict[str, Any] = schema()
    options.answer(document, json.dumps(document, indent=2, sort_keys=True))


def models_fetch(*, options: Output = Output()) -> None:
    """Fetch the language model, check its sha256, show its licence; does nothing where it is already."""
    from corpusmill.models import fetch

    fetched = fetch("lid.176.ftz")
    options.answer(
        {"model": fetched.name, "file": str(fetched.path), "sha256": fetched.sha256, "licence": fetched.licence},
        f"{fetched.path}\nsha256 {fetched.sha256}\nlicence: {fetched.licence}",
    )


def doctor_store(*, options: InStore = InStore()) -> None:
    """Probe what a store must do: create-if-absent under a race, digests, listing, deletes, clock."""
    from corpusmill.errors import CheckFailed
    from corpusmill.store.doctor import probe

    store = options.open()
    checks = probe(store)
    if bad := [check for check in checks if not check.ok]:
        raise CheckFailed(
            f"{store.uri}: {bad[0].name} fails",
            "\n".join(f"{check.name}: {'ok' if check.ok else 'FAILS'}: {check.says}" for check in checks),
            "Datasets in such a store may be damaged: use another server, or another configuration of it.",
        )
    options.answer(
        {"store": store.uri, "ok": True, "checks": [{"name": c.name, "ok": c.ok, "says": c.says} for c in checks]},
        "\n".join([store.uri, *(f"  ok  {check.name}: {check.says}" for check in checks)]),
    )
