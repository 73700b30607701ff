"""What a worker gives back, and the names of modes and extractors: imported without the extractors themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["auto", "fast", "resiliparse", "trafilatura", "plain", "union"]
MODES: tuple[Mode, ...] = ("auto", "fast", "resiliparse", "trafilatura", "plain", "union")
EXTRACTORS = ("resiliparse", "trafilatura", "plain", "lines", "fusion")

DEFAULT_MAX_DEPTH = 2000


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of a page: text and the extractor that made it, or the reason why there is none (stages.REASONS)."""

    text: str | None
    extractor: str | None = None
    reason: str | None = None
