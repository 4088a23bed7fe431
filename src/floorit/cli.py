"""The entry point, and what each verb does."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from rich.console import RenderableType

from floorit import (
    commandline,
    condense,
    cores,
    demo,
    floorrun,
    hardware,
    headroom,
    imagecosts,
    language,
    launch,
    live,
    recipe,
    runfile,
    telemetry,
    usage,
)
from floorit.analyse import habits, trace
from floorit.analyse.alternatives import Measured
from floorit.commandline import FOLDER
from floorit.compare import command as comparing
from floorit.declared import gather
from floorit.errors import FlooritError, OutputError, RecordError, UsageError
from floorit.events import RecordReader
from floorit.fixes import asked
from floorit.language import said
from floorit.report import beside, build, markdown, model, sheet, terminal, trained, words
from floorit.report import trace as trace_file
from floorit.scan.finding import Result
from floorit.trial import arms, attempt, store
from floorit.trial.table import render as render_trials
from floorit.truth import Scale
from floorit.tune import result as searched
from floorit.tune import tuning
from floorit.tune.table import render as render_search


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    if sys.platform == "win32":
        print(said("floorit: Windows is not supported; Linux is, macOS as far as it goes."), file=sys.stderr)
        return 1
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _dispatch(given)
    except FlooritError as error:
        print(said(f"floorit: {error} [{error.slug}]"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _dispatch(given: list[str]) -> int:
    parser = commandline.parser()
    commandline.check_verb(given, _VERBS)
    own, command = commandline.split(given)
    options = parser.parse_args(own)
    options.command = command
    _speak(options)
    verb = getattr(options, "verb", None)
    if verb is None:
        parser.print_help(sys.stderr)
        return 2
    return _VERBS[verb](options)


def _speak(options: argparse.Namespace) -> None:
    """Choose the language: as typed, else as the environment says, else English; and where it cannot be written."""
    code = getattr(options, "lang", None) or language.named(os.environ.get(language.VARIABLE) or language.ENGLISH)
    if code != language.ENGLISH and not live.speaks_utf8(sys.stderr):
        print(f"floorit: this terminal cannot show {code}: English", file=sys.stderr)
        code = language.ENGLISH
    language.use(code)


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("what is to be run? For example: floorit run train.py")
    options.fixes = {**(recipe.read(options.recipe) if options.recipe else {}), **asked.parse(options.fix)}
    command = launch.resolve(options.command)
    folder = _make_folder(options.out, _name_of(options.command))
    _, code = _record(command, folder, options)
    return launch.leave_like(code)


def _try(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("what is to be tried? For example: floorit try --fix workers=8 train.py")
    launch.resolve(options.command)
    folder = _trials_folder(options, store.NAME)
    made = arms.make(options.command, options.fix, options.vary, each=options.each, risk=options.risk)
    result = attempt.attempt(_terms(options), made, folder, sys.stderr)
    _tell(options, attempt.to_json(result), render_trials(result))
    if result.outcomes:
        from floorit.trial import page  # as in _draw_page

        _leave_page(folder, options, lambda: page.write(result, folder))
    return 130 if result.interrupted else 0


def _tune(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("what is to be tuned? For example: floorit tune train.py")
    if options.allow and options.goal == "balanced":
        raise UsageError("--allow training goes with --goal speed or --goal memory")
    if options.batch_arg is not None and not (options.allow and options.goal == "speed"):
        raise UsageError("--batch-arg goes with --goal speed --allow training")
    if options.batch_arg is not None and "{}" not in options.batch_arg:
        raise UsageError("--batch-arg needs {} where the size is to stand, as in: --batch-arg '--batch-size {}'")
    launch.resolve(options.command)
    folder = _trials_folder(options, tuning.ASKED)
    wanted = searched.Asked(
        command=options.command,
        goal=options.goal,
        allowed=options.allow,
        batch_arg=options.batch_arg,
        terms=_terms(options),
    )
    result = tuning.tune(wanted, folder, sys.stderr)
    _tell(options, searched.to_json(result), render_search(result))
    if result.stages:
        from floorit.tune import page  # as in _draw_page

        _leave_page(folder, options, lambda: page.write(result, folder))
    return 130 if result.interrupted else 0


def _tell(options: argparse.Namespace, as_json: bytes, as_text: RenderableType) -> None:
    if options.json:
        sys.stdout.buffer.write(as_json)
        sys.stdout.buffer.flush()
    if not options.quiet:
        terminal.draw(as_text, sys.stderr)


def _trials_folder(options: argparse.Namespace, own: str) -> Path:
    """The folder of a try or a search, which has a file of that name in it, if it was begun before."""
    name = f"{options.verb}-{_name_of(options.command)}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder: Path = options.out or _unused(Path(FOLDER) / name)
    if (folder / runfile.RECORD).exists() and not (folder / own).exists():
        raise OutputError(f"{folder} holds a record of something else; choose another --out")
    return folder


def _terms(options: argparse.Namespace) -> attempt.Terms:
    return attempt.Terms(steps=options.steps, budget=options.budget, in_place=options.in_place, quiet=options.quiet)


def _demo(options: argparse.Namespace) -> int:
    case = demo.outside_of_libraries(demo.find(options.case))
    python = demo.examine(launch.interpreter(), ask_cuda=options.scale is None)
    demo.require(python)
    scale: Scale = options.scale or ("gpu" if python.cuda else "cpu")
    folder = _make_folder(options.out, case.name)
    data = demo.make_data(case, scale, python.path, sys.stderr)
    options.command = demo.command(case, scale, python.path, data, folder / "train")
    print(said(f"floorit: recording {' '.join(map(words.relative, options.command))}"), file=sys.stderr, flush=True)
    report, code = _record(options.command, folder, options)
    terminal.draw(beside.render(beside.compare(report, case.truth, case.folder, scale)), sys.stderr)
    return launch.leave_like(code)


def _cpu_of_children() -> float:
    """Seconds of cores that programs which we started and that have ended used."""
    used = os.times()
    return used.children_user + used.children_system


def _record(command: list[str], folder: Path, options: argparse.Namespace) -> tuple[model.Report, int]:
    """Run a command to its end, recorded; the report, and how the program ended."""
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
        code, seconds = launch.run(command, record, watch, more=launch.asking_for(run.fixes))
    finally:
        sampler.close()
        watcher.close()
    trace.shrink(record)
    told = gather.gather(watcher.reader.run())
    read = _read(watcher)
    run = msgspec.structs.replace(
        run,
        stopped=watcher.has_stopped,
        exit_code=launch.shell_code(code),
        seconds=seconds,
        cpu_seconds=_cpu_of_children() - before,
        told=told,
        read=read.findings,
        paced=read.paced,
        recomputing=read.recomputing,
        headroom=memory.sum_up(),
        usage=used.sum_up(),
    )
    if options.floor:
        outcome = _floor(command, folder, run, watcher, options)
        run = msgspec.structs.replace(run, floor=outcome, images=_image_costs(run, watcher, options))
    report = _finish(folder, run, watcher, options)
    condenser.finish()
    return report, code


def _read(watcher: live.Live) -> Result:
    """What the files that a run was seen in say of themselves."""
    from floorit.scan.scan import of_run  # takes 0.1 s to import, which the program need not wait for

    return of_run(habits.files([*watcher.reader.run(), *watcher.reader.workers.values()]))


def _floor(
    command: list[str], folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace
) -> runfile.FloorRun:
    """Run the command once more without its data path; what became of that."""
    if run.exit_code:
        return runfile.FloorRun(reason="the program itself did not end well")
    trained = floorrun.examine(watcher.reader.run())
    if trained is None:
        return runfile.FloorRun(reason="the program did not train")
    if not options.quiet:
        print(said(f"floorit: measuring the floor: {floorrun.MEANING}"), file=sys.stderr, flush=True)
    return floorrun.run(command, folder, trained, window=run.window, more=launch.asking_for(run.fixes))


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
    """Write and show the report. The program has run: what fails here must not hide how it ended."""
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
        _leave_page(folder, options, lambda: _draw_page(report, run, watcher.reader, folder))
    return report


def _leave_page(folder: Path, options: argparse.Namespace, draw: Callable[[], Path]) -> None:
    """Draw a page and say where it is. All else has been said by then: what fails here hides nothing."""
    try:
        path = draw()
    except OSError as error:
        print(said(f"floorit: the page cannot be written: {error.strerror} ({folder})"), file=sys.stderr)
    except Exception as error:  # a fault of ours must not become the program's exit code
        print(said(f"floorit: the page cannot be drawn: {error!r}"), file=sys.stderr)
    else:
        if not options.quiet:
            print(said(f"the same as a page, to read and to pass on: {words.relative(str(path))}"), file=sys.stderr)


def _draw_page(
    report: model.Report, run: runfile.RunFile, reader: RecordReader, folder: Path, file: Path | None = None
) -> Path:
    from floorit.report import page  # takes 0.03 s to import, which what draws no page need not wait for

    return page.save(page.render(report, run, reader, folder), file or folder / page.NAME)


def _name_of(command: list[str]) -> str:
    return Path(next((word for word in command if word.endswith(".py")), command[0])).stem.strip("-") or "run"


def _make_folder(wanted: Path | None, name: str) -> Path:
    """The run's folder, with room for a record in it. One that cannot be written must not keep the program from
    training: then the record goes to a temporary folder."""
    stamped = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = wanted or _unused(Path(FOLDER) / stamped)
    try:
        _prepare(folder)
    except OSError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix=f"floorit-{stamped}-"))
        told = f"floorit: {folder} cannot be written ({error.strerror}); recording to {elsewhere}"
        print(said(told), file=sys.stderr)
        folder = elsewhere
        _prepare(folder)
    return folder


def _unused(folder: Path) -> Path:
    number, candidate = 1, folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}.{number}")
    return candidate


def _prepare(folder: Path) -> None:
    record = folder / runfile.RECORD
    if record.is_dir() and any(record.iterdir()):
        raise OutputError(f"{folder} already holds a record; choose another --out")
    launch.make_record(folder)


def _newest() -> Path:
    runs = sorted(Path(FOLDER).glob(f"*/{runfile.NAME}"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise RecordError(f"there is no run in {FOLDER}/; name one, or make one: floorit run train.py")
    return runs[-1].parent


def _report(options: argparse.Namespace) -> int:
    folder = options.folder or _newest()
    if options.csv:
        run, reader = build.load(folder, options.warmup)
        sys.stdout.write(sheet.render(trained.of_record(reader, run.warmup)))
        return 0
    if options.trace is not None:
        return _draw_trace(folder, *build.load(folder, options.warmup), options.trace)
    report, run, reader = build.merge(folder, options.warmup, cores.spread)
    if options.html is not None:
        file = Path(options.html) if options.html else None
        try:
            print(words.relative(str(_draw_page(report, run, reader, folder, file))))
        except OSError as error:
            raise OutputError(f"the page cannot be written: {error.strerror} ({file or folder})") from None
    elif options.json:
        sys.stdout.buffer.write(model.to_json(report))
    elif options.markdown:
        sys.stdout.write(markdown.render(report))
    else:
        terminal.show(report, sys.stdout)
    return 0


def _watch(options: argparse.Namespace) -> int:
    from floorit.watch import command  # needs a terminal of a kind that Windows, which is told what it lacks, has not

    return command.run(options.folder or _newest())


def _draw_trace(folder: Path, run: runfile.RunFile, reader: RecordReader, file: Path) -> int:
    made = trace_file.make(folder, run, reader)
    try:
        file.write_bytes(trace_file.to_json(made))
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror}") from None
    print(said(f"floorit: {trace_file.said(made)} in {words.relative(str(file))}"), file=sys.stderr)
    return 0


def _scan(options: argparse.Namespace) -> int:
    from floorit.scan import command  # takes 0.1 s to import, which other verbs need not wait for

    return command.run(options)


def _env(options: argparse.Namespace) -> int:
    environment = launch.with_torch(hardware.examine(Path.cwd()))
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(environment), indent=1) + b"\n")
    else:
        terminal.show_environment(environment, sys.stdout)
    return 0


_VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "try": _try,
    "tune": _tune,
    "report": _report,
    "compare": comparing.run,
    "watch": _watch,
    "scan": _scan,
    "demo": _demo,
    "env": _env,
}
