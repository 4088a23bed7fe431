"""Calls that block in the watched steps: told by the trace, and by the looks at the stack that fell into them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from test_analyse_gpu import MS, Made, _event

from floorit.analyse import iterations, needs, syncs
from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Entry
from floorit.events import Place, Process, Sample
from floorit.hardware import Environment
from floorit.record import wire
from floorit.report import windows
from floorit.runfile import RunFile
from floorit.stats import Estimate

MASK, CHOICE, ELSEWHERE = (Place("/p/loss.py", line, "assign", "user") for line in (9, 12, 30))


class Looked(Made):
    """A window with calls of CUDA's that block, and looks at the stack."""

    def __init__(self, steps: int = 1) -> None:
        super().__init__(steps)
        self.looks: list[Sample] = []

    def waits(self, begin: float, end: float, thread: int = 1) -> Looked:
        """For milliseconds since the window began."""
        self.call("cudaStreamSynchronize", begin, end, thread=thread)
        return self

    def launches(self, at: float, thread: int) -> Looked:
        """A kernel, in another thread than the program's own."""
        number = self.call("cudaLaunchKernel", at, at + 0.01, thread=thread)
        known = {"correlation": number, "stream": thread, "device": 0}
        self.work.append(_event("kernel", "some_kernel", at, at + 0.5, thread, known))
        return self

    def looked(self, at: float, place: Place) -> Looked:
        """The program was seen there."""
        self.looks.append(Sample((self.began + at * MS) * 1e-9, wire.LOSS, 0, place, place, stack=(place,)))
        return self

    def process(self) -> Process:
        process = super().process()
        process.samples = self.looks
        return process

    def watched(self) -> syncs.Watched:
        process = self.process()
        return syncs.watched(process, iterations.find(process), self.window(), self.trace())


def in_forward_then_loss(steps: int = 1) -> Looked:
    made = Looked(steps)
    phases = [
        (phase, 10 * step + until) for step in range(steps) for phase, until in ((wire.FORWARD, 4), (wire.LOSS, 10))
    ]
    for step in range(steps):
        made.kernel(10 * step, 10 * step + 4, 10 * step)
    made.host(*phases)
    return made


def test_a_call_that_blocked_is_told_by_where_the_program_was_meanwhile() -> None:
    made = in_forward_then_loss(steps=2).looked(3, CHOICE)  # nothing is waited for then
    made.waits(5, 6).looked(5.5, MASK).waits(6.5, 7).looked(6.8, CHOICE).looked(6.9, CHOICE)
    made.waits(15, 16).looked(15.2, MASK).looked(17, CHOICE)
    found = made.watched()
    assert [(p.line, p.op, p.phase, p.per_step) for p in found.points] == [
        (9, "cudaStreamSynchronize", "loss", 1.0),
        (12, "cudaStreamSynchronize", "loss", 0.5),
    ]
    assert [p.seconds for p in found.points] == pytest.approx([1e-3, 0.25e-3])
    assert found.seconds == {"loss": pytest.approx(1.25e-3)}
    assert found.unnamed == 0


def test_what_waits_elsewhere_is_not_counted_twice() -> None:
    """In `.item()`, a copy, the loader: phases of their own. And a save or an evaluation is in few of the steps."""
    elsewhere = (wire.SYNC, wire.H2D, wire.DATA_WAIT, wire.CHECKPOINT, wire.EVAL, wire.LOGGING, wire.EPOCH_GAP)
    made = Looked()
    made.host((wire.FORWARD, 2), *((phase, 3 + number) for number, phase in enumerate(elsewhere)), (wire.LOSS, 10))
    made.kernel(0, 9, 0)
    for number in range(len(elsewhere)):
        made.waits(2.1 + number, 2.9 + number)
    assert made.watched() == syncs.Watched()


def test_other_threads_may_wait() -> None:
    """Seen: those that gloo exchanges gradients with launch copies, and wait for them."""
    made = Looked()
    made.host((wire.FORWARD, 4), (wire.BACKWARD, 10))
    made.kernel(0, 1, 0.5).launches(4, 7).launches(5, 7).launches(6, 3)
    made.waits(2, 3).waits(2, 3.5, thread=3).waits(7, 9, thread=3).waits(8, 8.5, thread=7).waits(8, 9, thread=1)
    assert made.watched().seconds == {"forward": pytest.approx(1e-3), "backward": pytest.approx(0.5e-3)}


def test_a_copy_to_the_gpu_is_none() -> None:
    made = Looked().host((wire.LOSS, 10)).copy(1, 2, 0.5)
    assert isinstance(made, Looked)
    assert made.waits(0.6, 2).looked(1, MASK).watched().points == []


def looked_at_now_and_then(seed: int) -> syncs.Watched:
    """Twenty waits a step of 0.2 and 0.05 ms in turn, looked at every 2 ms or so: one look falls into one of 16."""
    draw, steps, planted = random.Random(seed), 40, []
    made = in_forward_then_loss(steps)
    for number in range(20 * steps):
        begin = 10 * (number // 20) + 4 + number % 20 * 0.3
        length, place = (0.05, MASK) if number % 2 else (0.2, CHOICE)
        made.waits(begin, begin + length)
        planted.append((begin, begin + length, place))
    at = 0.0
    while at < 10 * steps:
        at += draw.uniform(1, 3)
        made.looked(at, next((place for begin, end, place in planted if begin < at < end), ELSEWHERE))
    return made.watched()


def test_short_calls_are_told_by_the_share_of_looks_that_fell_into_them() -> None:
    runs = [looked_at_now_and_then(seed) for seed in range(20)]
    points = [{point.line: point for point in found.points} for found in runs]
    assert {line for of_run in points for line in of_run} == {MASK.line, CHOICE.line}
    for place, spent in ((MASK, 0.5e-3), (CHOICE, 2e-3)):
        of_place = [of_run[place.line] for of_run in points if place.line in of_run]
        assert 0.75 < sum(p.seconds for p in of_place) / len(runs) / spent < 1.05  # the rest is said to be unknown
        assert 0.75 < sum(p.per_step for p in of_place) / len(runs) / 10 < 1.05
    for found in runs:  # all of it is somewhere
        assert sum(p.seconds for p in found.points) + found.unnamed_seconds == pytest.approx(2.5e-3)
        assert sum(p.per_step for p in found.points) + found.unnamed == pytest.approx(20)
        assert found.unnamed_seconds < 0.3 * 2.5e-3


def test_what_was_looked_at_in_one_step_is_known_of_the_others() -> None:
    """The second wait of a step is where it is in each; of the third, looks say this and that."""
    made = in_forward_then_loss(steps=4)
    for step in range(4):
        for number in range(4):
            made.waits(10 * step + 5 + number, 10 * step + 5.1 + number)
    for at, place in ((5.05, MASK), (16.05, CHOICE), (7.05, MASK), (17.05, CHOICE), (28.05, ELSEWHERE)):
        made.looked(at, place)
    for number in range(1000):  # so often that a look stands for no other call
        made.looked(0.001 * number, ELSEWHERE)
    found = made.watched()
    assert {point.line: point.per_step for point in found.points} == {9: 1.25, 12: 1.25, 30: 1.0}
    assert found.unnamed == 0.5


def test_a_long_call_that_was_looked_at_stands_for_no_short_ones() -> None:
    made = in_forward_then_loss(2).waits(4.5, 8).waits(14.5, 18)
    for at in range(1, 20, 2):
        made.looked(at, MASK)
    for number in range(8):
        made.waits(8.1 + number * 0.1, 8.15 + number * 0.1)
    found = made.watched()
    assert [point.per_step for point in found.points] == [1]
    assert (found.unnamed, found.unnamed_seconds) == (4, pytest.approx(0.2e-3))


def test_calls_that_no_look_fell_into_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = in_forward_then_loss(2).waits(5, 6).looked(5.5, MASK)
    for begin in (7, 8, 17):
        made.waits(begin, begin + 0.5)
    found = made.watched()
    assert (len(found.points), found.unnamed) == (1, 1.5)
    assert found.unnamed_seconds == pytest.approx(0.75e-3)
    monkeypatch.setattr(windows, "_seen", lambda *_: made.trace())
    run = RunFile(command=[], cwd="", started=0.0, environment=Environment())
    kernels = windows.of_kernels(_Trained(made), Path(), run)
    _, [missing, _] = windows.of_gpu(_Trained(made), kernels, None)
    assert missing.what == "syncs"
    assert missing.reason.startswith("1.5 more calls a step block, for 750 µs")


class _Trained:
    def __init__(self, made: Looked) -> None:
        self.process = made.process()
        self.process.window = made.window()
        self.iterations = iterations.find(self.process)


def test_time_that_is_blocked_is_no_work_of_its_phase() -> None:
    """The loss of 6 ms waits for 5 of them: writing it anew gains 1."""

    def found(waits: dict[str, float]) -> needs.Needs:
        rows = {"forward": 0.002, "loss": 0.006, "sync": 0.001, "backward": 0.001}
        second = Estimate(value=0.01, low=0.01, high=0.01, n=50)
        return needs.find(
            ledger=[Entry(phase=p, seconds=s, share=s / 0.01, gpu_seconds=None, where=[]) for p, s in rows.items()],
            step=0.01,
            median=second,
            steps=50,
            batch=None,
            workers=None,
            gpu=Gpu(busy_share=0.9, step_seconds=0.01, waits=waits),
            cores=None,
            threads=None,
            epochs=1,
            evals=0,
        )

    assert found({}).host["loss"] == pytest.approx(0.006)
    moved = found({"loss": 0.005})
    assert moved.host == pytest.approx({"forward": 0.002, "loss": 0.001, "sync": 0.006, "backward": 0.001})
    assert found({"loss": 0.05}).host["sync"] == pytest.approx(0.007)  # steps that are watched may wait longer
