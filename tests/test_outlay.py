"""How long a try takes, said before it is begun: what the try itself says after its first run."""

from __future__ import annotations

import pytest

from floorit import commandline, outlay
from floorit.trial import conduct, runner
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.state import State
from floorit.trial.trial import Trial


def said_by_the_try(run: float) -> float:
    """Seconds in all, at the least, if every run takes as long as the first."""
    first = Trial(arm=AS_IS, state="ran", seconds=run)
    state = State(
        cwd=".", arms=[Arm(name=name, command=["train.py"]) for name in (AS_IS, "changed")], steps=20, pilot=first
    )
    return min(run + conduct.least_seconds(state, outlay.BUDGET, spares=False), outlay.BUDGET)


@pytest.mark.parametrize("pace", [0.05, 0.5, 4.0])
def test_a_long_training_is_tried_for_a_few_steps_and_its_start(pace: float) -> None:
    start, steps = 3.0, 100_000
    least, most = outlay.of_one_change(start + steps * pace, steps, pace, pace)
    run = start + runner.steps_for(pace) * pace
    assert (least, most) == (pytest.approx(said_by_the_try(run)), outlay.BUDGET)


def test_a_short_one_is_tried_as_it_is() -> None:
    least, _ = outlay.of_one_change(2.0, 30, 0.05, 0.04)
    assert least == pytest.approx(said_by_the_try(2.0))


def test_it_is_the_budget_that_a_try_has() -> None:
    assert commandline.seconds(commandline.BUDGET) == outlay.BUDGET
