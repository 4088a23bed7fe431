"""How much memory an arm takes beside the program as it is."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from floorit.trial.arms import Arm
from floorit.trial.state import State

# Of the peak: no smaller saving is claimed. What is resident on the host differs a little from run to run.
CLAIMED, CLAIMED_OF_HOST = 0.02, 0.05


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes at the most: of tensors on the GPU, None where there is none; and of the host, by all its processes."""

    a: int | None
    b: int | None
    host_a: int | None = None
    host_b: int | None = None

    @property
    def both(self) -> tuple[int, int] | None:
        """As it is and with the change, where the model is trained: on the GPU, else on the host."""
        for a, b in ((self.a, self.b), (self.host_a, self.host_b)):
            if a is not None and b is not None:
                return a, b
        return None

    @property
    def saved(self) -> float | None:
        """The share of the peak that the change takes away; below zero where it adds to it."""
        return None if self.both is None or not self.both[0] else 1 - self.both[1] / self.both[0]

    @property
    def is_less(self) -> bool:
        """Whether it saves as much as may be claimed."""
        return self.saved is not None and self.saved >= (CLAIMED if self.a is not None else CLAIMED_OF_HOST)


def compare(state: State, arm: Arm) -> Memory:
    """The largest peaks of all trials of both."""
    before, after = state.of(state.base), state.of(arm)
    return Memory(
        a=_most(trial.memory for trial in before),
        b=_most(trial.memory for trial in after),
        host_a=_most(trial.host for trial in before),
        host_b=_most(trial.host for trial in after),
    )


def _most(sizes: Iterable[int | None]) -> int | None:
    return max((size for size in sizes if size is not None), default=None)
