"""Sizes of batches, each run in a fresh process under a hard cap, and saved as it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import msgspec

from floorit.fixes import asked
from floorit.fixes.values import Value
from floorit.trial import attempt, peaks, runner
from floorit.trial.arms import Arm
from floorit.trial.attempt import Terms
from floorit.trial.progress import Progress
from floorit.trial.trial import Trial
from floorit.tune import sizes
from floorit.tune.candidates import BATCH, Candidate, with_size
from floorit.tune.sizes import Size, Sizes

NAME = "sizes.json"
CAP = 0.92  # of what is free: the rest is for what grows later, and for what others begin meanwhile
SECONDS, FEWEST = 4.0, 8  # of steady steps: enough for the optimizer's state to be there, and for a speed
_KILLED = 128 + signal.SIGKILL  # as a shell shows it
BESIDE = 3  # fixes that may make room for more
GPU, HOST, SHARED = "gpu", "host", "shared"


class Saved(msgspec.Struct, kw_only=True):
    """What has been run so far."""

    limits: dict[str, int]
    seen: dict[str, list[Size]] = {}  # by what was added to make room, as it is typed; "" is nothing
    found: Sizes | None = None  # once it is over


# The program with changes on top of what was kept.
Dress = Callable[[dict[str, Value]], Arm]


class Probe:
    """Runs sizes in the folder of a stage, for so many seconds at the most."""

    def __init__(self, folder: Path, terms: Terms, dress: Dress, stream: TextIO, room: float) -> None:
        self._folder, self._terms, self._dress, self._room = folder, terms, dress, room
        self._saved = _load(folder) or Saved(limits=_limits())
        self._progress = Progress(stream, quiet=terms.quiet, budget=room)
        self._progress.count(self._spent)
        self._run: runner.Runner | None = None

    def find(self, own: int, pilot: Trial, most: int | None, savers: list[Candidate]) -> Sizes:
        """The size to try, beside what would make room for larger ones."""
        with attempt.place(self._folder, self._terms) as kept:
            self._run = runner.Runner(self._folder, kept, self._progress.tick)
            self._run.limit = runner.limit_for(pilot)
            self._run.seconds, self._run.fewest, self._run.cap = SECONDS, FEWEST, CAP
            if pilot.ran_out and not self._saved.seen:
                self._saved.seen[""] = [read(pilot, own)]
            try:
                found = self._sizes(own, most, read(pilot, own).rate or 0.0)
                for saver in savers[:BESIDE] if found.by == "memory" and found.seen else []:
                    self._beside(saver, found, most)
            finally:
                self._progress.close()
        beside = {label: seen for label, seen in self._saved.seen.items() if label}
        self._saved.found = msgspec.structs.replace(found, beside=beside)
        self._save()
        return self._saved.found

    def _sizes(self, own: int, most: int | None, at_first: float) -> Sizes:
        """By one run of each; of its own size there are two, of which the faster counts: no gain is to be imagined."""
        seen = self._saved.seen.setdefault("", [])
        while (size := sizes.next_size(own, seen, self._saved.limits, most)) is not None:
            if seen and not self._has_time(seen):
                return sizes.choose(own, seen, self._saved.limits, most, in_time=False)
            self._one("", {} if size == own else {BATCH: size}, size)
            if size == own and seen[-1].rate is not None:
                seen[-1] = msgspec.structs.replace(seen[-1], rate=max(seen[-1].rate, at_first))
        return sizes.choose(own, seen, self._saved.limits, most)

    def _beside(self, saver: Candidate, found: Sizes, most: int | None) -> None:
        """Twice the largest that fits, with something that makes room for it."""
        label = " ".join(asked.written(saver.changes))
        largest = max((one.size for one in found.seen if sizes.fits(one, found.limits)), default=found.own)
        size = sizes.rounded(largest * 2)
        if label in self._saved.seen or (most is not None and size > most) or not self._has_time(found.seen):
            return
        self._one(label, {**saver.changes, BATCH: size}, size)

    def _has_time(self, seen: list[Size]) -> bool:
        """Whether another is likely to end in time."""
        return self._spent + max(one.seconds for one in seen) <= self._room

    @property
    def _spent(self) -> float:
        return sum(one.seconds for some in self._saved.seen.values() for one in some)

    def _one(self, label: str, changes: dict[str, Value], size: int) -> None:
        assert self._run is not None
        self._progress.stage("size of batches")
        self._progress.begin()
        trial = self._run(msgspec.structs.replace(self._dress(changes), name=f"{label} batches of {size}".strip()))
        self._progress.over(trial)
        if trial.cap is not None:
            self._saved.limits[GPU] = trial.cap.bytes
        self._saved.seen.setdefault(label, []).append(read(trial, size))
        self._save()

    def _save(self) -> None:
        partial = self._folder / f"{NAME}.part"
        partial.write_bytes(msgspec.json.encode(self._saved))
        partial.replace(self._folder / NAME)


def read(trial: Trial, size: int) -> Size:
    """What a trial says of a size."""
    known = {GPU: trial.memory, HOST: trial.host, SHARED: trial.shared}
    one = Size(
        size=size,
        state="ran",
        rate=trial.samples / trial.pace if trial.samples and trial.pace else None,
        peaks={budget: value for budget, value in known.items() if value is not None},
        evaluated=trial.evaluated,
        seconds=trial.seconds,
    )
    if trial.ran_out or trial.exit_code == _KILLED:
        reason = trial.reason if trial.ran_out else "it was killed, most likely for lack of memory"
        return msgspec.structs.replace(one, state="out of memory", reason=reason)
    if trial.cap is not None and trial.cap.retries:
        tight = "the allocator had to give memory back to go on"
        return msgspec.structs.replace(one, state="out of memory", reason=tight)
    unmet = next((o for o in trial.overrides if o.code == BATCH and o.state != "in force"), None)
    if trial.state != "ran" or unmet is not None or one.rate is None:
        why = unmet.reason if unmet is not None else trial.reason
        return msgspec.structs.replace(one, state="failed", reason=why or "it has too few steps")
    return one


def candidates_of(found: Sizes, savers: list[Candidate]) -> list[Candidate]:
    """The size that was chosen, and larger ones with what makes room for them; the fastest first."""
    made = []
    if found.chosen is not None and found.predicted is not None:
        made.append(with_size(found.chosen, found.predicted))
    best = max((one.rate or 0.0 for one in found.seen if sizes.fits(one, found.limits)), default=0.0)
    own = next((one for one in found.seen if one.size == found.own), None)
    for saver in savers:
        seen = found.beside.get(" ".join(asked.written(saver.changes)), [])
        fast = [one for one in seen if sizes.fits(one, found.limits) and (one.rate or 0.0) > sizes.GAIN * best]
        gains = [(one.size, gain) for one in fast if own is not None and (gain := sizes.gain(own, one)) is not None]
        made += [with_size(size, gain, saver) for size, gain in gains]
    return sorted(made, key=lambda candidate: -candidate.worth)


def load(folder: Path) -> Sizes | None:
    """What was found in a stage; None where it looked for no size, or was cut off."""
    saved = _load(folder)
    return saved.found if saved is not None else None


def _load(folder: Path) -> Saved | None:
    path = folder / NAME
    return msgspec.json.decode(path.read_bytes(), type=Saved) if path.exists() else None


def _limits() -> dict[str, int]:
    """What the host has to give now; the GPU's is known once a program runs on it."""
    shared = peaks.free_shared()
    known = {HOST: peaks.free_memory(), SHARED: shared}
    return {budget: int(CAP * free) for budget, free in known.items() if free is not None}
