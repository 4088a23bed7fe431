"""What a try takes, before it is begun: how many runs, and how long."""

from __future__ import annotations

import math

BUDGET = 300.0  # seconds of a try, where nobody says
SECONDS, STEPS = 10.0, 20  # of steady steps in a run: so many seconds, and at the least so many
PAIRS = 5  # that a verdict rests on at the least
ALIKE, ALIKE_MOST = 2, 3  # pairs of the program against itself; the more where they take no more than ALIKE_SHARE
ALIKE_SHARE = 0.25  # of the budget


def alike(run: float, budget: float) -> int:
    """Pairs of the program against itself that the budget has room for, if a run takes so many seconds."""
    return min(max(int(ALIKE_SHARE * budget / (2 * run)), ALIKE), ALIKE_MOST)


def runs(run: float, budget: float, compared: int) -> int:
    """That a verdict takes at the least, after the first; `compared` counts the program as it is, too."""
    return 2 * alike(run, budget) + PAIRS * compared


def of_one_change(whole: float, steps: int, mean: float, median: float) -> tuple[float, float]:
    """Seconds that trying one change takes, at the least and at the most, by a run that was recorded.

    `whole` seconds had so many steps; a run that is tried has no more than are needed, with what lies between them.
    """
    needed = min(max(math.ceil(SECONDS / median), STEPS), steps)
    run = max(whole - steps * mean, 0.0) + needed * mean
    return min(run * (1 + runs(run, BUDGET, 2)), BUDGET), BUDGET
