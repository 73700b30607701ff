"""Compiled kernels whose parts stand in several files, without stale caches.

Numba keeps compiled code beside a kernel's file and looks for changes in that file alone, though the code of other
files is compiled into it. But it keys the code by what the kernel's closure holds. So a kernel with parts is made by
a function that takes the digest of their sources:

    def _compiled(sources: int) -> Any:
        @numba.njit(nogil=True, cache=True)
        def kernel(...):
            _ = sources
            return part(...)
        return kernel

    _kernel = _compiled(digest(part_module, other_module))
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType


def digest(*modules: ModuleType) -> int:
    """63 bits of a digest of the modules' sources."""
    state = hashlib.sha256()
    for module in modules:
        assert module.__file__ is not None
        source = Path(module.__file__).read_bytes()
        state.update(f"{module.__name__} {len(source)}\n".encode())
        state.update(source)
    return int.from_bytes(state.digest()[:8], "big") >> 1
