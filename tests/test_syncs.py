"""Calls that block in the watched steps: told by the trace, and by the calls that were timed beside it."""

from __future__ import annotations

from typing import Any

import pytest
from test_analyse_gpu import MS, Made

from floorit.analyse import iterations, needs, syncs
from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Entry
from floorit.record import wire
from floorit.report import windows
from floorit.stats import Estimate

SITES = [["/p/loss.py", 9, "assign", "__getitem__"], ["/p/loss.py", 12, "assign", "where"]]


class Timed(Made):
    """A window with calls that may wait, timed beside the trace."""

    def __init__(self, steps: int = 1) -> None:
        super().__init__(steps)
        self.timed: list[tuple[int, int, int]] = []

    def may_wait(self, begin: float, end: float, site: int, *blocked: tuple[float, float]) -> Timed:
        """A call of a function, with the calls of CUDA in it that block."""
        self.timed.append((self.began + round(begin * MS), self.began + round(end * MS), site))
        for since, until in blocked:
            self.call("cudaStreamSynchronize", since, until)
        return self

    def window(self) -> dict[str, Any]:
        return {**super().window(), "waits": {"sites": SITES, "calls": self.timed, "left_out": 0}}

    def watched(self) -> syncs.Watched:
        process = self.process()
        return syncs.watched(process, iterations.find(process), self.window(), self.trace())


def in_forward_then_loss(steps: int = 1) -> Timed:
    made = Timed(steps)
    phases = [
        (phase, 10 * step + until) for step in range(steps) for phase, until in ((wire.FORWARD, 4), (wire.LOSS, 10))
    ]
    for step in range(steps):
        made.kernel(10 * step, 10 * step + 4, 10 * step)
    return made.host(*phases)


def test_only_calls_that_blocked_are_told_and_for_how_long() -> None:
    made = in_forward_then_loss(steps=2)
    made.may_wait(1, 1.5, 0)  # plain indexing: the same line did not wait
    made.may_wait(5, 6, 0, (5.2, 5.9)).may_wait(6, 8, 1, (6.5, 7), (7.2, 7.5))
    made.may_wait(15, 16, 0, (15.5, 15.8))
    found = made.watched()
    assert [(p.line, p.op, p.phase, p.per_step) for p in found.points] == [
        (9, "__getitem__", "loss", 1.0),
        (12, "where", "loss", 0.5),
    ]
    assert [p.seconds for p in found.points] == pytest.approx([0.5e-3, 0.4e-3])
    assert found.seconds == {"loss": pytest.approx(0.9e-3)}
    assert found.unnamed == 0


def test_what_waits_elsewhere_is_not_counted_twice() -> None:
    """In `.item()`, a copy, the loader: those are phases of their own. Nor what a thread does that launches nothing."""
    made = Timed().host((wire.FORWARD, 2), (wire.SYNC, 4), (wire.H2D, 6), (wire.DATA_WAIT, 8), (wire.LOSS, 10))
    made.kernel(0, 9, 0)
    for begin in (2.5, 4.5, 6.5):
        made.call("cudaStreamSynchronize", begin, begin + 1)
    made.call("cudaStreamSynchronize", 8.5, 9.5, thread=2)
    assert made.watched() == syncs.Watched()


def test_a_copy_to_the_gpu_is_none() -> None:
    made = Timed().host((wire.LOSS, 10)).copy(1, 2, 0.5).may_wait(0.4, 3, 0, (0.6, 2))
    assert made.watched().points == []


def test_calls_without_a_line_are_missing() -> None:
    made = in_forward_then_loss(2).may_wait(5, 6, 0, (5.2, 5.9))
    for begin in (7, 8, 17):
        made.call("cudaStreamSynchronize", begin, begin + 0.5)
    found = made.watched()
    assert (len(found.points), found.unnamed) == (1, 1.5)
    assert found.unnamed_seconds == {"loss": pytest.approx(0.75e-3)}
    trained = _Trained(made)
    for told, why in (
        ({"sites": [], "calls": [], "left_out": 0}, "none of the functions that are timed"),
        ({"sites": [], "calls": [], "left_out": 7}, "7 calls too many"),
        ({"reason": "torch.compile was in use"}, "torch.compile was in use"),
        (None, "of an earlier version"),
    ):
        trained.process.window = {**made.window(), "waits": told} if told is not None else Made.window(made)
        _, [missing] = windows.of_syncs(trained, made.trace())
        assert missing.what == "syncs"
        assert "more calls a step block" in missing.reason
        assert why in missing.reason


class _Trained:
    def __init__(self, made: Made) -> None:
        self.process = made.process()
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
