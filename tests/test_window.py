"""The kernel window: when it opens and closes, what it leaves out, and how it fails."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import FLOORIT, PYTHON, execute

from floorit import runfile
from floorit.events import read_record
from floorit.record import parts
from floorit.record import window as recorder
from floorit.record.log import Log
from floorit.record.window import Window, obstacle
from floorit.record.wire import NEXT_IN, SHIFT, WINDOW_IN, WINDOW_OUT

SCRIPT = str(Path(__file__).parent / "window" / "stand_in.py")


class Lines:
    """Stands for a LineTrack."""

    wanted, is_open = 0, False

    def follow(self, border):
        self.is_open = True


class Mark:
    def __init__(self):
        self.done = True

    def query(self):
        return self.done


class Profiler:
    """Stands for Kineto; `failing` names a call that raises."""

    is_on_gpu = True

    def __init__(self, folder, failing=""):
        self.folder, self.failing = folder, failing
        self.calls, self.marks = [], []
        self.is_capturing = False
        self.down = True

    def capturing(self):
        return self.is_capturing

    def _called(self, name):
        self.calls.append(name)
        if name == self.failing:
            raise RuntimeError("not now")

    def start(self):
        self._called("start")

    def stop(self, take_down):
        self._called("stop" if take_down else "stop for now")
        return self

    def facts(self):
        return {}

    def cancel(self):
        self._called("cancel")

    def is_down(self):
        return self.down

    def let_be(self):
        self._called("let_be")

    def save(self, path):
        self._called("save")
        Path(path).write_text("{}")

    def mark(self):
        self.marks.append(Mark())
        return self.marks[-1]


class Loop:
    """A training loop seen by the recorder: every border is told to the log."""

    def __init__(self, folder, begin=2, failing="", reason=None, following=None):
        self.log, self.folder = Log(), str(folder)
        self.log.lines = Lines()
        self.notes = []
        self.profiler, self.waiting = Profiler(folder, failing), 0
        self.second = Profiler(folder, (following or {}).get("failing", ""))
        self.window = self.log.window = self._window(begin, self.profiler, reason, "window")
        if following is not None:
            self.window._following = self._window(begin, self.second, following.get("reason"), "parts")

    def _window(self, begin, profiler, reason, name):
        return Window(self.log, self, begin, lambda: profiler, lambda: reason, lambda: self.waiting, name)

    def note(self, kind, **fields):
        self.kinds = [*getattr(self, "kinds", []), kind]
        self.notes.append(fields)

    def step(self, count=1, backwards=1):
        for _ in range(count):
            self.log.backwards += backwards
            self.log.at_border(1 << SHIFT | NEXT_IN)
        return self

    def words(self):
        return [word & 0xFF for _, word in self.log.events]


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch):
    monkeypatch.setattr(recorder, "SECONDS", 0.0)  # three steps are enough


def test_it_opens_at_the_border_that_was_named_and_closes_after_its_steps(tmp_path):
    loop = Loop(tmp_path, begin=2).step()
    assert not loop.profiler.calls
    loop.step()
    assert loop.profiler.calls == ["start"]
    assert loop.log.lines.is_open
    loop.step(4)  # one to warm up, three that count
    assert loop.window.is_watching
    loop.step(2)  # one in which it closes, one to see that all is as before
    assert loop.profiler.calls == ["start", "stop", "save", "let_be"]
    assert loop.log.window is None
    assert loop.words() == [NEXT_IN] * 2 + [WINDOW_IN] + [NEXT_IN] * 6 + [WINDOW_OUT]
    [note] = loop.notes
    borders = [time for (time, _), word in zip(loop.log.events, loop.words(), strict=True) if word == NEXT_IN]
    assert note["measured"] == [borders[2], borders[5]]
    assert (tmp_path / note["file"]).exists()
    assert not list(tmp_path.glob("*.part"))
    assert len(note["clocks"]) == 2
    loop.step(20)
    assert loop.profiler.calls == ["start", "stop", "save", "let_be"]


def test_time_is_given_to_take_the_profiler_down(tmp_path):
    loop = Loop(tmp_path, begin=2)
    loop.profiler.down = False
    loop.step(20)
    assert loop.profiler.calls == ["start", "stop", "save"]
    assert loop.log.window is not None  # and its steps do not count
    loop.profiler.down = True
    loop.step()
    assert loop.profiler.calls[-1] == "let_be"


def test_it_is_down_when_the_thread_that_came_as_it_stopped_has_ended(monkeypatch):
    """The profiler's own C code reads the variable, and starts a thread; both are stood in for here."""
    ends, said = threading.Event(), []

    def disable():
        said.append(ctypes.CDLL(None).getenv(b"TEARDOWN_CUPTI") != 0)
        threading.Thread(target=ends.wait).start()
        return "seen"

    kineto = recorder.Kineto(torch, lambda: False, on_gpu=True)
    kineto._calls = SimpleNamespace(_disable_profiler=disable)
    monkeypatch.setattr(recorder, "TAKE_DOWN", (0.0, 60.0))
    assert kineto.stop() == "seen"
    assert said == [True]
    assert not kineto.is_down()
    ends.set()
    _wait_until(kineto.is_down)
    kineto.let_be()
    assert not ctypes.CDLL(None).getenv(b"TEARDOWN_CUPTI")
    assert "TEARDOWN_CUPTI" not in os.environ


def _wait_until(happens, seconds=20):
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_steps_count_from_when_the_gpu_has_done_what_was_launched_before(tmp_path):
    loop = Loop(tmp_path).step(2)
    loop.profiler.marks[0].done = False
    loop.step(5)
    loop.profiler.marks[0].done = True
    loop.step(4)
    loop.profiler.marks[1].done = False  # and it closes when the GPU has done what was launched in them
    loop.step(5)
    assert loop.window.is_watching
    loop.profiler.marks[1].done = True
    loop.step()
    [note] = loop.notes
    borders = [time for (time, _), word in zip(loop.log.events, loop.words(), strict=True) if word == NEXT_IN]
    assert note["measured"] == [borders[7], borders[10]]


def test_no_step_counts_while_the_loader_is_further_ahead_than_it_was(tmp_path, monkeypatch):
    loop = Loop(tmp_path).step(1)
    loop.waiting = 1
    loop.step()
    loop.waiting = 8  # it went on while the window opened
    loop.step(6)
    loop.waiting = 1
    loop.step(4)
    loop.waiting = 8
    loop.step(6)  # closed, and the loader went on again
    assert loop.profiler.calls == ["start", "stop", "save"]
    assert WINDOW_OUT not in loop.words()
    loop.waiting = 0
    loop.step()
    assert loop.words()[-1] == WINDOW_OUT
    borders = [time for (time, _), word in zip(loop.log.events, loop.words(), strict=True) if word == NEXT_IN]
    assert loop.notes[0]["measured"] == [borders[8], borders[11]]
    monkeypatch.setattr(recorder, "CATCH_UP", 0)  # a loader that stays ahead is not waited for
    loop = Loop(tmp_path).step(2)
    loop.waiting = 8
    assert loop.step(6).notes


def test_borders_without_a_backward_pass_are_no_steps(tmp_path):
    loop = Loop(tmp_path).step(2).step(50, backwards=0)
    assert loop.window.is_watching
    assert loop.step(5).notes


def test_many_short_steps_and_few_long_ones_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "SECONDS", 1e9)
    monkeypatch.setattr(recorder, "LONG", 1e9)
    loop = Loop(tmp_path).step(2 + 1 + recorder.MOST)
    assert loop.window.is_watching
    assert loop.step().notes
    monkeypatch.setattr(recorder, "LONG", 0.0)
    assert "file" in Loop(tmp_path).step(2 + 1 + 1 + 1).notes[0]


def test_one_step_of_very_many_operators_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "SECONDS", 1e9)
    loop = Loop(tmp_path)
    loop.profiler.is_full = lambda: True
    assert "file" in loop.step(2 + 1 + 1 + 1).notes[0]


def test_a_window_that_is_full_waits_for_no_loader_and_does_not_open_again(tmp_path):
    loop = Loop(tmp_path).step(2)
    loop.waiting, loop.profiler.is_full = 8, lambda: True
    assert "file" in loop.step(1 + 1 + 1).notes[0]
    loop = Loop(tmp_path).step(2)
    loop.profiler.is_full = lambda: True
    loop.window.interrupt("the program started another process while it was open")
    loop.step(20)
    assert loop.profiler.calls == ["start", "cancel"]


def test_a_process_is_full_where_it_has_grown(monkeypatch):
    sizes = iter([100 << 20, (100 << 20) + parts.ROOM, (101 << 20) + parts.ROOM])
    monkeypatch.setattr(parts, "_resident", lambda: next(sizes))
    marked = parts.Marked.__new__(parts.Marked)
    marked.is_on_gpu, marked._resident = False, parts._resident()
    assert [marked.is_full(), marked.is_full()] == [False, True]


def test_it_does_not_stay_open_for_ever(tmp_path, monkeypatch):
    loop = Loop(tmp_path).step(2)
    monkeypatch.setattr(recorder, "LIMIT", 0)
    loop.step(1, backwards=0)
    assert loop.profiler.calls == ["start", "cancel"]
    assert "not over after 0 s" in loop.notes[0]["reason"]


def test_nothing_is_begun_or_ended_while_a_graph_is_captured(tmp_path):
    loop = Loop(tmp_path)
    loop.profiler.is_capturing = True
    loop.step(4)
    assert not loop.profiler.calls
    loop.profiler.is_capturing = False
    loop.step(5)
    loop.profiler.is_capturing = True
    loop.step(5)
    assert loop.window.is_watching
    loop.profiler.is_capturing = False
    assert loop.step().notes


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        ("start", ["start", "cancel"]),
        ("stop", ["start", "stop", "cancel"]),
        ("save", ["start", "stop", "save", "cancel"]),
    ],
)
def test_what_fails_is_said_once_and_ends_it(tmp_path, failing, calls):
    loop = Loop(tmp_path, failing=failing).step(30)
    assert loop.profiler.calls == calls
    [note] = loop.notes
    assert "not now" in note["reason"]
    assert loop.words().count(WINDOW_IN) == loop.words().count(WINDOW_OUT) == 1
    assert loop.log.window is None


def test_an_obstacle_leaves_everything_alone(tmp_path):
    loop = Loop(tmp_path, reason="another profiler was active").step(30)
    assert not loop.profiler.calls
    assert WINDOW_IN not in loop.words()
    assert loop.notes == [{"reason": "another profiler was active"}]


def test_giving_up_closes_it_and_is_done_once(tmp_path):
    loop = Loop(tmp_path).step(4)
    loop.window.give_up("the program ended before it was over")
    loop.window.give_up("again")
    assert loop.profiler.calls == ["start", "cancel"]
    assert loop.notes == [{"reason": "the program ended before it was over"}]
    assert loop.words()[-1] == WINDOW_OUT


def test_a_new_process_closes_it_and_it_opens_again_when_training_goes_on(tmp_path, monkeypatch):
    """As at the end of a short epoch: workers are started, for an evaluation and for the next epoch."""
    monkeypatch.setattr(recorder, "SECONDS", 1e9)  # longer than an epoch lasts
    loop = Loop(tmp_path).step(2 + 1 + 2)
    for _ in range(2):
        loop.window.interrupt("the program started another process while it was open")
    assert loop.profiler.calls == ["start", "cancel"]
    assert loop.words()[-1] == WINDOW_OUT
    loop.step(3, backwards=0)  # an evaluation
    assert loop.profiler.calls == ["start", "cancel"]
    loop.step(1 + 1 + 3 + 1 + 1)
    assert loop.profiler.calls == ["start", "cancel", "start", "stop", "save", "let_be"]
    [note] = loop.notes
    assert (tmp_path / note["file"]).exists()
    assert len(note["clocks"]) == 2
    assert [w for w in loop.words() if w != NEXT_IN] == [WINDOW_IN, WINDOW_OUT] * 2


def test_it_is_given_up_where_it_is_closed_too_often(tmp_path):
    loop = Loop(tmp_path).step(2)
    for _ in range(recorder.ATTEMPTS):
        loop.step(2)
        loop.window.interrupt("the program started another process while it was open")
    loop.step(20)
    assert loop.profiler.calls == ["start", "cancel"] * recorder.ATTEMPTS
    assert loop.notes == [{"reason": "the program started another process while it was open"}]
    assert loop.log.window is None


# -- one after the other -------------------------------------------------------------------------------------------


def test_a_window_that_follows_opens_at_once_and_steps_are_disturbed_once(tmp_path):
    loop = Loop(tmp_path, following={}).step(2 + 1 + 3 + 1)
    assert loop.profiler.calls == ["start", "stop for now", "save"]
    assert loop.second.calls == ["start"]  # at the border at which the first was over
    loop.step(1 + 3 + 1 + 1)
    assert loop.second.calls == ["start", "stop", "save", "let_be"]
    assert loop.kinds == ["window", "parts"]
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert loop.words().count(WINDOW_OUT) == 1
    assert loop.words()[-1] == WINDOW_OUT
    assert loop.log.window is None
    assert loop.notes[0]["measured"][1] < loop.notes[1]["measured"][0]


def test_a_window_that_cannot_follow_is_named_and_the_first_takes_the_profiler_down(tmp_path):
    loop = Loop(tmp_path, following={"reason": "the model is a single part"}).step(20)
    assert loop.profiler.calls == ["start", "stop", "save", "let_be"]
    assert not loop.second.calls
    assert dict(zip(loop.kinds, loop.notes, strict=True))["parts"] == {"reason": "the model is a single part"}
    assert loop.words().count(WINDOW_OUT) == 1


def test_asking_whether_another_may_follow_does_not_end_the_first(tmp_path):
    loop = Loop(tmp_path, following={})
    loop.window._following._find_obstacle = lambda: 1 / 0
    loop.step(20)
    assert loop.profiler.calls == ["start", "stop", "save", "let_be"]
    told = dict(zip(loop.kinds, loop.notes, strict=True))
    assert "file" in told["window"]
    assert "ZeroDivisionError" in told["parts"]["reason"]


def test_a_window_follows_one_that_could_not_open(tmp_path):
    loop = Loop(tmp_path, reason="the program did not use CUDA", following={}).step(20)
    assert not loop.profiler.calls
    assert loop.second.calls == ["start", "stop", "save", "let_be"]
    assert loop.words().count(WINDOW_IN) == loop.words().count(WINDOW_OUT) == 1


@pytest.mark.parametrize("failing", ["start", "stop", "save"])
def test_steps_count_again_after_a_window_that_follows_has_failed(tmp_path, failing):
    loop = Loop(tmp_path, following={"failing": failing}).step(30)
    assert "not now" in loop.notes[1]["reason"]
    assert loop.words().count(WINDOW_OUT) == 1
    assert loop.log.window is None


def test_steps_count_again_where_a_window_that_follows_cannot_be_made(tmp_path):
    loop = Loop(tmp_path, following={})
    loop.window._following._make_kineto = lambda: 1 / 0
    loop.step(30)
    assert "ZeroDivisionError" in loop.notes[1]["reason"]
    assert loop.words().count(WINDOW_OUT) == 1


class Torch:
    """As much of torch as is asked whether kernels can be watched."""

    class version:
        cuda = "13.0"

    class cuda:
        ready = True

        @classmethod
        def is_initialized(cls):
            return cls.ready

    class profiler:
        class ProfilerActivity:
            CUDA = "cuda"

    class autograd:
        _supported_activities = staticmethod(lambda: {"cuda"})


def test_obstacles(monkeypatch):
    for name in list(recorder.os.environ):
        if name.startswith(("NSYS_", "NV_NSIGHT_", "NV_COMPUTE_", "KINETO_", "CUDA_INJ")):
            monkeypatch.delenv(name)
    assert obstacle(Torch) is None
    for name, said in (
        ("KINETO_USE_DAEMON", "daemon"),
        ("CUDA_INJECTION64_PATH", "injected"),
        ("NSYS_PROFILING_SESSION_ID", "Nsight Systems"),
    ):
        monkeypatch.setenv(name, "1")
        assert said in obstacle(Torch)
        monkeypatch.delenv(name)
    monkeypatch.setattr(Torch.cuda, "ready", False)
    assert "did not use CUDA" in obstacle(Torch)


@pytest.mark.parametrize(("below", "above"), [(False, False), (True, False), (False, True)])
def test_another_profiler_is_noticed(below, above):
    calls = SimpleNamespace(_profiler_enabled=lambda: below)
    python = SimpleNamespace(profiler=SimpleNamespace(_is_profiler_enabled=above))
    torch = SimpleNamespace(_C=SimpleNamespace(_autograd=calls), autograd=python)
    assert recorder.profiler_is_active(torch) == (below or above)


# -- whole runs ----------------------------------------------------------------------------------------------------


def _recorded(tmp_path, *options, **environ):
    out = tmp_path / "out"
    command = [FLOORIT, "run", "--quiet", "--out", str(out), *options, "--", PYTHON, SCRIPT]
    ran = execute(command, tmp_path, **environ)
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads((out / "report.json").read_text()), ran.stdout, out


def _reasons(report):
    return {m["what"]: m["reason"] for m in report["missing"]}


def test_the_stack_is_looked_at_often_while_kernels_are_watched_and_only_then(tmp_path):
    """Its steps sleep for 20 ms, in which anybody else may run."""
    _, _, out = _recorded(tmp_path)
    [process] = read_record(out / runfile.RECORD).processes.values()
    first, last = (moment * 1e-9 for moment in process.window["measured"])
    inside = [look for look in process.samples if first <= look.at <= last]
    after = [look.at for look in process.samples if look.at > last + 1.0]
    assert len(inside) > 0.4 * (last - first) / recorder.OFTEN
    assert {look.user.file for look in inside} == {SCRIPT}
    assert len(after) < 20 * (process.samples[-1].at - last)


def test_the_windows_steps_are_left_out_and_losses_stay_the_same(tmp_path):
    bare = execute([PYTHON, SCRIPT], tmp_path)
    report, stdout, out = _recorded(tmp_path)
    assert stdout == bare.stdout
    assert report["run"]["steps"] == 300
    assert report["step"]["p95"] < 0.1  # else the 0.3 s of its start are in
    assert sum(e["seconds"] for e in report["ledger"]) == pytest.approx(report["step"]["mean"], rel=0.01)
    gpu = report["gpu"]
    assert 3 <= gpu["steps"] <= 10
    assert gpu["busy_share"] == pytest.approx(0.5, abs=0.1)
    assert sum(i["share"] for i in gpu["idle"]) == pytest.approx(1 - gpu["busy_share"])
    assert gpu["idle"][0]["cause"] == "other"  # the program sleeps in its own code
    assert Path(gpu["idle"][0]["where"][0]["file"]).name == "stand_in.py"
    assert b"GPU: busy" in execute([FLOORIT, "report", str(out)], tmp_path).stdout


def test_a_window_that_fails_is_named_and_the_program_goes_on(tmp_path):
    report, stdout, out = _recorded(tmp_path, FAIL="save")
    assert stdout.startswith(b"[")
    assert report["run"]["steps"] == 300
    assert report["gpu"] is None
    notes = [path for path in (out / "record").glob("*.rec") if b"it failed" in path.read_bytes()]
    assert len(notes) == 1
    assert not list((out / "record").glob("window-*.json"))


@pytest.mark.acceptance
def test_n_steady_steps_do_not_include_the_windows(tmp_path):
    report, _, _ = _recorded(tmp_path, "--steps", "200", STEPS="100000")
    run = report["run"]
    assert report["gpu"]["steps"] >= 3
    assert report["step"]["seconds"]["n"] >= 200
    assert run["steps"] >= run["warmup_steps"] + 200 + report["gpu"]["steps"] + 2


@pytest.mark.acceptance
def test_it_can_be_switched_off(tmp_path):
    report, _, out = _recorded(tmp_path, "--no-window", STEPS="220")
    assert report["gpu"] is None
    assert not (out / "record" / "window").exists()
    assert report["step"]["seconds"]["n"] == report["run"]["steps"] - report["run"]["warmup_steps"]


@pytest.mark.acceptance
def test_without_cuda_and_without_parts_only_memory_is_followed(tmp_path):
    report, _, _ = _recorded(tmp_path, AS_IT_IS="1", STEPS="250")
    assert _reasons(report)["gpu"] == "the program did not use CUDA"
    assert "single part" in _reasons(report)["parts"]
    assert report["memory"]["where"] == "host"
    watched = report["run"]["steps"] - report["run"]["warmup_steps"] - report["step"]["seconds"]["n"]
    assert 0 < watched <= 5


@pytest.mark.acceptance
def test_a_program_with_its_own_profiler_is_left_alone(tmp_path):
    report, _, out = _recorded(tmp_path, OWN_PROFILER="1", STEPS="250")
    assert report["run"]["steps"] == 250
    assert any(b"profiler itself" in path.read_bytes() for path in (out / "record").glob("*.rec"))
