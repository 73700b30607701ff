"""Labels of people for rejected documents: `keep` (the rule was wrong) or `drop`, stored beside the dataset.

From labels follows each reason's estimated false-reject rate. The sample of rejects is drawn by a seeded hash, not by a
person, so the share of `keep` among labelled documents estimates the share of all that the reason rejected; the
interval is Wilson's (J. Am. Stat. Assoc. 22, 1927).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corpusmill.kernels.quality.calibration import wilson
from corpusmill.store import Store
from corpusmill.store.receipts import seal, unseal

VERDICTS = ("keep", "drop")
SIMILARITIES = (0.0, 0.8, 0.85, 0.9, 0.95, 1.0)
"""Strata of near duplicates: where a bound on similarity is set, its neighbourhood counts."""


def put(store: Store, name: str, digest: str, row: Mapping[str, Any], verdict: str) -> None:
    """Store one verdict about a rejected document; the newest about it counts.

    Args:
        name, digest: of the dataset. row: of `rejects.sample`. verdict: one of VERDICTS.
    """
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be one of {VERDICTS}, got {verdict!r}")
    shown = ("stage", "reason", "doc_id", "locator", "offset", "value", "bound", "similarity", "keeper")
    label = {**{key: row[key] for key in shown}, "manifest": digest, "verdict": verdict}
    prefix = f"labels/{name}/{row['reason']}/{_identity(row)}."
    number = max((int(path.rpartition(".")[2]) for path in store.list(prefix)), default=0) + 1
    while not store.create(f"{prefix}{number}", seal(label)):  # somebody else labels it at the same time
        number += 1


def _identity(row: Mapping[str, Any]) -> str:
    """A name for the document: its id, or where its record lies."""
    if row["doc_id"]:
        return str(row["doc_id"])
    return hashlib.sha256(f"{row['locator']}:{row['offset']}".encode()).hexdigest()[:32]


def labels(store: Store, name: str) -> list[dict[str, Any]]:
    """The newest verdict about each labelled document of a dataset, by reason and document."""
    newest: dict[str, tuple[int, str]] = {}
    for path in store.list(f"labels/{name}/"):
        identity, _, number = path.rpartition(".")
        if int(number) > newest.get(identity, (0, ""))[0]:
            newest[identity] = (int(number), path)
    return [unseal(store.get(path), path) for _, (_, path) in sorted(newest.items())]


def unlabelled(store: Store, name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows of a sample without a label."""
    known = {path.rpartition(".")[0] for path in store.list(f"labels/{name}/")}
    return (row for row in rows if f"labels/{name}/{row['reason']}/{_identity(row)}" not in known)


def rates(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Estimated false-reject rate of each reason; near duplicates also by similarity.

    Returns:
        [{"reason", "similarity": [from, to] or None, "labelled", "keep", "rate", "low", "high"}], `low` to `high` the
        interval of 95 %.
    """
    groups: dict[tuple[str, tuple[float, float] | None], list[bool]] = {}
    for label in found:
        wrong = label["verdict"] == "keep"
        groups.setdefault((label["reason"], None), []).append(wrong)
        if label["reason"] == "near_duplicate" and label["similarity"] is not None:
            groups.setdefault((label["reason"], _stratum(label["similarity"])), []).append(wrong)
    rows = []
    for (reason, stratum), wrongs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or (-1.0, -1.0))):
        low, high = wilson(sum(wrongs), len(wrongs))
        rows.append(
            {
                "reason": reason,
                "similarity": list(stratum) if stratum else None,
                "labelled": len(wrongs),
                "keep": sum(wrongs),
                "rate": round(sum(wrongs) / len(wrongs), 4),
                "low": low,
                "high": high,
            }
        )
    return rows


def _stratum(similarity: float) -> tuple[float, float]:
    for low, high in zip(SIMILARITIES[-2::-1], SIMILARITIES[:0:-1], strict=True):
        if similarity >= low:
            return low, high
    return SIMILARITIES[0], SIMILARITIES[1]


def ask(
    store: Store,
    name: str,
    digest: str,
    rows: Sequence[Mapping[str, Any]],
    show: Callable[[Mapping[str, Any]], None],
    answer: Callable[[], str | None],
) -> dict[str, int]:
    """Show documents without a label, one by one, and store the answers.

    Args:
        show: puts a document before the person. answer: what is typed, None at the end: `k`eep, `d`rop, `s`kip, `q`uit.

    Returns:
        how many were labelled {"keep", "drop"} and left {"skipped"}.
    """
    done = {"keep": 0, "drop": 0, "skipped": 0}
    for row in unlabelled(store, name, rows):
        show(row)
        while (typed := answer()) is not None and typed.strip().lower()[:1] not in ("k", "d", "s", "q"):
            pass
        letter = typed.strip().lower()[:1] if typed is not None else "q"
        if letter == "q":
            break
        if letter == "s":
            done["skipped"] += 1
            continue
        verdict = "keep" if letter == "k" else "drop"
        put(store, name, digest, row, verdict)
        done[verdict] += 1
    return done
