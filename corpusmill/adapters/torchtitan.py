"""Packed shards for torchtitan: a data loader whose state is the step, the same on all ranks.

    class Packed(PackedBatches, BaseDataLoader):            # torchtitan.components.dataloader.BaseDataLoader
        tensor = staticmethod(torch.from_numpy)

        @dataclass(kw_only=True, slots=True)
        class Config(BaseDataLoader.Config):
            plan: Plan

    config.dataloader = Packed.Config(dataset_path=STORE, dataset=REF, plan=plan)

The plan's global batch must be torchtitan's `training.global_batch_size`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from corpusmill.adapters.shares import Shares
from corpusmill.errors import Refused, UsageError


class PackedBatches:
    """torchtitan's protocol of a data loader, to be mixed into a class of its base."""

    @staticmethod
    def tensor(array: NDArray[Any]) -> Any:
        """What becomes of each array; with torch, `torch.from_numpy`."""
        return array

    def __init__(
        self, config: Any, *, dp_world_size: int, dp_rank: int, seq_len: int, local_batch_size: int, **_: object
    ) -> None:
        """As torchtitan builds it.

        Args:
            config: `dataset_path` is the URI of the store, `dataset` a REF in it, `plan` the order.
            local_batch_size: sequences in a micro-batch; a rank's share of the global batch is a multiple of it.

        Raises:
            UsageError: sequences have another length, or a share is no multiple of a micro-batch.
        """
        self.shares = Shares(config.dataset_path, config.dataset, config.plan, dp_rank, dp_world_size)
        self.step, self._given, self._micro = 0, 0, local_batch_size
        if (lengths := set(self.shares.lengths)) != {seq_len}:
            raise UsageError(
                f"training.seq_len = {seq_len}",
                f"sequences of this plan have {', '.join(map(str, sorted(lengths)))} tokens",
                "Give training.seq_len their length.",
            )
        if self.shares.size % local_batch_size:
            raise UsageError(
                f"training.local_batch_size = {local_batch_size} does not divide {self.shares.size}",
                f"the share of each of {dp_world_size} ranks in a global batch of {self.shares.plan.global_batch}",
                "Choose one that does, and let training.global_batch_size be that of the plan.",
            )

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Micro-batches from where the state stands: tokens and their positions in documents, and labels.

        Each is int64[local_batch_size, seq_len]. A label that does not count is -100, as torchtitan has it.
        """
        for share in self.shares.ahead(self.step):
            for at in range(self._given * self._micro, self.shares.size, self._micro):
                cut = slice(at, at + self._micro)
                self._given += 1
                if self._given * self._micro == self.shares.size:
                    self.step, self._given = self.step + 1, 0
                inputs = {
                    "input": self.tensor(share.tokens[cut].copy()),
                    "positions": self.tensor(share.positions[cut]),
                }
                yield inputs, self.tensor(share.labels[cut])

    def state_dict(self) -> dict[str, Any]:
        """Whole steps that were given, sequences of the next one that were too, and whose they are."""
        given = self._given * self._micro
        return {
            "step": self.step,
            "given": given,
            "world_size": self.shares.world_size,
            "dataset": self.shares.dataset,
            "plan": self.shares.plan.digest,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken, at any number of ranks; an empty state is the beginning.

        Raises:
            Refused: it is of another dataset or plan, or was taken within a step at another number of ranks.
        """
        if not state_dict:
            return
        own = self.state_dict()
        for name in ("dataset", "plan"):
            if (theirs := state_dict.get(name)) != own[name]:
                raise Refused(
                    f"the loader's state is of {name} {str(theirs)[:12]}, but this one has {own[name][:12]}",
                    "a run goes on with the rows that it began with",
                    "Resume with the first, or begin a new run without the loader's state.",
                )
        given, rest = divmod(state_dict["given"], self._micro)
        if state_dict["given"] and (rest or state_dict["world_size"] != self.shares.world_size):
            raise Refused(
                f"the state was taken within step {state_dict['step'] + 1}, at {state_dict['world_size']} ranks",
                f"this loader has {self.shares.world_size} ranks and micro-batches of {self._micro}",
                "Resume from a state that was saved between steps.",
            )
        self.step, self._given = state_dict["step"], given
