"""What reading the source says, beside what a run has measured: only lines that took time, with their seconds."""

import msgspec
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


def look(*lines: int, file: str = "/p/train.py", phase: int = wire.OTHER, function: str = "f") -> Sample:
    stack = tuple(Place(file, line, "f" if at else function, "user") for at, line in enumerate(lines))
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


class Cached:
    """A function that is met at its lines 20 and, saving, 21; and one that it is called by."""

    samples = [
        *[look(*lines, phase=wire.DATA_WAIT, function=name) for lines, name in (((20, 40), "Set.load"),) * 27],
        *[look(21, 40, phase=wire.DATA_WAIT, function="Set.load")] * 3,
        *[look(40, phase=wire.DATA_WAIT)] * 10,
    ]


def test_what_spares_a_function_costs_all_of_it() -> None:
    vain = msgspec.structs.replace(finding(21, "cache-never-read"), function="load", spares_function=True)
    (habit,) = find([vain], ledger(), [], Cached())  # type: ignore[arg-type]
    assert (habit.share, habit.line_share) == (pytest.approx(30 / 40), pytest.approx(3 / 40))


def test_what_is_saved_only_at_first_is_not_in_vain() -> None:
    vain = msgspec.structs.replace(finding(21, "cache-never-read"), function="load", spares_function=True)
    once = Cached()
    once.samples = list(reversed(Cached.samples))
    assert find([vain], ledger(), [], once) == []  # type: ignore[arg-type]


def test_a_line_in_the_workers_has_its_share_of_making_batches() -> None:
    (habit,) = find([finding(12, "decodes-again")], ledger(other=[look(90)] * 9), [], Workers())  # type: ignore[arg-type]
    assert habit.seconds is None
    assert habit.share == pytest.approx(0.75)
