"""What every benchmark shares: options, interleaved repeats, ratios against floors.toml, the report and the exit code.

A benchmark measures CPU seconds, ours and the peer's in turn within one run, and takes the least of the repeats: other
work on the machine can only add to it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.peers.stopwatch import cpu_seconds
from corpusmill.errors import CheckFailed, MillError
from corpusmill.plain_text import table

T = TypeVar("T")

REPOSITORY = Path(__file__).resolve().parents[1]
FLOORS = Path(__file__).with_name("floors.toml")


@dataclass(frozen=True)
class Ratio:
    """How many times less CPU than the peer; `floor` and `goal` are None where floors.toml names none."""

    name: str
    value: float
    floor: float | None = None
    goal: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it is at its floor or above."""
        return self.floor is None or self.value >= self.floor


def judged(subject: str, ratios: Mapping[str, float], floors: Path = FLOORS) -> list[Ratio]:
    """Ratios of a subject beside their floors; a floor whose ratio was not measured is left out."""
    known = tomllib.loads(floors.read_text(encoding="utf-8")).get(subject, {})
    return [Ratio(name, value, **known.get(name, {})) for name, value in ratios.items()]


def interleaved(arms: Mapping[str, Callable[[], T]], repeats: int, note: Callable[[str], None]) -> dict[str, list[T]]:
    """Results of each arm, run in turn: A B C, A B C, …, so that what else the machine does meets all of them alike."""
    results: dict[str, list[T]] = {name: [] for name in arms}
    for number in range(repeats):
        for name, run in arms.items():
            note(f"{name}: run {number + 1} of {repeats}")
            results[name].append(run())
    return results


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """An arm of a benchmark: does its work and returns the CPU seconds."""

    def once() -> float:
        began = cpu_seconds()
        work()
        return cpu_seconds() - began

    return once


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small sample, at most a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--repeats", type=int, help="runs of each side; the least CPU of them counts")
    parser.add_argument("--no-peer", action="store_true", help="measure our side alone; no ratio, no floor")
    return parser


def note(text: str) -> None:
    """A line about what is going on, to stderr."""
    print(text, file=sys.stderr, flush=True)


def report(document: Mapping[str, Any], text: str, ratios: Sequence[Ratio], as_json: bool) -> int:
    """Print the result, with the ratios at its end, and return the exit code: 4 when a ratio is below its floor."""
    if as_json:
        shown = [{**asdict(ratio), "ok": ratio.ok} for ratio in ratios]
        print(json.dumps({**document, "ratios": shown}, ensure_ascii=False, sort_keys=True))
    else:
        print(text)
        if ratios:
            rows = [(r.name, f"{r.value:.2f}", r.floor, r.goal, "" if r.ok else "below its floor") for r in ratios]
            print("\n" + table(("ratio", "measured", "floor", "goal", ""), rows, numbers=(1, 2, 3)))
    return 0 if all(ratio.ok for ratio in ratios) else CheckFailed.exit_code


def run(main: Callable[[Sequence[str]], int]) -> None:
    """Run a benchmark as a program: an error of the user is its message and exit code."""
    try:
        sys.exit(main(sys.argv[1:]))
    except MillError as err:
        note(f"{err.id}: {err}")
        sys.exit(err.exit_code)
