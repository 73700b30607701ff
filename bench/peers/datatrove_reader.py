"""datatrove's WARC reader with its decoding; runs in the peers' venv.

A request: {"root", "files"}. The answer: {"cpu_s", "pages", "characters", "versions"}.
"""

from __future__ import annotations

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from datatrove.pipeline.readers import WarcReader
from datatrove.utils.logging import logger
from serve import serve
from stopwatch import cpu_seconds

VERSIONS = ("datatrove", "warcio", "faust-cchardet", "python-magic")


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Read the files of a request in this process."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = Path(scratch) / "paths.txt"
        paths.write_text("".join(f"{file}\n" for file in request["files"]))
        reader = WarcReader(request["root"], paths_file=str(paths))
        began = cpu_seconds()
        pages = characters = 0
        for document in reader.run(None, 0, 1):
            pages += 1
            characters += len(document.text)
        spent = cpu_seconds() - began
    return {
        "cpu_s": spent,
        "pages": pages,
        "characters": characters,
        "versions": {name: version(name) for name in VERSIONS},
    }


if __name__ == "__main__":
    logger.remove()
    serve(read)
