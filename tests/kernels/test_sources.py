"""A change of any file that is compiled into a kernel compiles the kernel anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from corpusmill.kernels.sources import digest

PART = """import numba

@numba.njit
def part(x):
    return x + {number}
"""
KERNEL = """import numba
import part as module
from part import part
from corpusmill.kernels.sources import digest

def _compiled(sources):
    @numba.njit(cache=True)
    def kernel(x):
        _ = sources
        return part(x)
    return kernel

kernel = _compiled(digest(module))
print(kernel(0), sum(kernel.stats.cache_hits.values()))
"""


def run(folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])])}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    code = [sys.executable, "-c", "import kernel"]
    return subprocess.run(code, capture_output=True, text=True, check=True, env=env).stdout.strip()


def test_a_changed_part_is_compiled_and_an_old_one_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    said = []
    for number in (1, 1, 2, 1):
        (tmp_path / "part.py").write_text(PART.format(number=number), encoding="utf-8")
        said.append(run(tmp_path))
    assert said == ["1 0", "1 1", "2 0", "1 1"]


def test_the_digest_is_of_the_sources(tmp_path: Path) -> None:
    def module(name: str, text: str) -> ModuleType:
        found = ModuleType(name)
        found.__file__ = str(tmp_path / f"{name}.py")
        Path(found.__file__).write_text(text, encoding="utf-8")
        return found

    a, b = module("a", "x = 1"), module("b", "y = 2")
    first = digest(a, b)
    assert first == digest(a, b)
    assert 0 < first < 2**63
    assert len({first, digest(b, a), digest(a), digest(module("a", "x = 2"), b)}) == 4
