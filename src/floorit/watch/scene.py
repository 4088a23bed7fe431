"""What there is to see of a run at one moment, and what keeps it up to date from the run's files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from floorit import vitals
from floorit.analyse import iterations, recent
from floorit.analyse.recent import Recent
from floorit.declared import gather
from floorit.events import Process, RecordReader
from floorit.report import build
from floorit.report.model import Report
from floorit.runfile import FLOOR, NAME, RECORD, RunFile, load

EVERY, REPORT_EVERY = 1.0, 5.0  # seconds between two looks and between two reports, at least
SHARE, REPORT_SHARE = 0.05, 0.05  # of the time that may go into either
STALLED, STALLED_STEPS = 10.0, 5.0  # seconds without a step, and usual steps, after which that is said
KILLED = "killed: its end was not seen"
# Seconds without a word from a run after which it is over: where its processes are known to be gone, and anyway.
# floorit itself writes of the machine every 10 seconds at least.
GONE, SILENT = 20.0, 300.0


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. None: not known, or not yet."""

    folder: str
    run: RunFile
    steps: int = 0
    recent: Recent | None = None
    stalled: float | None = None  # seconds without a step, where that is unusual
    machine: list[vitals.Sample] = []  # of the last minute
    report: Report | None = None
    report_steps: int = 0  # that were known when the report was made
    seconds: float | None = None  # since it was started; in all, of one that is over
    is_finishing: bool = False  # whether the program has ended and floorit has not: it measures the floor, or reports
    over: str | None = None  # how it ended


class Watcher:
    """Reads the files of a run as they grow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = RecordReader(folder / RECORD)
        self._run = load(folder)
        self._report: Report | None = None
        self._report_steps = 0
        self._next_report = 0.0
        self.pause = EVERY  # seconds until the next look is due

    def look(self) -> Scene:
        """The run now."""
        began = time.monotonic()
        scene = self._look()
        self.pause = max(EVERY, (time.monotonic() - began) / SHARE)
        return self._with_report(scene)

    def _look(self) -> Scene:
        if self._run.exit_code is None:
            self._run = load(self._folder)
        self._reader.read()
        processes = self._reader.run()
        over = self._over(processes)
        found = next(((p, i) for p in processes if (i := iterations.find(p)) is not None), None)
        machine = _lately(vitals.load(self._folder))
        scene = Scene(
            folder=str(self._folder),
            run=self._run,
            machine=machine,
            seconds=self._seconds() if over != KILLED else None,
            is_finishing=over is None and _have_ended(processes),
            over=over,
        )
        if found is None:
            return scene
        process, steps = found
        lately = recent.look(process, steps, self._reader.workers_of(process))
        stalled = None if over or scene.is_finishing else _stalled(process, lately, machine)
        return msgspec.structs.replace(scene, steps=steps.count, recent=lately, stalled=stalled)

    def _seconds(self) -> float | None:
        """Since the start: of one that is over as it was measured, if it was."""
        if self._run.exit_code is not None:
            return self._run.seconds
        return max(time.time() - self._run.started, 0.0)

    def _over(self, processes: list[Process]) -> str | None:
        if self._run.exit_code is not None:
            return f"ended with exit code {self._run.exit_code}"
        here = os.uname().nodename
        is_gone = processes and all(p.key[0] == here and not _is_alive(p.key[1]) for p in processes)
        was_killed = is_gone and not _have_ended(processes)
        if self._silence() > (GONE if was_killed else SILENT):
            return KILLED
        return None

    def _silence(self) -> float:
        """Seconds since any of its files was written to, those of the floor run among them."""
        records = (self._reader.folder, self._folder / FLOOR / RECORD)
        files = [self._folder / vitals.NAME, self._folder / NAME, *(file for r in records for file in r.glob("*.rec"))]
        return time.time() - max(path.stat().st_mtime for path in files if path.exists())

    def _with_report(self, scene: Scene) -> Scene:
        """The scene with the last report, made anew if it is time for that."""
        began = time.monotonic()
        is_due = began >= self._next_report or scene.over is not None
        if scene.steps != self._report_steps and is_due:
            run = self._run
            if run.told is None:
                run = msgspec.structs.replace(run, told=gather.gather(self._reader.run()))
            self._report, self._report_steps = build.assemble(self._folder, run, self._reader), scene.steps
            now = time.monotonic()
            self._next_report = now + max(REPORT_EVERY, (now - began) / REPORT_SHARE)
        return msgspec.structs.replace(scene, report=self._report, report_steps=self._report_steps)


def _have_ended(processes: list[Process]) -> bool:
    """Whether every process has come to its own end."""
    return bool(processes) and all(process.ended is not None for process in processes)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _lately(samples: list[vitals.Sample]) -> list[vitals.Sample]:
    return [sample for sample in samples if sample.at > samples[-1].at - recent.SPAN]


def _stalled(process: Process, lately: Recent, machine: list[vitals.Sample]) -> float | None:
    """Seconds without a step, by the machine's samples, which go on; where they are more than steps have taken."""
    if not machine or lately.mean is None:
        return None
    passed = machine[-1].at - float(process.rows["end"][-1])
    return passed if passed > max(STALLED, STALLED_STEPS * lately.mean) else None
