"""What reading the source says, beside what a run has measured: only lines that took time, with their seconds."""

import pytest

from floorit.analyse.habits import find
from floorit.analyse.ledger import Entry, Ledger
from floorit.analyse.syncs import SyncPoint
from floorit.events import Place, Sample
from floorit.record import wire
from floorit.scan.finding import Finding

STEP = 0.1  # seconds


def finding(line: int, code: str = "python-loop-in-step", last: int | None = None, shown_by: str = "") -> Finding:
    return Finding(
        code=code,
        file="/p/train.py",
        line=line,
        column=1,
        lines=(line, last or line),
        message="",
        costs="",
        instead="",
        when="every step",
        risk="exact",
        unsafe="",
        fixable=False,
        text="",
        function="loss",
        finding=shown_by,
    )


def look(*lines: int, file: str = "/p/train.py", phase: int = wire.OTHER) -> Sample:
    stack = tuple(Place(file, line, "f", "user") for line in lines)
    return Sample(0.0, phase, 0, stack[0], stack[0], stack=stack)


def ledger(**looks: list[Sample]) -> Ledger:
    shares = {"loss": 0.6, "other": 0.4}
    entries = [
        Entry(phase=phase, seconds=share * STEP, share=share, gpu_seconds=None, where=[])
        for phase, share in shares.items()
    ]
    return Ledger(mean=STEP, entries=entries, looks=looks)


def test_a_line_has_the_seconds_of_the_looks_that_met_it_and_of_what_it_calls() -> None:
    drawn = ledger(loss=[look(30), look(31), look(40, 30), look(50)] * 5, other=[look(90)] * 10)
    (habit,) = find([finding(30, last=31)], drawn, [], None)
    assert habit.seconds == pytest.approx(0.75 * 0.6 * STEP)
    assert habit.share == pytest.approx(0.45)


def test_cold_lines_are_left_out_and_the_costliest_comes_first() -> None:
    drawn = ledger(loss=[look(30)] * 80 + [look(40)] * 120, other=[look(90)] * 10)
    found = find([finding(30), finding(40), finding(50), finding(91)], drawn, [], None)
    assert [habit.line for habit in found] == [40, 30]


def test_two_looks_may_be_by_chance() -> None:
    assert find([finding(30)], ledger(loss=[look(30)] * 2 + [look(40)] * 4), [], None) == []


def test_another_file_with_the_same_line_is_not_meant() -> None:
    assert find([finding(30)], ledger(loss=[look(30, file="/p/other.py")] * 9), [], None) == []


def test_a_wait_costs_what_it_waited_and_not_what_else_its_line_does() -> None:
    drawn = ledger(other=[look(30)] * 50)
    waits = finding(30, "item", shown_by="sync-bound")
    assert find([waits], drawn, [], None) == []
    point = SyncPoint(file="/p/train.py", line=30, function="f", op="item", per_step=1.0, seconds=0.02)
    (habit,) = find([waits], drawn, [point], None)
    assert habit.seconds == pytest.approx(0.02)
    assert habit.share == pytest.approx(0.2)


class Workers:
    """As much of a process's record as is asked for."""

    samples = [look(12, phase=wire.DATA_WAIT)] * 30 + [look(13, phase=wire.DATA_WAIT)] * 10 + [look(12)] * 40


def test_a_line_in_the_workers_has_its_share_of_making_batches() -> None:
    (habit,) = find([finding(12, "decodes-again")], ledger(other=[look(90)] * 9), [], Workers())  # type: ignore[arg-type]
    assert habit.seconds is None
    assert habit.share == pytest.approx(0.75)
