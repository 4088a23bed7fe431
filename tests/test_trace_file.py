"""The time line for Perfetto: well formed, nothing overlaps, and it adds up to the ledger."""

from __future__ import annotations

import json
import tarfile
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_naps import closely, napping
from test_replay import Thread

from floorit import cli
from floorit.analyse import series, tracks
from floorit.analyse.tracks import Interval
from floorit.events import Process, Span
from floorit.record import wire
from floorit.replay import Replay
from floorit.report import trace
from floorit.report.build import load
from floorit.report.trained import Trained, of_record

RECORDS = Path(__file__).parent / "records"
AFTER = ("checkpoint", "epoch_gap", "eval")  # that count, where they follow the last step
LATE = "logging after the last step"  # which counts no further than it is usual
Json = dict[str, Any]


def unpacked(kind: str, folder: Path) -> Path:
    with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


# -- what happened when ---------------------------------------------------------------------------------------------


def test_a_step_that_was_not_looked_into_is_not_divided() -> None:
    thread = Thread()
    thread.replay = Replay(thread.time, spans_in=(0, 10_000))
    napping(closely(thread, 2), 3).does(wire.NAP_OUT).batch()
    process = Process()
    process.add(wire.JSON_TAG, b'{"kind": "process", "pid": 1, "started": 1e-6}')
    process.add_rows(thread.rows())
    phases = tracks.of_phases(process, [Span(s.begin, s.end, s.phase, None) for s in thread.replay.spans])
    names = [(phase.name, phase.end - phase.begin) for phase in phases if phase.begin >= 1000]
    step = [("data_wait", 5), ("forward", 40), ("loss", 20), ("backward", 30), ("optimizer", 10)]
    nap = [("data_wait", 5), (tracks.NOT_TOLD_APART, 100)]
    assert names == [*step * 2, *nap * 3]


def test_intervals_that_overlap_go_to_tracks_of_their_own() -> None:
    groups = [[Interval(name=str(b), begin=b, end=e)] for b, e in ((0, 10), (8, 12), (10, 20), (13, 14), (15, 16))]
    lanes = [[interval.begin for interval in lane] for lane in tracks.lanes(groups)]
    assert lanes == [[0, 10], [8, 13, 15]]


# -- the file -------------------------------------------------------------------------------------------------------


class Made:
    """A record and its trace."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder = unpacked(kind, folder)
        run, reader = load(self.folder)
        self.file: Json = json.loads(trace.to_json(trace.make(self.folder, run, reader)))
        self.trained = of_record(reader)

    @property
    def events(self) -> list[Json]:
        return self.file["traceEvents"]

    def lasting(self, **wanted: object) -> list[Json]:
        chosen = (e for e in self.events if e["ph"] == "X" and all(e[key] == value for key, value in wanted.items()))
        return sorted(chosen, key=lambda e: (e["ts"], -e["dur"]))

    def names(self, kind: str) -> dict[tuple[int, int], str]:
        return {(e["pid"], e.get("tid", 0)): e["args"]["name"] for e in self.events if e["name"] == kind}


@pytest.fixture(scope="module", params=["validates_often", "steady_convolutions", "averages_gradients"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(request.param, tmp_path_factory.mktemp(request.param))


def test_events_have_what_the_format_asks_for(made: Made) -> None:
    assert set(made.file) == {"traceEvents", "displayTimeUnit", "otherData"}
    processes, threads = made.names("process_name"), made.names("thread_name")
    for event in made.events:
        assert event["ph"] in ("X", "M", "i", "C")
        assert (event["pid"], 0) in processes
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert (event["pid"], event["tid"]) in threads
        if event["ph"] == "i":
            assert event["s"] in "gpt"
        if event["ph"] == "C":
            assert isinstance(event["args"]["value"], float | int)


def test_events_of_a_track_lie_inside_of_each_other_or_apart(made: Made) -> None:
    by_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in made.lasting():
        begin = round(event["ts"] * 1e3)
        by_track[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1e3)))
    for track in by_track.values():
        around: list[int] = []
        for begin, end in sorted(track, key=lambda span: (span[0], -span[1])):
            while around and around[-1] <= begin:
                around.pop()
            assert not around or end <= around[-1]
            around.append(end)


def spent(made: Made, one: Trained) -> dict[str, float]:
    """Seconds by phase of what the ledger counts, by the file alone."""
    pid = one.process.rank + 1
    steps = made.lasting(pid=pid, cat="step")
    begins = [step["ts"] for step in steps]
    last = max(place for place, step in enumerate(steps) if step["name"] != tracks.AFTER)
    seconds: dict[str, float] = defaultdict(float)
    for phase in made.lasting(pid=pid, cat="phase"):
        place = bisect_right(begins, phase["ts"] + 5e-4) - 1
        around = steps[place]
        name = "eval" if around["name"] == tracks.EVALUATION else phase["name"]
        is_left_out = "left out" in around.get("args", {}) or around["name"] == tracks.BEFORE
        if not is_left_out and (place <= last or name in AFTER):
            seconds[name] += phase["dur"] * 1e-6
        elif not is_left_out and name == "logging":
            seconds[LATE] += phase["dur"] * 1e-6
    return seconds


def test_phases_add_up_to_the_ledger(made: Made) -> None:
    for one in made.trained:
        counted = len(one.iterations.after_warmup)
        expected = {entry.phase: entry.seconds * counted for entry in one.ledger.entries}
        expected["other"] = expected.get("other", 0.0) + expected.pop("unattributed")
        seconds = spent(made, one)
        late = seconds.pop(LATE, 0.0)
        written = expected.pop("logging", 0.0) - seconds.pop("logging", 0.0)
        assert -2e-5 <= written <= late + 2e-5
        for phase in {*seconds, *expected}:
            assert seconds.get(phase, 0.0) == pytest.approx(expected.get(phase, 0.0), abs=2e-5)


def test_every_step_is_there(made: Made) -> None:
    for one in made.trained:
        names = {event["name"] for event in made.lasting(pid=one.process.rank + 1, cat="step")}
        assert {name for name in names if name.startswith("step ")} == {
            f"step {n}" for n in range(one.iterations.count)
        }


def test_the_gpus_work_lies_in_the_steps_that_were_watched(made: Made) -> None:
    """By its own clock, moved to the host's: kernels run while watched steps do, or shortly after."""
    work = made.lasting(cat="gpu", pid=1_000_001)
    watched = [s for s in made.lasting(pid=1, cat="step") if "window" in s.get("args", {}).get("left out", "")]
    assert len(work) > 100
    begin, end = watched[0]["ts"], watched[-1]["ts"] + watched[-1]["dur"]
    inside = [begin <= kernel["ts"] <= end for kernel in work]
    assert np.mean(inside) > 0.99


def test_passes_over_data_are_marked(made: Made) -> None:
    marks = [event["name"] for event in made.events if event["ph"] == "i"]
    run = made.trained[0].iterations
    assert marks.count("evaluation") == run.eval_passes
    assert marks.count("pass over the training data") == (run.epochs if run.border == "batches" else 0)


def test_another_machines_clock_is_set_by_the_one_on_the_wall(tmp_path: Path) -> None:
    """A rank whose own clock is 5 seconds behind, by the wall, lies 5 seconds later."""
    run, reader = load(unpacked("ddp_over_gloo", tmp_path))
    first, second = (one.process for one in of_record(reader))
    before = began(trace.make(tmp_path, run, reader))
    second.facts |= {"host": "there", "wall": first.facts["wall"] + 5.0, "clock": first.facts["clock"]}
    after = began(trace.make(tmp_path, run, reader))
    assert after[2] - after[1] == pytest.approx(before[2] - before[1] + 5e6, abs=1.0)


def began(file: trace.File) -> dict[int, float]:
    """When the first step of each rank began."""
    return {e.pid: e.ts or 0.0 for e in file.traceEvents if e.name == "step 1" and e.ph == "X"}


def spent_in_steps(made: Made) -> dict[str, float]:
    """Seconds by phase inside of steps, by the file alone."""
    steps = [step for step in made.lasting(pid=1, cat="step") if step["name"].startswith("step ")]
    begins = [step["ts"] for step in steps]
    seconds = dict.fromkeys(wire.PHASES, 0.0)
    for phase in made.lasting(pid=1, cat="phase"):
        place = bisect_right(begins, phase["ts"] + 5e-4) - 1
        if place >= 0 and phase["ts"] < steps[place]["ts"] + steps[place]["dur"] - 5e-4:
            seconds[phase["name"]] += phase["dur"] * 1e-6
    return seconds


def test_of_many_steps_a_part_is_told_with_the_window_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_STEPS", 150)
    made = Made("validates_often", tmp_path)
    steps = [e["name"] for e in made.lasting(pid=1, cat="step") if e["name"].startswith("step ")]
    assert len(set(steps)) == 150
    watched = np.flatnonzero(made.trained[0].iterations.slowed)
    assert f"step {watched[-1]}" in steps
    assert made.file["otherData"]["steps"].endswith(f"of {made.trained[0].iterations.count}")
    own = spent_in_steps(made)
    for one in made.trained:
        rows = series.find(one.process, one.iterations)
        chosen = rows.is_step & (rows.step >= int(steps[0].split()[1])) & (rows.step <= int(steps[-1].split()[1]))
        assert own == pytest.approx(
            dict(zip(wire.PHASES, rows.phases[chosen].sum(axis=0).tolist(), strict=True)), abs=2e-5
        )
    assert made.lasting(cat="gpu")


def test_it_is_written_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = unpacked("data", tmp_path)
    assert cli.main(["report", "--trace", str(tmp_path / "t.json"), str(folder)]) == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    told = capsys.readouterr()
    assert not told.out
    assert "steps 0 to 417 of 418" in told.err
    assert cli.main(["report", "--trace", str(tmp_path / "none" / "t.json"), str(folder)]) == 73
