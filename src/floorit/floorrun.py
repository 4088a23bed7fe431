"""The floor run: the same command once more, without its data path, its writes kept from the user's files."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from floorit import launch, live, rates, replay
from floorit.analyse import iterations, limit, trace
from floorit.analyse.iterations import Iterations
from floorit.events import Process, Rates
from floorit.record import wire
from floorit.runfile import FLOOR, RECORD, FloorRun
from floorit.sandbox import Sandbox, sandbox

MEANING = "the same command again, shortly, its first batches repeated; what it writes is thrown away"
# Steady steps that it is to have: so many seconds of them, at least and at most so many.
SECONDS, FEWEST, MOST = 15.0, 20, 300
PATIENCE = 60.0  # seconds beyond twice the first run's: after that it is ended


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """What the first run tells the second."""

    step: float  # seconds
    seconds: float  # of all its steps
    spared: list[int]  # loaders that only evaluate
    lengths: dict[str, int]  # batches of a whole pass, by loader


def examine(processes: list[Process]) -> Trained | None:
    """The first run as the second has to know it; None if it never trained."""
    for process in processes:
        found = iterations.find(process)
        if found is not None and len(found.after_warmup):
            return Trained(
                step=float(found.after_warmup.mean()),
                seconds=float(process.rows["end"][-1] - process.starts()[0]),
                spared=_spared(process, found),
                lengths=_lengths(process),
            )
    return None


def _spared(process: Process, found: Iterations) -> list[int]:
    loaders = {number: this["loader"] for number, this in process.iterators.items()}
    evaluate = {loaders[i] for i in found.eval_iterators if i in loaders}
    train = {loaders[i] for i in loaders.keys() - found.eval_iterators if i in loaders}
    return sorted(evaluate - train)


def _lengths(process: Process) -> dict[str, int]:
    """Of passes that came to their end."""
    rows, longest = process.rows, dict[str, int]()
    for number, this in process.iterators.items():
        own = rows["iterator"] == number
        if (rows["opened"][own] == replay.EXHAUSTED).any():
            key, count = str(this["loader"]), int((rows["opened"][own] == replay.BATCH).sum())
            longest[key] = max(longest.get(key, 0), count)
    return longest


def run(
    command: list[str],
    folder: Path,
    trained: Trained,
    *,
    window: bool,
    more: dict[str, str],
    shown: Mapping[str, Path] = MappingProxyType({}),
) -> FloorRun:
    """Run it, with `more` in its environment, and files `shown` in place of others; the record is in FLOOR.

    Whatever happens here, the first run stands.
    """
    own = (folder / FLOOR).absolute()
    try:
        launch.make_record(own)
    except OSError as error:
        return FloorRun(reason=f"its record cannot be written: {error.strerror}")
    with sandbox(own) as kept:
        if kept is None:
            return FloorRun(reason="this system offers no way to keep what it writes away from your files")
        if shown and not kept.can_show:
            return FloorRun(reason="this system offers no way to show it other settings while its writes are kept away")
        return _run(kept.around(command, shown), own, trained, kept, window, more)


def _run(
    command: list[str], own: Path, trained: Trained, kept: Sandbox, window: bool, more: dict[str, str]
) -> FloorRun:
    steps = round(min(max(SECONDS / max(trained.step, 1e-4), FEWEST), MOST))
    watcher = live.Live(own / RECORD, stream=sys.stderr, quiet=True, steps=steps, window=window)
    deadline = time.monotonic() + 2 * trained.seconds + PATIENCE

    def watch(child: subprocess.Popen[bytes]) -> None:
        watcher.watch()
        if time.monotonic() > deadline:
            child.terminate()

    plan = {"spared": trained.spared, "lengths": trained.lengths}
    environ = {wire.REPLAY: json.dumps(plan), "WANDB_MODE": "disabled", **kept.environ, **more}
    said = own / "output.txt"
    with said.open("wb") as output:
        code, seconds = launch.run(command, own / RECORD, watch, output=output.fileno(), more=environ)
    watcher.close()
    trace.shrink(own / RECORD)
    if code:
        return FloorRun(
            how=kept.meaning, seconds=seconds, reason=f"it ended with exit code {launch.shell_code(code)}: see {said}"
        )
    found = _rates(watcher.reader.run())
    known = {"no_rates": found} if isinstance(found, str) else {"rates": found}
    return FloorRun(how=kept.meaning, seconds=seconds, **known)


def _rates(processes: list[Process]) -> Rates | str | None:
    """The rates of the GPU that most was computed on, in the precisions in use; None where there is no use for them."""
    for process in processes:
        found = iterations.find(process)
        work = limit.count(process, found) if found is not None else None
        if work is not None and work.is_on_gpu and work.name is not None:
            facts = process.facts
            device = rates.Device(
                executable=facts["executable"], torch=facts["torch"], device=work.device, name=work.name
            )
            return rates.known(device, list(work.flops))
    return None
