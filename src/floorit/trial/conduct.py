"""Which trial comes next, until what is asked can be answered or the budget is spent.

It knows nothing of processes and clocks: a trial is whatever `run` returns, and time is what trials say they took. So
simulated trials are conducted as real ones are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean, median
from typing import Literal, Protocol

from floorit import outlay
from floorit.trial import disturbance, guard, memory, overrides, schedule, statistics
from floorit.trial.arms import Arm
from floorit.trial.state import Round, State
from floorit.trial.trial import Trial

# Failures of the program as it is, after it ran well once: so many, and there is nothing to compare with.
FLAKY = 2
HOPE = 2  # pairs in which an arm may show a gain, where time is spared
SLOW = 0.85  # times as fast: what saves memory at such a price is left

Sought = Literal["speed", "memory"]


class Run(Protocol):
    """Runs an arm once; `jitter` plants a rounding error of that relative size."""

    def __call__(self, arm: Arm, *, jitter: float = 0.0) -> Trial: ...


def conduct(
    state: State,
    run: Run,
    save: Callable[[State], None],
    *,
    budget: float,
    dice: random.Random,
    told: Callable[[str], None],
    sought: Sought | None = None,
) -> None:
    """Run what is still to be run, after the first run. Each round is in `state`, and saved, once it is over.

    One round comes before the program against itself: an arm that does not run at all is found at once. Where one
    thing is sought, time is spared for others: an arm that shows nothing of it at first is left, and one whose gain is
    clear is done.
    """
    again = ""
    while open_arms := still_open(state, sought):
        names = [state.base.name, *(arm.name for arm in open_arms)]
        if failures_of_base(state) >= FLAKY or (state.alike and state.seconds() + _cost(state, names) > budget):
            return
        told(f"round {len(state.rounds) + 1}{again}")
        by_name = {arm.name: arm for arm in state.arms}
        order = schedule.order(names, [round.order for round in state.rounds], dice)
        again = _put(state, Round(trials=[run(by_name[name]) for name in order]), state.rounds)
        save(state)
        if again:
            continue
        _measure_rounding(state, run, save, told)
        if still_open(state, sought):
            _measure_noise(state, run, save, alike_wanted(state, budget), told)


def _measure_noise(
    state: State, run: Run, save: Callable[[State], None], wanted: int, told: Callable[[str], None]
) -> None:
    """The program against itself."""
    again = ""
    while len(state.alike) < wanted:
        told(f"the program against itself, pair {len(state.alike) + 1}{again}")
        again = _put(state, Round(trials=[run(state.base), run(state.base)]), state.alike)
        save(state)


def _put(state: State, made: Round, rounds: list[Round]) -> str:
    """Put a round to the others, or aside where something came between; then, why the next is one more of it."""
    why = disturbance.find(made.trials)
    is_made_again = why is not None and len(state.disturbed) < disturbance.MOST
    (state.disturbed if is_made_again else rounds).append(made)
    return f", again ({why})" if is_made_again else ""


def _measure_rounding(state: State, run: Run, save: Callable[[State], None], told: Callable[[str], None]) -> None:
    """How far a rounding error takes this program's losses, once for each size that has to be known."""
    for unit in {unit for arm in state.changed if (unit := guard.wanted_unit(state, arm)) is not None}:
        told("what rounding does to the losses")
        state.yardsticks[guard.key(unit)] = run(state.base, jitter=unit)
        save(state)


def alike_wanted(state: State, budget: float) -> int:
    """Pairs of the program against itself that the budget has room for."""
    assert state.pilot is not None
    return outlay.alike(state.pilot.seconds, budget)


def still_open(state: State, sought: Sought | None = None) -> list[Arm]:
    """The arms of which more trials would tell more."""
    still = [arm for arm in state.changed if not _is_closed(state, arm, sought)]
    return [arm for arm in still if sought is None or not _is_without_hope(state, arm, sought)]


def _is_without_hope(state: State, arm: Arm, sought: Sought) -> bool:
    """Whether it has gained next to nothing so far. That proves nothing; it only makes something else more urgent."""
    pairs = state.pairs(arm)
    if not pairs:
        return False
    gain = math.exp(fmean(pair.log_ratio for pair in pairs))
    if sought == "speed":
        return len(pairs) >= HOPE and gain < statistics.CLAIMED
    is_less = memory.compare(state, arm).is_less  # a peak hardly differs from run to run: one pair shows it
    return not is_less or (len(pairs) >= HOPE and gain < SLOW)


def _is_closed(state: State, arm: Arm, sought: Sought | None) -> bool:
    if state.failure(arm) is not None or overrides.obstacle(state, arm) is not None or guard.is_decided(state, arm):
        return True
    pairs, compared = state.pairs(arm), len(state.changed)
    return statistics.is_narrow(pairs, compared) or (sought == "speed" and statistics.is_clear(pairs, compared))


def failures_of_base(state: State) -> int:
    """How often the program as it is did not run well, after it once had."""
    return sum(trial.arm == state.base.name and trial.state != "ran" for trial in state.trials())


def _cost(state: State, names: list[str]) -> float:
    """Seconds that one more round of these arms takes."""
    return sum(expected_seconds(state, name) for name in names)


def expected_seconds(state: State, name: str) -> float:
    """Of one more trial of an arm: as its others, else as the program as it is."""
    assert state.pilot is not None
    for known in (name, state.base.name):
        seconds = [trial.seconds for trial in state.trials() if trial.arm == known]
        if seconds:
            return median(seconds)
    return state.pilot.seconds


def sure_seconds(state: State, budget: float) -> float:
    """That are spent whatever the budget: the first run, one round, and the program against itself."""
    assert state.pilot is not None
    return state.pilot.seconds * (1 + len(state.arms) + 2 * alike_wanted(state, budget))


def least_seconds(state: State, budget: float, *, spares: bool) -> float:
    """That a verdict takes at the least, after the first run."""
    assert state.pilot is not None
    left = len(state.changed) - 1 if spares else 0  # arms that may be left
    runs = outlay.runs(state.pilot.seconds, budget, len(state.arms) - left) + HOPE * left
    return runs * state.pilot.seconds
