"""Findings: what counts towards each, and what is said of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from simulation import Program, workers
from test_callers import look

from floorit import replay
from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Entry, Ledger, lines
from floorit.analyse.needs import Loader, Needs, Range
from floorit.analyse.needs import find as find_needs
from floorit.diagnose import Facts, Finding, costs, debugging
from floorit.diagnose import input as waiting
from floorit.events import Place, Sample
from floorit.stats import Estimate

LOOKS = 100  # in the runs below: each stands for a hundredth of the step


def needs(entries: list[Entry], gpu: Gpu | None = None) -> Needs:
    """Of a step of one second without a loader."""
    return find_needs(
        ledger=entries,
        step=1.0,
        median=Estimate(value=1.0, low=1.0, high=1.0, n=LOOKS),
        steps=LOOKS,
        batch=None,
        workers=None,
        gpu=gpu,
        cores=None,
        threads=None,
        epochs=1,
        evals=0,
    )


def facts(looks: dict[str, list[Sample]], **more: Any) -> Facts:
    """A step of one second, each phase as long as its share of the looks; what has none is the forward pass."""
    rest = LOOKS - sum(map(len, looks.values()))
    looks = {**looks, "forward": [*looks.get("forward", []), *[look("net.py:5", "train.py:20")] * rest]}
    entries = [
        Entry(phase=phase, seconds=len(s) / LOOKS, share=len(s) / LOOKS, gpu_seconds=None, where=lines(s))
        for phase, s in looks.items()
    ]
    given = {"process": None, "iterations": None, "workers": None, **more}
    return Facts(ledger=Ledger(mean=1.0, entries=entries, looks=looks), needs=needs(entries), **given)


def costs_named(code: str, of: Facts) -> list[Finding]:
    return [finding for finding in costs.find(of) if finding.code == code]


# -- logging, and other costs with code of their own around them ---------------------------------------------------

WRITES = look("plot.py:9@plot", "train.py:30@train")
DRAWS = look("plot.py:4@plot", "train.py:30@train")
DRAWS_DEEPER = look("boxes.py:2@boxes", "plot.py:5@plot", "train.py:30@train")
TRAINS = look("net.py:5@forward", "train.py:20@train")


def test_what_is_drawn_before_it_is_written_counts_as_logging() -> None:
    others = [DRAWS] * 5 + [DRAWS_DEEPER] * 2 + [look("train.py:31@train")] * 4
    [found] = costs_named("logging-bound", facts({"logging": [WRITES] * 6, "other": others, "backward": [TRAINS]}))
    assert found.share == pytest.approx(0.13)
    assert found.bound == pytest.approx(1 / 0.87)
    assert found.evidence[0].startswith("60 ms of a step")
    assert found.evidence[1].startswith("and 70 ms")
    assert {(line.file, line.line) for line in found.where} == {("plot.py", 9), ("plot.py", 4), ("boxes.py", 2)}


def test_of_the_loops_own_code_it_is_said_which_part_a_framework_has() -> None:
    installed = Place("/env/lib/site-packages/framework/loop.py", 9, "run", "library")
    there = Sample(0.0, 0, 1, installed, installed, stack=(installed,))
    [found] = costs_named("python-bound", facts({"other": [there] * 15 + [look("train.py:31@train")] * 15}))
    assert found.evidence[1] == "50% of it is in framework, not in files of the program"
    [found] = costs_named("python-bound", facts({"other": [look("train.py:31@train")] * 30}))
    assert len(found.evidence) == 1


def test_what_a_model_computes_without_a_loader_may_be_what_it_is_trained_on() -> None:
    """Rollouts of reinforcement learning look as an evaluation by hand does."""
    [found] = costs_named("eval-bound", facts({"eval": [look("policy.py:5@act", "train.py:8@collect")] * 30}))
    assert "evaluation" not in found.title
    assert "trained on" in found.evidence[1]
    by_hand = look("net.py:5@forward", "train.py:8@estimate_loss", "train.py:60@<module>")
    [found] = costs_named("eval-bound", facts({"eval": [by_hand] * 30}))
    assert found.title == "evaluation takes part of the time"  # less than most of it


def test_a_loop_that_prints_is_not_taken_for_logging() -> None:
    prints = look("train.py:29@train")
    [found] = costs_named(
        "logging-bound",
        facts({"logging": [prints] * 20, "other": [look("train.py:31@train")] * 20, "optimizer": [TRAINS]}),
    )
    assert found.share == pytest.approx(0.20)
    assert len(found.evidence) == 1


def test_a_function_that_computes_much_and_writes_little_is_not_taken_for_logging() -> None:
    computes = facts({"logging": [WRITES] * 5, "other": [DRAWS] * 20, "backward": [TRAINS]})
    assert not costs_named("logging-bound", computes)


def test_nothing_logged_is_not_named() -> None:
    assert not costs_named("logging-bound", facts({"other": [DRAWS] * 50}))


SAVES = look("save.py:8@save", "train.py:40@train")
MOVES = look("save.py:9@save", "train.py:40@train")


def test_what_a_function_that_saves_does_beside_counts_as_checkpoint() -> None:
    """Such as moving the file to where the last one was; that it prints a line does not matter."""
    prints = look("save.py:10@save", "train.py:40@train")
    looks = {"checkpoint": [SAVES] * 20, "other": [MOVES] * 10 + [look("train.py:31@train")] * 10, "logging": [prints]}
    [found] = costs_named("checkpoint-bound", facts({**looks, "backward": [TRAINS]}))
    assert found.share == pytest.approx(0.30)
    assert found.bound == pytest.approx(1 / 0.70)
    assert found.evidence[1].startswith("and 100 ms in the functions that save")
    assert [(line.file, line.line) for line in found.where] == [("train.py", 40), ("save.py", 8), ("save.py", 9)]


def test_a_function_that_evaluates_and_saves_is_not_there_to_save() -> None:
    evaluates = look("net.py:5@forward", "save.py:4@save", "train.py:40@train")
    looks = {"checkpoint": [SAVES] * 20, "other": [MOVES] * 10, "eval": [evaluates], "backward": [TRAINS]}
    [found] = costs_named("checkpoint-bound", facts(looks))
    assert found.share == pytest.approx(0.20)


# -- waiting for data ---------------------------------------------------------------------------------------------


def waits(**loader: Any) -> Finding:
    """Three tenths of the step, with two workers that may be two batches ahead each."""
    made = msgspec.structs.replace(workers(Program(host={}, workers=2), 1.0), where=lines([WRITES]), **loader)
    [found] = waiting.find(facts({"data_wait": [look("train.py:30")] * 30}, workers=made))
    return found


def test_workers_that_are_behind_cannot_keep_up() -> None:
    found = waits(queue_mean=0.4)
    assert "cannot keep up" in found.evidence[0]
    assert found.where[0].file == "plot.py"


def test_where_the_next_batch_always_waits_it_is_the_taking_over_that_takes_time() -> None:
    found = waits(queue_mean=3.9)
    assert "3.9 of at most 4" in found.evidence[0]
    assert "cannot keep up" not in found.evidence[0]
    assert found.where[0].file == "train.py"


def test_gaps_between_epochs_are_no_wait_for_data() -> None:
    """Without its data path a step was as much shorter as its gaps are long: nothing was waited for in it."""
    of = facts({"epoch_gap": [look("train.py:30")] * 20}, without_data=0.8)
    assert waiting.find(of) == []
    [found] = waiting.find(msgspec.structs.replace(of, without_data=0.5))
    assert found.bound == pytest.approx(2.0)


@pytest.mark.parametrize(("uploads", "copies"), [(0.3, 0.3), (0.0, 0.3)])
def test_only_copies_from_the_host_are_copies_to_the_gpu(uploads: float, copies: float) -> None:
    """The shares are of the watched step, which is two seconds."""
    gpu = Gpu(busy_share=0.4, step_seconds=2.0, copies_alone_share=copies, uploads_alone_share=uploads)
    entries = [Entry(phase="forward", seconds=1.0, share=1.0, gpu_seconds=1.0, where=[])]
    assert needs(entries, gpu).copies_alone == pytest.approx(uploads * 2.0)


# -- switches left on ---------------------------------------------------------------------------------------------


def with_switch(
    name: str, looks: dict[str, list[Sample]], traces: list[tuple[float, float]], value: str | None = None
) -> Facts:
    """After ten seconds of warm-up; stack traces as (when they were noted, seconds since the last note)."""
    process = SimpleNamespace(
        rows={"flags": np.array([0, replay.ANOMALY]), "end": np.array([10.0, 20.0])},
        starts=lambda: np.array([0.0, 10.0]),
        switches=[{"name": name, "value": value, "file": "train.py", "line": 3, "function": "f"}],
        traces=[{"at": at, "seconds": seconds} for at, seconds in traces],
    )
    return facts(looks, process=process, iterations=SimpleNamespace(of_row=np.array([0, 1]), warmup=1))


def test_of_anomaly_detection_a_part_is_timed_and_nothing_bounds_the_rest() -> None:
    traces = [(9.0, 8.0), (11.0, 0.9), (15.0, 0.4), (16.0, 0.1)]
    [found] = debugging.find(with_switch("detect_anomaly", {"backward": [TRAINS] * 30}, traces))
    assert found.share == pytest.approx(0.1)
    assert found.share_is_least
    assert found.bound is None
    assert "without them about 1.11x as fast" in found.evidence[0]


def test_traces_that_are_noted_when_the_program_ends_count_up_to_the_last_step() -> None:
    traces = [(15.0, 3.0), (20.5, 0.5), (21.0, 9.0)]
    [found] = debugging.find(with_switch("detect_anomaly", {"backward": [TRAINS] * 30}, traces))
    assert found.share == pytest.approx(0.1)


def on_gpu(of: Facts) -> Facts:
    needs = msgspec.structs.replace(of.needs, gpu=Range(0.5, 0.5, 0.5))
    return msgspec.structs.replace(of, needs=needs)


@pytest.mark.parametrize("name", ["CUDA_LAUNCH_BLOCKING", "detect_anomaly"])
def test_what_a_switch_costs_that_was_not_timed_is_not_known(name: str) -> None:
    [found] = debugging.find(on_gpu(with_switch(name, {}, [(11.0, 0.9)], "1")))
    assert (found.share, found.bound) == (None, None)


@pytest.mark.parametrize("name", ["CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING"])
def test_without_a_gpu_its_variables_cost_nothing(name: str) -> None:
    assert debugging.find(with_switch(name, {}, [], "1")) == []


@pytest.mark.parametrize(("value", "found"), [("DETAIL", 1), ("detail", 1), ("INFO", 0)])
def test_collectives_are_checked_in_detail_only(value: str, found: int) -> None:
    assert len(debugging.find(with_switch("TORCH_DISTRIBUTED_DEBUG", {}, [], value))) == found


# -- costs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["eval", "epoch_gap", "checkpoint"])
@pytest.mark.parametrize("workers", [None, 0, 2])
def test_where_batches_are_made_meanwhile_it_is_said_that_time_may_come_back(phase: str, workers: int | None) -> None:
    loader = None if workers is None else SimpleNamespace(count=workers)
    [found] = costs.find(facts({phase: [look("train.py:30")] * 40}, workers=loader))
    assert found.bound == pytest.approx(1 / 0.6)
    assert any("come back" in said for said in found.evidence) == bool(workers)


def test_of_what_is_in_the_step_nothing_is_said_to_come_back() -> None:
    [found] = costs.find(facts({"loss": [look("train.py:30")] * 40}, workers=SimpleNamespace(count=2)))
    assert len(found.evidence) == 1


@pytest.mark.parametrize(("ahead", "bound"), [(0.4, 2.4), (3.9, 1 / 0.7)])
def test_workers_take_the_loops_cores_only_where_it_waits_for_them(ahead: float, bound: float) -> None:
    """On one core, 0.68 s of their work beside 0.7 s of the loop: by itself the loop would take 0.7 / 1.68 s."""
    made = msgspec.structs.replace(workers(Program(host={}, workers=2, batch=0.68), 1.0), queue_mean=ahead)
    of = facts({"data_wait": [look("train.py:30")] * 30}, workers=made)
    loader = Loader(workers=2, work=Range(0.68, 0.68, 0.68), receive=0.0, ahead=3.0)
    crowded = msgspec.structs.replace(of.needs, loader=loader, cores=1.0, threads=Range(1.0, 1.0, 1.0))
    [found] = waiting.find(msgspec.structs.replace(of, needs=crowded))
    assert found.bound == pytest.approx(bound, rel=0.01)
