"""The verb `mill train`. Imports no torch: training runs in processes that torchrun starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mill.common import InStore, note

if TYPE_CHECKING:
    from corpusmill.dataset.manifest import Manifest


def train(
    ref: Annotated[str, Parameter(help="Dataset: name, name@digest, or a whole digest.")],
    /,
    *,
    config: Annotated[str, Parameter(help="Training config: a TOML file, or the name of one in recipes/.")],
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", help="Override a key of the config: key.path=value; may be repeated.")
    ] = (),
    resume: Annotated[
        str | None,
        Parameter(
            help="Resume from another run's checkpoint: RUN or RUN/STEP. A run always finds its own checkpoints."
        ),
    ] = None,
    from_: Annotated[
        str | None,
        Parameter(
            name="--from",
            help="Start a new run with the weights of another's checkpoint, RUN or RUN/STEP; dataset and mixture "
            "may be others, tokenizer and model not.",
        ),
    ] = None,
    moments: Annotated[bool, Parameter(help="With --from: take the state of its optimizer too.")] = False,
    options: InStore = InStore(),
) -> None:
    """Train a model on a dataset; the same command again resumes from the latest checkpoint."""
    from training.launch import train_ref

    result = train_ref(options.open(), ref, config, set_, resume, origin=from_, moments=moments, on_line=note)
    lines = [f"run        {result['run_id']}: {result['outcome']}"]
    if origin := result.get("origin"):
        lines.append(f"from       {origin['run']}/{origin['step']}, dataset {origin['manifest'][:12]}")
    if "loss_first" in result:
        lines.append(f"steps      {result['steps']:,}, {result['tokens']:,} tokens")
        lines.append(f"loss       {result['loss_first']:.4f} at the start, {result['loss_last']:.4f} at the end")
    if result.get("heldout_after") is not None:
        few = _few(options.dataset(f"{result['name']}@{result['manifest']}").manifest)
        clean = result.get("heldout_clean_after")
        after = f"{result['heldout_after']:.4f} after" + ("" if clean is None else f" ({clean:.4f} of the clean)")
        lines.append(f"held-out   {result['heldout_before']:.4f} bits per byte before, {after}{few}")
    lines.append(f"checkpoint {result['checkpoint'] or 'none'}")
    lines.append(f"dataset    {result['name']}@{result['manifest']}")
    lines += [f"damaged    {name} could not be loaded and was passed over" for name in result.get("damaged", ())]
    options.answer(result, "\n".join(lines))


def _few(manifest: Manifest) -> str:
    """A remark where the held-out part is too small to compare losses on it."""
    from corpusmill.dataset.manifest import HELDOUT, MIN_HELDOUT

    number = manifest.partitions[HELDOUT].documents
    return f" (of {number} document{'s' if number > 1 else ''}: too few to compare)" if number < MIN_HELDOUT else ""
