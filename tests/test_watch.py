"""Looking on: what is seen of a record while it grows, on a terminal and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import tarfile
import termios
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from conftest import FLOORIT, clean_environment
from rich.console import Console
from test_iterations import Rows

from floorit import runfile, vitals
from floorit.analyse import iterations, recent
from floorit.watch import scene as scenes
from floorit.watch.scene import Scene, Watcher
from floorit.watch.view import line, render

RECORDS = Path(__file__).parent / "records"
LEFT_SCREEN = b"\x1b[?1049l"


# -- the last minute ------------------------------------------------------------------------------------------------


def lately(rows: Rows) -> recent.Recent:
    process = rows.process()
    found = iterations.find(process)
    assert found is not None
    return recent.look(process, found, None)


def test_only_the_last_minute_is_told() -> None:
    seen = lately(Rows().start().train(100, seconds=1.0).train(80, seconds=0.5))
    assert seen.steps == pytest.approx(100, abs=1)  # 80 of half a second, 20 of a second
    assert seen.seconds == pytest.approx(recent.SPAN, abs=1.0)
    assert seen.mean == pytest.approx(0.6, rel=0.02)
    assert seen.samples_per_second == pytest.approx(8 / 0.6, rel=0.02)


def test_an_evaluation_is_one_whatever_it_did_and_start_up_is_not_told() -> None:
    seen = lately(Rows().start(seconds=30).train(10).end_pass().evaluate(2, 10, seconds=0.2).end_pass(2))
    assert seen.phases["eval"] == pytest.approx(2.0)
    assert seen.phases["forward"] == pytest.approx(1.0 + 0.5 + 0.5)
    assert seen.seconds == pytest.approx(4.0)


def test_where_no_loader_is_known_there_is_no_number_of_batches() -> None:
    seen = lately(Rows().start().train(10).end_pass().train(4, iterator=2))
    assert (seen.epoch, seen.batch, seen.batches) == (2, 4, None)
    assert (seen.workers, seen.workers_busy) == (None, None)


def test_workers_are_as_busy_as_the_batches_that_they_made(tmp_path: Path) -> None:
    """In the record of a run whose workers made batches all the time."""
    seen = Watcher(unpacked("crowded_workers", tmp_path)).look()
    assert seen.recent is not None
    assert seen.report is not None
    assert seen.report.workers is not None
    assert seen.recent.workers == seen.report.workers.count
    assert seen.recent.workers_busy == pytest.approx(seen.report.workers.busy_share, abs=0.1)
    assert seen.recent.queue_empty == pytest.approx(seen.report.workers.queue_empty_share, abs=0.1)


# -- a record that grows --------------------------------------------------------------------------------------------


def unpacked(kind: str, folder: Path) -> Path:
    with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


class Growing:
    """A run that has got to the middle of its record."""

    def __init__(self, folder: Path, kind: str = "validates_often") -> None:
        self.folder = unpacked(kind, folder)
        self.ended = runfile.load(folder)
        self.files = {path: path.read_bytes() for path in (folder / "record").glob("*.rec")}
        for path, data in self.files.items():
            path.write_bytes(data[: len(data) // 2])
        self.save(exit_code=None, seconds=None)

    def save(self, **changes: object) -> None:
        runfile.save(self.folder, msgspec.structs.replace(self.ended, started=time.time() - 10, **changes))

    def end(self) -> None:
        for path, data in self.files.items():
            path.write_bytes(data)
        self.save()


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


def test_it_is_followed_to_its_end(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "_is_alive", lambda _: True)
    watcher = Watcher(growing.folder)
    before = watcher.look()
    assert before.over is None
    assert 0 < before.steps < 1511
    assert before.report_steps == before.steps
    assert before.report is not None
    growing.end()
    after = watcher.look()
    assert after.over == "ended with exit code 0"
    assert after.steps == after.report_steps == 1511
    assert after.report is not None
    assert after.report.findings[0].code == "eval-bound"
    assert after.seconds == growing.ended.seconds


@pytest.mark.parametrize(
    ("host", "silent", "over"), [("vm", 5, False), ("vm", 30, True), ("there", 30, False), ("there", 400, True)]
)
def test_a_run_that_was_killed_is_over_when_it_is_silent(
    growing: Growing, monkeypatch: pytest.MonkeyPatch, host: str, silent: float, over: bool
) -> None:
    """Its processes are gone where it was recorded; elsewhere they cannot be asked for."""
    monkeypatch.setattr(scenes, "_is_alive", lambda _: False)
    monkeypatch.setattr(os, "uname", lambda: type("Name", (), {"nodename": host})())
    for path in growing.folder.rglob("*"):
        os.utime(path, (time.time() - silent,) * 2)
    assert ("killed" in (Watcher(growing.folder).look().over or "")) is over


def test_a_program_that_has_ended_is_not_killed_while_floorit_goes_on(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measures the floor, or reports: its own last word is still to come."""
    monkeypatch.setattr(scenes, "_is_alive", lambda _: False)
    monkeypatch.setattr(os, "uname", lambda: type("Name", (), {"nodename": "vm"})())
    growing.end()
    growing.save(exit_code=None, seconds=None)
    for path in growing.folder.rglob("*"):
        os.utime(path, (time.time() - 100,) * 2)
    seen = Watcher(growing.folder).look()
    assert (seen.over, seen.is_finishing, seen.stalled) == (None, True, None)
    assert "the program has ended, floorit has not" in line(seen)


def test_no_step_for_long_is_said(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "_is_alive", lambda _: True)
    first = Watcher(growing.folder).look()
    assert first.machine
    with (growing.folder / vitals.NAME).open("ab") as file:
        later = msgspec.structs.replace(first.machine[-1], at=first.machine[-1].at + 100.0)
        file.write(msgspec.json.encode(later) + b"\n")
    stalled = Watcher(growing.folder).look()
    assert stalled.stalled is not None
    assert stalled.stalled > 90
    assert "no step for" in line(stalled)


def test_nothing_is_written(growing: Growing) -> None:
    def state() -> dict[str, tuple[int, int]]:
        files = [path for path in growing.folder.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}

    before = state()
    Watcher(growing.folder).look()
    assert state() == before


# -- what is shown ----------------------------------------------------------------------------------------------------


def drawn(scene: Scene, width: int, height: int = 50) -> list[str]:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(file=nowhere, width=width, height=height, record=True, color_system=None)
        console.print(render(scene, console))
        return console.export_text().splitlines()


@pytest.fixture(scope="module")
def middle(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    scene = Watcher(Growing(tmp_path_factory.mktemp("middle")).folder).look()
    return msgspec.structs.replace(scene, over=None)


@pytest.mark.parametrize("width", [60, 80, 139, 140, 200])
def test_it_fits(middle: Scene, width: int) -> None:
    shown = drawn(middle, width)
    text = "\n".join(shown)
    assert max(map(len, shown)) <= width
    assert f"step {middle.steps}" in text
    assert "so far    eval-bound" in text
    assert "of 700 W" in text
    assert "4 workers" in text
    side_by_side = any("share" in row and "so far" in row for row in shown)
    assert side_by_side is (width >= 140)


def test_in_few_rows_nothing_wraps_so_that_the_verdict_is_seen(middle: Scene) -> None:
    assert len(drawn(middle, 80, height=24)) < len(drawn(middle, 80, height=50))


def test_before_the_first_step_that_is_said(middle: Scene) -> None:
    early = msgspec.structs.replace(middle, steps=0, recent=None, report=None)
    assert any("no training step yet" in row for row in drawn(early, 80))
    assert line(early) == "no training step yet"


def test_shares_of_the_ledger_are_of_the_last_minute(middle: Scene) -> None:
    assert middle.recent is not None
    shares = [float(found[1]) for row in drawn(middle, 80) if (found := re.search(r"█.* (\d+\.\d)%$", row.rstrip()))]
    assert sum(shares) == pytest.approx(100, abs=2)
    assert sum(middle.recent.phases.values()) == pytest.approx(middle.recent.seconds)
    assert float(np.sum(middle.recent.step_seconds)) <= middle.recent.seconds


def test_of_several_ranks_it_is_said_whose_samples_these_are(tmp_path: Path) -> None:
    seen = Watcher(unpacked("averages_gradients", tmp_path)).look()
    assert seen.report is not None
    assert seen.report.run is not None
    assert seen.report.run.ranks == 2
    assert any("2 ranks; this is rank 0" in row for row in drawn(seen, 100))
    assert seen.recent is not None
    assert (seen.recent.samples_per_second is None) or "samples/s of this rank" in line(seen)


def test_in_a_pipe_there_are_lines(tmp_path: Path) -> None:
    folder = unpacked("data", tmp_path)
    ended = subprocess.run([FLOORIT, "watch", str(folder)], capture_output=True, text=True, env=clean_environment())
    assert ended.returncode == 0
    assert ended.stdout.startswith("floorit: step 418 of 418; ")
    assert ended.stdout.endswith("ended with exit code 0\n")
    assert ended.stdout.count("\n") == 1


@pytest.mark.parametrize("key", [b"xq", b"\x03"])
def test_a_key_ends_it_and_leaves_the_terminal_as_it_was(growing: Growing, key: bytes) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    environment = clean_environment(TERM="xterm", COLUMNS="100", LINES="40")
    watching = subprocess.Popen(
        [FLOORIT, "watch", str(growing.folder)],
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    said = b""
    deadline = time.monotonic() + 60
    while b"eval-bound" not in said and time.monotonic() < deadline:
        if select.select([ours], [], [], 0.2)[0]:
            said += os.read(ours, 65536)
    os.write(ours, key)
    while watching.poll() is None and time.monotonic() < deadline:
        if select.select([ours], [], [], 0.2)[0]:
            said += os.read(ours, 65536)
    assert watching.wait(5) == 0
    while select.select([ours], [], [], 0.2)[0]:
        said += os.read(ours, 65536)
    assert termios.tcgetattr(theirs) == before
    assert LEFT_SCREEN in said
    assert b"floorit: step" in said.partition(LEFT_SCREEN)[2]
    os.close(ours)
    os.close(theirs)
