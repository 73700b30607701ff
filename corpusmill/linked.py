"""How a kernel is compiled, in one piece with all that it calls, and how its code is kept.

Numba makes finished machine code of every function that a kernel calls, of its own (`np.empty`) too, optimises it to
the end, wraps it for calls from Python, and then does all of that once more in the kernel. Here what a kernel calls is
linked into it and optimised there, once; docs/notes/compiled-kernels.md has the figures.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

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


def reduced(result: Any) -> bytes:
    """What it takes to call compiled code: machine code, the name of its wrapper, what it refers to."""
    assert not result.library.has_dynamic_globals, f"{result.fndesc.qualname}: code with addresses in it cannot be kept"
    assert not result.lifted
    payload: bytes = dumps(  # type: ignore[no-untyped-call]
        (
            result.library._get_compiled_object(),
            result.fndesc.llvm_cpython_wrapper_name,
            result.environment,
            result._find_referenced_environments(),
            result.signature,
            result.reload_init,
        )
    )
    return payload


def rebuilt(function: Callable[..., Any], payload: bytes, context: Any) -> Any:
    """Compiled code as a dispatcher takes it. Numba's own way also reads what callers need that inline the code: its
    tables of operations, and LLVM's form of the code."""
    code, wrapper, environment, environments, signature, reload_init = pickle.loads(payload)
    for again in reload_init:
        again()
    rtsys.initialize(context)
    codegen = context.codegen()
    library = JITCodeLibrary(codegen, function.__qualname__)  # type: ignore[no-untyped-call]
    library.enable_object_caching()  # type: ignore[no-untyped-call]
    library._set_compiled_object(code)  # type: ignore[no-untyped-call]
    library._finalize_final_module()  # type: ignore[no-untyped-call]
    address = codegen._engine.get_function_address(wrapper)
    module, name = sys.modules[function.__module__], function.__name__
    entry = _dynfunc.make_function(module, name, "", address, environment, (library,))
    for known in {id(known): known for known in (environment, *environments)}.values():
        codegen.set_env(known.env_name, known)
    return SimpleNamespace(signature=signature, entry_point=entry, objectmode=False, library=library)


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
