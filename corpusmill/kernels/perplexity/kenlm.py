"""Perplexity by KenLM's own library (extra `lm`), for models that KenLM trained or packed: the same words, its numbers.

For a model of ours use `perplexity.Model`: it is read in place and needs no extra. KenLM reads ARPA files and its own
binaries; the model must have been trained on the words of `perplexity_tokens.spelled`, joined by blanks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from corpusmill.kernels.perplexity.score import per_word_e4
from corpusmill.kernels.perplexity.tokens import spelled

LOG2_10_E6 = 3_321_928.094887362


class KenlmModel:
    """A model that KenLM reads. It does not pickle: load it in each worker."""

    def __init__(self, path: Path) -> None:
        """Load a model.

        Raises:
            ModuleNotFoundError: the extra `lm` (kenlm-ex) is not installed.
            OSError: KenLM cannot read the file.
        """
        import kenlm

        self._model = kenlm.Model(str(path))

    def log2_e4(self, text: pa.Array) -> pa.Int32Array:
        """As `perplexity.Model.log2_e4`, from KenLM's sums in single precision."""
        bits, words = np.zeros(len(text), np.int64), np.zeros(len(text), np.int64)
        for i in range(len(text)):
            for line in spelled(text.slice(i, 1)):
                bits[i] += round(-self._model.score(" ".join(line)) * LOG2_10_E6)
                words[i] += len(line) + 1
        return per_word_e4(bits, words)
