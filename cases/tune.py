"""How far `floorit tune` brings a case, beside what its own switches bring and what the patch does.

A case is copied, tuned unedited, and the patch applied to another copy. Then, in turn and in fresh processes: the case
as shipped, as tuned (`floorit run --with`), patched, and with every switch set that does what the search may do, too.
Speeds are by the program's own timer, within each round. At last the tuned program trains on, with its evaluations.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402
import numpy as np  # noqa: E402
from overrides import APPLIED, PARTLY, environment, how_it_ran, interval, parse, say  # noqa: E402

from floorit import demo, recipe, stats, truth  # noqa: E402
from floorit.fixes import asked  # noqa: E402
from floorit.stats import Estimate  # noqa: E402
from floorit.tune import result as results  # noqa: E402
from floorit.tune import table  # noqa: E402
from floorit.tune.candidates import GOALS  # noqa: E402
from floorit.tune.told import PATCH  # noqa: E402

SHIPPED, TUNED, PATCHED, BY_HAND = "as shipped", "tuned", "patched", "by hand"
NEAR = 0.05  # how far the patched program's speed may be from the tuned one's
WANTED = 0.80  # of the way to the floor

EXAMPLES = """\
examples:
  python cases/tune.py                                           all five at CPU scale
  python cases/tune.py service --budget 8m --rounds 4
  python cases/tune.py detector --regime data --write table.md
  python cases/tune.py --scale gpu --budget 3m --rounds 2 --keep $OUT --write $OUT/table.md
"""


def main():
    options = arguments()
    rows = []
    for name in options.cases:
        rows.append(of_case(name, options))
        said = markdown(rows)
        if options.write:
            options.write.write_text(said, encoding="utf-8")  # each time, so that what is cut off leaves the others
    if not options.write:
        print(said)
    return 1 if any(row.failure for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--regime", metavar="NAME", help="in another regime than as shipped, where a case has one")
    parser.add_argument("--goal", choices=GOALS, default="speed", help="of the search (default: speed)")
    parser.add_argument("--allow", choices=["training"], help="changes of training, too: a size of batches")
    parser.add_argument("--budget", default="6m", metavar="TIME", help="of each search (default: 6m)")
    parser.add_argument("--steps", default="24", metavar="N", help="steady steps of each of its runs (default: 24)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of plain runs after it (default: 3)")
    parser.add_argument("--further", default="200", metavar="N", help="steps at last (default: 200; 0 for none)")
    return parse(parser)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A case. Speeds are in times of that as shipped."""

    case: str
    found: results.Result | None  # None where the search failed
    speeds: dict[str, Estimate | None] = {}
    by_hand: list[str] = []  # the switches
    trained_on: bool | None = None  # None where it was not asked
    failure: str = ""

    @property
    def patch_is_near(self):
        """Whether the patch does what tuning does; None where there is none."""
        tuned, patched = self.speeds.get(TUNED), self.speeds.get(PATCHED)
        return abs(patched.value / tuned.value - 1) <= NEAR if tuned and patched else None


# -- one case ---------------------------------------------------------------------------------------------------


def of_case(name, options):
    folder = ROOT / "cases" / name
    case = demo.Case(name=name, folder=folder, truth=truth.load(folder))
    data = demo.make_data(case, options.scale, sys.executable, sys.stderr)
    with tempfile.TemporaryDirectory(prefix=f"floorit-{name}-") as temporary:
        place = (options.keep or Path(temporary)).absolute() / name
        return Work(case, data, place, options).row()


class Work:
    """A case's copies, and what is run there."""

    def __init__(self, case, data, place, options):
        self.case, self.data, self.place, self.options = case, data, place, options
        self.program, self.patched, self.search = place / "program", place / "patched", place / "tune"
        self.regime = case.truth.regimes[options.regime].options if options.regime else []

    def row(self):
        self.copy()
        found = self.tune()
        if found is None:
            return Row(case=self.case.name, found=None, failure="the search failed")
        by_hand = [f.name for f in self.case.truth.at(self.options.scale, self.options.regime) if self.is_applied(f)]
        arms = self.arms(found, by_hand)
        rounds = [self.round(arms, number) for number in range(self.options.rounds)]
        trained_on = None
        if found.is_proven and self.options.further != "0":
            trained_on = self.train(arms[TUNED], ["--steps", self.options.further]) is not None
        failed = sorted({arm for speeds in rounds for arm, speed in speeds.items() if speed is None})
        return Row(
            case=self.case.name,
            found=found,
            speeds={arm: compared(rounds, arm) for arm in arms if arm != SHIPPED and arm not in failed},
            by_hand=by_hand,
            trained_on=trained_on,
            failure=f"failed: {', '.join(failed)}" if failed else "",
        )

    def is_applied(self, fault):
        """Whether the search may do what the fault's switch does."""
        fixes = asked.parse(APPLIED.get((self.case.name, fault.name), {}).get(self.options.scale, []))
        allowed = {*GOALS[self.options.goal], self.options.allow}
        return bool(fixes) and all(asked.APPLICABLE[code].risk in allowed for code in fixes)

    def copy(self):
        """A repository of the case alone, so that a patch is taken as a user's would be."""
        if self.program.exists():
            return  # a search goes on only with the same program
        shutil.copytree(self.case.folder, self.program, ignore=shutil.ignore_patterns("__pycache__", "runs"))
        subprocess.run(["git", "init", "-q", str(self.program)], check=True)

    def tune(self):
        """tune.json; the search goes on where it was cut off."""
        say(f"{self.case.name}: floorit tune, {self.options.budget}")
        limits = ["--budget", self.options.budget, "--steps", self.options.steps]
        wanted = ["--goal", self.options.goal, *(["--allow", self.options.allow] if self.options.allow else [])]
        words = ["tune", *wanted, *limits, "--out", str(self.search), "--", *self.script(self.program)]
        subprocess.run([sys.executable, "-m", "floorit", *words], cwd=self.program, env=environment(), check=False)
        path = self.search / results.NAME
        return msgspec.json.decode(path.read_bytes(), type=results.Result) if path.exists() else None

    def arms(self, found, by_hand):
        """The command of each, but for its own folder."""
        made = {SHIPPED: self.script(self.program)}
        if by_hand:
            made[BY_HAND] = [*made[SHIPPED], *(word for name in by_hand for word in ("--fault-free", name))]
        if found.is_proven:
            recorded = ["run", "--quiet", "--no-window", "--with", str(self.search / recipe.NAME)]
            made[TUNED] = [sys.executable, "-m", "floorit", *recorded, "--", *made[SHIPPED]]
        if (self.search / PATCH).exists():
            shutil.rmtree(self.patched, ignore_errors=True)
            shutil.copytree(self.program, self.patched)
            subprocess.run(["git", "apply", str(self.search / PATCH)], cwd=self.patched, check=True)
            made[PATCHED] = self.script(self.patched)
        return made

    def script(self, program):
        words = [sys.executable, "train.py", "--scale", self.options.scale, "--data", str(self.data)]
        return [*words, *self.regime, *self.options.extra]

    def round(self, arms, number):
        """Samples a second of each, in random order; None where it failed."""
        speeds = {}
        for arm in random.sample(list(arms), len(arms)):
            speeds[arm] = self.train(arms[arm], [], self.patched if arm == PATCHED else self.program)
            told = f"{speeds[arm]:.4g} samples a second" if speeds[arm] is not None else "failed"
            say(f"{self.case.name} round {number + 1} of {self.options.rounds}: {arm}: {told}")
        return speeds

    def train(self, words, more, cwd=None):
        with tempfile.TemporaryDirectory(prefix="floorit-out-") as out:
            told = [*words, *more, "--out", f"{out}/out"]
            if "--with" in words:
                told[told.index("--") : told.index("--")] = ["--out", f"{out}/run"]
            ended = subprocess.run(
                told, cwd=cwd or self.program, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            if ended.returncode:
                say(ended.stderr.decode(errors="replace")[-2000:])
                return None
            return json.loads(Path(out, "out", "summary.json").read_text())["samples_per_second"]


def compared(rounds, arm):
    """An arm's speed in times of that as shipped, round by round."""
    return stats.ratio(*(np.array([speeds[name] for speeds in rounds]) for name in (arm, SHIPPED)))


# -- shown ------------------------------------------------------------------------------------------------------


def markdown(rows):
    lines = [
        *how_it_ran("cases/tune.py"),
        "",
        f"| case | kept | proven | of the way to its floor (aim: {WANTED:.0%}) | tuned | patched | its switches"
        " | results | further steps | remarks |",
        "|---|---|---:|---:|---:|---:|---:|---|---|---|",
        *map(line, rows),
    ]
    tried = [
        f"| {row.case} | {' '.join(f'`{fix}`' for fix in outcome_fixes(outcome))} | {interval(outcome.predicted)} |"
        f" {interval(outcome.speedup)} | {outcome.parity.reason} | {outcome.verdict}: {outcome.reason} |"
        for row in rows
        if row.found is not None
        for stage in row.found.stages
        for outcome in stage.outcomes
    ]
    if tried:
        lines += ["", "| case | tried | predicted | times as fast | results | verdict |", "|---|---|---:|---:|---|---|"]
    return "\n".join([*lines, *tried]) + "\n"


def outcome_fixes(outcome):
    return table.stacked(outcome.fixes).split()


def line(row):
    found = row.found
    if found is None:
        return f"| {row.case} | | | | | | | | | {row.failure} |"
    proof = found.proof if found.is_proven else None
    cells = (
        row.case,
        f"`{table.stacked(found.stack)}`" if proof is not None else "nothing",
        interval(proof.speedup) if proof is not None else "",
        way(found),
        interval(row.speeds.get(TUNED)),
        interval(row.speeds.get(PATCHED)),
        interval(row.speeds.get(BY_HAND)),
        proof.parity.reason if proof is not None else "",
        {True: "trained", False: "**failed**", None: ""}[row.trained_on],
        "; ".join(remarks(row)),
    )
    return f"| {' | '.join(cells)} |"


def way(found):
    if found.closed is None:
        gap = found.left.gap_before if found.left is not None else None
        return f"({gap:.2f} times its floor)" if gap is not None else ""
    return f"{found.closed.value:.0%} [{found.closed.low:.0%}, {found.closed.high:.0%}] of {found.left.gap_before:.2f}"


def remarks(row):
    if row.failure:
        yield row.failure
    if row.patch_is_near is False:
        yield f"the patch is more than {NEAR:.0%} from what was tuned"
    yield f"switches: {', '.join(row.by_hand) or 'none that can be applied'}"
    for name in row.by_hand:
        if (row.case, name) in PARTLY:
            yield f"{name}: {PARTLY[row.case, name]}"
    yield row.found.stopped


if __name__ == "__main__":
    sys.exit(main())
