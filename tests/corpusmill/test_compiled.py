"""Compiled code is found again by its content alone, compiled once for all processes, and needs no writable folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import corpusmill
from corpusmill.compiled import stamp

HELPER = """from corpusmill.compiled import inner

@inner
def helper(x):
    return x + {number}
"""
KERNEL = """from corpusmill.compiled import kernel
from corpusmill.near import near

@kernel
def far_caller(x):
    return near(x)
"""
NEAR = """from corpusmill.compiled import inner
from corpusmill.helper import helper

@inner
def near(x):
    return helper(x)
"""
RUN = "from corpusmill.far import far_caller as k; print(k(0), sum(k.stats.cache_misses.values()))"

Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A clone with the library's real `compiled.py` and a kernel whose helper is two files away."""
    folder = tmp_path / "clone" / "corpusmill"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "compiled.py", "linked.py", "quickened.py"):
        shutil.copy(Path(corpusmill.__file__).parent / name, folder)
    (folder / "far.py").write_text(KERNEL)
    (folder / "near.py").write_text(NEAR)
    (folder / "helper.py").write_text(HELPER.format(number=1))
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Run:
    def run(package: Path, code: str = RUN, **env: str) -> subprocess.Popen[str]:
        base = {k: v for k, v in os.environ.items() if k not in ("CORPUSMILL_KERNELS", "PYTHONPATH")}
        base |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(package.parent)!r})\n{code}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=base | env,
        )

    return run


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def test_an_edited_helper_of_another_file_is_compiled_and_undone_found_again(package: Path, start: Run) -> None:
    results = []
    for number in (1, 1, 2, 1):
        (package / "helper.py").write_text(HELPER.format(number=number))
        results.append(said(start(package)))
    assert results == ["1 1", "1 0", "2 1", "1 0"]


def test_a_second_clone_compiles_nothing(package: Path, start: Run, tmp_path: Path) -> None:
    assert said(start(package)) == "1 1"
    other = tmp_path / "another place" / "corpusmill"
    shutil.copytree(package, other)
    assert said(start(other)) == "1 0"


def test_of_two_processes_in_an_empty_cache_one_compiles(package: Path, start: Run) -> None:
    both = [start(package) for _ in range(2)]
    assert sorted(said(process)[-1] for process in both) == ["0", "1"]
    names = list((package.parents[1] / "cache" / "corpusmill" / "kernels").iterdir())
    assert [name.suffix for name in names] == [".nbc"], "no locks and no parts are left"


def test_code_that_another_version_kept_in_another_form_is_not_read(package: Path, start: Run) -> None:
    form = package / "linked.py"
    kept = form.read_text()
    form.write_text(kept + "\n# keeps it in another form\n")
    assert [said(start(package)) for _ in range(2)] == ["1 1", "1 0"]
    form.write_text(kept)
    assert [said(start(package)) for _ in range(2)] == ["1 1", "1 0"]


def test_a_damaged_file_is_compiled_again(package: Path, start: Run, tmp_path: Path) -> None:
    assert said(start(package)) == "1 1"
    (stored,) = (tmp_path / "cache" / "corpusmill" / "kernels").iterdir()
    stored.write_bytes(stored.read_bytes()[:-100])
    assert said(start(package)) == "1 1"
    assert said(start(package)) == "1 0"


def test_a_named_folder_is_read_first_and_a_read_only_one_is_never_written(
    package: Path, start: Run, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    assert said(start(package, CORPUSMILL_KERNELS=str(image))) == "1 1"
    (stored,) = image.iterdir()
    image.chmod(0o555)
    stored.chmod(0o444)
    assert said(start(package, CORPUSMILL_KERNELS=str(image))) == "1 0"
    assert list(image.iterdir()) == [stored]


def test_without_a_folder_to_write_kernels_are_compiled_in_memory_with_one_line(
    package: Path, start: Run, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    process = start(package, XDG_CACHE_HOME=str(tmp_path / "file" / "below"))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out.strip()) == (0, "1 1")
    assert err.count("\n") == 1
    assert "compiled in memory" in err
    assert "CORPUSMILL_KERNELS" in err


def test_the_stamp_holds_the_tables_that_are_compiled_in() -> None:
    from corpusmill.compiled import sources
    from corpusmill.kernels.words import table

    names = {path.name for path in sources(Path(table.__file__))}
    assert {"unicode_table.npz", "unicode_table.py", "bytehash.py"} <= names
    assert len(stamp(Path(table.__file__))) == 64


def test_numba_is_imported_with_the_first_call_and_then_without_scipy(package: Path, start: Run) -> None:
    code = """
import sys
from corpusmill.far import far_caller
assert far_caller.__name__ == "far_caller" and not {"numba", "llvmlite", "scipy"} & set(sys.modules)
print(far_caller(0), "numba" in sys.modules, "scipy.linalg" in sys.modules)
import scipy.linalg
"""
    assert said(start(package, code)) == "1 True False"


def test_threads_that_call_a_kernel_at_once_make_it_once(package: Path, start: Run) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from corpusmill.far import far_caller
with ThreadPoolExecutor(8) as threads:
    assert len({id(made) for made in threads.map(lambda _: far_caller.dispatcher, range(64))}) == 1
    print(*{*threads.map(far_caller, [0] * 64)}, sum(far_caller.stats.cache_misses.values()))
"""
    assert said(start(package, code)) == "1 1"


BOTH = """from corpusmill.compiled import kernel

@kernel
def callee(x):
    return x + 1.5

@kernel
def caller(x):
    return callee(x) * 2.0
"""


@pytest.mark.parametrize("calls", ["caller(1.0), callee(1.0)", "callee(1.0), caller(1.0)"])
def test_a_kernel_is_called_by_another_and_from_python_compiled_or_found(package: Path, start: Run, calls: str) -> None:
    (package / "both.py").write_text(BOTH)
    expected = str(tuple({"caller": 5.0, "callee": 2.5}[name.split("(")[0]] for name in calls.split(", ")))
    code = f"from corpusmill.both import callee, caller; print(({calls}))"
    assert [said(start(package, code)) for _ in range(2)] == [expected] * 2
    first = "from corpusmill.both import callee; print(callee(1.0))"  # its code is there when the caller is compiled
    elsewhere = {"XDG_CACHE_HOME": str(package / "cache")}
    assert said(start(package, first, **elsewhere)) == "2.5"
    assert said(start(package, code, **elsewhere)) == expected


def test_a_full_disk_costs_compiling_again_not_the_run(package: Path, start: Run, tmp_path: Path) -> None:
    full = (
        "import errno, os; real = os.open\n"
        "def no_room(path, flags, *more, **named):\n"
        "    if str(path).endswith('.lock'): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "    return real(path, flags, *more, **named)\n"
        "os.open = no_room\n"
    )
    assert said(start(package, full + RUN)) == "1 1"


def test_without_locks_of_files_kernels_are_compiled_all_the_same(package: Path, start: Run) -> None:
    none = "import errno, fcntl\ndef flock(*_): raise OSError(errno.ENOLCK, 'No locks')\nfcntl.flock = flock\n"
    assert said(start(package, none + RUN)) == "1 1"
    assert said(start(package)) == "1 0"


QUICKENED = """
import numpy as np
from numba import types
from numba.core import compiler, ir, targetconfig
from numba.np.numpy_support import ufunc_find_matching_loop
from corpusmill.kernels.edits.lines import _edit
from corpusmill.kernels.perplexity.counts import counts_of_counts

kinds = [types.int64, types.uint8, types.float32, types.boolean, types.Array(types.int64, 1, "C")]
ufuncs = [np.add, np.less, np.bitwise_and, np.true_divide]
loops = [(ufunc, (a, b)) for ufunc in ufuncs for a in kinds[:4] for b in kinds[:4]]
flags = [compiler.DEFAULT_FLAGS, compiler.Flags(), compiler.DEFAULT_FLAGS.copy()]
flags[2].release_gil = True
codes = [compiler.run_frontend(kernel._function) for kernel in (_edit, counts_of_counts)]

def answers(find):
    lists = [s.list_vars() for code in codes for block in code.blocks.values() for s in block.body]
    same = [[a == b for b in flags] for a in flags]
    return lists, [f.values() for f in flags], same, [str(find(*loop)) for loop in loops]

before = answers(ufunc_find_matching_loop)
from corpusmill import linked, quickened
assert ir.Inst._rec_list_vars is quickened._variables and targetconfig.TargetConfig.values is quickened._values
assert before == answers(quickened._matching_loop) and sum(map(len, before[0])) > 500, before[0][:5]
print("same")
"""


def test_what_is_quickened_in_numba_gives_the_answers_of_numba() -> None:
    """Variables of every instruction of two kernels, in order; settings; loops of operators."""
    done = subprocess.run([sys.executable, "-c", QUICKENED], capture_output=True, text=True, check=False)
    assert done.stdout == "same\n", done.stderr
