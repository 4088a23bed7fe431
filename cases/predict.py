"""What each case's report as shipped predicts for each of its faults, beside what was measured.

The reports are those that cases/measure.py left in docs/measurements/cases, so nothing is run. Where a fault's fix has
a value (how many workers, how often to evaluate), the prediction is for the value that was measured. Where there is no
fix, it is for lines that are gone; but a switch may leave a part of what a function does (a picture that is decoded at
half its size is still decoded), and how large that part is, no report as shipped can know. So there are two: what the
report says alone, of all of the function gone, and for as much less of it as the run without the fault shows.
"""

import argparse
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402

from floorit import fixes, truth  # noqa: E402
from floorit.analyse.ledger import Function  # noqa: E402
from floorit.analyse.needs import Range  # noqa: E402
from floorit.analyse.settings import Setting  # noqa: E402
from floorit.analyse.stepmodel import Change, gain  # noqa: E402
from floorit.fixes.fix import UNANSWERED  # noqa: E402
from floorit.fixes.memory import batched  # noqa: E402
from floorit.report.advice import known_of  # noqa: E402
from floorit.report.beside import function_around, is_file  # noqa: E402
from floorit.report.model import Report  # noqa: E402
from floorit.stats import Estimate  # noqa: E402

RECORDS = ROOT / "docs" / "measurements" / "cases"
SHIPPED = "as-shipped.json"
_DATE = len("2026-11-15")  # that the names of records begin with
BAND = 0.05  # around 1: neither a gain nor a loss, with as few runs as these
AIM = 0.10  # median error
WORTH = 1.1  # measured gains from here on are looked at by themselves: near 1 it is easy to be right
WRONG, NOT_TOLD = "**wrong**", "not told"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there instead of printing it")
    options = parser.parse_args()
    records = newest(RECORDS)
    if not records:
        sys.exit(f"predict.py: there are no records in {RECORDS}")
    rows = [row for machine, reports in records.items() for row in predicted(reports, machine)]
    said = markdown(rows, records)
    if options.write:
        options.write.write_text(said, encoding="utf-8")
    else:
        print(said)


# By direction, predicted and measured: 1 faster, 0 neither, -1 slower.
_SIGNS = {
    **{(x, x): "yes" for x in (1, 0, -1)},
    **{(0, x): "missed" for x in (1, -1)},
    **{(x, 0): "nothing there" for x in (1, -1)},
    (1, -1): WRONG,
    (-1, 1): WRONG,
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A fault on a machine."""

    case: str
    machine: str
    fault: truth.Fault
    predicted: Estimate | None  # knowing how much of the fault's own lines its switch leaves
    alone: Estimate | None  # by the report as shipped alone
    how: str  # what it was predicted from, or why it was not
    measured: Estimate

    @property
    def error(self):
        return None if self.predicted is None else self.predicted.value / self.measured.value - 1

    @property
    def sign(self):
        """How the two directions agree."""
        if self.predicted is None:
            return ""
        found = _SIGNS[sign(self.predicted.value), sign(self.measured.value)]
        return NOT_TOLD if found == WRONG and self.may_be_either else found

    @property
    def may_be_either(self):
        """Whether the rounds do not tell a gain from a loss."""
        return sign(self.measured.low) < 0 < sign(self.measured.high)

    @property
    def inside(self):
        """Whether the interval that was predicted and the one that was measured overlap."""
        return (
            self.predicted is not None
            and self.predicted.low <= self.measured.high
            and self.measured.low <= self.predicted.high
        )


def sign(value):
    return 0 if abs(value - 1) <= BAND else 1 if value > 1 else -1


def predicted(reports, machine):
    """All faults of a machine's records that were measured."""
    for case in sorted({case for case, _ in reports}):
        known = truth.load(ROOT / "cases" / case)
        shipped = read(reports[case, SHIPPED]) if (case, SHIPPED) in reports else None
        for fault in known.faults:
            without = reports.get((case, f"without-{fault.name}.json"))
            measured = known.measured[machine].faults.get(fault.name)
            if measured is None:
                continue
            said, alone, how = None, None, "no report was kept"
            if shipped is not None and without is not None:
                said, how = prediction(shipped, read(without), case, fault)
                alone = said if fault.fix else from_lines(shipped, None, known_of(shipped), case, fault)[0]
            gained = measured.speedup
            yield Row(case=case, machine=machine, fault=fault, predicted=said, alone=alone, how=how, measured=gained)


def read(path):
    """A report; in the older ones only a finding says that anomaly detection was on, and only lines are named."""
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    if report.workers and report.workers.where and report.workers.heaviest is None:
        workers = msgspec.structs.replace(report.workers, heaviest=heaviest(report.workers.where))
        report = msgspec.structs.replace(report, workers=workers)
    if report.settings or not any("anomaly" in finding.title for finding in report.findings):
        return report
    return msgspec.structs.replace(report, settings=[Setting(name="anomaly_detection", actual=True)])


def heaviest(where):
    """The function that most of the lines' shares lie in, as far as they are named."""
    functions = {(line.file, line.function) for line in where}
    own = max(([line for line in where if (line.file, line.function) == of] for of in functions), key=shares)
    first, share = own[0], shares(own)
    return Function(
        file=first.file,
        line=first.line,
        function=first.function,
        inside=first.inside,
        share=share,
        whole=share,
        looks=1,
    )


def shares(where):
    return sum(line.share for line in where)


def prediction(shipped, without, case, fault):
    """The speed-up that the report as shipped predicts for this change, and from what."""
    known = known_of(shipped)
    if fault.fix is None:
        return from_lines(shipped, without, known, case, fault)
    valued = {
        "workers": lambda: workers(known, without),
        "eval-every": lambda: gain(known.needs, Change(phases={"eval": rarity(shipped, without)})),
        "checkpoint-every": lambda: gain(known.needs, Change(phases={"checkpoint": 0.0})),
        "sync-off": lambda: gain(known.needs, Change(syncs=1 - blocked_at(shipped, known, case, fault))),
        "batch": lambda: batched(known, without.run.samples_per_step / shipped.run.samples_per_step),
    }
    fix = next(fix for fix in fixes.ALL if fix.code == fault.fix)
    if fault.fix in valued and (fault.fix != "batch" or known.on_gpu):
        return valued[fault.fix](), fault.fix
    said = fix.predict(known)
    if isinstance(said, str) and said.startswith(UNANSWERED):
        return None, f"{fault.fix}: {said}"
    if isinstance(said, str):
        return Estimate(value=1.0, low=1.0, high=1.0, n=known.needs.n), f"{fault.fix}: {said}"
    return said, fault.fix


def workers(known, without):
    """As many as the arm that was measured had."""
    return gain(known.needs, Change(workers=without.workers.count))


def rarity(shipped, without):
    """Evaluations that are left, of those as shipped."""
    return without.run.eval_passes / shipped.run.eval_passes


def blocked_at(shipped, known, case, fault):
    """Of all blocked time, what is at the fault's line."""
    here = sum(p.seconds for p in shipped.syncs if is_file(p.file, case, fault.file) and p.line == fault.line)
    return min(here / known.needs.host["sync"], 1.0)


def from_lines(shipped, without, known, case, fault):
    """If the function of the fault, with what it calls, took as little as where that is switched off, or nothing."""
    around = function_around(ROOT / "cases" / case / fault.file, fault.line) if fault.file.endswith(".py") else ()

    def is_in(place):
        return is_file(place.file, case, fault.file) and place.line in around

    def share(of):
        called = of.heaviest.whole if of.heaviest is not None and is_in(of.heaviest) else 0.0
        return min(max(shares(filter(is_in, of.where)), called), 1.0)

    def left(of, seconds, stays, later):
        """Of `seconds` that work takes as shipped; without the fault it takes `later`, a part of it still there."""
        own = share(of)
        return 1 - own + min(share(stays) * later / seconds, own) if stays is not None and seconds else 1 - own

    still = {entry.phase: entry for entry in without.ledger} if without else {}
    parts = {
        entry.phase: left(entry, entry.seconds, still.get(entry.phase), still.get(entry.phase, entry).seconds)
        for entry in shipped.ledger
        if entry.phase in fault.phases
    }
    workers = shipped.workers
    later = (without.workers, made_in(without)) if without else (None, 0.0)
    made = left(workers, made_in(shipped), *later) if workers else 1.0
    if made == 1.0 and all(part == 1.0 for part in parts.values()):
        return None, "no line of it is named"
    change = Change(phases={phase: part for phase, part in parts.items() if phase != "data_wait"},
                    loader=Range(made, made, made))  # fmt: skip
    return gain(known.needs, change), "its lines"


def made_in(report):
    """Seconds in which a sample is made; 0 where that is not known."""
    workers = report.workers
    return workers.sample_seconds.value if workers is not None and workers.sample_seconds is not None else 0.0


# -- shown ------------------------------------------------------------------------------------------------------


def newest(records):
    """The last report of each run, by its case and name, for each machine, whose key follows the date of a folder."""
    found = {}
    for path in sorted(records.glob("*/*/*.json")):
        folder, case = path.parts[-3:-1]
        found.setdefault(folder[_DATE + 1 :], {})[case, path.name] = path
    return found


def markdown(rows, records):
    folders = {path.parts[-3] for reports in records.values() for path in reports.values() if path.name == SHIPPED}
    date = max(folders)[:_DATE]
    dated = ", ".join(f"`{folder}`" for folder in sorted(folders))
    said = [row for row in rows if row.predicted is not None]
    lines = [
        f"# Predictions beside measurements, {date}",
        "",
        f"`python cases/predict.py --write docs/measurements/{date}-predictions.md`: from the report of each case as",
        f"shipped, the newest of each machine ({dated}), against the speed-up in its `truth.toml`.",
        "A measured gain of one pair has no interval. `its lines`: no fix does that from outside; *alone* is what the",
        "report as shipped says of all of the function gone, *predicted* of as much of it as the switch takes away,",
        "which is read from the run without the fault. A fix that is refused as it would gain nothing counts as 1.00.",
        "",
        summary("all", said),
        *(
            summary(machine, [r for r in said if r.machine == machine])
            for machine in dict.fromkeys(r.machine for r in said)
        ),
        *unpredicted(rows),
        summary("measured twice or more", [r for r in said if r.measured.n > 1]),
        summary(f"measured gain of {WORTH} or more", [r for r in said if r.measured.value >= WORTH]),
        "",
        "The error is of the speed-up: predicted over measured, minus 1. Sign, with whatever is within"
        f" {BAND:.0%} of 1 as neither gain nor loss:",
        "`wrong` is a gain measured as a loss or the reverse, `missed` a change measured where none was predicted,",
        f"`nothing there` the reverse, `{NOT_TOLD}` what would be wrong if the rounds told a gain from a loss.",
        "",
        "| machine | case | fault | from | alone | predicted | measured | error | sign |",
        "|---|---|---|---|---:|---:|---:|---:|---|",
        *map(line, rows),
    ]
    return "\n".join(lines) + "\n"


def summary(name, rows):
    if not rows:
        return f"- {name}: none"
    errors = sorted(abs(row.error) for row in rows)
    wrong = [f"{row.case}/{row.fault.name} ({row.machine})" for row in rows if row.sign == WRONG]
    kinds = ("missed", "nothing there", NOT_TOLD)
    missed, nothing, not_told = (sum(row.sign == kind for row in rows) for kind in kinds)
    median = statistics.median(errors)
    named = f": {', '.join(wrong)}" if wrong else ""
    met = "met" if median <= AIM and not wrong else "**not met**"
    return (
        f"- {name}: {len(rows)} predictions, median error {median:.1%}, largest {errors[-1]:.0%}, wrong sign"
        f" {len(wrong)}{named}; {missed} missed,"
        f" {nothing} with nothing there, {not_told} {NOT_TOLD}; intervals overlap in {sum(r.inside for r in rows)}"
        f" (aim: {AIM:.0%} and no wrong sign: {met})"
    )


def unpredicted(rows):
    """Gains that were measured and of which nothing was said, and the errors of what the report says alone."""
    for machine in dict.fromkeys(row.machine for row in rows if row.alone is not None):
        of_machine = [row for row in rows if row.machine == machine]
        unsaid = [row for row in of_machine if row.predicted is None and row.measured.value >= WORTH]
        errors = [abs(row.alone.value / row.measured.value - 1) for row in of_machine if row.alone is not None]
        named = f": {', '.join(f'{row.case}/{row.fault.name}' for row in unsaid)}" if unsaid else ""
        median, largest = statistics.median(errors), max(errors)
        yield (
            f"- {machine}, by the report alone: {len(errors)} predictions, median error {median:.1%},"
            f" largest {largest:.0%}; of {len(unsaid)} with a gain of {WORTH} or more nothing is said{named}"
        )


def line(row):
    cells = (
        row.machine,
        row.case,
        row.fault.name,
        row.how,
        "none" if row.alone is None else interval(row.alone),
        "none" if row.predicted is None else interval(row.predicted),
        interval(row.measured),
        "" if row.error is None else f"{row.error:+.0%}",
        row.sign,
    )
    return f"| {' | '.join(cells)} |"


def interval(estimate):
    spread = f" [{estimate.low:.2f}, {estimate.high:.2f}]" if estimate.n > 1 else ""
    return f"{estimate.value:.2f}{spread}"


if __name__ == "__main__":
    main()
