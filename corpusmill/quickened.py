"""What Numba does most often while it compiles, done quicker, with the same answers: a fifth of the CPU time.

Numba's functions are replaced by ours: docs/notes/compiled-kernels.md has the figures, and tests compare the answers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite.binding import ffi
from numba.core import errors, ir, targetconfig
from numba.core.typing import npydecl
from numba.np import npyimpl
from numba.np.numpy_support import ufunc_find_matching_loop

_errors: Any = errors
_users_of_loops: tuple[Any, ...] = (npydecl, npyimpl)


def _variables(instruction: Any, given: Any) -> list[ir.Var]:
    """Variables in a field of an instruction, in order. Numba's own makes a list for each field of each field."""
    found: list[ir.Var] = []
    _collect(given, found)
    return found


def _collect(given: Any, found: list[ir.Var]) -> None:
    kind = type(given)
    if kind is ir.Var:
        found.append(given)
    elif kind is str or kind is ir.Loc or given is None:
        return
    elif kind is dict:
        for value in given.values():
            _collect(value, found)
    elif isinstance(given, list | tuple):
        for value in given:
            _collect(value, found)
    elif isinstance(given, ir.Inst):
        found += given.list_vars()  # type: ignore[no-untyped-call]


def _values(settings: targetconfig.TargetConfig) -> dict[str, Any]:
    """All settings of a compilation. Numba asks each by its name, each time that it looks a function up."""
    return {**_defaults(type(settings)), **settings._values}


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


class _Plain(_errors._DummyColorScheme):
    """Messages without colours."""

    code = errmsg = filename = indicate = highlight = reset = lambda self, message: message


@cache
def _found_loop(ufunc: Any, kinds: tuple[Any, ...]) -> Any:
    return ufunc_find_matching_loop(ufunc, kinds)


def _matching_loop(ufunc: Any, kinds: Any) -> Any:
    """The loop of a NumPy function for these types, asked for at each operator."""
    return _found_loop(ufunc, tuple(kinds))


def quicken() -> None:
    """Put them in the place of Numba's."""
    ir.Inst._rec_list_vars = _variables  # type: ignore[method-assign]
    targetconfig.TargetConfig.values = _values  # type: ignore[method-assign]
    _errors._termcolor_inst = _Plain()  # messages of functions that do not fit are made, and dropped
    for module in _users_of_loops:
        module.ufunc_find_matching_loop = _matching_loop
    ffi.lib._lock._cblist.clear()  # 150,000 calls into LLVM, each timed by every function that is being compiled
