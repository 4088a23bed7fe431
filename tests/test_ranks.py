"""Which rank is late, with what, and who waits for it: on programs of which that is known, and on made-up steps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import PYTHON, _free_port, execute, has_lost_race, recorded, report_of

from floorit.analyse import ranks
from floorit.analyse.ledger import Entry, Ledger
from floorit.events import Process
from floorit.record import wire
from floorit.replay import BATCH, Row

PROGRAM = Path(__file__).parent / "ranks" / "late.py"
LONG = pytest.mark.acceptance
# What is planted -> the phase that it is found in, and words of the line.
PLANTED = {"data": ("data_wait", ".sort("), "compute": ("forward", "self.layers(x)"), "logging": ("logging", "info(")}


def _words(kind: str, late: int, count: int) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(count), "--master-port", str(_free_port())]
    return [PYTHON, *launcher, str(PROGRAM), kind, str(late)]


@pytest.mark.parametrize(
    ("kind", "late", "count"),
    [
        ("data", 1, 2),
        pytest.param("compute", 1, 2, marks=LONG),
        pytest.param("logging", 1, 2, marks=LONG),
        pytest.param("logging", 0, 2, marks=LONG),
        pytest.param("data", 2, 4, marks=LONG),
    ],
)
def test_the_culprit_and_its_cause(tmp_path: Path, kind: str, late: int, count: int) -> None:
    for folder in (tmp_path / "run", tmp_path / "again"):
        ended = recorded(_words(kind, late, count), folder, tmp_path)
        report = report_of(folder)
        if not has_lost_race(ended.returncode, ended.stderr):
            break
    assert ended.returncode == 0, ended.stderr
    assert report is not None
    phase, words = PLANTED[kind]
    found = report["late_rank"]
    assert (found["rank"], found["phase"]) == (late, phase)
    assert words in PROGRAM.read_text().splitlines()[found["where"][0]["line"] - 1]
    assert [rank["waits_for"] for rank in report["ranks"]] == [None if r == late else late for r in range(count)]
    assert (report["run"]["steps"], report["run"]["ranks"]) == (60, count)
    if late:
        assert report["findings"][0]["code"] == "comm-bound"
        assert report["findings"][0]["title"].startswith(f"rank {late} ")
    bare = execute(_words(kind, late, count), tmp_path)
    assert json.loads(bare.stdout) == json.loads(ended.stdout)


# -- made-up steps ------------------------------------------------------------------------------------------------

STEPS = 200


def _rank(number: int, spent: dict[str, Any], *, ddp: bool = True, warmup: int = 0) -> Any:
    """A process whose steps take so many seconds in each phase."""
    process = Process()
    process.facts = {"rank": str(number), "started": 0.0}
    process.ddp = {} if ddp else None
    seconds = np.zeros((STEPS, len(wire.PHASES)))
    for phase, value in spent.items():
        seconds[:, wire.PHASES.index(phase)] = value
    ends = np.cumsum(seconds.sum(axis=1))
    process.add_rows(
        [
            Row(BATCH, 1, 4, 1, 1, end=round(end * 1e9), steps=1, spent=[round(s * 1e9) for s in row])
            for end, row in zip(ends, seconds, strict=True)
        ]
    )
    iterations = SimpleNamespace(
        count=STEPS,
        warmup=warmup,
        of_row=np.arange(STEPS),
        slowed=np.zeros(STEPS, bool),
        after_warmup=seconds[warmup:].sum(axis=1),
    )
    means = seconds.mean(axis=0)
    entries = [
        Entry(phase=name, seconds=float(mean), share=0.0, gpu_seconds=None, where=[])
        for name, mean in zip(wire.PHASES, means, strict=True)
        if mean
    ]
    ledger = Ledger(mean=float(means.sum()), entries=entries, looks={})
    return ranks.member(SimpleNamespace(process=process, iterations=iterations, ledger=ledger))


def _job(own: list[dict[str, Any]], **more: Any) -> list[Any]:
    """Ranks in step: each waits in backward until the slowest has got there."""
    alone = [sum(np.broadcast_to(value, STEPS) for value in spent.values()) for spent in own]
    slowest = np.max(alone, axis=0)
    return [
        _rank(number, {**spent, "backward": 0.005 + slowest - before}, **more)
        for number, (spent, before) in enumerate(zip(own, alone, strict=True))
    ]


def test_the_others_wait_as_long_as_they_are_faster() -> None:
    found = ranks.compare(_job([{"data_wait": 0.001}, {"data_wait": 0.004}, {"data_wait": 0.001}]))
    assert found is not None
    assert found.late is not None
    assert (found.late.rank, found.late.phase) == (1, "data_wait")
    assert found.late.seconds.value == pytest.approx(0.003)
    assert [wait.seconds.value for wait in found.waits] == pytest.approx([0.003, 0.0, 0.003])
    assert [wait.rank for wait in found.waits] == [1, None, 1]
    assert found.data_seconds == pytest.approx(0.004)


def test_a_rank_that_is_late_once_in_a_while_is_the_culprit_by_what_it_costs() -> None:
    saves = np.where(np.arange(STEPS) % 2 == 0, 0.01, 0.0)
    found = ranks.compare(_job([{"forward": 0.002, "checkpoint": saves}, {"forward": 0.00201}, {"forward": 0.00201}]))
    assert found is not None
    assert found.late is not None
    assert (found.late.rank, found.late.phase) == (0, "checkpoint")
    assert found.data_seconds == 0.0


def test_ranks_that_take_turns_have_no_culprit_but_wait_all_the_same() -> None:
    turns = [np.where(np.arange(STEPS) % 4 == rank, 0.004, 0.001) for rank in range(4)]
    found = ranks.compare(_job([{"data_wait": turn} for turn in turns]))
    assert found is not None
    assert found.late is None
    assert all(wait.seconds.value == pytest.approx(0.00225) for wait in found.waits)


def test_a_rank_that_was_held_up_a_few_times_is_not_late() -> None:
    held = np.where(np.arange(STEPS) < 3, 1.0, 0.00101)
    found = ranks.compare(_job([{"data_wait": 0.001}, {"data_wait": held}]))
    assert found is not None
    assert found.late is None


def test_next_to_nothing_is_not_told() -> None:
    found = ranks.compare(_job([{"forward": 0.002}, {"forward": 0.0021}]))
    assert found is not None
    assert found.late is None


@pytest.mark.parametrize("more", [{"ddp": False}, {"warmup": STEPS - 5}])
def test_ranks_that_are_not_seen_to_meet_or_for_long_enough_are_not_compared(more: dict[str, Any]) -> None:
    assert ranks.compare(_job([{"data_wait": 0.001}, {"data_wait": 0.004}], **more)) is None


def test_a_long_step_that_counts_for_one_rank_alone_does_not_part_them() -> None:
    """Where warm-up ends is found for each rank."""
    early = np.where(np.arange(STEPS) < 3, 1.0, 0.004)
    fast, slow = _job([{"data_wait": 0.001}, {"data_wait": early}])
    late = _rank(1, {"data_wait": early, "backward": 0.005}, warmup=3)
    for members in ([fast, slow], [fast, late]):
        found = ranks.compare(members)
        assert found is not None
        assert found.late is not None


def test_ranks_at_a_pace_of_their_own_do_not_wait() -> None:
    assert ranks.compare([_rank(0, {"forward": 0.002}), _rank(1, {"forward": 0.004})]) is None
