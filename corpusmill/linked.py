"""How a kernel is compiled: in one piece, with all that it calls.

Numba makes finished machine code of every function that a kernel calls, of its own (`np.empty`) too, optimises it to
the end, wraps it for calls from Python, and then does all of that once more in the kernel. Here what a kernel calls is
linked into it and optimised there, once; docs/notes/compiled-kernels.md has the figures.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from corpusmill.quickened import quicken

_FROM_PYTHON = "_ZN7cpython"


class Whole(JITCodeLibrary):
    """Code of a kernel, with all that was linked into it."""

    def _optimize_functions(self, module: Any) -> None:
        """As Numba does it; but it takes 1 ms to find that each function which is only declared has no code."""
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()  # type: ignore[no-untyped-call]
                passes.run(function, builder)


class Linked(Whole):
    """Code that is called by other compiled code alone."""

    @property
    def codegen(self) -> Any:
        return super().codegen if self._is_called_from_python() else self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to do: the environment is set where the code is linked in."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return int(super().get_pointer_to_function(name)) if self._is_called_from_python() else 0  # type: ignore[no-untyped-call]

    def _is_called_from_python(self) -> bool:
        """Plain Numba functions, of a test or of somebody's own measure."""
        return any(f.name.startswith(_FROM_PYTHON) and not f.is_declaration for f in self._final_module.functions)

    def _optimize_final_module(self) -> None:
        if self._is_called_from_python():
            return super()._optimize_final_module()  # type: ignore[no-untyped-call]
        passes, builder = self._codegen._module_pass_manager(  # type: ignore[no-untyped-call]
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if self._is_called_from_python():
            return super()._finalize_final_module()  # type: ignore[no-untyped-call]
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._verify_declare_only_symbols()  # type: ignore[no-untyped-call]
        self._finalized = True


class Outermost(Compiler):
    """Numba's pipeline for a kernel that is called from Python."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        codegen = self.state.targetctx.codegen()
        with libraries_of(codegen, Linked), _without_gc():
            self.state.library = Whole(codegen, function.__qualname__)  # type: ignore[no-untyped-call]
            self.state.library.enable_object_caching()
            result = super().compile_extra(function)  # type: ignore[no-untyped-call]
        for environment in result._find_referenced_environments():
            codegen.set_env(environment.env_name, environment)
        return result


@contextlib.contextmanager
def libraries_of(codegen: Any, kind: type[JITCodeLibrary]) -> Iterator[None]:
    """Libraries that Numba makes within are of this kind; compiling holds a lock, so nobody else makes any."""
    before = codegen._library_class  # ours already where a kernel calls a kernel
    codegen._library_class = kind
    try:
        yield
    finally:
        codegen._library_class = before


@contextlib.contextmanager
def _without_gc() -> Iterator[None]:
    """Compiling makes millions of objects that stay: looking for cycles among them takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


quicken()
