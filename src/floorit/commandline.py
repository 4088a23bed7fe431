"""The words of the command line: what may be typed, and where the user's own command begins."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from floorit import __version__, language, outlay
from floorit.errors import UsageError

FOLDER = "floorit-runs"
BUDGET, SEARCH_BUDGET = f"{outlay.BUDGET / 60:g}m", "10m"  # of a try, of a search
_UNITS = {"s": 1, "m": 60, "h": 3600}
# Verbs that a command follows, with their options that take a value.
_TAKE_VALUES = {
    "run": {"--out", "--steps", "--warmup", "--fix", "--with", "--lang"},
    "try": {"--out", "--steps", "--fix", "--vary", "--budget", "--risk", "--lang"},
    "tune": {"--out", "--steps", "--goal", "--allow", "--budget", "--batch-arg", "--lang"},
}
# Verbs that write a page where `--html` asks for it: their options that take a value, and how many folders they need.
_PAGED = {"report": ({"--warmup", "--trace", "--lang"}, 1), "compare": ({"--fail-if", "--lang"}, 2)}
# How a command begins that a person would have run.
_SCRIPTS, _LAUNCHERS = (".py", ".sh"), ("python", "torchrun", "accelerate", "bash", "deepspeed")

_RUN_EXAMPLES = """\
examples:
  floorit run train.py --epochs 3
  floorit run --steps 200 train.py --batch-size 64
  floorit run --floor train.py          how fast could a step be without its data path?
  floorit run --fix workers=8 --fix amp=bf16 train.py
  floorit run -- python -m mypkg.train --config c.yaml
  floorit run torchrun --nproc-per-node 2 train.py
  floorit run bash scripts/train.sh
  floorit run --lang zh-TW train.py

The program runs as it would without floorit: same arguments, same output, same exit code.
What floorit says goes to stderr. --json puts the report on stdout after the program has ended, below what the
program printed there; the same is in report.json in the folder that is named at the end, and as a page in report.html.
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
thrown away. What floorit says goes to stderr; trial.json and report.html are in the folder that is named at the end.
Interrupt it any time: it says what it knows by then, and the same command with the same --out goes on.
"""

_TUNE_EXAMPLES = """\
examples:
  floorit tune train.py --epochs 3
  floorit tune --budget 30m -- python -m mypkg.train --config c.yaml
  floorit tune --goal speed train.py                      also what changes the order of the data
  floorit tune --goal speed --allow training train.py     also what changes training: batch size, accumulation
  floorit tune --goal speed --allow training --batch-arg "--batch-size {}" train.py
  floorit tune --goal memory train.py                     less memory, at no less than 95% of the speed

The program runs many times, shortly and unedited. What should help most is tried first, what is proven faster with its
results intact is kept, then the program is looked at anew. What the runs write is thrown away. At the end, floorit.toml
has what was proven: `floorit run --with floorit.toml train.py` trains with it. Interrupt it any time: the same command
with the same --out goes on.
"""

_REPORT_EXAMPLES = """\
examples:
  floorit report floorit-runs/train-20261115-101500
  floorit report --html                   writes report.html into the run's folder
  floorit report --html page.html floorit-runs/train-20261115-101500
  floorit report --markdown > result.md
  floorit report --lang zh-CN --html
  floorit report --csv floorit-runs/train-20261115-101500 > steps.csv
  floorit report --trace steps.json       open it in ui.perfetto.dev or chrome://tracing
"""

_COMPARE_EXAMPLES = """\
examples:
  floorit compare floorit-runs/train-20261115-101500 floorit-runs/train-20261116-093000
  floorit compare --html before after                   the same as a page, after/compare.html
  floorit compare --html compared.html before after     the same, written elsewhere
  floorit compare --json before after > compared.json
  floorit compare --fail-if slower=5% before after      for a check that nobody watches

Of each run there is one observation: what two runs of one program differ by is added to the interval, and `floorit try`
is what proves less. Exit code: 0; 1 where --fail-if is given and the whole interval lies beyond its limit; 2 where the
command line makes no sense or there is nothing to compare.
"""

_SCAN_EXAMPLES = """\
examples:
  floorit scan                          the folder one is in
  floorit scan train.py src/
  floorit scan --diff src/ > speed.patch     the changes that leave results as they are
  floorit scan --select item,no-workers src/

A line with `# floorit: ignore[CODE]` is left alone. Settings: [tool.floorit.scan] in pyproject.toml.
Exit code: 0 where nothing was found, 1 where something was, 2 where the command line makes no sense.
"""

_DEMO_EXAMPLES = """\
examples:
  floorit demo
  floorit demo detector --scale gpu

Data is made once and kept in $FLOORIT_CASES, else in ~/.cache/floorit-cases.
"""


def split(given: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and the user's command: it begins at `--`, at `-m`, or at the first word that is not an option."""
    takes_value = _TAKE_VALUES.get(given[0]) if given else None
    if takes_value is None:
        return _without_file(given), []
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


def _without_file(given: list[str]) -> list[str]:
    """The same words, with `--html=` where the word after `--html` is a folder to be read and not the page's FILE.

    It is a FILE where there are folders enough without it, or where it is called as a page is.
    """
    takes_value, needed = _PAGED.get(given[0] if given else "", (set(), 0))
    at = given.index("--html") if "--html" in given and takes_value else len(given)
    after = given[at + 1 : at + 2]
    if not after or after[0].startswith("-"):
        return given
    folders = [
        word
        for place, word in enumerate(given[1:], 1)
        if not word.startswith("-") and given[place - 1] not in takes_value and place != at + 1
    ]
    is_named_so = given[0] == "report" and after[0].endswith((".html", ".htm"))  # which may have no folder at all
    is_file = len(folders) >= needed or is_named_so
    return given if is_file else [*given[:at], "--html=", *given[at + 1 :]]


def check_verb(given: list[str]) -> None:
    """UsageError for a first word that is none of ours, with what was likely meant."""
    if not given or given[0].startswith("-") or given[0] in VERBS:
        return
    first, *rest = given
    near = difflib.get_close_matches(first, VERBS, n=1)
    is_command = Path(first).suffix in _SCRIPTS or Path(first).name.startswith(_LAUNCHERS)
    meant = [*near, *rest] if near and not is_command else ["run", *given]
    raise UsageError(f"there is no command {first!r}; did you mean `{shlex.join(['floorit', *meant])}`?")


def parser(wanted: str = "") -> argparse.ArgumentParser:
    """Of our own words; `verb` says which is meant. All verbs are named, the one that is wanted has its options: what
    others need for theirs takes a while to import."""
    whole = argparse.ArgumentParser(
        prog="floorit", description="Find out why your PyTorch training is slow, without editing the script."
    )
    whole.add_argument("--version", action="version", version=f"floorit {__version__}")
    verbs = whole.add_subparsers(title="commands", metavar="COMMAND")
    for name, verb in VERBS.items():
        words = verbs.add_parser(name, help=verb.told, formatter_class=argparse.RawDescriptionHelpFormatter)
        words.set_defaults(verb=name)
        if name == wanted:
            verb.fill(words)
            _add_language(words)
    return whole


def _fixes_help() -> str:
    from floorit.fixes import asked, values

    rows = []
    for code, fix in asked.APPLICABLE.items():
        assert fix.takes is not None
        usual = "" if fix.takes.default is None else f" (if left out: {values.spelled(fix.takes.default)})"
        rows.append(f"  {code + '=':18}{fix.takes}{usual}")
    return "\n".join(["", "fixes and their values (docs/overrides.md):", *rows])


def _fill_run(verb: argparse.ArgumentParser) -> None:
    verb.description = "Run a training program, unedited, and say where each step's time went."
    verb.usage = "floorit run [options] [--] COMMAND ..."
    verb.epilog = _RUN_EXAMPLES + _fixes_help()
    _add_out(verb)
    verb.add_argument(
        "--steps",
        type=_positive,
        metavar="N",
        help="end the program, cleanly, soon after N steady steps; warm-up, steps that are watched and those of about a"
        " second, until it is heard, come on top",
    )
    verb.add_argument(
        "--floor",
        action="store_true",
        help="then run it once more, shortly, without its data path, and once only its loader: how fast could they be;"
        " on a GPU, also measure once the rates that it reaches (kept in ~/.cache/floorit)",
    )
    verb.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="CODE[=VALUE]",
        help="apply a fix inside the program, unedited, whatever it sets itself; may be given several times (below)",
    )
    verb.add_argument(
        "--with", dest="recipe", type=Path, metavar="FILE", help="apply the fixes in a floorit.toml, as tune writes it"
    )
    _add_warmup(verb)
    verb.add_argument(
        "--no-window",
        action="store_true",
        help="do not follow memory, the GPU's kernels and the model's parts for a few steps",
    )
    verb.add_argument("--json", action="store_true", help="print report.json on stdout after the program has ended")
    verb.add_argument("--quiet", action="store_true", help="no live line, no ledger: only the files")


def _fill_try(verb: argparse.ArgumentParser) -> None:
    from floorit.fixes import asked
    from floorit.trial.arms import RISKS

    verb.description = (
        "Run a training program, unedited, with and without a change, interleaved; say how much faster it"
        " is, with an interval, and whether its results are the same."
    )
    verb.usage = "floorit try [options] [--] COMMAND ..."
    verb.epilog = _TRY_EXAMPLES
    fixes = ", ".join(asked.APPLICABLE)
    verb.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="CODE[=VALUE]",
        help=f"a change that floorit makes in the running program; several are made together ({fixes})",
    )
    verb.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="WORDS",
        help="other arguments for the program, values in braces: each is tried",
    )
    verb.add_argument("--each", action="store_true", help="try every change by itself, not all of them together")
    verb.add_argument(
        "--risk",
        choices=RISKS,
        help="what the change may do to results (default: as its fixes say; for --vary, training)",
    )
    _add_terms(verb, BUDGET, "trial.json")


def _fill_tune(verb: argparse.ArgumentParser) -> None:
    from floorit.tune.candidates import GOALS

    verb.description = (
        "Run a training program, unedited, with the changes that should help it most; keep what is proven"
        " faster with its results intact, and write it down."
    )
    verb.usage = "floorit tune [options] [--] COMMAND ..."
    verb.epilog = _TUNE_EXAMPLES
    verb.add_argument(
        "--goal",
        choices=list(GOALS),
        default="balanced",
        help="balanced: results stay the same up to rounding (default); speed: the order of the data may change, too;"
        " memory: the smallest peak at no less than 95%% of the speed, results as in balanced",
    )
    verb.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=["training"],
        help="with --goal speed or memory: changes of training, too; with speed, a size of batches is looked for",
    )
    verb.add_argument(
        "--batch-arg",
        metavar="WORDS",
        help="the program's own argument for the size of batches, {} for the size: '--batch-size {}'"
        " (default: floorit changes the loader, and the learning rate with it)",
    )
    _add_terms(verb, SEARCH_BUDGET, "tune.json")


def _add_terms(verb: argparse.ArgumentParser, budget: str, file: str) -> None:
    """How programs are run to be compared."""
    verb.add_argument(
        "--budget", type=seconds, default=budget, metavar="TIME", help=f"such as 90s, 5m, 1h (default: {budget})"
    )
    verb.add_argument(
        "--steps",
        type=_positive,
        metavar="N",
        help="steady steps of each run (default: 10 seconds of them, at least 20)",
    )
    verb.add_argument("--in-place", action="store_true", help="let the runs write where the program always does")
    verb.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"a folder, or one to go on with (default: a new one in {FOLDER}/)",
    )
    verb.add_argument("--json", action="store_true", help=f"print {file} on stdout at the end")
    verb.add_argument("--quiet", action="store_true", help="no progress, no table: only the files")


def _fill_report(verb: argparse.ArgumentParser) -> None:
    verb.description = "Draw the report again, from the record alone."
    verb.epilog = _REPORT_EXAMPLES
    verb.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=f"default: the newest in {FOLDER}/")
    _add_warmup(verb)
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print report.json instead")
    _add_html(form, "report.html in DIR")
    form.add_argument("--markdown", action="store_true", help="print tables for an issue or a sheet instead")
    form.add_argument("--csv", action="store_true", help="print every step with its phases instead")
    form.add_argument(
        "--trace", type=Path, metavar="FILE", help="write a time line of the steps, which ui.perfetto.dev opens"
    )


def _fill_compare(verb: argparse.ArgumentParser) -> None:
    verb.description = "Lay two recorded runs side by side: speed, ledger, findings, settings, machine."
    verb.epilog = _COMPARE_EXAMPLES
    verb.add_argument("a", type=Path, metavar="A", help="folder of the run before")
    verb.add_argument("b", type=Path, metavar="B", help="folder of the run after")
    verb.add_argument(
        "--fail-if", metavar="slower=N%", help="exit code 1 where B is surely slower than A by more than that"
    )
    form = verb.add_mutually_exclusive_group()
    _add_html(form, "compare.html in B")
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as tables for an issue or a sheet")


def _add_html(form: argparse._MutuallyExclusiveGroup, usual: str) -> None:
    form.add_argument(
        "--html", nargs="?", const="", metavar="FILE", help=f"write a page instead (if left out: {usual})"
    )


def _fill_watch(verb: argparse.ArgumentParser) -> None:
    verb.description = (
        "Show a run while it is recorded: how far it is, where the last minute went, what limits it so far."
        " It only reads the files of the run. q or Ctrl-C ends the view, never the program."
    )
    verb.epilog = "examples:\n  floorit watch\n  floorit watch floorit-runs/train-20261115-101500"
    verb.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=f"default: the newest in {FOLDER}/")


def _fill_scan(verb: argparse.ArgumentParser) -> None:
    verb.description = "Read Python files without running them, and name the lines that slow training."
    verb.epilog = _SCAN_EXAMPLES
    verb.add_argument("paths", type=Path, nargs="*", default=[Path()], metavar="PATH", help="files and folders")
    verb.add_argument("--diff", action="store_true", help="print the changes that leave results as they are")
    verb.add_argument("--fix", action="store_true", help="make these changes")
    verb.add_argument("--select", type=_words, metavar="CODES", help="only these findings")
    verb.add_argument("--ignore", type=_words, metavar="CODES", help="all but these")
    verb.add_argument("--exclude", type=_words, metavar="PATTERNS", help="files and folders to leave out")
    verb.add_argument("--rules", action="store_true", help="list the rules")
    verb.add_argument("--exit-zero", action="store_true", help="exit code 0 also where something was found")
    verb.add_argument("--json", action="store_true", help="as JSON")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _fill_demo(verb: argparse.ArgumentParser) -> None:
    from floorit import demo
    from floorit.truth import SCALES

    verb.description = (
        "Make the data of a training program with known faults, run it under `floorit run`,"
        " and show the report beside the truth."
    )
    verb.epilog = f"cases:\n  {', '.join(demo.NAMES)}\n\n{_DEMO_EXAMPLES}"
    verb.add_argument("case", nargs="?", default=demo.DEFAULT, metavar="CASE", help=f"default: {demo.DEFAULT}")
    verb.add_argument("--scale", choices=SCALES, help="its size (default: gpu if torch can use one, else cpu)")
    _add_out(verb)
    verb.set_defaults(steps=None, floor=False, warmup=None, no_window=False, json=False, quiet=False, fixes={})


def _add_out(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for record and report (default: a new one in {FOLDER}/)"
    )


def _add_language(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--lang",
        type=_language,
        metavar="CODE",
        help=f"of what is said: {', '.join(language.CODES)} (default: ${language.VARIABLE}, else {language.ENGLISH})",
    )


def _language(text: str) -> str:
    try:
        return language.named(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_warmup(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--warmup", type=_positive, metavar="N", help="leave the first N steps out (default: as many as differ)"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """Of a time as it is typed: 90s, 5m, 1h."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 5m or 1h") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be more than nothing")
    return value


def _fill_env(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", action="store_true", help="as JSON")


class Verb(NamedTuple):
    """What may be typed first."""

    told: str  # of it, in a line
    fill: Callable[[argparse.ArgumentParser], None]  # gives it its options
    module: str  # that has what it does
    function: str = "run"


VERBS = {
    "run": Verb("run a training program once and say where its time went", _fill_run, "floorit.verbs.run"),
    "try": Verb(
        "run a training program with and without a change, and say whether it is faster",
        _fill_try,
        "floorit.verbs.trials",
    ),
    "tune": Verb(
        "find the changes that make a training program faster, and prove them",
        _fill_tune,
        "floorit.verbs.trials",
        "tune",
    ),
    "report": Verb("draw the report of a recorded run again", _fill_report, "floorit.verbs.report"),
    "compare": Verb("say what changed between two recorded runs", _fill_compare, "floorit.compare.command"),
    "watch": Verb("look on while a run is recorded", _fill_watch, "floorit.verbs.watch"),
    "scan": Verb(
        "read a project without running it and name the lines that slow training", _fill_scan, "floorit.scan.command"
    ),
    "demo": Verb(
        "run one of five slow training programs and show what was found beside what is true",
        _fill_demo,
        "floorit.verbs.demo",
    ),
    "env": Verb("describe this machine and the torch that programs would use", _fill_env, "floorit.verbs.env"),
}
