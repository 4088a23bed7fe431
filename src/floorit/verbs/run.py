"""`floorit run`: a program is run to its end, recorded, and its report is written and shown."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

import msgspec

from floorit import (
    condense,
    drain,
    floorrun,
    hardware,
    headroom,
    imagecosts,
    launch,
    live,
    reading,
    recipe,
    runfile,
    telemetry,
    usage,
)
from floorit.analyse import trace
from floorit.analyse.alternatives import Measured
from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.language import said
from floorit.report import build, model, terminal, words
from floorit.verbs import folders, settled, telling
from floorit.verbs.settled import Settled

FAULT = "fault.txt"


def run(options: argparse.Namespace) -> int:
    """Record a command; the program's own exit code."""
    if not options.command:
        raise UsageError("what is to be run? For example: floorit run train.py")
    wanted = (recipe.read(options.recipe) if options.recipe else recipe.Recipe()).but(asked.parse(options.fix))
    options.fixes = wanted.applied
    command = settled.settle(options.command, wanted, options.recipe)
    folder = folders.make(options.out, folders.name_of(options.command))
    _, code = record(command.written(folder), folder, options)
    return launch.leave_like(code)


def record(command: Settled, folder: Path, options: argparse.Namespace) -> tuple[model.Report | None, int]:
    """Run a command to its end, recorded; the report, and how the program ended. No fault of ours hides that."""
    record = folder / runfile.RECORD
    run = runfile.RunFile(
        command=options.command,
        cwd=str(Path.cwd()),
        started=time.time(),
        environment=hardware.examine(folder),
        window=not options.no_window,
        fixes=options.fixes,
        warmup=options.warmup,
    )
    runfile.save(folder, run)
    watcher = live.Live(
        record, stream=sys.stderr, quiet=options.quiet, steps=options.steps, window=not options.no_window
    )
    sampler, memory, used = telemetry.Telemetry(folder), headroom.Watch(), usage.Watch()
    condenser = condense.Condenser(record)

    def watch(_: object) -> None:
        watcher.watch()
        sampler.watch(watcher.pids)
        condenser.watch()
        memory.look(watcher.pids)
        used.look(watcher.pids)

    before = _cpu_of_children()
    try:
        code, seconds = launch.run(command.words, record, watch, more=launch.asking_for(run.fixes))
    finally:
        sampler.close()
        watcher.close()
    run = msgspec.structs.replace(
        run,
        stopped=watcher.has_stopped,
        exit_code=launch.shell_code(code),
        seconds=seconds,
        cpu_seconds=_cpu_of_children() - before,
        headroom=memory.sum_up(),
        usage=used.sum_up(),
    )
    try:
        report = _finish(folder, _looked_into(command, folder, run, watcher, options), watcher, options)
    except Exception as error:
        _own_up(folder, run, error)
        report = None
    condenser.finish()
    return report, code


def _looked_into(
    command: Settled, folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace
) -> runfile.RunFile:
    """The run with what is found out after it."""
    trace.shrink(folder / runfile.RECORD)
    run = msgspec.structs.replace(run, turned=command.told(watcher.reader.run()))
    run = reading.read(run, watcher.reader, command.shown)
    if options.floor:
        outcome = _floor(command, folder, run, watcher, options)
        run = msgspec.structs.replace(run, floor=outcome)
        alone = _drained(command, folder, run, watcher, options)
        run = msgspec.structs.replace(run, drained=alone, images=_image_costs(run, watcher, options))
    return run


def _own_up(folder: Path, run: runfile.RunFile, error: Exception) -> None:
    """Say that we have failed, and keep what is needed to find out why."""
    try:
        runfile.save(folder, run)
        (folder / FAULT).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        pass  # then the line has to do
    where = words.relative(str(folder))
    print(said(f"floorit: the report cannot be made, by a fault of ours: {error!r}"), file=sys.stderr)
    print(
        said(f"the program ran as it would have; its record is in {where}, the fault in {FAULT} there"), file=sys.stderr
    )


def _cpu_of_children() -> float:
    """Seconds of cores that programs which we started and that have ended used."""
    used = os.times()
    return used.children_user + used.children_system


def _floor(
    command: Settled, folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace
) -> runfile.FloorRun:
    """Run the command once more without its data path; what became of that."""
    if run.exit_code:
        return runfile.FloorRun(reason="the program itself did not end well")
    trained = floorrun.examine(watcher.reader.run())
    if trained is None:
        return runfile.FloorRun(reason="the program did not train")
    if not options.quiet:
        print(said(f"floorit: measuring the floor: {floorrun.MEANING}"), file=sys.stderr, flush=True)
    more = launch.asking_for(run.fixes)
    return floorrun.run(command.command, folder, trained, window=run.window, more=more, shown=command.shown)


def _drained(
    command: Settled, folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace
) -> runfile.Draining | None:
    """Run only the loader; None where it has none."""
    loader = drain.examine(watcher.reader.run())
    if loader is None:
        return None
    if run.floor is not None and run.floor.reason is not None:  # Ctrl-C, or what would end this one, too
        return runfile.Draining(reason=f"the run without a data path came before, and {run.floor.reason}")
    if not options.quiet:
        print(said(f"floorit: draining the loader: {drain.MEANING}"), file=sys.stderr, flush=True)
    more = launch.asking_for(run.fixes)
    return drain.run(command.command, folder, loader, run.environment.usable_cores, more=more, shown=command.shown)


def _image_costs(run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace) -> Measured:
    """What operations on images cost, of a program that ended well."""
    if run.exit_code:
        return Measured(reason="the program itself did not end well")
    plan = imagecosts.plan(watcher.reader)
    if plan is None:
        return imagecosts.NOTHING
    if not options.quiet:
        print(said(f"floorit: measuring {imagecosts.MEANING}"), file=sys.stderr, flush=True)
    return imagecosts.measure(plan)


def _finish(folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace) -> model.Report:
    """Write and show the report."""
    report = build.assemble(folder, run, watcher.reader)
    try:
        runfile.save(folder, run)
        (folder / "report.json").write_bytes(model.to_json(report))
    except OSError as error:
        if not watcher.warned:  # else it has been said that nothing can be written there
            print(said(f"floorit: the report cannot be written: {error.strerror} ({folder})"), file=sys.stderr)
    if options.json:
        sys.stdout.buffer.write(model.to_json(report))
        sys.stdout.buffer.flush()
    if not options.quiet:
        terminal.show(report, sys.stderr)
    if not watcher.warned:
        telling.leave_page(folder, options, lambda: telling.draw_page(report, run, watcher.reader, folder))
    return report
