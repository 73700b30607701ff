"""Compiled kernels, kept on disk under the content of every source file that is compiled into them.

Numba's own cache watches a kernel's file alone, though the code of other files is compiled into it; and it lies beside
the source, so that each clone compiles anew. Here the name of compiled code is a digest of

* the kernel's file and all our files that it imports, near and far, with the tables beside them (`unicode_table.npz`),
* the kernel's name, the types of its arguments,
* Python, Numba, llvmlite, NumPy, the settings of Numba that change code, the processor and its features.

So nothing stored is ever stale: other content has another name. Two processes never compile the same kernel at the
same time: the second waits, then loads. Code lies in `corpusmill/kernels/` below the user's cache folder (XDG);
CORPUSMILL_KERNELS names another folder, read first; where that one is read-only (an image, an install), new code goes
to the user's. Where nothing can be written, kernels are compiled in memory, and one line says so.

Numba is imported when the first kernel is called: it takes 0.25 CPU s and more, and most commands call none.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib
import os
import platform
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

KERNELS, SAID = "CORPUSMILL_KERNELS", "CORPUSMILL_SAID"

_PACKAGE = Path(__file__).resolve().parent
_IMPORT = re.compile(rb"^[ \t]*(?:from (corpusmill[\w.]*) import (\([^)]*\)|[^\n#]*)|import (corpusmill[\w.]*))", re.M)
_NAME = re.compile(rb"\w+")
_OURS = re.compile(r"(\w+\.\w+-[0-9a-f]{40}\.nbc|all-[0-9a-f]{40}\.done)(?P<rest>\.lock|\.[0-9a-f]{16}\.tmp)?")
"""Files of ours: code, marks of `mill warm`, and with a `rest` what a killed process leaves."""
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "ENABLE_AVX")


def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Decorate a function that is called from Python: compiled without the GIL, its code kept on disk."""
    return Kernel(function, options, kept=True) if function else lambda given: Kernel(given, options, kept=True)


def inner(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Decorate a function that other kernels call: its code is kept with that of the callers."""
    return Kernel(function, options, kept=False) if function else lambda given: Kernel(given, options, kept=False)


def intrinsic(define: Callable[..., Any]) -> Any:
    """Decorate a function that gives the signature of an operation and what writes its code, as for Numba's own."""
    return Intrinsic(define)


_MAKING = threading.RLock()


class Kernel:
    """A function that Numba compiles; it is handed to Numba when it is first called, or compiled into another."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, kept: bool) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options, self._kept = function, options, kept

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._from_python(*args, **named)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's, with our cache."""
        with _MAKING:
            if made := self.__dict__.get("dispatcher"):  # by another thread meanwhile
                return made
            import numba

            _without_blas()
            if not self._kept:  # only kernels call it: no wrapper for calls from Python
                options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, **self._options}
                made = numba.njit(nogil=True, **options)(self._function)
                made.get_call_template = functools.partial(_without_constants, made.get_call_template)
                return made
            from corpusmill.linked import Outermost

            options = {"no_cfunc_wrapper": True, "pipeline_class": Outermost, **self._options}
            return _with_cache(numba.njit(nogil=True, **options)(self._function), self._function)

    @cached_property
    def _from_python(self) -> Any:
        """The same, for calls from Python; of what only kernels call, tests call it so."""
        import numba

        return self.dispatcher if self._kept else numba.njit(nogil=True, **self._options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """Numba's, for kernels that call this one: it is compiled into them."""
        return (self._inside if self._kept else self).dispatcher._numba_type_

    @cached_property
    def _inside(self) -> Kernel:
        return Kernel(self._function, self._options, kept=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __deepcopy__(self, memo: object) -> Kernel:
        return self  # Numba copies statements, with what they name


class Intrinsic:
    """An operation whose code is written by hand; Numba reads it when it compiles a kernel that uses it."""

    def __init__(self, define: Callable[..., Any]) -> None:
        self._define, self.__doc__ = define, define.__doc__

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.typing.templates import make_intrinsic_template

        name = self._define.__name__
        template = make_intrinsic_template(self, self._define, name, prefer_literal=False, kwargs={})  # type: ignore[no-untyped-call]
        return types.Function(template)

    def __deepcopy__(self, memo: object) -> Intrinsic:
        return self


class _Later:
    """A module that is imported when something of it is asked for; not for use within kernels."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


ir, types = _Later("llvmlite.ir"), _Later("numba.types")
"""For intrinsics."""


@cache
def _without_blas() -> None:
    """Numba's array functions, loaded without `scipy.linalg`: 0.16 CPU s to see whether there is BLAS for np.cov."""
    absent = "scipy.linalg" not in sys.modules
    if absent:
        sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        if absent:
            del sys.modules["scipy.linalg"]


def _without_constants(template: Callable[..., Any], args: Any, named: Any) -> Any:
    """One version for a number, whether it is a constant of the caller or not; LLVM sees the constant."""
    from numba.core.types import unliteral

    return template([unliteral(kind) for kind in args], {name: unliteral(kind) for name, kind in named.items()})  # type: ignore[no-untyped-call]


def _with_cache(dispatcher: Any, function: Callable[..., Any]) -> Any:
    kept = _Kept(function)
    dispatcher._cache = kept
    compile_one = dispatcher.compile

    def compile_alone(signature: Any) -> Any:
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock, kept.alone():
            if signature not in dispatcher.overloads and (found := kept.load(signature, dispatcher.targetctx)):
                dispatcher._cache_hits[signature] += 1
                dispatcher.add_overload(found)
            return compile_one(signature)

    dispatcher.compile = compile_alone
    return dispatcher


def folders() -> list[Path]:
    """Where compiled code is looked for, in order; what is new goes to the first that can be written."""
    found = [Path(given)] if (given := os.environ.get(KERNELS)) else []
    with contextlib.suppress(RuntimeError):  # no home
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        found.append(base / "corpusmill" / "kernels")
    return found


def is_warm() -> bool:
    """Whether kernels have been compiled on this machine before."""
    return stored()[0] > 0


def stored() -> tuple[int, int]:
    """Number and bytes of compiled kernels that are kept, those of other versions too."""
    sizes: list[int] = []
    for folder in folders():
        with contextlib.suppress(OSError):  # somebody else's home
            sizes += [path.stat().st_size for path in folder.glob("*.nbc")]
    return len(sizes), sum(sizes)


def prune(days: int = 30) -> int:
    """Remove code that was not used for some days, and parts and locks of killed processes; how many files went.

    Only files named as this module names them: the folder may be one that the user keeps other things in.
    """
    removed, folder, now = 0, writable(), time.time()
    for path in folder.iterdir() if folder else ():
        if ours := _OURS.fullmatch(path.name):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > 86_400 * (1 if ours["rest"] else days):
                    path.unlink()
                    removed += 1
    return removed


def stamp_of_all() -> str:
    """Digest of all that compiled code depends on: every source file of the library, Numba and this processor."""
    import llvmlite
    import numba
    import numpy as np

    state = hashlib.sha256(f"{platform.python_version()} {numba.__version__} {llvmlite.__version__}".encode())
    state.update(f"{np.__version__} {llvmlite.binding.get_host_cpu_name()}".encode())
    state.update(str(llvmlite.binding.get_host_cpu_features().flatten()).encode())
    for path in sorted(path for kind in ("*.py", "*.npz") for path in _PACKAGE.rglob(kind)):
        state.update(f"{path.relative_to(_PACKAGE)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()


@cache
def sources(file: Path) -> tuple[Path, ...]:
    """A source file of ours and all of ours that it imports, near and far, with the tables beside them; sorted."""
    found: set[Path] = set()
    todo = [file]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += _imported(here) if here.suffix == ".py" else ()
    return tuple(sorted(found))


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """Files that one source file names: in imports, at any depth, and tables as `with_name("….npz")`."""
    text, found = file.read_bytes(), []
    for package, names, module in _IMPORT.findall(text):
        base = _PACKAGE.parent.joinpath(*(package or module).decode().split("."))
        named = [base.with_suffix(".py"), base / "__init__.py"]
        named += [base / f"{name.decode()}.py" for name in _NAME.findall(names)]
        found += [path for path in named if path.is_file()]
    tables = re.findall(rb'with_name\("([\w.]+)"\)', text)
    return (*found, *(path for name in tables if (path := file.with_name(name.decode())).is_file()))


@cache
def stamp(file: Path) -> str:
    """Digest of the content of all `sources` of a file, with their places in the package."""
    state = hashlib.sha256()
    for part in sources(file):
        content = hashlib.sha256(part.read_bytes()).hexdigest()
        place = part.relative_to(_PACKAGE.parent) if part.is_relative_to(_PACKAGE.parent) else part.name
        state.update(f"{place} {content}\n".encode())
    return state.hexdigest()


class _Kept:
    """The compiled code of one kernel, a file for each signature; in the place of Numba's own cache."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._locks: list[tuple[str, Path, int]] = []

    @property
    def cache_path(self) -> str:
        return str(next(iter(folders()), ""))

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...

    def load_overload(self, signature: Any, context: Any) -> None:
        """Nothing: `load` has been asked."""

    def load(self, signature: tuple[Any, ...], context: Any) -> Any:
        """Code from disk, else None, and then nobody else compiles this kernel until `alone` ends."""
        from corpusmill.linked import rebuilt

        name = self._name(signature, context.codegen())
        for waited in (False, True):
            for folder in folders():
                if (payload := _read(folder / name)) is not None:
                    return rebuilt(self._function, payload, context)
            if waited or any(held == name for held, _, _ in self._locks) or not self._lock(name):
                break
        return None

    def save_overload(self, signature: tuple[Any, ...], result: Any) -> None:
        """Keep the code; a kernel whose code cannot be kept is a mistake of ours."""
        from corpusmill.linked import reduced

        payload = reduced(result)
        if (folder := writable()) is not None:
            _write(folder / self._name(signature, result.codegen), payload)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Give up, at the end, what was locked within."""
        held = len(self._locks)
        try:
            yield
        finally:
            while len(self._locks) > held:
                _, path, descriptor = self._locks.pop()
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                os.close(descriptor)

    def _lock(self, name: str) -> bool:
        """Wait until no other process compiles this; whether there is a place for a lock."""
        if (folder := writable()) is None:
            return False
        path = folder / f"{name}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # a full disk; `_write` says so
            return False
        self._locks.append((name, path, descriptor))
        with contextlib.suppress(OSError):  # a file system without locks: the kernel may be compiled twice
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True

    def _name(self, signature: tuple[Any, ...], codegen: Any) -> str:
        import llvmlite
        import numba
        import numpy as np
        from numba.core import config

        code = self._function.__code__
        what = [
            stamp(Path(code.co_filename).resolve()),
            stamp(Path(__file__).with_name("linked.py")),  # the form of what is kept: versions share a user's folder
            f"{self._function.__qualname__}:{code.co_firstlineno}",
            ", ".join(map(str, signature)),
            repr(codegen.magic_tuple()),
            platform.python_version(),
            f"{numba.__version__} {llvmlite.__version__} {np.__version__}",
            repr([getattr(config, name, None) for name in _SETTINGS]),
        ]
        digest = hashlib.sha256("\n".join(what).encode()).hexdigest()
        return f"{Path(code.co_filename).stem}.{self._function.__name__}-{digest[:40]}.nbc"


def _read(path: Path) -> bytes | None:
    """Stored code; None where there is none, or where a damaged file does not hold what was written."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > 86_400:
            os.utime(path)  # so that `prune` knows what is in use
    return stored[32:] if hashlib.sha256(stored[32:]).digest() == stored[:32] else None


def _write(path: Path, payload: bytes) -> None:
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        part.write_bytes(hashlib.sha256(payload).digest() + payload)
        part.replace(path)
    except OSError as fault:  # a full disk costs compiling again, not the run
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        _say_once(f"compiled kernels cannot be kept in {path.parent}: {fault.strerror}")


def writable() -> Path | None:
    """The first folder that takes files."""
    for folder in folders():
        if _takes_files(folder):
            return folder
    named = ", ".join(map(str, folders()))
    why = f"cannot write to {named}" if named else "HOME is not set, so there is no cache folder"
    _say_once(f"kernels are compiled in memory, each time anew: {why}; {KERNELS} names another folder")
    return None


@cache
def _takes_files(folder: Path) -> bool:
    probe = folder / f"{uuid.uuid4().hex}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


@cache
def _say_once(message: str) -> None:
    """Say it unless the process that started this one has said it."""
    if os.environ.get(SAID) != message:
        os.environ[SAID] = message
        print(message, file=sys.stderr, flush=True)
