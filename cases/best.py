"""What a program's own report says of fixes, put to the test: those of which it promises most, and one that it refuses.

Each program is recorded once; of the fixes that can be applied from outside, those with the best predictions are tried
one by one, and with them a popular one that the report says would not help (a trap: it must not be called faster).
Cases, and with --program whatever else there is; what is kept in a folder by --keep is gone on with.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402
from overrides import environment, estimate, how_it_ran, interval, parse, say  # noqa: E402
from predict import known_of  # noqa: E402

from floorit import demo, truth  # noqa: E402
from floorit.fixes import asked  # noqa: E402
from floorit.fixes.fix import UNANSWERED  # noqa: E402
from floorit.report.model import Report  # noqa: E402
from floorit.stats import Estimate  # noqa: E402
from floorit.tune import candidates  # noqa: E402

MOST = 3  # fixes of a program

EXAMPLES = """\
examples:
  python cases/best.py                                       all five at CPU scale
  python cases/best.py service bev --scale gpu --budget 4m --keep $OUT --write $OUT/best.md
  python cases/best.py --program makemore /src/makemore "python makemore.py --max-steps 400"
"""


def main():
    options = arguments()
    programs = [of_case(name, options) for name in options.cases] + [
        Program(name=name, folder=Path(folder), words=shlex.split(command)) for name, folder, command in options.program
    ]
    rows = []
    for program in programs:
        rows += rows_of(program, options)
        if options.write:
            options.write.write_text(markdown(rows), encoding="utf-8")  # each time: what is cut off leaves the others
    if not options.write:
        print(markdown(rows))
    return 1 if any(row.is_trap and row.verdict == "faster" for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--program", nargs=3, action="append", default=[], metavar=("NAME", "FOLDER", "COMMAND"), help="may be repeated"
    )
    parser.add_argument("--steps", default="24", metavar="N", help="steady steps of each run (default: 24)")
    parser.add_argument("--budget", default="5m", metavar="TIME", help="of each program's try (default: 5m)")
    return parse(parser)


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and where."""

    name: str
    folder: Path
    words: list[str]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One fix of one program."""

    program: str
    fix: str
    is_trap: bool
    verdict: str
    predicted: Estimate | None = None  # by the recorded run; of a trap nothing
    measured: Estimate | None = None
    results: str = ""
    remark: str = ""


def of_case(name, options):
    case = demo.Case(name=name, folder=ROOT / "cases" / name, truth=truth.load(ROOT / "cases" / name))
    data = demo.make_data(case, options.scale, sys.executable, sys.stderr)
    words = [sys.executable, "train.py", "--scale", options.scale, "--data", str(data), *options.extra]
    return Program(name=name, folder=case.folder, words=words)


def rows_of(program, options):
    """What was promised of its fixes, beside what a try of all of them came to."""
    with tempfile.TemporaryDirectory(prefix="floorit-best-") as temporary:
        place = (options.keep or Path(temporary)).absolute() / program.name
        report = recorded(program, place)
        if report is None:
            return [Row(program=program.name, fix="", is_trap=False, verdict="failed: nothing was recorded")]
        promised, refused = chosen(known_of(report))
        if not promised and not refused:
            return [Row(program=program.name, fix="", is_trap=False, verdict="nothing to try")]
        found = tried(program, [*promised, *refused], place, options)
        if found is None:
            return [Row(program=program.name, fix="", is_trap=False, verdict="failed: the try came to no end")]
        of_promised = [row(program, fix, told, promised[fix], "") for fix, told in found.items() if fix in promised]
        of_refused = [row(program, fix, told, None, refused[fix]) for fix, told in found.items() if fix in refused]
        return [*of_promised, *of_refused]


def recorded(program, place):
    """The report of the program as it is, made once."""
    path = place / "run" / "report.json"
    if not path.exists():
        words = [sys.executable, "-m", "floorit", "run", "--quiet", "--out", str(path.parent), "--", *program.words]
        say(f"{program.name}: {shlex.join(words)}")
        subprocess.run([*words], cwd=program.folder, env=environment(), stdout=subprocess.DEVNULL, check=False)
    return msgspec.json.decode(path.read_bytes(), type=Report) if path.exists() else None


def chosen(known):
    """As --fix takes them: the best-predicted fixes with what is promised, and a popular one with why it is refused."""
    risks = candidates.GOALS["speed"]
    found = [one for one in candidates.find(known, {}, (), risks, "speed") if len(one.changes) == 1]
    promised = {asked.written(one.changes)[0]: one.predicted for one in found[:MOST]}
    for fix in asked.APPLICABLE.values():
        said = fix.foretell(known) if fix.popular and fix.risk in risks else None
        value = fix.takes.default if fix.takes.default is not None else twice_as_many(known)
        if isinstance(said, str) and not said.startswith(UNANSWERED):
            return promised, {asked.written({fix.code: value})[0]: said}
    return promised, {}


def twice_as_many(known):
    """Workers, which have no usual number."""
    return 2 * max(known.workers.count if known.workers is not None else 0, 1)


def tried(program, fixes, place, options):
    """The outcome of each fix, by one try of all, each by itself; None where there is none."""
    asked_for = [word for fix in fixes for word in ("--fix", fix)]
    limits = ["--steps", options.steps, "--budget", options.budget, "--out", str(place / "try")]
    words = [sys.executable, "-m", "floorit", "try", "--each", *asked_for, *limits, "--", *program.words]
    say(f"{program.name}: {' '.join(fixes)}")
    subprocess.run(words, cwd=program.folder, env=environment(), check=False)
    path = place / "try" / "trial.json"
    if not path.exists():
        return None
    told = json.loads(path.read_text())
    return dict(zip(fixes, [told, *told["others"]], strict=True))


def row(program, fix, told, predicted, refused):
    return Row(
        program=program.name,
        fix=fix,
        is_trap=bool(refused),
        verdict=told["verdict"],
        predicted=predicted,
        measured=estimate(told["speedup"]),
        results=told["parity"]["reason"],
        remark="; ".join(filter(None, (refused and f"refused: {refused}", told["reason"]))),
    )


# -- shown ------------------------------------------------------------------------------------------------------


def markdown(rows):
    sprung = [f"{row.program}: {row.fix}" for row in rows if row.is_trap and row.verdict == "faster"]
    lines = [
        *how_it_ran("cases/best.py"),
        "",
        f"Refused by the report and called faster by the try: {', '.join(sprung) or 'none'}.",
        "",
        "| program | fix | | predicted | measured | verdict | results | because |",
        "|---|---|---|---:|---:|---|---|---|",
        *map(line, rows),
    ]
    return "\n".join(lines) + "\n"


def line(row):
    kind = "trap" if row.is_trap else ""
    cells = (row.program, f"`{row.fix}`", kind, interval(row.predicted), interval(row.measured), row.verdict)
    return f"| {' | '.join((*cells, row.results, row.remark))} |"


if __name__ == "__main__":
    sys.exit(main())
