"""Which outcome of a try is kept, by what is sought."""

from __future__ import annotations

from floorit.trial.verdict import Outcome
from floorit.tune.candidates import Goal

# Less memory may cost no more than this: the goal is the smallest peak at so many times the speed of the program.
SPEED_KEPT = 0.95


def is_kept(goal: Goal, outcome: Outcome, *, speed: float) -> bool:
    """What reaches the goal and does to results no more than it may; what could not be verified does not.

    `speed` is how many times as fast as the untouched program what it was tried on top of is.
    """
    if outcome.parity.status == "unverified":
        return False
    if goal != "memory":
        return outcome.verdict == "faster"
    return saves(outcome) and is_fast_enough(outcome, speed=speed) is True


def saves(outcome: Outcome) -> bool:
    """Whether it ran with the results that it may have, and took less memory."""
    return outcome.verdict in ("faster", "not faster", "unclear") and outcome.memory.is_less


def is_fast_enough(outcome: Outcome, *, speed: float) -> bool | None:
    """Whether it is surely not slower than may be; None where that is not clear."""
    gain = outcome.speedup
    if gain is None or outcome.noise is None:
        return None
    if gain.low * speed >= SPEED_KEPT:
        return True
    return False if gain.high * speed < SPEED_KEPT else None


def score(goal: Goal, outcome: Outcome) -> float:
    """By which the best of those that are kept is chosen."""
    if goal == "memory":
        return outcome.memory.saved or 0.0
    return gain(outcome)


def gain(outcome: Outcome) -> float:
    """How many times as fast; 1 where it is not known."""
    return outcome.speedup.value if outcome.speedup is not None else 1.0


def word(goal: Goal, outcome: Outcome, *, speed: float) -> str:
    """The verdict, where memory is sought; else as it is."""
    if goal != "memory" or outcome.verdict not in ("faster", "not faster", "unclear"):
        return outcome.verdict
    if outcome.memory.both is None:
        return "its memory was not measured" if outcome.pairs else outcome.verdict
    if not outcome.memory.is_less:
        return "no less memory"
    if outcome.parity.status == "unverified":
        return "less memory, results unverified"
    fast = is_fast_enough(outcome, speed=speed)
    return f"less memory{'' if fast else ', speed unclear' if fast is None else ', too slow'}"
