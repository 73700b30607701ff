"""What a build proved about its own benchmark screen and deduplication, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusmill.dataset.contamination import planted as planted_items
from corpusmill.dataset.manifest import Manifest


def near_duplicates(manifest: Manifest) -> str:
    """The self-tests of the benchmark screen and of stage near, a line each."""
    if manifest.proofs is None:
        return ""
    proof = manifest.proofs.near
    lines = planted_items(manifest.proofs.decontaminate)
    lines += [f"signatures   largest |z| {proof['identity']['max_abs_z']:.2f} on made-up pairs of known similarity"]
    if oracle := proof.get("oracle"):
        lines.append(
            f"             error {oracle['rmse']:.4f} on {oracle['documents']} documents"
            f" (theory {oracle['theory']:.4f}, datasketch {oracle['peer_rmse']:.4f})"
        )
    curve = proof.get("s_curve")
    if curve and curve["pairs"]:
        rows = "; ".join(
            f"{row['from']:.1f} to {row['to']:.1f}: {row['met']['share']:.3f} (theory {row['expected']:.3f})"
            for row in curve["by_jaccard"]
        )
        lines.append(f"S-curve      z {curve['z']:+.2f} on {curve['pairs']} pairs of this corpus; met at {rows}")
    planted = proof.get("planted")
    if planted and planted["documents"]:
        lines.append(
            f"planted      recall {_share(planted['recall'])}, expected {planted['expected_recall']}; precision "
            f"{_share(planted['precision'])}, on edited copies of {planted['documents']} documents"
        )
    if search := manifest.deduplicate:
        lines.append(
            f"search       {search['comparisons']:,} pairs compared in {search['rounds']} rounds, largest bucket "
            f"{search['largest_bucket']:,}, {search['crowded_buckets']:,} crowded"
            + ("" if search["complete"] else "; the last round left pairs to look at")
        )
        if held := search.get("heldout"):
            lines.append(
                f"held out     {held['drawn']:,} documents drawn, {held['copies']:,} copies in {held['rounds']} rounds;"
                f" {search['leaks']['trained']:,} to train on, none of them near one"
            )
        for stage in ("lines", "substrings"):
            for row in search.get(stage, {}).get("most_frequent", [])[:5]:
                lines.append(f"{stage:<12} in {row['documents']:,} documents: {' '.join(row['text'].split())[:80]}")
    return "\n".join(lines)


def _share(value: Mapping[str, Any]) -> str:
    low, high = value["interval"]
    return "not tried" if value["share"] is None else f"{value['share']:.4f} [{low:.4f}, {high:.4f}]"
