"""One trial: a fresh process, recorded, its writes kept away, ended once it has steps enough; read into a Trial."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from floorit import hardware, launch, live, outlay, reading, runfile, sandbox, telemetry, typed, vitals
from floorit.analyse import iterations, machine, memory, overrides, rare, trace
from floorit.analyse.iterations import Iterations
from floorit.analyse.machine import GpuUse
from floorit.analyse.memory import OutOfMemory
from floorit.events import Process, RecordReader
from floorit.record import seeding, wire
from floorit.report.trained import used_cuda
from floorit.sandbox import Sandbox
from floorit.trial import configs, disturbance, peaks
from floorit.trial.arms import Arm
from floorit.trial.own import Own, felt, found
from floorit.trial.trial import Cap, Override, State, Trial

# Steady steps of a trial, where --steps does not say: so many seconds of them, and at the least so many.
SECONDS, FEWEST = outlay.SECONDS, outlay.STEPS
LARGE_FEWEST = 8  # where batches are larger
# A trial that takes longer than so many times the first run, and these seconds (compiling takes minutes), has hung.
TIMES, PATIENCE = 3.0, 180.0
FIRST = "first"  # the folder of the first run
TRIALS = "trials"  # that of all others
LAST_LINES = 12  # that are shown of a trial that failed
_OUTPUT_END = 16384  # bytes at the end of its output that they are taken from
_MODES = {"WANDB_MODE": "disabled"}
# Where the program's own environment does not say: Python hashes texts alike in all trials, so that a program that goes
# through a set of them trains on its data in the same order.
_HASHES = ("PYTHONHASHSEED", "1")


class _TooLong(Exception):
    """The time is over."""


class _Short(Exception):
    """The host's memory has run short."""


class Runner:
    """Runs trials in the folder of a try."""

    def __init__(self, folder: Path, sandbox: Sandbox | None, tick: Callable[[], None]) -> None:
        self._folder = folder.absolute()
        self._sandbox = sandbox
        self._tick = tick  # called while a trial runs
        self._number = 0
        self.limit = math.inf  # seconds of a trial
        self.steps: int | None = None  # steady ones that each is to have
        self.seconds, self.fewest = SECONDS, FEWEST  # of steady steps, where `steps` does not say
        self.samples: float | None = None  # of a step of the program as it is: larger ones are as many fewer
        self.cap: float | None = None  # of the memory that is free when it starts, the share that it may have
        self.own: Own | None = None  # settings of the program's own, once they are known
        self.rare: dict[str, float] = {}  # seconds a step of the program as it is, of the phases that these make rarer
        self.beyond = 0  # the longest warm-up so far: all trials have as many steps after it

    @property
    def refuses_writes(self) -> bool:
        """Whether what trials write fails."""
        return self._sandbox is not None and self._sandbox.refuses

    @cached_property
    def shows_files(self) -> bool:
        """Whether a trial can find other files than there are."""
        return self._sandbox.can_show if self._sandbox is not None else sandbox.can_show()

    def pilot(self, arm: Arm) -> Trial:
        """The first run of the program as it is, with the kernel window: it is not compared with any other.

        Its folder is one as `floorit run` leaves, from which gains are predicted.
        """
        own = self._folder / FIRST
        shutil.rmtree(own, ignore_errors=True)
        environment = hardware.examine(self._folder)
        launch.make_record(own)
        started = time.time()
        trial, watcher, shown = self._run(arm, own, window=True, jitter=0.0)
        trace.shrink(own / runfile.RECORD)
        run = runfile.RunFile(
            command=arm.command,
            cwd=str(Path.cwd()),
            started=started,
            environment=environment,
            stopped=watcher.has_stopped,
            exit_code=trial.exit_code,
            seconds=trial.seconds,
        )
        runfile.save(own, reading.read(run, watcher.reader, shown))
        return trial

    def __call__(self, arm: Arm, *, jitter: float = 0.0) -> Trial:
        """One trial. Its record is gone afterwards: what is needed of it is in the Trial."""
        own = self._unused()
        try:
            launch.make_record(own)
            return self._run(arm, own, window=False, jitter=jitter)[0]
        finally:
            shutil.rmtree(own / runfile.RECORD, ignore_errors=True)
            (own / vitals.NAME).unlink(missing_ok=True)

    def _unused(self) -> Path:
        while True:
            self._number += 1
            folder = self._folder / TRIALS / f"{self._number:03d}"
            if not folder.exists():
                return folder

    def _run(self, arm: Arm, own: Path, *, window: bool, jitter: float) -> tuple[Trial, live.Live, dict[str, Path]]:
        """It, who watched it, and the files that it found in place of others."""
        record, said = own / runfile.RECORD, own / "output.txt"
        watcher = live.Live(record, stream=sys.stderr, quiet=True, steps=None, window=window, enough=self._is_enough)
        memory, sampler = peaks.Watch(), telemetry.Telemetry(own)
        started = time.monotonic()

        def watch(_: subprocess.Popen[bytes]) -> None:
            watcher.watch()
            memory.look(watcher.pids)
            sampler.watch(watcher.pids)
            self._tick()
            if time.monotonic() - started > self.limit:
                raise _TooLong
            if self.cap is not None and peaks.free_memory() < spared:
                raise _Short

        spared = (1 - self.cap) * peaks.free_memory() if self.cap is not None else 0.0
        arm, turned = self.own.dress(arm) if self.own is not None else (arm, [])
        copies = configs.write_copies(arm.entries, own / "configs", arm.texts)
        command = launch.resolve(typed.with_copies(arm.command, copies))
        shown = sandbox.write(arm.texts, own / "settings")
        command = self._around(command, shown)
        code: int | None = None
        ran_short: dict[str, Any] = {}
        with said.open("wb") as output:
            more = self._environ(arm, jitter)
            try:
                with suppress(_TooLong):
                    code, _ = launch.run(command, record, watch, output=output.fileno(), more=more, alone=True)
            except _Short:
                ran_short = {"state": "failed", "ran_out": True, "reason": "the host's memory ran short: it was ended"}
            finally:
                sampler.close()
        seconds = time.monotonic() - started
        watcher.close()
        trial = _read(arm, code, seconds, watcher.reader, said)
        told = [*trial.overrides, *felt(found(turned, watcher.reader.run(), shown), trial, self.rare)]
        trial = msgspec.structs.replace(trial, host=memory.host, shared=memory.shared, overrides=told, **ran_short)
        return trial, watcher, shown

    def _around(self, command: list[str], shown: dict[str, Path]) -> list[str]:
        """The command where it is to run, and finds other files in place of some."""
        if not self.shows_files:
            command, shown = typed.with_copies(command, shown), {}
        if self._sandbox is not None:
            return self._sandbox.around(command, shown)
        return sandbox.showing(command, shown) if shown else command

    def _is_enough(self, found: Iterations) -> bool:
        steady = found.after_warmup
        if self.steps is None:
            return len(steady) > self.fewest and float(steady.sum()) >= self.seconds
        wanted = max(self.steps / self._times(found), min(self.steps, LARGE_FEWEST))
        return found.count - max(found.warmup, self.beyond) > wanted

    def _times(self, found: Iterations) -> float:
        """How many times the samples of the program as it is a step has: a trial is to have as many in all."""
        samples = float(found.samples[found.warmup :].mean()) if len(found.after_warmup) else 0.0
        return max(samples / self.samples, 1.0) if self.samples and samples else 1.0

    def _environ(self, arm: Arm, jitter: float) -> dict[str, str]:
        caches = self._folder / "caches"  # what is compiled in one trial is there for the next
        name, usual = _HASHES
        environ = {
            **_MODES,
            name: os.environ.get(name, usual),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            wire.LOSSES: json.dumps({"jitter": jitter}),
            seeding.VARIABLE: usual,
            **launch.asking_for({**arm.fixes, **({wire.CAP: self.cap} if self.cap is not None else {})}),
        }
        return {**environ, **(self._sandbox.environ if self._sandbox is not None else {})}


def steps_for(pace: float) -> int:
    """Steady steps that each trial is to have, by the pace of the first."""
    return max(math.ceil(SECONDS / pace), FEWEST)


def limit_for(trial: Trial) -> float:
    """Seconds after which a trial has hung, by the first."""
    return TIMES * trial.seconds + PATIENCE


# -- reading ---------------------------------------------------------------------------------------------------------


def _read(arm: Arm, code: int | None, seconds: float, reader: RecordReader, said: Path) -> Trial:
    processes = reader.run()
    trained = [(p, found) for p in processes if (found := iterations.find(p)) is not None]
    out = memory.find(reader, None if code is None else launch.shell_code(code), None)
    state, reason = _state(code, seconds, out, bool(trained))
    facts = Trial(
        arm=arm.name,
        state=state,
        seconds=seconds,
        exit_code=None if code is None else launch.shell_code(code),
        reason=reason,
        said=str(said),
        last=[] if state == "ran" else _last_lines(said),
        overrides=_overrides(arm, processes, reader),
        ran_out=state == "failed" and out is not None and out.ended,
        cap=_cap(processes),
    )
    if not trained:
        return facts
    process, found = trained[0]  # ranks wait for each other: the first one's clock is that of all
    gpu = _gpu(process, found, said.parent)
    return msgspec.structs.replace(
        facts,
        starts=_starts(process, found),
        warmup=found.warmup,
        samples=float(found.samples[found.warmup :].mean()) or None,
        losses=[_finite(p.losses) for p, _ in trained if p.losses],
        memory=process.memory_peak,
        watts=gpu.power_watts.value if gpu is not None and gpu.power_watts is not None else None,
        skipped=_skipped(process),
        beside=disturbance.met(gpu, sum(map(used_cuda, processes))) if gpu is not None else None,
        rare={phase: each.tolist() for phase, each in rare.by_step(process, found).items() if each.any()},
        evaluated=found.eval_passes > 0,
    )


def _overrides(arm: Arm, processes: list[Process], reader: RecordReader) -> list[Override]:
    """Of the fixes of which the program's processes have said anything."""
    workers = list(reader.workers.values())
    heard = {note["code"] for process in (*processes, *workers) for note in process.overrides}
    fixes = {code: value for code, value in arm.fixes.items() if code in heard}
    found = overrides.find(fixes, processes, workers)
    return [Override(code=o.code, value=o.value, state=o.state, reason=o.reason) for o in found]


def _cap(processes: list[Process]) -> Cap | None:
    """By the last word on it."""
    told = [note["value"] for p in processes for note in p.overrides if note["code"] == wire.CAP]
    return next((msgspec.convert(value, Cap) for value in reversed(told) if isinstance(value, dict)), None)


def _state(code: int | None, seconds: float, out: OutOfMemory | None, trained: bool) -> tuple[State, str | None]:
    if code is None:
        return "hung", f"it was ended after {seconds:.0f} s"
    if out is not None and out.ended:
        return "failed", out.what
    if code:
        return "failed", f"it ended with exit code {launch.shell_code(code)}"
    return ("ran", None) if trained else ("untrained", "no backward pass was seen")


def _skipped(process: Process) -> float | None:
    """Of the steps that a GradScaler of the program's was asked for."""
    last = process.readings[-1]["values"] if process.readings else {}
    steps, skipped = last.get("grad_scaler.steps"), last.get("grad_scaler.skipped")
    return skipped / steps if steps and skipped is not None else None


def _gpu(process: Process, found: Iterations, folder: Path) -> GpuUse | None:
    """What the GPU did from the first steady step to the last."""
    starts = process.starts()[np.searchsorted(found.of_row, np.arange(found.count))]
    if len(starts) <= found.warmup + 1:
        return None
    seen = machine.describe(vitals.load(folder), float(starts[found.warmup]), float(starts[-1]))
    return seen.gpu if seen is not None else None


def _starts(process: Process, found: Iterations) -> list[float]:
    """When each step began, on the first one's clock."""
    first_rows = np.searchsorted(found.of_row, np.arange(found.count))
    starts = process.starts()[first_rows]
    return (starts - starts[0]).tolist() if len(starts) else []


def _finite(losses: list[float]) -> list[float | None]:
    return [loss if math.isfinite(loss) else None for loss in losses]


def _last_lines(said: Path) -> list[str]:
    with said.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(file.tell() - _OUTPUT_END, 0))
        lines = file.read().decode(errors="replace").splitlines()
    return [line for line in lines if line.strip()][-LAST_LINES:]
