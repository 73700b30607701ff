"""The peer's side of a paired run: requests as JSON lines on stdin, one JSON line back for each; standard library only.

The process stays alive, so imports and warm-up lie outside what is measured. Whatever a peer prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def serve(handle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer requests until stdin ends; an error of the peer is an answer too."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = handle(json.loads(line))
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
