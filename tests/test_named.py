"""Names of the program's own: right by an independent timer, exclusive, and nothing at all where nothing records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PYTHON, clean_environment, execute, recorded, report_of
from test_replay import Thread

from floorit.record import wire
from floorit.record.wire import BACKWARD, DATA_WAIT, FORWARD, LEAF, LOSS, OTHER, SYNC
from floorit.report.build import build

PROGRAMS = Path(__file__).parent / "named"


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The report of a program with names, and what its own timers say."""
    folder = tmp_path_factory.mktemp("named")
    ended = recorded([PYTHON, str(PROGRAMS / "spans.py")], folder / "run", folder)
    assert ended.returncode == 0, ended.stderr
    report = report_of(folder / "run")
    assert report is not None
    return report, json.loads(ended.stdout)


def _spans(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [span for span in report["spans"] if span["name"] == name]


@pytest.mark.parametrize("name", ["assign", "inner", "model"])
def test_a_name_in_the_loop_costs_what_the_programs_own_timer_says(named: Any, name: str) -> None:
    report, own = named
    after = own[name][report["run"]["warmup_steps"] :]
    spans = _spans(report, name)
    assert sum(span["seconds"] for span in spans) == pytest.approx(sum(after) / len(after), rel=0.05)
    assert sum(span["calls"] for span in spans) == pytest.approx(1.0)
    assert {span["by"] for span in spans} == {"training thread"}


def test_one_in_a_worker_too(named: Any) -> None:
    report, own = named
    whole = build(Path(report["record"]), warmup=0)
    (span,) = [span for span in whole.spans if span.name == "mosaic"]
    assert (span.by, span.phase, span.share) == ("loader workers", None, None)
    assert whole.run is not None
    assert span.calls * whole.run.steps == len(own["mosaic"])
    assert span.seconds * whole.run.steps == pytest.approx(sum(own["mosaic"]), rel=0.05)


def test_it_stands_inside_of_its_phase(named: Any) -> None:
    report, _ = named
    phases = {entry["phase"]: entry["seconds"] for entry in report["ledger"]}
    assert {span["phase"] for span in _spans(report, "assign")} <= {"other", "unattributed"}
    assert {span["phase"] for span in _spans(report, "model")} >= {"forward", "loss", "backward"}
    for phase in ("forward", "loss", "backward"):
        inside = sum(span["seconds"] for span in report["spans"] if span["phase"] == phase)
        assert inside <= phases[phase] * 1.001
    place = _spans(report, "inner")[0]
    line = (PROGRAMS / "spans.py").read_text().splitlines()[place["line"] - 1]
    assert 'span("inner")' in line


def test_the_program_says_when_a_step_is_over(tmp_path: Path) -> None:
    ended = recorded([PYTHON, str(PROGRAMS / "steps.py")], tmp_path / "run", tmp_path)
    report = report_of(tmp_path / "run")
    assert ended.returncode == 0
    assert report is not None
    assert report["run"]["steps"] == 40
    assert report["run"]["border"] == "calls of floorit.step"
    assert sum(entry["seconds"] for entry in report["ledger"]) == pytest.approx(report["step"]["mean"], rel=0.01)


COMPILED = """
import floorit, torch
from torch._dynamo.testing import CompileCounter

counter = CompileCounter()

@torch.compile(backend=counter)
def f(x):
    with floorit.span("inside"):
        y = x.sin()
    return y.cos()

x = torch.randn(4, requires_grad=True)
for _ in range(3):
    f(x).sum().backward()
print(counter.frame_count, counter.op_count)
"""


@pytest.mark.acceptance
def test_one_in_compiled_code_breaks_no_graph(tmp_path: Path) -> None:
    program = tmp_path / "compiled.py"
    program.write_text(COMPILED)
    bare = execute([PYTHON, str(program)], tmp_path)
    under = recorded([PYTHON, str(program)], tmp_path / "run", tmp_path)
    assert bare.stdout == under.stdout == b"1 2\n", (bare.stderr, under.stderr)


def test_without_a_recorder_nothing_happens_and_nothing_is_imported() -> None:
    program = (
        "import sys, timeit, floorit\n"
        "assert not {'torch', 'numpy', 'rich', 'msgspec'} & set(sys.modules)\n"
        "@floorit.span('x')\n"
        "def f(a, b=2): 'doc'; return a + b\n"
        "assert (f(1), f.__name__, f.__doc__) == (3, 'f', 'doc')\n"
        "def g():\n    with floorit.span('x'): pass\n"
        "floorit.step()\n"
        "print(min(timeit.repeat(g, number=10000, repeat=7)) / 10000)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=clean_environment())
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 1e-6


def test_an_exception_passes_and_ends_the_stretch() -> None:
    import floorit

    with pytest.raises(KeyError), floorit.span("x"):
        raise KeyError


# -- played back --------------------------------------------------------------------------------------------------


def _played(thread: Thread) -> dict[tuple[int, int], tuple[int, int]]:
    thread.does(wire.END)
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for named in thread.replay.named:
        calls, nanoseconds = found.get((named.name, named.phase), (0, 0))
        found[named.name, named.phase] = (calls + named.calls, nanoseconds + named.nanoseconds)
    return found


def test_time_inside_of_another_name_is_not_the_outer_ones() -> None:
    thread = Thread().batch(5).does(wire.NAMED_IN, 1).passes(10).does(wire.NAMED_IN, 2).passes(20)
    thread.does(wire.NAMED_OUT, 2).passes(5).does(wire.NAMED_OUT, 1).model(40).backward(30).step(10)
    assert _played(thread) == {(1, OTHER): (1, 15), (2, OTHER): (1, 20)}


def test_a_name_is_divided_by_the_phases_that_it_covers() -> None:
    thread = Thread().batch(5).does(wire.NAMED_IN, 1).passes(7).model(40).passes(20).backward(30)
    thread.does(wire.NAMED_OUT, 1).step(10)
    assert _played(thread) == {(1, OTHER): (1, 7), (1, FORWARD): (0, 40), (1, LOSS): (0, 20), (1, BACKWARD): (0, 30)}


def test_a_call_that_blocks_inside_of_a_name_is_still_a_sync() -> None:
    thread = Thread().batch(5).model(40).backward(30).step(10)
    thread.does(wire.NAMED_IN, 3).passes(100).does(LEAF + SYNC, 60).passes(5).does(wire.NAMED_OUT, 3)
    found = _played(thread.batch(5).model(1).backward(1).step(1))
    assert found == {(3, OTHER): (1, 45), (3, SYNC): (0, 60)}


def test_what_was_left_open_and_what_was_never_begun_do_no_harm() -> None:
    thread = Thread().batch(5).does(wire.NAMED_OUT, 9).does(wire.NAMED_IN, 1).does(wire.NAMED_IN, 2).passes(10)
    thread.does(wire.NAMED_OUT, 1).passes(4).does(wire.NAMED_OUT, 2).model(40).backward(30).step(10)
    assert _played(thread) == {(1, OTHER): (1, 0), (2, OTHER): (1, 14)}


def test_in_a_wait_for_data_it_is_part_of_that() -> None:
    thread = Thread().does(wire.NEXT_IN, 1).does(wire.NAMED_IN, 1).passes(50).does(wire.NAMED_OUT, 1)
    thread.does(wire.NEXT_OUT, 5, after=10).model(40).backward(30).step(10)
    assert _played(thread) == {(1, DATA_WAIT): (1, 50)}
