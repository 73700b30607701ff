"""A 64-bit mixer for kernels: a bijection that spreads every input bit over all output bits.

The finaliser of MurmurHash3 (Appleby, public domain); integer arithmetic only, so the same on every machine. It never
changes: stored keys depend on it, and Numba's on-disk cache of a kernel looks at the time stamp of the kernel's
file only.
"""

from __future__ import annotations

import numpy as np

from corpusmill.compiled import inner


@inner(forceinline=True)
def mix64(x: np.uint64) -> np.uint64:
    """Mix one uint64 (wraps modulo 2**64)."""
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))
