"""The command line."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from floorit import __version__, demo, floorrun, hardware, headroom, imagecosts, launch, live, runfile, telemetry, usage
from floorit.analyse import trace
from floorit.analyse.alternatives import Measured
from floorit.declared import gather
from floorit.errors import FlooritError, OutputError, RecordError, UsageError
from floorit.fixes import asked, values
from floorit.report import beside, build, model, terminal, words
from floorit.trial import attempt, store
from floorit.trial.arms import RISKS
from floorit.trial.table import render as render_trials
from floorit.truth import SCALES, Scale

FOLDER = "floorit-runs"
BUDGET = "5m"  # of a try
_UNITS = {"s": 1, "m": 60, "h": 3600}
# Verbs that a command follows, with their options that take a value.
_TAKE_VALUES = {
    "run": {"--out", "--steps", "--warmup", "--fix"},
    "try": {"--out", "--steps", "--fix", "--vary", "--budget", "--risk"},
}
_Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_RUN_EXAMPLES = """\
examples:
  floorit run train.py --epochs 3
  floorit run --steps 200 train.py --batch-size 64
  floorit run --floor train.py          how fast could a step be without its data path?
  floorit run --fix workers=8 --fix amp=bf16 train.py
  floorit run -- python -m mypkg.train --config c.yaml
  floorit run torchrun --nproc-per-node 2 train.py
  floorit run bash scripts/train.sh

The program runs as it would without floorit: same arguments, same output, same exit code.
What floorit says goes to stderr. --json puts the report on stdout after the program has ended, below what the
program printed there; the same is in report.json in the folder that is named at the end.
"""

_TRY_EXAMPLES = """\
examples:
  floorit try --fix workers=8 train.py --epochs 3
  floorit try --fix workers=8 --fix amp=bf16 train.py           both together
  floorit try --each --fix workers=8 --fix amp=bf16 train.py    one at a time
  floorit try --fix workers=2,4,8 train.py                      each value
  floorit try --vary "--batch-size {32,64}" train.py            the program's own arguments
  floorit try --vary "data.workers={2,4}" --risk order --budget 10m python -m pkg.train

The program runs many times, shortly and unedited, with and without the change, in random order. What the runs write is
thrown away. What floorit says goes to stderr; trial.json is in the folder that is named at the end. Interrupt it
any time: it says what it knows by then, and the same command with the same --out goes on.
"""

_DEMO_EXAMPLES = f"""\
cases:
  {", ".join(demo.NAMES)}

examples:
  floorit demo
  floorit demo detector --scale gpu

Data is made once and kept in $FLOORIT_CASES, else in ~/.cache/floorit-cases.
"""


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    if sys.platform == "win32":
        print("floorit: Windows is not supported; Linux is, macOS as far as it goes.", file=sys.stderr)
        return 1
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _dispatch(given)
    except FlooritError as error:
        print(f"floorit: {error} [{error.slug}]", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _dispatch(given: list[str]) -> int:
    parser = _parser()
    own, command = _split(given)
    options = parser.parse_args(own)
    options.command = command
    verb: Callable[[argparse.Namespace], int] | None = getattr(options, "verb", None)
    if verb is None:
        parser.print_help(sys.stderr)
        return 2
    return verb(options)


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and the user's command: it begins at `--`, at `-m`, or at the first word that is not an option."""
    takes_value = _TAKE_VALUES.get(given[0]) if given else None
    if takes_value is None:
        return given, []
    own, at = given[:1], 1
    while at < len(given):
        word = given[at]
        if word == "--":
            return own, given[at + 1 :]
        if word == "-m" or not word.startswith("-"):
            return own, given[at:]
        if word in takes_value and at + 1 < len(given):  # its value may look like an option: --vary --fast
            at += 1
            word = f"{word}={given[at]}"
        own.append(word)
        at += 1
    return own, []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="floorit", description="Find out why your PyTorch training is slow, without editing the script."
    )
    parser.add_argument("--version", action="version", version=f"floorit {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_run(verbs)
    _add_try(verbs)
    _add_report(verbs)
    _add_demo(verbs)
    env = verbs.add_parser("env", help="describe this machine and the torch that programs would use")
    env.add_argument("--json", action="store_true", help="as JSON")
    env.set_defaults(verb=_env)
    return parser


def _fixes_help() -> str:
    rows = []
    for code, fix in asked.APPLICABLE.items():
        assert fix.takes is not None
        usual = "" if fix.takes.default is None else f" (if left out: {values.spelled(fix.takes.default)})"
        rows.append(f"  {code + '=':18}{fix.takes}{usual}")
    return "\n".join(["", "fixes and their values (docs/overrides.md):", *rows])


def _add_run(verbs: _Verbs) -> None:
    run = verbs.add_parser(
        "run",
        help="run a training program once and say where its time went",
        description="Run a training program, unedited, and say where each step's time went.",
        usage="floorit run [options] [--] COMMAND ...",
        epilog=_RUN_EXAMPLES + _fixes_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_out(run)
    run.add_argument("--steps", type=_positive, metavar="N", help="end the program, cleanly, soon after N steady steps")
    run.add_argument(
        "--floor",
        action="store_true",
        help="then run it once more, shortly, without its data path: how fast could it be; on a GPU, also measure once"
        " the rates that it reaches (kept in ~/.cache/floorit)",
    )
    run.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="CODE[=VALUE]",
        help="apply a fix inside the program, unedited, whatever it sets itself; may be given several times (below)",
    )
    _add_warmup(run)
    run.add_argument(
        "--no-window", action="store_true", help="do not watch the GPU's kernels and the model's parts for a few steps"
    )
    run.add_argument("--json", action="store_true", help="print report.json on stdout after the program has ended")
    run.add_argument("--quiet", action="store_true", help="no live line, no ledger: only the files")
    run.set_defaults(verb=_run)


def _add_try(verbs: _Verbs) -> None:
    tried = verbs.add_parser(
        "try",
        help="run a training program with and without a change, and say whether it is faster",
        description="Run a training program, unedited, with and without a change, interleaved; say how much faster it"
        " is, with an interval, and whether its results are the same.",
        usage="floorit try [options] [--] COMMAND ...",
        epilog=_TRY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fixes = ", ".join(asked.APPLICABLE)
    tried.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="CODE[=VALUE]",
        help=f"a change that floorit makes in the running program; several are made together ({fixes})",
    )
    tried.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="WORDS",
        help="other arguments for the program, values in braces: each is tried",
    )
    tried.add_argument("--each", action="store_true", help="try every change by itself, not all of them together")
    tried.add_argument(
        "--risk",
        choices=RISKS,
        help="what the change may do to results (default: as its fixes say; for --vary, training)",
    )
    tried.add_argument(
        "--budget", type=_seconds, default=BUDGET, metavar="TIME", help=f"such as 90s, 5m, 1h (default: {BUDGET})"
    )
    tried.add_argument(
        "--steps",
        type=_positive,
        metavar="N",
        help="steady steps of each run (default: 10 seconds of them, at least 20)",
    )
    tried.add_argument("--in-place", action="store_true", help="let the runs write where the program always does")
    tried.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder for the try, or of one to go on with (default: a new one in {FOLDER}/)",
    )
    tried.add_argument("--json", action="store_true", help="print trial.json on stdout at the end")
    tried.add_argument("--quiet", action="store_true", help="no progress, no table: only the files")
    tried.set_defaults(verb=_try)


def _add_report(verbs: _Verbs) -> None:
    report = verbs.add_parser(
        "report",
        help="draw the report of a recorded run again",
        description="Draw the report again, from the record alone.",
        epilog="example:\n  floorit report floorit-runs/train-20261115-101500",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=f"default: the newest in {FOLDER}/")
    _add_warmup(report)
    report.add_argument("--json", action="store_true", help="print report.json instead")
    report.set_defaults(verb=_report)


def _add_demo(verbs: _Verbs) -> None:
    shown = verbs.add_parser(
        "demo",
        help="run one of five slow training programs and show what was found beside what is true",
        description="Make the data of a training program with known faults, run it under `floorit run`,"
        " and show the report beside the truth.",
        epilog=_DEMO_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shown.add_argument("case", nargs="?", default=demo.DEFAULT, metavar="CASE", help=f"default: {demo.DEFAULT}")
    shown.add_argument("--scale", choices=SCALES, help="its size (default: gpu if torch can use one, else cpu)")
    _add_out(shown)
    shown.set_defaults(
        verb=_demo, steps=None, floor=False, warmup=None, no_window=False, json=False, quiet=False, fixes={}
    )


def _add_out(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for record and report (default: a new one in {FOLDER}/)"
    )


def _add_warmup(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--warmup", type=_positive, metavar="N", help="leave the first N steps out (default: as many as differ)"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 5m or 1h") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be more than nothing")
    return value


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("what is to be run? For example: floorit run train.py")
    options.fixes = asked.parse(options.fix)
    command = launch.resolve(options.command)
    folder = _make_folder(options.out, _name_of(options.command))
    _, code = _record(command, folder, options)
    return launch.leave_like(code)


def _try(options: argparse.Namespace) -> int:
    if not options.command:
        raise UsageError("what is to be tried? For example: floorit try --fix workers=8 train.py")
    launch.resolve(options.command)
    folder = options.out or _unused(Path(FOLDER) / f"try-{_name_of(options.command)}-{time.strftime('%Y%m%d-%H%M%S')}")
    if (folder / runfile.RECORD).exists() and not (folder / store.NAME).exists():
        raise OutputError(f"{folder} holds a record of something else; choose another --out")
    asked = attempt.Asked(
        command=options.command,
        fixes=options.fix,
        vary=options.vary,
        each=options.each,
        risk=options.risk,
        steps=options.steps,
        budget=options.budget,
        in_place=options.in_place,
        quiet=options.quiet,
    )
    result = attempt.attempt(asked, folder, sys.stderr)
    if options.json:
        sys.stdout.buffer.write(attempt.to_json(result))
        sys.stdout.buffer.flush()
    if not options.quiet:
        terminal.draw(render_trials(result), sys.stderr)
    return 130 if result.interrupted else 0


def _demo(options: argparse.Namespace) -> int:
    case = demo.outside_of_libraries(demo.find(options.case))
    python = demo.examine(launch.interpreter(), ask_cuda=options.scale is None)
    demo.require(python)
    scale: Scale = options.scale or ("gpu" if python.cuda else "cpu")
    folder = _make_folder(options.out, case.name)
    data = demo.make_data(case, scale, python.path, sys.stderr)
    options.command = demo.command(case, scale, python.path, data, folder / "train")
    print(f"floorit: recording {' '.join(map(words.relative, options.command))}", file=sys.stderr, flush=True)
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

    def watch(_: object) -> None:
        watcher.watch()
        sampler.watch()
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
    run = msgspec.structs.replace(
        run,
        stopped=watcher.has_stopped,
        exit_code=launch.shell_code(code),
        seconds=seconds,
        cpu_seconds=_cpu_of_children() - before,
        told=told,
        headroom=memory.sum_up(),
        usage=used.sum_up(),
    )
    if options.floor:
        outcome = _floor(command, folder, run, watcher, options)
        run = msgspec.structs.replace(run, floor=outcome, images=_image_costs(run, watcher, options))
    return _finish(folder, run, watcher, options), code


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
        print(f"floorit: measuring the floor: {floorrun.MEANING}", file=sys.stderr, flush=True)
    return floorrun.run(command, folder, trained, window=run.window, more=launch.asking_for(run.fixes))


def _image_costs(run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace) -> Measured:
    """What operations on images cost, of a program that ended well."""
    if run.exit_code:
        return Measured(reason="the program itself did not end well")
    plan = imagecosts.plan(watcher.reader)
    if plan is None:
        return imagecosts.NOTHING
    if not options.quiet:
        print(f"floorit: measuring {imagecosts.MEANING}", file=sys.stderr, flush=True)
    return imagecosts.measure(plan)


def _finish(folder: Path, run: runfile.RunFile, watcher: live.Live, options: argparse.Namespace) -> model.Report:
    """Write and show the report. The program has run: what fails here must not hide how it ended."""
    report = build.assemble(folder, run, watcher.reader)
    try:
        runfile.save(folder, run)
        (folder / "report.json").write_bytes(model.to_json(report))
    except OSError as error:
        if not watcher.warned:  # else it has been said that nothing can be written there
            print(f"floorit: the report cannot be written: {error.strerror} ({folder})", file=sys.stderr)
    if options.json:
        sys.stdout.buffer.write(model.to_json(report))
        sys.stdout.buffer.flush()
    if not options.quiet:
        terminal.show(report, sys.stderr)
    return report


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
        print(f"floorit: {folder} cannot be written ({error.strerror}); recording to {elsewhere}", file=sys.stderr)
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
    report = build.build(options.folder or _newest(), options.warmup)
    if options.json:
        sys.stdout.buffer.write(model.to_json(report))
    else:
        terminal.show(report, sys.stdout)
    return 0


def _env(options: argparse.Namespace) -> int:
    environment = launch.with_torch(hardware.examine(Path.cwd()))
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(environment), indent=1) + b"\n")
    else:
        terminal.show_environment(environment, sys.stdout)
    return 0
