"""The drained run: the same command once more, only to take batches from its training loader as fast as they come."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from floorit import launch, live
from floorit.analyse import iterations
from floorit.events import Process
from floorit.record import wire
from floorit.runfile import DRAIN, RECORD, Drained, Draining
from floorit.sandbox import Sandbox, sandbox

MEANING = "the same command again, only its training loader, with several numbers of workers; nothing trains"
# Seconds in which batches are counted, for each number of workers: a part of the training that was seen.
SHARE, LEAST, LONGEST = 0.25, 1.0, 3.0
EACH = 20.0  # seconds that each may take, with the start of the workers and their first batches
PATIENCE = 60.0  # beyond these, and what the program took until it trained
MOST = 4  # numbers of workers


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """What the first run tells of it."""

    number: int
    workers: int
    ranks: int  # that have one each
    started: float  # seconds until the program trained
    seconds: float  # for which it did


def examine(processes: list[Process]) -> Loader | None:
    """The first rank's training loader; None where there is none."""
    trained = [process for process in processes if iterations.find(process) is not None]
    found = [(process, loader) for process in trained if (loader := _loader(process)) is not None]
    if not found:
        return None
    process, loader = found[0]
    begin = float(process.starts()[0])
    return Loader(
        number=loader["id"],
        workers=loader["workers"],
        ranks=len(found),
        started=max(begin - float(process.facts["started"]), 0.0),
        seconds=float(process.rows["end"][-1]) - begin,
    )


def _loader(process: Process) -> dict[str, Any] | None:
    return next(iter(process.loaders_of(process.trained_iterators())), None)


def numbers(own: int, cores: float | None) -> list[int]:
    """Of workers: the program's own, one, as many as there are cores, and half of that.

    None at all comes last: then the process makes the batches itself, and what its dataset keeps stays there.
    """
    most = max(int(cores or 1), 1)
    wanted = list(dict.fromkeys([own, most, 1, most // 2]))
    return sorted((count for count in wanted[:MOST] if count or count == own), key=lambda count: (not count, count))


def run(
    command: list[str],
    folder: Path,
    loader: Loader,
    cores: float | None,
    *,
    more: dict[str, str],
    shown: Mapping[str, Path] = MappingProxyType({}),
) -> Draining:
    """Run it, with `more` in its environment, and files `shown` in place of others. Whatever happens here, the first
    run stands."""
    own = (folder / DRAIN).absolute()
    try:
        launch.make_record(own)
    except OSError as error:
        return Draining(reason=f"its record cannot be written: {error.strerror}")
    with sandbox(own) as kept:
        if kept is None or (shown and not kept.can_show):
            return Draining(reason="this system offers no way to keep what it writes away from your files")
        counts = numbers(loader.workers, cores / loader.ranks if cores else None)
        return _run(kept.around(command, shown), own, loader, counts, kept, more)


def _run(
    command: list[str], own: Path, loader: Loader, counts: list[int], kept: Sandbox, more: dict[str, str]
) -> Draining:
    # A loader that is another one this time is not drained: then it is to end with its first steps.
    watcher = live.Live(own / RECORD, stream=sys.stderr, quiet=True, steps=1, window=False)
    deadline = time.monotonic() + 2 * loader.started + EACH * len(counts) + PATIENCE

    def watch(child: subprocess.Popen[bytes]) -> None:
        watcher.watch()
        if time.monotonic() > deadline:
            child.terminate()

    seconds = min(max(SHARE * loader.seconds, LEAST), LONGEST)
    plan = {"loader": loader.number, "workers": counts, "seconds": seconds, "longest": EACH}
    environ = {wire.DRAIN: json.dumps(plan), "WANDB_MODE": "disabled", **kept.environ, **more}
    said = own / "output.txt"
    with said.open("wb") as output:
        code, _ = launch.run(command, own / RECORD, watch, output=output.fileno(), more=environ)
    watcher.close()
    found = _told(watcher.reader.run())
    if not any(one.batches for one in found):
        why = next((one.reason for one in found if one.reason), None)
        return Draining(reason=why or f"its loader was not met; it ended with exit code {launch.shell_code(code)}")
    return Draining(rates=found)


def _told(processes: list[Process]) -> list[Drained]:
    """By the number of workers; ranks drain beside each other, and add up."""
    by_count: dict[int, list[Drained]] = {}
    for process in processes:
        for note in process.drained:
            own = {key: note[key] for key in ("workers", "batches", "seconds", "reason") if key in note}
            by_count.setdefault(note["workers"], []).append(msgspec.convert(own, Drained))
    return [_together(count, ranks) for count, ranks in sorted(by_count.items())]


def _together(count: int, ranks: list[Drained]) -> Drained:
    batches, seconds = sum(one.batches for one in ranks), [one.seconds for one in ranks if one.batches]
    reason = next((one.reason for one in ranks if one.reason), None)
    mean = sum(seconds) / len(seconds) if seconds else 0.0
    return Drained(workers=count, batches=batches, seconds=mean, reason=reason)
