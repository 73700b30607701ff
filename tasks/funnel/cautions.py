"""What a build should say although nothing failed: settings that the text was not enough for."""

from __future__ import annotations

from collections.abc import Iterator

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import HELDOUT, MIN_HELDOUT, Manifest


def cautions(recipe: Recipe, manifest: Manifest, *, trained: bool) -> Iterator[str]:
    """Sentences about a dataset, as short as it is.

    Args:
        trained: whether its tokenizer was trained here: `pack.vocab_size` is nothing to a given one.
    """
    if not manifest.partitions:
        return
    found, wanted = manifest.vocabulary.vocab_size, recipe.pack.vocab_size
    if trained and found < wanted:
        yield (
            f"the tokenizer has {found:,} tokens instead of {wanted:,} (pack.vocab_size): its sample has no more that "
            "occur twice; give it more text, or set a smaller vocab_size"
        )
    held = manifest.partitions.get(HELDOUT)
    number = held.documents if held else 0
    if number < MIN_HELDOUT:
        documents = f"{number} documents are" if number > 1 else "one document is" if number else "no document is"
        yield (
            f"{documents} held out; a loss on fewer than {MIN_HELDOUT} says little: lower pack.heldout_one_in "
            f"(now {recipe.pack.heldout_one_in}), or add text"
        )
