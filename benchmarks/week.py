"""How large the record of a run of days becomes: written as it would grow, packed as `floorit run` packs it, then read.

No program runs: the bytes are those of the recorder, flushed as it flushes, with looks, lines and what two workers
tell; an evaluation follows each 1,000 steps. Each interval of a step varies by a tenth, one step in a thousand takes
ten times as long, and in the last third all of them wait a fifth of a step longer for the loader: that must be noticed.
Steps under 10 ms are told as in naps. Bytes are those that the disk gives (what was given back is not counted), seconds
are by the wall and memory is that of the largest process (getrusage), of `floorit report --json` in a fresh one.

    python benchmarks/week.py --milliseconds 500 --days 7
    python benchmarks/week.py --milliseconds 50 --days 7
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from floorit import condense, runfile
from floorit.record import wire

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import manyranks

DAY = 86400.0
FLUSH, LOOK = 0.6, 0.8  # seconds
VARIES, LONG, TIMES = 0.1, 1e-3, 10.0
SLOWER = 0.2  # of a step, in the last third
SHORT = 10.0  # milliseconds under which it naps
CLOSELY = 40  # steps of an epoch that are looked at before it does
WORKERS = 2
STARTED = 10**12


def main():
    options = arguments()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="floorit-week-"))
    try:
        steps = write(folder, options.milliseconds, options.days, packs=not options.plain)
        read(folder, steps)
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, default=500.0, help="of a step (500)")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--plain", action="store_true", help="pack nothing: what it would take without")
    parser.add_argument("--folder", type=Path, help="where the record is to be left")
    return parser.parse_args()


def write(folder, milliseconds, days, *, packs):
    """The record of a run of so many days; how many steps it has."""
    manyranks.begin(folder, 1)
    record = folder / runfile.RECORD
    host = os.uname().nodename
    own, shared = record / f"{host}-4000000-1.rec", record / f"workers-{host}-4000000.rec"
    own.write_bytes(b"".join([*manyranks._facts(0, 1, 4000000, manyranks.Loop(0)), *manyranks._places(4000000)]))
    epoch = Epoch(milliseconds)
    condenser, growing = condense.Condenser(record), Growing(own, shared)
    begun, day, total, packing, before = STARTED, 0, 0, 0.0, 0
    with own.open("ab", buffering=0) as log, shared.open("ab", buffering=0) as made:
        while begun - STARTED < days * DAY * 1e9:
            is_slow = begun - STARTED > days * DAY * 2e9 / 3
            begun = growing.add(log, made, *epoch.events(begun, total, is_slow=is_slow))
            total += 1
            if packs and total % 4 == 0:
                began = time.monotonic()
                condenser.look()
                packing += time.monotonic() - began
            if (begun - STARTED) * 1e-9 > (day + 1) * DAY:
                day += 1
                size = on_disk(record)
                print(f"day {day}: {size / 1e6:.1f} MB, {(size - before) / 1e6:.1f} MB of that new", flush=True)
                before = size
        log.write(wire.frame(wire.LOG_TAG, wire.LOG.pack(growing.told) + np.array([begun, wire.END]).tobytes()))
    steps, passed = total * manyranks.EPOCH, (begun - STARTED) * 1e-9
    size = on_disk(record)
    print(f"{steps:,} steps, {passed / DAY:.2f} days: {size / 1e6:.1f} MB, {size / steps:.2f} bytes a step")
    print(f"written (and lengths of files): {(own.stat().st_size + shared.stat().st_size) / 1e6:.1f} MB")
    print(f"packing took {packing:.0f} s, {packing / passed:.2%} of the time")
    condenser.finish()
    print(f"at the end, without holes: {on_disk(record) / 1e6:.1f} MB")
    return steps


def on_disk(folder):
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


class Epoch:
    """The events of 1,000 steps and an evaluation."""

    def __init__(self, milliseconds):
        loop = manyranks.Loop(manyranks.EPOCH)
        words, usual, lines = loop.words[:-1], loop.usual[:-1], loop.lines[:-1]  # without the end
        self.scale = milliseconds * 1e6 / (usual[: loop.backwards[-1]].sum() / manyranks.EPOCH)
        kinds = words & wire.KIND
        if milliseconds < SHORT:
            words, usual, lines = asleep(words, usual, lines, kinds)
            kinds = words & wire.KIND
        self.words, self.usual, self.lines = words, usual, lines
        self.asks = np.flatnonzero(kinds == wire.NEXT_IN)
        self.waits = np.flatnonzero((kinds == wire.NEXT_OUT) & (words >> wire.SHIFT > 0))[: manyranks.EPOCH]
        self.dice = np.random.default_rng(1)

    def events(self, begun, number, *, is_slow):
        """Times, words, lines and when batches came, of an epoch."""
        passed = self.usual * self.scale * self.dice.lognormal(0, VARIES, len(self.usual))
        late = self.waits[self.dice.random(len(self.waits)) < LONG]
        step = self.usual.sum() * self.scale / manyranks.EPOCH
        passed[late] += TIMES * step
        if is_slow:
            passed[self.waits] += SLOWER * step
        words = self.words.copy()
        words[self.asks] += 2 * number << wire.SHIFT
        times = begun + np.cumsum(passed).astype(np.int64)
        return times, words, self.lines, times[self.waits]


def asleep(words, usual, lines, kinds):
    """The same where most steps are told as a whole."""
    asks = np.flatnonzero(kinds == wire.NEXT_IN)
    begin, end = asks[CLOSELY], asks[manyranks.EPOCH - 1]
    steps = np.searchsorted(asks, end) - CLOSELY
    told = np.array([[wire.NAP_STEP, 38_000_000, 8], [0, 21_000, 4], [wire.NEXT_OUT, 2_000_000, 4]])
    told[1, 0] = words[begin]
    told[2, 0] |= 1 + manyranks.BATCH << wire.SHIFT
    nap = np.concatenate([[[wire.NAP_IN, 1000, 4], told[2]], np.tile(told, (steps - 1, 1)), told[:1]])
    nap = np.concatenate([nap, [[wire.NAP_OUT, 1000, 4]]])
    table = np.stack([words, usual, lines], axis=1)
    return tuple(np.concatenate([table[: begin + 1], nap, table[end - 1 :]]).T.copy())


class Growing:
    """The two files, as they are flushed."""

    def __init__(self, own, shared):
        self.told = 0
        self.own, self.shared = own, shared
        self.looked = STARTED

    def add(self, log, made, times, words, lines, batches):
        """An epoch; when it ended."""
        ends = np.searchsorted(times, np.arange(times[0], times[-1] + FLUSH * 1e9, FLUSH * 1e9)[1:], "right")
        ends = np.unique(np.append(ends, len(times)))
        parts = self._iterators(words)
        fetched = []
        for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if begin == end:
                continue
            parts += self._notes(times[begin:end], lines[begin:end])
            events = np.stack([times[begin:end], words[begin:end]], axis=1)
            parts.append(wire.frame(wire.LOG_TAG, wire.LOG.pack(self.told) + events.tobytes()))
            self.told += 2 * (end - begin)
            came = batches[np.searchsorted(batches, times[begin]) : np.searchsorted(batches, times[end - 1])]
            fetched += self._fetches(came.tolist())
        log.write(b"".join(parts))
        made.write(b"".join(fetched))
        return int(times[-1]) + 1000

    def _iterators(self, words):
        numbers = np.unique(words[(words & wire.KIND) == wire.NEXT_IN] >> wire.SHIFT).tolist()
        pids = list(range(5000000, 5000000 + WORKERS))
        return [wire.note("iterator", id=number, loader=2 - number % 2, pids=pids) for number in numbers]

    def _notes(self, times, lines):
        looks = []
        while self.looked < times[-1]:
            at = int(lines[np.searchsorted(times, self.looked)]) or 4
            looks.append([int(self.looked), at, at])
            self.looked += LOOK * 1e9
        taken = list(zip(times[:11].tolist(), lines[:11].tolist(), strict=True))
        at = float(times[-1]) * 1e-9
        return [
            wire.note("samples", pid=4000000, worker=False, looks=looks),
            wire.note("lines", taken=taken),
            wire.note("received", at=at, batches=len(times) // 11, seconds=len(times) * 1.7e-5),
        ]

    def _fetches(self, came):
        """Each worker tells of every other batch, and now and then of where it was seen."""
        found = []
        for worker in range(WORKERS):
            mine = came[worker::WORKERS]
            spent = np.random.default_rng(len(mine)).lognormal(0, VARIES, (len(mine), 3)) * (2e-3, 5e-4, 2e-4)
            packed = [
                wire.FETCH.pack(end * 1e-9, 5000000 + worker, manyranks.BATCH, worker, *each)
                for end, each in zip(mine, spent.tolist(), strict=True)
            ]
            if packed:
                looks = [[int(mine[-1]) - 1000, 1, 1]]
                found.append(wire.note("samples", pid=5000000 + worker, worker=True, looks=looks))
                found.append(wire.frame(wire.FETCH_TAG, b"".join(packed)))
        return found


def read(folder, steps):
    """The report, in a fresh process; what must be in it."""
    began = time.monotonic()
    command = [sys.executable, "-m", "floorit", "report", "--json", str(folder)]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    took, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"floorit report --json: {took:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of a core,", end=" ")
    print(f"{used.ru_maxrss / 2**10:.0f} MiB (load of the machine {os.getloadavg()[0]:.1f})")
    slower = told["slowdown"]
    print(f"step {told['step']['mean'] * 1e3:.4f} ms, p95 {told['step']['p95'] * 1e3:.4f} ms,", end=" ")
    print(f"ledger {sum(entry['seconds'] for entry in told['ledger']) * 1e3:.4f} ms, {told['run']['epochs']} epochs")
    print(f"slower from step {slower['step']:,} on, {slower['ratio']['value']:.3f} times" if slower else "no slow-down")
    assert told["run"]["steps"] == steps, (told["run"]["steps"], steps)


if __name__ == "__main__":
    main()
