"""`floorit tune`: what is tried next, what is kept, when it ends, and what is written down."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from conftest import FLOORIT, PYTHON, clean_environment

from floorit import cli, recipe
from floorit.analyse.job import START, Job, Share
from floorit.declared import Control
from floorit.errors import OutputError, RanOut, TrialError, UsageError
from floorit.fixes import asked
from floorit.fixes.fix import Fix
from floorit.fixes.values import SWITCH_ON, whole
from floorit.report import terminal
from floorit.stats import Estimate
from floorit.trial import attempt, guard, verdict
from floorit.trial.trial import Trial
from floorit.tune import candidates, patch, probing, search, sizes, table, tuning
from floorit.turning import Turned

COMMAND = ["train.py"]
RUN = 10.0  # seconds of one


def estimate(value: float) -> Estimate:
    return Estimate(value=value, low=value * 0.98, high=value * 1.02, n=5)


class World:
    """A program of which all is known: what each fix should gain, and what it does, given those that are in force."""

    def __init__(self) -> None:
        self.predicted: dict[str, float] = {}
        self.true: dict[str, Any] = {}  # a gain, or a function of the fixes in force
        self.risks: dict[str, str] = {}
        self.parity: dict[str, str] = {}
        self.stages: list[tuple[list[str], list[str]]] = []  # (on top of, tried)
        self.seen: dict[Path, set[str]] = {}
        self.order: list[str] = []  # in which fixes take effect, where that matters
        self.words: dict[str, str] = {}  # the verdict on a fix, where it is not that of its speed
        self.clash: set[str] = set()  # fixes that change results only together, on the program as it is
        self.values = iter(lambda: 2, None)  # of workers, each time that one is asked for
        self.interrupts_at = 0
        self.fails_at = 0
        self.budgets: list[float] = []
        self.saves: dict[str, Any] = {}  # the value of a fix that takes less memory
        self.peak: Any = lambda fixes: None  # bytes, of the fixes in force
        self.with_room: dict[str, float] = {}  # what a fix for which there is no room should gain if there were
        self.sizes: dict[str, Any] = {}  # (rate of a size, what it takes) by what is added; what was run
        self.sized: list[tuple[str, int]] = []
        self.limit = 0
        self.noise = 0.01

    def fixes(self) -> dict[str, Fix]:
        return {code: self._fix(code) for code in self.predicted}

    def _fix(self, code: str) -> Fix:
        def predict(known: Any) -> Estimate | str:
            gain = self.predicted[code]
            value = gain(known) if callable(gain) else gain
            return estimate(value) if value > 1 else "it would not help"

        return Fix(
            code=code,
            summary="",
            risk=self.risks.get(code, "exact"),  # type: ignore[arg-type]
            effort="a flag",
            addresses=(),
            predict=predict,
            predict_with_room=(lambda known: estimate(self.with_room[code])) if code in self.with_room else None,
            value=(lambda known: next(self.values)) if code == "workers" else self._off(code),
            saves=(lambda known: self.saves[code]) if code in self.saves else None,
            takes=whole(1, 64) if code == "workers" else SWITCH_ON,
        )

    def _off(self, code: str) -> Any:
        return (lambda known: False) if code in self.with_room else None

    def gain(self, code: str, on: set[str]) -> float:
        gain = self.true.get(code, 1.0)
        return gain(on) if callable(gain) else gain

    def attempt(self, terms, arms, folder, stream, choose=None, predicted=attempt.predict, settings=None):
        number = len(self.stages) + 1
        if self.fails_at == number:
            raise TrialError("the program as it is did not run well")
        on = set(arms[0].fixes)
        folder.mkdir(parents=True, exist_ok=True)
        self.budgets.append(terms.budget)
        self.seen[folder] = Seen(on)
        pilot = Trial(arm=arms[0].name, state="ran", seconds=RUN, samples=8.0)
        known = Seen(on)
        arms = [arms[0], *(choose(known, pilot) if choose is not None else arms[1:])]
        self.stages.append((sorted(on), [arm.name for arm in arms[1:]]))
        trials = 5 + 5 * len(arms)
        return attempt.Result(
            command=COMMAND,
            outcomes=[self.outcome(arm, on) for arm in arms[1:]],
            steps=20,
            trials=trials,
            seconds=trials * RUN,
            interrupted=self.interrupts_at == number,
            folder=str(folder),
        )

    def outcome(self, arm, on):
        gain, told = 1.0, set(on)
        for code in sorted(arm.fixes, key=self.order.index) if self.order else arm.fixes:
            if code not in told:
                gain *= self.gain(code, told)
                told.add(code)
        status = next((self.parity[code] for code in arm.fixes if code in self.parity), "same")
        if self.clash and not on and self.clash <= set(arm.fixes):
            status = "changed"
        word = next((self.words[code] for code in arm.fixes if code in self.words), None)
        word = word or self._speed(gain, status)
        return self._said(arm, word, gain, status)

    def _speed(self, gain, status):
        return "changed results" if status == "changed" else "faster" if gain > 1.02 else "not faster"

    def _said(self, arm, word, gain, status):
        return verdict.Outcome(
            name=arm.name,
            fixes=[verdict.Fixed(code=code, value=value) for code, value in arm.fixes.items()],
            command=COMMAND,
            risk=arm.risk,
            verdict=word,
            reason="as it is",
            speedup=estimate(gain),
            noise=self.noise,
            predicted=None,
            not_predicted=None,
            parity=guard.Parity(status=status, reason=status),
            pairs=[],
            memory=verdict.Memory(a=self.peak({}), b=self.peak(arm.fixes)),
            startup=verdict.Startup(a=None, b=None, b_first=None, pays_after=None),
        )


class Seen(set):
    """What is known of a run: the fixes in force in it. None of them is a setting of the program's own."""

    framework = None

    def controls_of(self, fix: Fix) -> list[Control]:
        return []

    def setting(self, name: str) -> Any:
        return 8 if name == "batch_size" else None


class Probed:
    """Stands for the processes that sizes are run in."""

    world: World

    def __init__(self, folder, terms, dress, stream, room):
        self._folder, self._dress = folder, dress

    def find(self, own, pilot, most, savers):
        limits = {"gpu": self.world.limit}
        seen: list[sizes.Size] = []
        while (size := sizes.next_size(own, seen, limits, most)) is not None:
            seen.append(self._run("", size))
        found = sizes.choose(own, seen, limits, most)
        beside = {}
        if found.by == "memory":
            for saver in savers:
                (label,) = asked.written(saver.changes)
                beside[label] = [self._run(label, 2 * max(s.size for s in seen if sizes.fits(s, limits)))]
        found = msgspec.structs.replace(found, beside=beside)
        saved = probing.Saved(limits=limits, found=found)
        (self._folder / probing.NAME).write_bytes(msgspec.json.encode(saved))
        return found

    def _run(self, label, size):
        self.world.sized.append((label, size))
        rate, peak = self.world.sizes[label]
        if peak(size) > self.world.limit:
            return sizes.Size(size=size, state="out of memory", reason="CUDA ran out of memory")
        return sizes.Size(size=size, state="ran", rate=rate(size), peaks={"gpu": peak(size)}, seconds=1.0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(search.attempt, "attempt", made.attempt)
    monkeypatch.setattr(search.attempt, "known_of", lambda folder: made.seen[folder])
    monkeypatch.setattr(asked, "APPLICABLE", _Live(made.fixes))
    monkeypatch.setattr(Probed, "world", made, raising=False)
    monkeypatch.setattr(search.probing, "Probe", Probed)
    finding = SimpleNamespace(code="input-bound")
    shares = [Share(what="training", share=0.9, seconds=90.0), Share(what=START, share=0.1, seconds=10.0)]
    job = Job(epochs=None, steps_per_epoch=10_000, steps=10_000, seconds=estimate(100.0), shares=shares, how="")
    made.run = SimpleNamespace(steady=True, stopped=True)
    made.report = SimpleNamespace(
        floor=SimpleNamespace(gap=1.5, takes_only_data=False), findings=[finding], job=job, run=made.run
    )
    monkeypatch.setattr(search.build, "build", lambda folder: made.report)
    monkeypatch.setattr(tuning, "_with_patch", lambda result, folder, search: result)  # there is no program here
    return made


class _Live(dict):
    """The fixes as the world has them when they are asked for."""

    def __init__(self, make):
        super().__init__()
        self._make = make

    def values(self):
        return self._make().values()

    def get(self, code):
        return self._make().get(code)


def tuned(folder: Path, budget: float = 3600.0, goal: candidates.Goal = "balanced", **more: Any) -> tuning.Result:
    terms = attempt.Terms(steps=None, budget=budget, in_place=False, quiet=True)
    own = {"command": COMMAND, "allowed": [], **more}
    return tuning.tune(tuning.Asked(goal=goal, terms=terms, **own), folder, io.StringIO())


def drawn(result: tuning.Result) -> str:
    stream = io.StringIO()
    terminal.draw(table.render(result), stream)
    return stream.getvalue()


def test_what_helps_is_kept_one_after_the_other_and_proven_together(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world.predicted = {"pin": 1.2, "workers": 2.0}
    world.true = {"pin": 1.1, "workers": 1.5}
    result = tuned(tmp_path)
    assert world.stages == [
        ([], ["workers=2", "pin=on"]),
        (["workers"], ["pin=on"]),
        (["pin", "workers"], []),
        ([], ["workers=2 pin=on", "pin=on"]),
    ]
    assert [fix.code for fix in result.stack] == ["workers", "pin"]
    assert result.is_proven
    assert result.proof.speedup.value == pytest.approx(1.5 * 1.1)
    assert result.stopped.startswith("nothing that can be applied")
    assert result.job == tuning.Job(before=100.0, after=pytest.approx(10 + 90 / 1.65))
    assert recipe.read(tmp_path / recipe.NAME).fixes == {"workers": 2, "pin": True}
    assert json.loads((tmp_path / tuning.NAME).read_text())["proof"]["verdict"] == "faster"
    assert "floorit run --with floorit.toml train.py" in drawn(result)


def test_where_all_of_it_fails_its_proof_what_was_proven_is_kept(world, tmp_path):
    """Together they change the results; each alone does not, and the one that was kept first is worth more."""
    world.predicted = {"pin": 1.2, "workers": 2.0}
    world.true = {"pin": 1.1, "workers": 1.5}
    world.clash = {"pin", "workers"}
    result = tuned(tmp_path)
    assert [fix.code for fix in result.stack] == ["workers"]
    assert result.is_proven
    assert result.proof.speedup.value == pytest.approx(1.5)
    assert recipe.read(tmp_path / recipe.NAME).fixes == {"workers": 2}


def test_how_much_of_the_way_to_its_floor_is_gone(world, tmp_path):
    """The untouched step is 1.5 times its floor, a third of it the way; 1.2 times as fast, a sixth is gone."""
    world.predicted, world.true = {"workers": 2.0}, {"workers": 1.2}
    result = tuned(tmp_path)
    assert result.closed.value == pytest.approx((1 / 6) / (1 / 3))
    assert result.closed.low < result.closed.value < result.closed.high
    assert "of the way from 1.50 times its floor down to it, 50% (" in drawn(result)


@pytest.mark.parametrize(("true", "gap"), [(1.0, 1.5), (1.2, 1.01), (1.2, None)])
def test_no_way_is_told_where_none_was_gone_or_there_was_none(world, tmp_path, true, gap):
    world.predicted, world.true = {"workers": 2.0}, {"workers": true}
    world.report.floor = SimpleNamespace(gap=gap, takes_only_data=False) if gap is not None else None
    result = tuned(tmp_path)
    assert result.closed is None
    assert "down to it" not in drawn(result)


def test_of_a_floor_without_data_the_wait_is_told(world, tmp_path):
    world.predicted, world.true = {"workers": 2.0}, {"workers": 1.2}
    world.report.floor.takes_only_data = True
    assert "of what waiting for data took, 50% (" in drawn(tuned(tmp_path))


def test_the_bottleneck_moves(world, tmp_path):
    """Behind what was kept, something helps that did not look so before."""
    world.predicted = {"workers": 2.0, "fused": lambda on: 1.3 if "workers" in on else 1.0}
    world.true = {"workers": 2.0, "fused": 1.25}
    assert [fix.code for fix in tuned(tmp_path).stack] == ["workers", "fused"]


def test_what_helps_no_more_is_not_kept(world, tmp_path):
    world.predicted = {"workers": 2.0, "decode-cache": 1.8}
    world.true = {"workers": 1.9, "decode-cache": lambda on: 1.0 if "workers" in on else 1.7}
    result = tuned(tmp_path)
    assert [fix.code for fix in result.stack] == ["workers"]
    assert len(world.stages) == 2  # the proof is the first stage
    assert result.proof is result.stages[0].outcomes[0]


def test_what_became_useless_is_taken_out_again(world, tmp_path):
    """Each was faster when it was tried; the first is none beside the second."""
    world.predicted = {"decode-cache": 1.8, "workers": lambda on: 1.5 if "decode-cache" in on else 1.0}
    world.true = {"decode-cache": lambda on: 1.0 if "workers" in on else 1.5, "workers": 1.8}
    world.order = ["workers", "decode-cache"]
    result = tuned(tmp_path)
    assert world.stages[-1] == ([], ["decode-cache=on workers=2", "workers=2"])
    assert [fix.code for fix in result.stack] == ["workers"]
    assert result.is_proven
    assert recipe.read(tmp_path / recipe.NAME).fixes == {"workers": 2}


def test_where_nothing_should_help_one_run_says_so(world, tmp_path):
    world.predicted = {"workers": 1.0}
    result = tuned(tmp_path)
    assert world.stages == [([], [])]
    assert result.proof is None
    assert not (tmp_path / recipe.NAME).exists()
    assert "nothing was proven faster" in drawn(result)


def test_what_did_not_help_is_not_tried_again(world, tmp_path):
    world.predicted = dict.fromkeys(("pin", "fused", "tf32", "set-to-none", "cudnn-benchmark"), 1.5)
    world.true = {"set-to-none": 1.1}
    tuned(tmp_path)
    tried = [name for _, names in world.stages[:-1] for name in names]
    assert sorted(tried) == sorted(set(tried))


@pytest.mark.parametrize("status", ["unverified", "changed"])
def test_results_that_are_not_known_to_be_the_same_are_not_kept(world, tmp_path, status):
    world.predicted, world.true, world.parity = {"fused": 2.0}, {"fused": 2.0}, {"fused": status}
    result = tuned(tmp_path)
    assert not result.stack
    assert result.proof is None


@pytest.mark.parametrize(
    ("goal", "allowed", "kept"),
    [
        ("balanced", [], ["fused"]),
        ("speed", [], ["fused", "workers"]),
        ("speed", ["training"], ["accumulate", "fused"]),
    ],
)
def test_the_goal_says_what_may_happen_to_results(world, tmp_path, goal, allowed, kept):
    world.predicted = {"fused": 1.2, "workers": 1.5, "accumulate": 9.0}
    world.risks = {"fused": "rounding", "workers": "order", "accumulate": "training"}
    world.true = {"fused": 1.2, "workers": lambda on: 1.0 if "accumulate" in on else 1.5, "accumulate": 3.0}
    world.sizes, world.limit = {"": (lambda size: 1.0, lambda size: 1)}, 10  # no other size is faster
    result = tuned(tmp_path, goal=goal, allowed=allowed)
    assert sorted(fix.code for fix in result.stack) == sorted(kept)


def test_of_two_that_should_gain_alike_the_safer_is_first(world):
    world.predicted = {"fused": 1.5, "pin": 1.49}
    world.risks = {"fused": "rounding"}
    found = candidates.find(Seen(), {}, (), ("exact", "rounding"), "balanced")
    assert [list(one.changes) for one in found] == [["pin"], ["fused"]]


def test_it_ends_with_the_budget_and_leaves_room_for_the_proof(world, tmp_path):
    world.predicted = dict.fromkeys(("pin", "fused", "tf32", "set-to-none"), 1.5)
    world.true = dict.fromkeys(world.predicted, 1.3)
    result = tuned(tmp_path, budget=60 * RUN)
    assert result.stopped.startswith("the budget has no room for another stage; with --budget ")
    assert 1 < len(result.stack) < 4
    assert result.is_proven
    assert len(world.stages[0][1]) == 4  # it was worth it: one that shows no gain takes two runs


def test_a_stage_that_is_over_is_not_gone_on_with(world, tmp_path):
    world.predicted = dict.fromkeys(("pin", "fused", "tf32", "set-to-none"), 1.5)
    world.true = dict.fromkeys(world.predicted, 1.3)
    first = tuned(tmp_path, budget=60 * RUN)
    world.stages, world.budgets = [], []
    more = tuned(tmp_path, budget=600 * RUN)
    assert world.budgets[: len(first.stages)] == [0.0] * len(first.stages)
    assert [stage.kept for stage in more.stages[: len(first.stages)]] == [stage.kept for stage in first.stages]
    assert len(more.stack) == 4


def test_what_was_unclear_for_want_of_time_is_gone_on_with(world, tmp_path):
    world.predicted, world.true, world.words = {"pin": 1.5}, {"pin": 1.3}, {"pin": "unclear"}
    result = tuned(tmp_path, budget=60 * RUN)
    assert "pin=on: unclear so far, a larger --budget" in result.stopped
    world.words, world.budgets = {}, []
    assert tuned(tmp_path, budget=600 * RUN).is_proven
    assert world.budgets[0] > 0


def test_what_another_stage_has_no_room_for_goes_to_what_is_unclear(world, tmp_path):
    world.predicted, world.true, world.words = {"pin": 1.5, "fused": 1.2}, {"pin": 1.3}, {"pin": "unclear"}
    result = tuned(tmp_path, budget=30 * RUN)
    assert world.budgets == [pytest.approx(30 * RUN * search.FIRST_SHARE), pytest.approx(30 * RUN)]
    assert [stage[1] for stage in world.stages] == [["pin=on", "fused=on"]] * 2
    assert len(result.stages) == 1
    assert result.seconds == pytest.approx(20 * RUN)  # it is the same runs, not twice as many
    assert "pin=on: unclear so far" in result.stopped


def test_what_is_lost_in_the_noise_is_not_tried(world, tmp_path):
    world.predicted, world.true = {"pin": 1.5, "fused": lambda on: 1.06 if "pin" in on else 1.0}, {"pin": 1.3}
    world.noise = 0.1
    tuned(tmp_path)
    assert all("fused=on" not in names for _, names in world.stages)
    world.stages, world.noise = [], 0.01
    tuned(tmp_path / "quiet")
    assert any("fused=on" in names for _, names in world.stages)


def test_with_little_time_one_change_is_tried_at_a_time(world, tmp_path):
    world.predicted = {"pin": 1.2, "workers": 2.0}
    tuned(tmp_path, budget=20 * RUN)
    assert world.stages[0][1] == ["workers=2"]


def test_interrupted_it_says_what_it_knows(world, tmp_path):
    world.predicted, world.true, world.interrupts_at = {"pin": 1.2}, {"pin": 1.2}, 1
    result = tuned(tmp_path)
    assert result.interrupted
    assert result.is_proven  # against the program untouched, before it was interrupted
    assert "goes on with it" in drawn(result).replace("\n", "")


def test_a_program_that_fails_with_what_was_kept_ends_it(world, tmp_path):
    world.predicted, world.true, world.fails_at = {"pin": 1.2}, {"pin": 1.2}, 2
    result = tuned(tmp_path)
    assert result.stopped.startswith("with what was kept, the program")
    assert result.is_proven
    world.stages, world.fails_at = [], 1
    with pytest.raises(TrialError):
        tuned(tmp_path / "other")


def test_a_proof_that_cannot_be_run_does_not_cost_what_was_found(world, tmp_path):
    world.predicted = {"pin": 1.2, "workers": 2.0}
    world.true, world.fails_at = {"pin": 1.1, "workers": 1.5}, 4
    result = tuned(tmp_path)
    assert [fix.code for fix in result.stack] == ["workers", "pin"]
    assert result.proof is None
    assert result.stopped.startswith("it could not be proven together: the program")
    assert "kept so far" in drawn(result)


def test_what_does_not_apply_is_not_tried_with_another_value(world, tmp_path):
    world.predicted = {"workers": 1.5, "pin": 1.2}
    world.true, world.words = {"pin": 1.2}, {"workers": "does not apply"}
    world.values = iter([2, 4, 8, 16])
    tuned(tmp_path)
    tried = [name.partition("=")[0] for _, names in world.stages for name in names]
    assert tried.count("workers") == 1


def test_a_folder_is_that_of_one_search(world, tmp_path):
    tuned(tmp_path)
    tuned(tmp_path)
    with pytest.raises(OutputError):
        tuned(tmp_path, command=["other.py"])


# -- what to do where it came to nothing ------------------------------------------------------------------------------


def test_what_would_be_kept_if_it_were_verified_is_named(world, tmp_path):
    world.predicted, world.true, world.parity = {"fused": 2.0}, {"fused": 2.0}, {"fused": "unverified"}
    (line, _) = tuned(tmp_path).advice
    assert line.startswith("fused=on was not kept: its results are unverified")
    assert "--fix fused=on" in line


def test_a_training_that_is_shorter_than_the_search_is_spoken_of(world, tmp_path):
    world.predicted = {"pin": 1.5}
    (line,) = tuned(tmp_path).advice
    assert line.startswith("the whole training takes 1 min 40 s, less than this search")


def test_steps_that_are_not_steady_are_spoken_of(world, tmp_path):
    world.report.job = None
    world.run.steady = False
    (line,) = tuned(tmp_path).advice
    assert "not steady" in line
    assert "--steps" in line


@pytest.mark.parametrize(("arg", "words"), [(None, "--fix batch=4 "), ("--bs {}", "type --bs 4 in the command")])
def test_out_of_memory_at_once_a_size_that_fits_is_looked_for(world, tmp_path, monkeypatch, arg, words):
    def ran_out(*_, **__):
        raise RanOut("the program as it is ran out of memory")

    monkeypatch.setattr(search.attempt, "attempt", ran_out)
    world.report.settings = [SimpleNamespace(name="batch_size", actual=16)]
    world.report.program, world.report.out_of_memory = SimpleNamespace(seconds=5.0), None
    world.sizes, world.limit = {"": (rising, lambda size: 10 * size)}, 45
    folder = tmp_path / "stage-1"
    folder.mkdir()
    result = tuned(tmp_path, goal="speed", allowed=["training"], batch_arg=arg)
    assert result.stages[0].sizes.chosen == 4
    assert not result.is_proven
    assert "it runs out of memory as it is; batches of 4 fit" in drawn(result)
    assert words in result.advice[0]
    with pytest.raises(RanOut, match="what to do"):
        tuned(tmp_path / "other")


# -- memory -----------------------------------------------------------------------------------------------------------


def less(**shares: float) -> Any:
    """A peak of 1000, of which each fix in force leaves a share."""

    def peak(fixes: dict[str, Any]) -> int:
        left = 1000.0
        for code in fixes:
            left *= shares.get(code.replace("-", "_"), 1.0)
        return round(left)

    return peak


def test_the_smallest_peak_that_is_fast_enough_is_kept(world, tmp_path):
    """Recomputing saves most, and costs more than may be."""
    world.predicted = dict.fromkeys(("recompute", "amp", "set-to-none", "pin"), 1.0)
    world.saves = {"recompute": True, "amp": "bf16", "set-to-none": True}
    world.true = {"recompute": 0.8, "amp": 1.0, "set-to-none": 0.99}
    world.peak = less(recompute=0.4, amp=0.6, set_to_none=0.9, pin=0.1)
    result = tuned(tmp_path, goal="memory")
    assert world.stages[0] == ([], ["recompute=on", "amp=bf16", "set-to-none=on"])
    assert [fix.code for fix in result.stack] == ["amp", "set-to-none"]
    assert result.is_proven
    assert result.proof.memory.both == (1000, 540)
    words = [table.verdict(result, result.stages[0], outcome) for outcome in result.stages[0].outcomes]
    assert words == ["less memory, too slow", "less memory, kept", "less memory"]
    assert "540 B of memory instead of 1,000 B" in drawn(result)
    assert 'amp = "bf16"' in (tmp_path / recipe.NAME).read_text()


@pytest.mark.parametrize(("speed", "kept"), [(0.98, True), (0.96, False), (0.90, False)])
def test_what_may_be_slower_than_95_per_cent_is_not_kept(world, tmp_path, speed, kept):
    """The whole interval counts, which here reaches from 98 to 102 % of the speed."""
    world.predicted, world.saves, world.true = {"recompute": 1.0}, {"recompute": True}, {"recompute": speed}
    world.peak = less(recompute=0.4)
    result = tuned(tmp_path, goal="memory")
    assert bool(result.stack) is kept
    assert result.is_proven is kept


def test_what_is_too_slow_is_tried_with_what_makes_up_for_it(world, tmp_path):
    world.predicted, world.saves = {"recompute": 1.0, "pin": 1.4}, {"recompute": True}
    world.true, world.peak = {"recompute": 0.8, "pin": 1.3}, less(recompute=0.4)
    result = tuned(tmp_path, goal="memory")
    assert world.stages[:2] == [([], ["recompute=on"]), ([], ["recompute=on pin=on"])]
    assert {fix.code for fix in result.stack} == {"recompute", "pin"}
    assert result.is_proven


def test_small_losses_of_speed_add_up(world, tmp_path):
    """Each by itself would be fast enough, both together are not."""
    world.predicted, world.saves = {"recompute": 1.0, "amp": 1.0}, {"recompute": True, "amp": "bf16"}
    world.true = {"recompute": 0.975, "amp": 0.975}
    world.peak = less(recompute=0.4, amp=0.6)
    assert [fix.code for fix in tuned(tmp_path, goal="memory").stack] == ["recompute"]


def test_what_saves_nothing_or_spoils_results_is_not_kept(world, tmp_path):
    world.predicted = dict.fromkeys(("recompute", "amp", "set-to-none"), 1.0)
    world.saves = {"recompute": True, "amp": "bf16", "set-to-none": True}
    world.peak = less(recompute=0.99, amp=0.5, set_to_none=0.5)
    world.parity = {"amp": "changed", "set-to-none": "unverified"}
    result = tuned(tmp_path, goal="memory")
    assert not result.stack
    assert "nothing was proven to take less memory" in drawn(result)


# -- the size of batches ----------------------------------------------------------------------------------------------


def rising(size: int) -> float:
    return size / (1 + 0.02 * size)


def test_a_size_is_looked_for_once_other_fixes_are_through_and_proven(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world.predicted, world.true = {"workers": 2.0, "batch": 1.0}, {"workers": 1.5, "batch": 2.0}
    world.risks = {"batch": "training"}
    world.sizes, world.limit = {"": (lambda size: min(size, 32), lambda size: 10 * size)}, 10_000
    result = tuned(tmp_path, goal="speed", allowed=["training"])
    assert world.stages[:2] == [([], ["workers=2"]), (["workers"], ["batch=32"])]
    assert world.sized == [("", 8), ("", 16), ("", 32), ("", 64), ("", 128)]
    assert {fix.code: fix.value for fix in result.stack} == {"workers": 2, "batch": 32}
    assert result.stages[1].sizes.by == "knee"
    assert "batches of 32" in drawn(result)


def test_without_leave_no_size_is_looked_for(world, tmp_path):
    world.predicted = {"workers": 1.0}
    tuned(tmp_path, goal="speed")
    assert world.sized == []


def test_a_size_can_be_the_programs_own_argument(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world.predicted, world.true = {"pin": 1.5, "batch": 1.0}, {"pin": 1.2}
    seen = []
    own = world._speed
    monkeypatch.setattr(
        world, "_speed", lambda gain, status: "faster" if seen and "64" in seen[-1] else own(gain, status)
    )
    outcome = world.outcome

    def watched(arm, on):
        seen.append(arm.command)
        return msgspec.structs.replace(outcome(arm, on), command=arm.command)

    monkeypatch.setattr(world, "outcome", watched)
    world.sizes, world.limit = {"": (rising, lambda size: 10 * size)}, 700
    command = ["train.py", "--bs", "8", "--epochs", "64"]
    own_words = {"command": command, "allowed": ["training"], "batch_arg": "--bs {}"}
    result = tuned(tmp_path, goal="speed", **own_words)
    assert ["train.py", "--bs", "64", "--epochs", "64"] in seen
    assert {fix.code: fix.value for fix in result.stack} == {"pin": True, "batch": 64}
    assert recipe.read(tmp_path / recipe.NAME).fixes == {"pin": True}
    assert "train.py --bs 64 --epochs 64" in drawn(result).replace("\n", " ")


def test_what_makes_room_is_tried_with_what_needs_it(world, tmp_path):
    """Memory ends at 32; with half the state there is room for 64, which is faster still."""
    world.predicted = dict.fromkeys(("batch", "optimizer-8bit"), 1.0)
    world.risks = dict.fromkeys(world.predicted, "training")
    world.saves = {"optimizer-8bit": True}
    world.sizes = {"": (rising, lambda size: 20 * size), "optimizer-8bit=on": (rising, lambda size: 10 * size)}
    world.limit, world.true = 660, {"batch": 1.6, "optimizer-8bit": lambda on: 1.2 if "batch" in on else 1.0}
    world.order = ["batch", "optimizer-8bit"]
    result = tuned(tmp_path, goal="speed", allowed=["training"])
    assert world.stages[0][1] == ["optimizer-8bit=on batch=64", "batch=32"]
    assert {fix.code: fix.value for fix in result.stack} == {"optimizer-8bit": True, "batch": 64}


def test_what_only_lacks_room_is_predicted_with_what_makes_it(world, tmp_path):
    world.predicted = {"recompute": 1.0, "optimizer-8bit": 1.0}
    world.risks = {"optimizer-8bit": "training"}
    world.saves, world.with_room = {"optimizer-8bit": True}, {"recompute": 1.4}
    world.true = {"recompute": lambda on: 1.4 if "optimizer-8bit" in on else 1.0}
    world.order = ["optimizer-8bit", "recompute"]
    world.sizes, world.limit = {"": (lambda size: 1.0, lambda size: 1)}, 10
    result = tuned(tmp_path, goal="speed", allowed=["training"])
    assert world.stages[0][1] == ["optimizer-8bit=on recompute=off"]
    assert result.is_proven
    assert len(result.stack) == 2


# -- floorit.toml -----------------------------------------------------------------------------------------------------


def test_a_recipe_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = ["eval-every=4", "log-every=4", "from-batch=on"]
    fixes = asked.parse(["workers=2", "amp=bf16", "anomaly=off", "batch=x2", *own])
    typed = Control(name="eval_every", value=2, file="", line=0, option="--eval-every")
    inside = Control(name="data.held", value=False, file=str(tmp_path / "c.yaml"), line=3)
    outside = Control(name="", value=5, file="/elsewhere/train.py", line=12)
    written = recipe.Recipe(
        fixes=fixes,
        settings=[
            Turned(code="eval-every", control=typed, value=8),
            Turned(code="from-batch", control=inside, value=True),
            Turned(code="log-every", control=outside, value=20),
        ],
    )
    recipe.write(tmp_path / "floorit.toml", written, ["faster\nby much"])
    assert 'file = "c.yaml"' in (tmp_path / "floorit.toml").read_text()  # a project is moved, and is on another machine
    assert recipe.read(tmp_path / "floorit.toml") == written
    assert {*written.applied} == {"workers", "amp", "anomaly", "batch"}


def test_what_is_typed_besides_outdoes_a_setting_of_a_recipe():
    own = Turned(code="eval-every", control=Control(name="n", value=2, file="f", line=1), value=8)
    found = recipe.Recipe(fixes={"eval-every": 4, "pin": True}, settings=[own]).but({"eval-every": 2})
    assert found == recipe.Recipe(fixes={"eval-every": 2, "pin": True})


@pytest.mark.parametrize(
    "text",
    [
        "[fixes]\nwokers = 2",
        "workers = 2",
        "[fixes",
        "[fixes]\nworkers = 'many'",
        "[fixes]\n[settings]\nname = 'x'",
        "[fixes]\n[[settings]]\nname = 'x'",
        "[fixes]\nworkers = 2\n[[settings]]\nfix = 'eval-every'\nwas = 1\nvalue = 2",
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(tmp_path, text):
    (tmp_path / "f.toml").write_text(text)
    with pytest.raises(UsageError):
        recipe.read(tmp_path / "f.toml")


def test_a_missing_recipe_is_said(capsys):
    assert cli.main(["run", "--with", "/nowhere/f.toml", sys.executable, "-c", "0"]) == 2
    assert "/nowhere/f.toml cannot be read" in capsys.readouterr().err


SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = nn.Linear(64, 1)
optimizer = torch.optim.AdamW(model.parameters())
for x, in DataLoader(TensorDataset(torch.randn(640, 64)), batch_size=16):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_run_with_a_recipe_has_its_fixes(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "floorit.toml").write_text("[fixes]\nfused = true\npin = false\n")
    own = ["--quiet", "--with", "floorit.toml", "--fix", "pin=on", "--out", "out"]
    command = [FLOORIT, "run", *own, PYTHON, "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, env=clean_environment())
    overrides = {o["code"]: o for o in json.loads((tmp_path / "out" / "report.json").read_text())["overrides"]}
    assert overrides["fused"]["state"] == "in force"
    assert overrides["pin"]["value"] is True


@pytest.mark.parametrize(
    "words",
    [
        ["tune"],
        ["tune", "--allow", "training", "train.py"],
        ["tune", "--batch-arg", "--bs {}", "train.py"],
        ["tune", "--goal", "speed", "--allow", "training", "--batch-arg", "--bs", "train.py"],
    ],
)
def test_words_that_make_no_sense_are_refused(words, capsys):
    assert cli.main(words) == 2


# -- floorit.patch ----------------------------------------------------------------------------------------------------

LOADED = """
import argparse
import torch
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--num-workers", "-j", type=int, default=0, help="of the loader")
args = parser.parse_args()
torch.autograd.set_detect_anomaly(True)
torch.backends.cudnn.benchmark = False
plain = DataLoader(data, 16, shuffle=True)  # line 11
literal = DataLoader(
    data,
    batch_size=16,
    num_workers=0,
)
given = DataLoader(data, num_workers=args.num_workers)
positional = DataLoader(data, 16, True, None, None, 4)
hidden = DataLoader(data, **options)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
"""


def changed(folder, stack, line=11, text=LOADED, command=("train.py",), more=()):
    """The lines that a patch takes away and adds, and what is left to do by hand."""
    path = folder / "train.py"
    path.write_text(text)
    place = SimpleNamespace(file=str(path), line=line)
    usual = {"declared": None, "declared_at": None, "actual": None, "set_at": place}
    settings = [SimpleNamespace(**{**usual, "name": "num_workers"}), *(SimpleNamespace(**usual | s) for s in more)]
    report = SimpleNamespace(program=SimpleNamespace(command=list(command)), settings=settings, findings=[])
    made = patch.make(asked.parse(stack), report, [str(path)])
    lines = [line for line in made.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [line.replace(" ", "") for line in lines], [told.words for told in made.told if told.words]


@pytest.mark.parametrize(
    ("stack", "line", "added"),
    [
        (["workers=4"], 11, "+plain=DataLoader(data,16,shuffle=True,num_workers=4)#line11"),
        (["workers=4"], 12, "+num_workers=4,"),
        (["workers=4"], 17, '+parser.add_argument("--num-workers","-j",type=int,default=4,help="oftheloader")'),
        (["workers=2"], 18, "+positional=DataLoader(data,16,True,None,None,2)"),
        (["pin=on"], 11, "+plain=DataLoader(data,16,shuffle=True,pin_memory=True)#line11"),
        (["fused=on"], 11, "+optimizer=torch.optim.AdamW(model.parameters(),lr=1e-3,fused=True)"),
        (["cudnn-benchmark=on"], 11, "+torch.backends.cudnn.benchmark=True"),
    ],
)
def test_a_fix_is_patched_where_the_program_says_it(tmp_path, stack, line, added):
    lines, by_hand = changed(tmp_path, stack, line)
    assert [line for line in lines if line.startswith("+")] == [added]
    assert not by_hand


def test_what_is_only_taken_out_is_taken_out(tmp_path):
    assert changed(tmp_path, ["anomaly=off"]) == (["-torch.autograd.set_detect_anomaly(True)"], [])


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("checkpoint(layer, x, use_reentrant=False)", "layer(x)"),
        ("checkpoint(self.part, *parts, preserve_rng_state=False, mask=mask)", "self.part(*parts,mask=mask)"),
        ("checkpoint(lambda y: layer(y) + y, x)", "(lambday:layer(y)+y)(x)"),
    ],
)
def test_what_is_recomputed_is_called_as_it_is(tmp_path, call, instead):
    text = f"from torch.utils.checkpoint import checkpoint\nx = {call}  # again\n"
    lines, by_hand = changed(tmp_path, ["recompute=off"], text=text)
    assert lines[1:] == [f"+x={instead}#again"]
    assert not by_hand


def test_what_cannot_be_patched_is_said_at_the_line_of_its_cost(tmp_path):
    text = "from torch.utils.checkpoint import checkpoint\nx = checkpoint(a, x)\ny = checkpoint(b, y)\n"
    where = [SimpleNamespace(file="model.py", line=3)]
    finding = SimpleNamespace(fixes=[SimpleNamespace(code="recompute")], where=where)
    (tmp_path / "train.py").write_text(text)
    report = SimpleNamespace(program=SimpleNamespace(command=["train.py"]), settings=[], findings=[finding])
    made = patch.make({"recompute": False}, report, [str(tmp_path / "train.py")])
    assert not made.diff
    assert (made.told[0].file, made.told[0].line) == ("model.py", 3)


@pytest.mark.parametrize(
    ("stack", "line", "command", "words"),
    [
        (["workers=4"], 19, ["train.py"], "give the DataLoader num_workers=4"),
        (["workers=4"], 17, ["train.py", "--num-workers", "1"], "type --num-workers 4 in the command"),
        (["workers=4"], 17, ["train.py", "--num-workers=1"], "type --num-workers 4 in the command"),
        (["workers=4"], 17, ["train.py", "-j", "1"], "type --num-workers 4 in the command"),
        (["workers=4"], 17, ["train.py", "-j1"], "type --num-workers 4 in the command"),
        (["amp=bf16"], 11, ["train.py"], "docs/fixes.md"),
    ],
)
def test_what_cannot_be_patched_is_said(tmp_path, stack, line, command, words):
    lines, (by_hand,) = changed(tmp_path, stack, line, command=command)
    assert not lines
    assert words in by_hand


def test_a_default_that_the_program_divides_among_its_ranks_is_left_alone(tmp_path):
    text = LOADED.replace("default=0", "default=8")
    more = [{"name": "num_workers", "actual": 4}]
    lines, by_hand = changed(tmp_path, ["workers=6"], 17, text, more=more)
    assert not lines
    assert by_hand == ["give the DataLoader num_workers=6"]


@pytest.mark.parametrize(
    ("stack", "twice"),
    [
        ("cudnn-benchmark=on", "torch.backends.cudnn.benchmark = None\n"),
        ("anomaly=off", "torch.autograd.set_detect_anomaly(True)\n"),
    ],
)
def test_of_two_places_that_say_it_none_is_guessed(tmp_path, stack, twice):
    lines, (by_hand,) = changed(tmp_path, [stack], text=LOADED + twice)
    assert not lines
    assert by_hand.startswith(("put torch.backends.cudnn.benchmark = True", "take torch.autograd"))


def test_a_switch_that_says_so_already_is_no_place_to_change(tmp_path):
    text = LOADED.replace("cudnn.benchmark = False", "cudnn.benchmark = True")
    lines, (by_hand,) = changed(tmp_path, ["cudnn-benchmark=on"], text=text)
    assert not lines
    assert by_hand.startswith("put torch.backends")


def test_a_form_feed_is_within_its_line(tmp_path):
    lines, by_hand = changed(tmp_path, ["workers=4"], 12, LOADED.replace("\nparser =", "\n\f\nparser =", 1))
    assert [line for line in lines if line.startswith("+")] == [
        "+plain=DataLoader(data,16,shuffle=True,num_workers=4)#line11"
    ]
    assert not by_hand


CONFIGURED = """
import torch
from torch.utils.data import DataLoader
cfg = load("c.yaml")
torch.backends.cudnn.benchmark = cfg["cudnn_benchmark"]
loader = DataLoader(data, cfg["batch"], num_workers=cfg["workers"], pin_memory=cfg.pin)
"""
CONFIG = """# of the loader
train: {workers: 8,  batch: 16}   # both
cudnn_benchmark: no
"""


def declared(name, value, at):
    return {"name": name, "declared": value, "actual": value, "declared_at": at}


def test_a_fix_is_patched_where_a_configuration_file_says_it(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    more = [
        declared("num_workers", 8, f"{path}:2"),
        declared("batch_size", 16, f"{path}:2"),
        declared("cudnn.benchmark", False, f"{path}:3"),
    ]
    stack = ["workers=2", "batch=x4", "cudnn-benchmark=on"]
    lines, by_hand = changed(tmp_path, stack, 6, CONFIGURED, more=more)
    assert not [words for words in by_hand if "learning rate" not in words]
    added = [line for line in lines if line.startswith("+")]
    assert added == ["+train:{workers:2,batch:64}#both", "+cudnn_benchmark:yes"]


def test_a_word_of_the_command_that_decides_it_is_named(tmp_path):
    more = [declared("num_workers", 8, "data.workers on the command line")]
    _, by_hand = changed(tmp_path, ["workers=2"], 6, CONFIGURED, more=more)
    assert by_hand == ["type data.workers=2 in the command"]


def test_a_file_that_is_not_what_is_in_force_is_left_alone(tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG)
    more = [{**declared("num_workers", 8, f"{tmp_path}/c.yaml:2"), "actual": 1}]
    lines, by_hand = changed(tmp_path, ["workers=2"], 6, CONFIGURED, more=more)
    assert not lines
    assert by_hand == ["give the DataLoader num_workers=2"]


def test_with_another_size_of_batches_the_learning_rate_is_spoken_of(tmp_path):
    more = [{"name": "batch_size", "actual": 16}, {"name": "optimizer", "actual": "SGD"}]
    lines, (words,) = changed(tmp_path, ["batch=64"], 12, more=more)
    assert "+batch_size=64," in lines
    assert "4 times" in words


RANKS = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(torch.nn.Linear(2, 1), bucket_cap_mb=100)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in data:
    optimizer.zero_grad(set_to_none=False)
"""


@pytest.mark.parametrize(
    ("stack", "added"),
    [
        (["bucket-mb=50"], ["+model=DDP(torch.nn.Linear(2,1),bucket_cap_mb=50)"]),
        (["bucket-view=on"], ["+model=DDP(torch.nn.Linear(2,1),bucket_cap_mb=100,gradient_as_bucket_view=True)"]),
        (["static-graph=on"], ["+model=DDP(torch.nn.Linear(2,1),bucket_cap_mb=100,static_graph=True)"]),
        (["set-to-none=on"], ["+optimizer.zero_grad(set_to_none=True)"]),
    ],
)
def test_what_one_call_says_is_patched_there(tmp_path, stack, added):
    lines, by_hand = changed(tmp_path, stack, text=RANKS)
    assert [line for line in lines if line.startswith("+")] == added
    assert by_hand == []


def test_of_several_calls_the_first_is_named(tmp_path):
    twice = RANKS + "other = DDP(model)\n"
    path = tmp_path / "train.py"
    path.write_text(twice)
    report = SimpleNamespace(program=SimpleNamespace(command=["train.py"]), settings=[], findings=[])
    made = patch.make(asked.parse(["static-graph=on"]), report, [str(path)])
    (told,) = made.told
    assert (made.diff, told.words) == ("", "give DistributedDataParallel static_graph=True")
    assert (told.file, told.line) == (str(path), 4)


def test_a_patch_is_taken_by_git(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "src").mkdir()
    path = tmp_path / "src" / "train.py"
    path.write_text(LOADED)
    place = SimpleNamespace(file=str(path), line=11)
    settings = [SimpleNamespace(name="num_workers", set_at=place, declared=None, declared_at=None)]
    report = SimpleNamespace(program=SimpleNamespace(command=["train.py"]), settings=settings, findings=[])
    made = patch.make(asked.parse(["workers=4", "anomaly=off", "fused=on"]), report, [])
    (tmp_path / "floorit.patch").write_text(made.diff)
    subprocess.run(["git", "apply", "floorit.patch"], cwd=tmp_path, check=True)
    assert "num_workers=4" in path.read_text()
    assert "anomaly" not in path.read_text()


# -- a real one -------------------------------------------------------------------------------------------------------

WATCHED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(60)))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
data = TensorDataset(torch.randn(4000, 16))
for epoch in range(20):
    for x, in DataLoader(data, batch_size=8):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.acceptance
def test_a_search_finds_what_costs_most_and_the_patch_does_it(tmp_path):
    """Anomaly detection on a model of many small parts: over half of the step."""
    (tmp_path / "train.py").write_text(WATCHED)
    command = [FLOORIT, "tune", "--quiet", "--steps", "150", "--budget", "6m", "--out", "out", PYTHON, "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, env=clean_environment())
    result = json.loads((tmp_path / "out" / tuning.NAME).read_text())
    assert {"code": "anomaly", "value": False} in result["stack"], result
    assert result["proof"]["verdict"] == "faster"
    assert result["proof"]["speedup"]["value"] > 1.3
    assert "-torch.autograd.set_detect_anomaly(True)" in (tmp_path / "out" / "floorit.patch").read_text()
    assert "anomaly = false" in (tmp_path / "out" / recipe.NAME).read_text()
