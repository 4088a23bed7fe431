"""Rounds of a try that something else came between on the GPU."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from floorit import vitals
from floorit.analyse import machine
from floorit.trial import conduct, disturbance, table, verdict
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.state import State
from floorit.trial.trial import Beside, Trial

ALONE = Beside(others=0.0, slowed={})
NEIGHBOUR = Beside(others=0.6, slowed={})
HOT = Beside(others=0.0, slowed={"heat": 0.5})


def trial(arm: str = AS_IS, beside: Beside | None = ALONE, pace: float = 0.1, **more: Any) -> Trial:
    facts: dict[str, Any] = {"state": "ran", "seconds": 10.0, "starts": [pace * at for at in range(20)], "warmup": 1}
    return Trial(arm=arm, beside=beside, **{**facts, **more})


@pytest.mark.parametrize(
    ("besides", "found"),
    [
        ([ALONE, ALONE], None),
        ([ALONE, NEIGHBOUR], "another program computed on the GPU in a part of it"),
        ([NEIGHBOUR, NEIGHBOUR], None),  # it stays, and falls on both alike
        ([ALONE, Beside(others=0.05, slowed={})], None),  # for a moment
        ([HOT, ALONE], "the GPU's clock was held down in a part of it (heat)"),
        ([HOT, HOT], None),
        ([None, NEIGHBOUR], None),  # nobody said
        ([Beside(others=None, slowed={}), NEIGHBOUR], None),
        ([None, None], None),
    ],
)
def test_what_is_not_the_same_in_all_came_between(besides: list[Beside | None], found: str | None) -> None:
    assert disturbance.find([trial(beside=beside) for beside in besides]) == found


def gpu(uuid: str = "a", **more: Any) -> vitals.GpuSample:
    silent = {"power": 100.0, "power_limit": None, "busy": 0.5, "memory": None, "clock": None}
    return vitals.GpuSample(uuid=uuid, **{**silent, "slowed": [], **more})


def of(samples: Iterable[vitals.GpuSample], own: int = 1) -> Beside:
    made = [vitals.Sample(at=float(at), cpu=0.5, memory_free=1, gpus=[one]) for at, one in enumerate(samples)]
    found = machine.describe(made, 0.0, 100.0)
    assert found is not None
    assert found.gpu is not None
    return disturbance.met(found.gpu, own)


def test_what_a_trial_met_is_read_from_the_samples() -> None:
    """A quarter of the time there was a second process; a limit of power is what the program makes of its GPU."""
    met = of([gpu(processes=count, slowed=["power"]) for count in (1, 1, 1, 2)])
    assert met == Beside(others=0.25, slowed={})
    assert of([gpu(processes=2, slowed=["heat", "power"]), gpu(processes=2)], own=2) == Beside(
        others=0.0, slowed={"heat": 0.5}
    )
    assert of([gpu(processes=None)]).others is None
    assert of([gpu(processes=3)], own=0).others is None  # which of them are ours is not known
    assert of([gpu(processes=0)]).others == 0.0  # a container's driver may hide ours


class Machine:
    """Trials, of which some meet something; the changed program is twice as fast, and what they meet costs half."""

    def __init__(self, disturbed: set[int], beside: Beside = NEIGHBOUR) -> None:
        self.disturbed, self.beside, self.ran = disturbed, beside, 0

    def __call__(self, arm: Arm, *, jitter: float = 0.0) -> Trial:
        self.ran += 1
        is_alone = self.ran not in self.disturbed
        pace = (0.1 if arm.name == AS_IS else 0.05) * (1 if is_alone else 1.5) * (1 + 0.001 * (self.ran % 3))
        return trial(arm.name, ALONE if is_alone else self.beside, pace)


def conducted(machine: Machine, budget: float = 300.0) -> tuple[State, list[str]]:
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), Arm(name="b", command=[])], steps=18, pilot=trial())
    said: list[str] = []
    conduct.conduct(state, machine, lambda state: None, budget=budget, dice=random.Random(1), told=said.append)
    return state, said


def test_a_round_that_something_came_between_is_made_again() -> None:
    state, said = conducted(Machine({2, 13}))
    assert [len(round.trials) for round in state.disturbed] == [2, 2]
    assert len(state.rounds) == 5
    assert all(pair.b / pair.a == pytest.approx(0.5, rel=0.01) for pair in state.pairs(state.changed[0]))
    assert "round 1, again (another program computed on the GPU in a part of it)" in said
    assert state.seconds() == 10.0 * (1 + 2 * (len(state.disturbed) + len(state.rounds) + len(state.alike)))
    (outcome,) = verdict.outcomes(state, lambda arm: "")
    assert outcome.verdict == "faster"
    assert "2 rounds made again: another program computed on the GPU in a part of it" in table.reasons(outcome)


def test_the_program_against_itself_is_made_again_too() -> None:
    state, said = conducted(Machine({3}))  # after the first round
    assert "the program against itself, pair 1, again (another program computed on the GPU in a part of it)" in said
    assert len(state.alike) >= 2
    assert all(pair.log_ratio == pytest.approx(0, abs=0.01) for pair in state.noise_pairs())


def test_what_does_not_end_is_no_accident_and_counts() -> None:
    state, _ = conducted(Machine(set(range(2, 1000, 2)), HOT), budget=1000.0)
    assert len(state.disturbed) == disturbance.MOST
    assert len(state.pairs(state.changed[0])) >= 5
    (outcome,) = verdict.outcomes(state, lambda arm: "")
    assert any(line.startswith("3 rounds made again: the GPU's clock") for line in outcome.disturbed)
    assert any("counted all the same: the GPU's clock" in line for line in outcome.disturbed)


def test_a_failure_in_such_a_round_is_not_the_changes() -> None:
    """Another program may have taken the memory."""

    class Full(Machine):
        def __call__(self, arm: Arm, *, jitter: float = 0.0) -> Trial:
            done = super().__call__(arm, jitter=jitter)
            failed = arm.name == "b" and self.ran <= 2
            return msgspec.structs.replace(done, state="failed", reason="out of memory") if failed else done

    state, _ = conducted(Full({1}))
    assert state.failure(state.changed[0]) is None
    assert len(state.disturbed) == 1


def test_a_try_of_an_older_version_goes_on(tmp_path: Path) -> None:
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[])])
    old = msgspec.to_builtins(state)
    del old["disturbed"]
    assert msgspec.convert(old, State) == state
