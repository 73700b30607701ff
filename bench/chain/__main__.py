"""The whole chain: CPU seconds and bytes of every stage on a given crawl, and pages per CPU second beside datatrove.

Paired in one run on the same WARC files: ours with trafilatura and with `auto`, datatrove as it installs, and datatrove
"even": our version of trafilatura, and words split at spaces where it would use spaCy. All get the same tokenizer,
language model, languages and bands of signatures. Left out of the pair, because one side has no counterpart that works
offline: the benchmark screen (datatrove's needs a hub), training a tokenizer (it has none), URL lists (we have none).
The table of our stages has all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.chain import stages
from bench.common import Ratio, arguments, interleaved, judged, note, report, run
from bench.crawls import Crawl, crawl_at, only, sample, with_settings
from bench.peer import Peer
from bench.peers.stopwatch import Stopwatch, cpu_seconds
from corpusmill.engine.local import Engine
from corpusmill.extractor.sandbox.sandbox import Sandbox
from corpusmill.models import model_path
from corpusmill.plain_text import table
from corpusmill.store import Store, open_store
from tasks.chain import Built, build

QUICK_RESPONSES, WARM_RESPONSES = 240, 16
OURS, OURS_AUTO, PEER, EVEN = "ours, trafilatura", "ours, auto", "datatrove", "datatrove, even"
EXTRACTION = ("extract", "Trafilatura")
"""What the step is called on our side and on the peer's."""


@dataclass(frozen=True)
class Arm:
    """One run of one side: documents are pages that came to the extractor."""

    cpu_s: float
    documents: int
    extracted: int
    kept: int
    tokens: int
    steps: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by step; of our side, of extraction alone (its worker processes and the talk with them)."""

    @property
    def extraction(self) -> float | None:
        """Share of extraction in the CPU seconds."""
        took = [self.steps[name] for name in EXTRACTION if name in self.steps]
        return sum(took) / self.cpu_s if took else None


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("root", nargs="?", type=Path, help="the crawl; else the test data's, else the demo's")
    parser.add_argument("--recipe", help="what to build from it (default: crawl)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the recipe")
    parser.add_argument("--wanted", action="store_true", help="pair on the pages in the recipe's languages alone")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bench-chain-") as temporary:
        scratch = Path(temporary)
        crawl = crawl_at(options.root, options.recipe, options.set)
        if options.quick:
            crawl = sample(crawl, scratch / "crawl", QUICK_RESPONSES)
        warm = sample(crawl, scratch / "warm", WARM_RESPONSES)
        note("warm-up: the kernels are compiled")
        build_in_process(warm, open_store(scratch / "warm-store", create=True))
        note("stages")
        store = open_store(scratch / "stages", create=True)
        measured = stages.measure(crawl, store)
        tokenizer = scratch / "tokenizer.json"
        vocabulary = measured.built.manifest.vocabulary
        tokenizer.write_bytes(store.bytes(vocabulary.output))
        pair = crawl
        if options.wanted:
            pair = only(crawl, scratch / "wanted", stages.in_wanted_languages(measured, store))
        repeats = options.repeats or (2 if options.quick else 3)
        paired: dict[str, list[Arm]] = {}
        with ExitStack() as peers:
            ask = {} if options.no_peer else _peers(peers, scratch, warm, pair, tokenizer, vocabulary.eos)
            arms = {
                OURS: _ours("trafilatura", pair, warm, tokenizer, scratch),
                **ask,
                OURS_AUTO: _ours("auto", pair, warm, tokenizer, scratch),
            }
            paired = interleaved(arms, repeats, note)
        return _report(crawl, measured, paired, options)


def build_in_process(crawl: Crawl, store: Store) -> Built:
    """The dataset of a crawl, built in this process (extraction has its own)."""
    with Engine(1) as engine:
        return build(crawl.recipe, store, lambda stage, fn, units: engine.map(fn, units))


def _ours(mode: str, crawl: Crawl, warm: Crawl, tokenizer: Path, scratch: Path) -> Callable[[], Arm]:
    def once(crawl: Crawl) -> Arm:
        settings = with_settings(
            crawl.recipe,
            extract={"mode": mode},
            decontaminate={"benchmark": (), "use": ()},
            pack={"tokenizer": str(tokenizer)},
        )
        folder = Path(tempfile.mkdtemp(dir=scratch))
        watch = Stopwatch()
        began = cpu_seconds()
        with patch.object(Sandbox, "extract", watch.function("extract", Sandbox.extract)):
            built = build_in_process(Crawl(settings, crawl.root, crawl.files), open_store(folder, create=True))
        spent = cpu_seconds() - began
        shutil.rmtree(folder)
        extract, pack = (built.manifest.row(stage) for stage in ("extract", "pack"))
        return Arm(spent, extract.docs_in, extract.docs_out, pack.docs_out, built.manifest.tokens, dict(watch.spent))

    once(warm)
    return lambda: once(crawl)


def _peers(
    open_until: ExitStack, scratch: Path, warm: Crawl, crawl: Crawl, tokenizer: Path, eos: str
) -> dict[str, Callable[[], Arm]]:
    """datatrove in both forms, each a warm process."""
    arms: dict[str, Callable[[], Arm]] = {}
    for name, words, instead in ((PEER, "spacy", None), (EVEN, "split", "even")):
        peer = open_until.enter_context(Peer("datatrove_chain", scratch / f"{words}.log", instead))

        def once(crawl: Crawl, peer: Peer = peer, words: str = words) -> Arm:
            recipe = crawl.recipe
            answer = peer.ask(
                {
                    "root": str(crawl.root),
                    "files": crawl.files,
                    "out": str(scratch / f"peer-{words}"),
                    "tokenizer": str(tokenizer),
                    "eos": eos,
                    "language_model": str(model_path(recipe.language.model)),
                    "languages": recipe.language.keep,
                    "min_score": recipe.language.min_score,
                    "ngram": recipe.deduplicate.ngram,
                    "bands": recipe.deduplicate.bands,
                    "rows": recipe.deduplicate.num_perm // recipe.deduplicate.bands,
                    "words": words,
                    "timeout_s": recipe.extract.timeout_s,
                    "seed": recipe.seed,
                }
            )
            return Arm(*(answer[key] for key in ("cpu_s", "documents", "extracted", "kept", "tokens", "steps")))

        once(warm)
        arms[name] = lambda once=once: once(crawl)  # type: ignore[misc]
    return arms


def _ratios(least: Mapping[str, Arm], wanted: bool = False) -> list[Ratio]:
    """All arms read the same files, so documents per CPU second compare as CPU seconds do."""
    if PEER not in least:
        return []
    pairs = {
        "same_extractor": (PEER, OURS),
        "auto": (PEER, OURS_AUTO),
        "same_extractor_even": (EVEN, OURS),
        "auto_even": (EVEN, OURS_AUTO),
    }
    ending = "_wanted" if wanted else ""
    return judged("chain", {n + ending: least[peer].cpu_s / least[ours].cpu_s for n, (peer, ours) in pairs.items()})


def _tables(measured: stages.Measured, least: Mapping[str, Arm], most: Mapping[str, float], pages: int) -> str:
    total = measured.cpu_s
    stage_rows = [
        (
            stages.STEPS[stage.name],
            f"{stage.cpu_s:.2f}",
            f"{stage.cpu_s / total:.1%}",
            f"{1000 * stage.cpu_s / max(pages, 1):.3f}",
            f"{stage.bytes_in / 1e6:.2f}" if stage.bytes_in else None,
            f"{stage.bytes_stored / 1e6:.2f}" if stage.bytes_stored else None,
        )
        for stage in measured.stages
    ]
    arm_rows = [
        (
            name,
            f"{a.cpu_s:.2f}",
            f"{most[name]:.2f}",
            f"{a.extraction:.1%}" if a.extraction is not None else None,
            f"{least[OURS].documents / a.cpu_s:.1f}",
            a.documents,
            a.extracted,
            a.kept,
            a.tokens,
        )
        for name, a in least.items()
    ]
    step_rows = [
        (step, *(f"{least[peer].steps[step]:.2f}" for peer in (PEER, EVEN)))
        for step in (least[PEER].steps if PEER in least else ())
    ]
    parts = [
        table(("stage", "CPU s", "share", "ms/page", "MB in", "MB stored"), stage_rows, numbers=(1, 2, 3, 4, 5)),
        f"all: {total:.2f} CPU s, {pages / total:.1f} pages a CPU second\n",
        table(
            ("WARC to tokens", "CPU s", "most", "extraction", "pages/s", "pages", "extracted", "kept", "tokens"),
            arm_rows,
            numbers=(1, 2, 3, 4, 5, 6, 7, 8),
        ),
        "CPU s: the least of the runs, most: the greatest; extraction: its share. pages/s: a CPU second, by our count.",
    ]
    if step_rows:
        parts += ["", table(("step", PEER, EVEN), step_rows, numbers=(1, 2))]
    return "\n".join(parts)


def _report(crawl: Crawl, measured: stages.Measured, paired: Mapping[str, Sequence[Arm]], options: Any) -> int:
    least = {name: min(arms, key=lambda arm: arm.cpu_s) for name, arms in paired.items()}
    entered = {row.stage: row.docs_in for row in measured.built.manifest.funnel}
    pages = entered["extract"]
    total = measured.cpu_s
    files = f"{len(crawl.files)} files, {crawl.bytes / 1e6:.1f} MB compressed"
    records = f"{entered['acquire']:,} records, {pages:,} pages to extract"
    most = {name: max(arm.cpu_s for arm in arms) for name, arms in paired.items()}
    head = f"{files}; {records}; recipe {crawl.recipe.name}, extractor {crawl.recipe.extract.mode}"
    if options.wanted:
        head += "; paired on the pages in its languages alone"
    text = f"{head}\n\n{_tables(measured, least, most, pages)}"
    document = {
        "subject": "chain",
        "quick": options.quick,
        "wanted": options.wanted,
        "recipe": crawl.recipe.name,
        "files": len(crawl.files),
        "file_bytes": crawl.bytes,
        "records": entered["acquire"],
        "pages": pages,
        "cpu_s": total,
        "stages": [{**asdict(stage), "share": stage.cpu_s / total} for stage in measured.stages],
        "paired": {
            name: {
                **asdict(arm),
                "extraction_share": arm.extraction,
                "pages_per_cpu_s": least[OURS].documents / arm.cpu_s,
                "runs_cpu_s": [a.cpu_s for a in paired[name]],
            }
            for name, arm in least.items()
        },
        "versions": {name: version(name) for name in ("corpusmill", "trafilatura", "resiliparse", "tokenizers")},
    }
    return report(document, text, _ratios(least, options.wanted), options.json)


if __name__ == "__main__":
    run(main)
