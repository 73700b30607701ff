"""Where a dataset comes from and what was trained on it: checkpoint, manifest, shards, units, files of the crawl.

Read from the manifest, the lineage table it names, and the COMMIT.json of checkpoints; nothing else is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow.compute as pc

from corpusmill.dataset.ancestry import ancestors
from corpusmill.dataset.manifest import Manifest
from corpusmill.plain_text import one_line
from corpusmill.store import Output, Store
from corpusmill.store.receipts import unseal
from corpusmill.typed_json import written

SHOWN = 12
"""Files and checkpoints that the text lists; --json has all."""


def chain(store: Store, name: str, digest: str, manifest: Manifest) -> dict[str, Any]:
    """The whole chain of one dataset, from what was trained on it back to the files it was read from.

    Returns:
        {"manifest", "name", "parents", "checkpoints": [{"run", "step", "commit", "ancestors": [{"run", "step",
        "checkpoint", "how", "manifests", "fault"}]}], "shards": [{"partition", "digest", "sequences"}], "units":
        [{"stage", "locator", "unit", "outputs": [{"kind", "digest", "rows", "size"}]}], "inputs": [{"source",
        "snapshot", "locator", "bytes", "sha256"}]}
    """
    return {
        "manifest": digest,
        "name": name,
        "parents": list(manifest.parents),
        "checkpoints": list(checkpoints(store, digest)),
        "shards": [
            {"partition": partition, "digest": shard.tokens.digest, "sequences": shard.sequences}
            for partition, content in sorted(manifest.partitions.items())
            for shard in content.shards
        ],
        "units": _units(store.table(manifest.table("lineage")).to_pylist()),
        "inputs": written(manifest.inputs),
    }


def files_of(store: Store, manifest: Manifest) -> list[tuple[str, dict[str, Output]]]:
    """(source/locator, kind -> object) of every file, in the order of the lineage; of decisions, the last stage's."""
    table = store.table(manifest.table("lineage"))
    places: dict[str, dict[str, Output]] = {}
    for row in table.filter(pc.not_equal(table.column("locator"), "")).to_pylist():
        if row["stage"] != "pack":
            output = Output(*(row[key] for key in ("name", "digest", "content", "size", "rows")))
            places.setdefault(row["locator"], {})[row["kind"]] = output
    return list(places.items())


def checkpoints(store: Store, digest: str) -> Iterator[dict[str, Any]]:
    """Committed checkpoints of runs on this dataset: {"run", "step", "commit": what COMMIT.json says, "ancestors"}.

    Ancestors are the checkpoints that its run goes back to, the nearest first.
    """
    known: dict[str, list[dict[str, Any]]] = {}
    for path in store.list("checkpoints/"):
        parts = path.split("/")
        if len(parts) == 4 and parts[3] == "COMMIT.json":
            commit = unseal(store.get(path), path)
            if digest in (commit["manifest_sha256"], *commit.get("manifests", ())):
                if parts[1] not in known:
                    known[parts[1]] = [asdict(ancestor) for ancestor in ancestors(store, commit)]
                yield {"run": parts[1], "step": int(commit["step"]), "commit": commit, "ancestors": known[parts[1]]}


def _units(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    units: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        key = (row["stage"], row["locator"], row["unit"])
        unit = units.setdefault(key, {"stage": key[0], "locator": key[1], "unit": key[2], "outputs": []})
        unit["outputs"].append({name: row[name] for name in ("kind", "digest", "rows", "size")})
    return list(units.values())


def written_out(chain: Mapping[str, Any]) -> str:
    """The chain as text, the newest on top."""
    lines = []
    for checkpoint in chain["checkpoints"][-SHOWN:]:
        lines.append(f"checkpoint {checkpoint['run']} step {checkpoint['step']}{_goes_back(checkpoint['ancestors'])}")
    lines += [f"manifest   {chain['name']}@{chain['manifest']}"]
    lines += [f"parent     {parent}" for parent in chain["parents"]]
    partitions: dict[str, list[int]] = {}
    for shard in chain["shards"]:
        partitions.setdefault(shard["partition"], []).append(shard["sequences"])
    for partition, sequences in partitions.items():
        lines.append(f"partition  {partition}: {len(sequences):,} shards, {sum(sequences):,} sequences")
    for stage, units in _by_stage(chain["units"]).items():
        objects = sum(len(unit["outputs"]) for unit in units)
        lines.append(f"stage      {stage}: {len(units):,} units, {objects:,} objects")
    documents = {unit["locator"]: unit for unit in chain["units"] if unit["stage"] == "extract"}
    for source in chain["inputs"][:SHOWN]:
        made = documents.get(f"{source['source']}/{source['locator']}", {"outputs": []})["outputs"]
        found = "".join(f", {o['rows']:,} {o['kind']} {o['digest'][:12]}" for o in made if o["kind"] != "rejects")
        lines.append(f"file       {one_line(source['locator'])} sha256 {(source['sha256'] or '')[:12]}{found}")
    if len(chain["inputs"]) > SHOWN:
        lines.append(f"           and {len(chain['inputs']) - SHOWN:,} more files (--json lists all)")
    return "\n".join(lines)


def _goes_back(ancestors: Sequence[Mapping[str, Any]]) -> str:
    """`, from RUN step N, resumed from RUN step N (gone)`."""
    words = {"from": "from", "resume": "resumed from"}
    shown = [
        f", {words[one['how']]} {one['run']} step {one['step']}" + (f" ({one['fault']})" if one["fault"] else "")
        for one in ancestors[:SHOWN]
    ]
    more = f", and {len(ancestors) - SHOWN:,} before (--json lists all)" if len(ancestors) > SHOWN else ""
    return "".join(shown) + more


def _by_stage(units: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for unit in units:
        stages.setdefault(unit["stage"], []).append(unit)
    return stages
