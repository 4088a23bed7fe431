"""Writes the record that a training job of many ranks would leave, without running it: one of the ranks is late.

The bytes are those that the recorder writes: the same words in the same order as of a DDP loop over a loader with
workers, flushed twice a second with the looks and lines of that time. All ranks leave a backward pass together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from floorit import runfile
from floorit.hardware import Environment
from floorit.record import wire
from floorit.record.wire import IN, LOGGING, OPTIMIZER, OUT, SHIFT

BATCH = 32
EPOCH = 1000  # steps, each followed by an evaluation
EVALUATED = 20  # batches
LATE = 8_000_000  # nanoseconds that the late rank waits longer for each batch
FLUSH = 500_000_000
SCRIPT = "/srv/train.py"
_STARTED = 10**12
_LOGGED_EVERY = 50
_MODEL = wire.TRAINED | wire.WITH_GRAD | wire.TRAINING
# What a step is made of: the word, the nanoseconds before it, the line it came from.
_STEP = (
    (wire.READY, 20_000, 4),
    (wire.NEXT_IN, 1_000, 4),
    (wire.NEXT_OUT, 2_000_000, 4),
    (IN + OPTIMIZER, 150_000, 5),  # zero_grad
    (OUT + OPTIMIZER, 90_000, 5),
    (wire.MODEL_IN, 30_000, 6),
    (wire.MODEL_OUT, 11_000_000, 6),
    (wire.BACKWARD_IN, 400_000, 7),
    (wire.BACKWARD_OUT, 24_000_000, 7),
    (wire.STEP_IN, 60_000, 8),
    (wire.STEP_OUT, 3_000_000, 8),
)
_NEXT_OUT, _BACKWARD_OUT = 2, 8
_LOGS = ((IN + LOGGING, 40_000, 9), (OUT + LOGGING, 300_000, 9))
_EVALUATES = (
    (wire.READY, 20_000, 12),
    (wire.NEXT_IN, 1_000, 12),
    (wire.NEXT_OUT, 1_000_000, 12),
    (wire.MODEL_IN, 50_000, 13),
    (wire.MODEL_OUT, 4_000_000, 13),
)
_ENDS = ((wire.NEXT_IN, 30_000, 4), (wire.NEXT_OUT, 500_000, 4))


def write(folder: Path, *, ranks: int, steps: int, late: int | None) -> None:
    """A whole run's folder."""
    begin(folder, ranks)
    loop = Loop(steps)
    for rank in range(ranks):
        write_rank(folder, loop, rank, ranks, is_late=rank == late)


def begin(folder: Path, ranks: int) -> None:
    """All but the ranks' own files."""
    (folder / runfile.RECORD).mkdir(parents=True)
    command = ["torchrun", f"--nproc-per-node={ranks}", SCRIPT]
    run = runfile.RunFile(
        command=command, cwd="/srv", started=1.7e9, environment=Environment(cores=8), exit_code=0, seconds=600.0
    )
    runfile.save(folder, run)


class Loop:
    """The events of all steps, which every rank has, and what passes before each."""

    def __init__(self, steps: int) -> None:
        events: list[tuple[int, int, int]] = []
        iterator = 0
        self.steps = steps
        for step in range(steps):
            if step % EPOCH == 0:
                iterator += 1
            events += _told(_STEP, iterator)
            if step % _LOGGED_EVERY == 0:
                events += _LOGS
            if (step + 1) % EPOCH == 0 or step + 1 == steps:
                events += _told(_ENDS, iterator, samples=None)
                iterator += 1
                events += _told(_EVALUATES, iterator, operand=wire.TRAINED) * EVALUATED
                events += _told(_ENDS, iterator, samples=None)
        events.append((wire.END, 5_000_000, 0))
        table = np.array(events, np.int64)
        self.words, self.usual, self.lines = table.T.copy()
        kinds = self.words & wire.KIND
        self.backwards = np.flatnonzero(kinds == wire.BACKWARD_OUT)
        self.borders = np.flatnonzero(kinds == wire.NEXT_IN)
        self.batches = self.backwards - (_BACKWARD_OUT - _NEXT_OUT)
        self.iterators = iterator

    def times(self, rank: int, *, is_late: bool) -> np.ndarray:
        """When each event happens: what a rank does takes it one part in a hundred more or less, and all meet."""
        passed = self.usual * np.random.default_rng(rank).normal(1, 0.01, len(self.usual)).clip(0.9, 1.1)
        if is_late:
            passed[self.batches] += LATE
        meetings = np.zeros(len(passed))
        meetings[self.backwards] = LATE
        apart = np.cumsum(self.usual + meetings)  # when all meet: as long as the late one takes, or the wait for it
        passed = passed.astype(np.int64)
        before = np.cumsum(passed)
        met = apart[self.backwards].astype(np.int64)
        since = met - before[self.backwards]
        passed[self.backwards] += np.diff(since, prepend=0)
        return _STARTED + np.cumsum(passed)


def _told(
    events: tuple[tuple[int, int, int], ...], iterator: int, samples: int | None = BATCH, operand: int = _MODEL
) -> list[tuple[int, int, int]]:
    """With what the words tell besides."""
    operands = {
        wire.READY: 4,
        wire.NEXT_IN: iterator,
        wire.NEXT_OUT: 0 if samples is None else 1 + samples,
        wire.MODEL_IN: operand,
    }
    return [(operands.get(word, 0) << SHIFT | word, passed, line) for word, passed, line in events]


def write_rank(folder: Path, loop: Loop, rank: int, ranks: int, *, is_late: bool) -> None:
    """One rank's file."""
    times = loop.times(rank, is_late=is_late)
    events = np.stack([times, loop.words], axis=1)
    pid = 1000 + rank
    parts = [*_facts(rank, ranks, pid, loop), *_places(pid)]
    looks, stacks = _looks(times, loop, rank)
    ends = np.searchsorted(times, np.arange(times[0] + FLUSH, times[-1] + FLUSH, FLUSH), "right")
    starts = np.append(0, ends[:-1])
    seen = np.searchsorted(looks, np.append(times[starts], times[-1] + 1))
    noted = np.searchsorted(loop.borders, starts)
    for begin, end, first, last, border in zip(starts, ends, seen[:-1], seen[1:], noted, strict=True):
        taken = list(zip(looks[first:last].tolist(), stacks[first:last], stacks[first:last], strict=True))
        parts.append(wire.note("samples", pid=pid, worker=False, looks=taken))
        if border + 1 < len(loop.borders) and loop.borders[border + 1] <= end:
            step = slice(loop.borders[border], loop.borders[border + 1])
            lines = list(zip(times[step].tolist(), loop.lines[step].tolist(), strict=True))
            parts.append(wire.note("lines", taken=lines))
        parts.append(wire.frame(wire.LOG_TAG, wire.LOG.pack(2 * begin) + events[begin:end].tobytes()))
    parts.append(wire.note("end", at=float(times[-1]) * 1e-9, stopped=False))
    name = f"node{rank // 8}-{pid}-{rank:x}.rec"
    (folder / runfile.RECORD / name).write_bytes(b"".join(parts))


def _facts(rank: int, ranks: int, pid: int, loop: Loop) -> list[bytes]:
    notes = [
        wire.note(
            "process",
            version=wire.VERSION,
            pid=pid,
            host=f"node{rank // 8}",
            rank=str(rank),
            local_rank=str(rank % 8),
            world=str(ranks),
            argv=["python", SCRIPT],
            cwd="/srv",
            executable="/usr/bin/python3",
            python="3.11.7",
            torch="2.13.0",
            cuda=None,
            threads=1,
            started=_STARTED * 1e-9,
            clock=_STARTED * 1e-9,
            wall=1.7e9,
        ),
        wire.note("ddp", find_unused_parameters=False, static_graph=False, bucket_bytes_cap=26214400),
        wire.note("missing", what="grad_sync", reason="DistributedDataParallel reduces gradients inside backward"),
        wire.note("optimizer", id=0, name="AdamW", parameters=10**6, tensors=12, lr=1e-3, dtypes=["float32"]),
    ]
    for number, line in ((1, 4), (2, 12)):
        notes.append(
            wire.note(
                "loader",
                id=number,
                workers=4,
                batch_size=BATCH,
                prefetch=2,
                persistent=True,
                pin=False,
                drop_last=True,
                shuffle=number == 1,
                dataset="train.Pictures",
                length=EPOCH if number == 1 else EVALUATED,
                file=SCRIPT,
                line=line,
                function="main",
            )
        )
    return notes + [
        wire.note("iterator", id=number, loader=2 - number % 2, pids=[]) for number in range(1, loop.iterators + 1)
    ]


def _places(pid: int) -> list[bytes]:
    """Lines of the program, each a stack of its own too."""
    lines = sorted({line for _, _, line in (*_STEP, *_LOGS, *_EVALUATES)})
    return [
        note
        for line in lines
        for note in (
            wire.note("place", pid=pid, id=line, file=SCRIPT, line=line, function="main", origin="user"),
            wire.note("stack", pid=pid, id=line, places=[line]),
        )
    ]


def _looks(times: np.ndarray, loop: Loop, rank: int) -> tuple[np.ndarray, list[int]]:
    """Moments at which the stack was looked at, as often as the sampler does, and the line that it was at."""
    dice, now, looks = np.random.default_rng([rank, 1]), 0.0, []
    length = float(times[-1] - times[0]) * 1e-9
    while (now := now + min(max(now / 60, 0.025), 0.4) * (0.5 + dice.random())) < length:
        looks.append(now)
    at = times[0] + (np.array(looks) * 1e9).astype(np.int64)
    return at, loop.lines[np.searchsorted(times, at)].tolist()


def sizes(folder: Path) -> tuple[int, int]:
    """How many files a record has, and bytes."""
    files = list((folder / runfile.RECORD).glob("*.rec"))
    return len(files), sum(file.stat().st_size for file in files)
