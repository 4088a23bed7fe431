"""What came between the trials of a round, on the GPU: such a round is made again.

What is the same in all of them, a neighbour that stays or a GPU that is always hot, falls on both sides alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from floorit.analyse.machine import GpuUse
from floorit.report.words import several
from floorit.trial.arms import Arm
from floorit.trial.state import Round, State
from floorit.trial.trial import Beside, Trial

MOST = 3  # rounds of a try that are made again: what does not end is no accident
DIFFERENT = 0.1  # of a trial's time, or of a process
_BY_ITSELF = "power"  # a GPU at its limit of power is what the program makes of it, not what came between


def met(gpu: GpuUse, own: int) -> Beside:
    """What a trial met, `own` of whose processes computed on the GPU."""
    others = max(gpu.processes - own, 0.0) if gpu.processes is not None and own else None
    return Beside(others=others, slowed={why: share for why, share in gpu.slowed.items() if why != _BY_ITSELF})


def find(trials: Sequence[Trial]) -> str | None:
    """What was not the same in all of a round."""
    beside = [trial.beside for trial in trials if trial.beside is not None]
    if _differ([one.others for one in beside if one.others is not None]):
        return "another program computed on the GPU in a part of it"
    for why in sorted({why for one in beside for why in one.slowed}):
        if _differ([one.slowed.get(why, 0.0) for one in beside]):
            return f"the GPU's clock was held down in a part of it ({why})"
    return None


def _differ(values: Sequence[float]) -> bool:
    return len(values) > 1 and max(values) - min(values) > DIFFERENT


def told(state: State, arm: Arm) -> list[str]:
    """What is to be said of an arm's rounds."""
    again, counted = (_by_reason(rounds, arm) for rounds in (state.disturbed, state.rounds))
    return [
        *(f"{several(count, 'round')} made again: {why}" for why, count in again.items()),
        *(f"{several(count, 'round')} counted all the same: {why}" for why, count in counted.items()),
    ]


def _by_reason(rounds: list[Round], arm: Arm) -> dict[str, int]:
    found = [find(round.trials) for round in rounds if round.of(arm.name) is not None]
    return {why: found.count(why) for why in dict.fromkeys(found) if why is not None}
