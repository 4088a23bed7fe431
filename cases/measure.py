"""What each fault of a case costs: measured by switching it off, alone and all together.

A round runs every arm once, each in a fresh process under `floorit run`, in random order: as shipped, without each
fault, without all. Arms are compared within their round, so that what else the machine does falls on all of them
alike; intervals are over rounds. After each round the results stand in cases/NAME/truth.toml; after each run its
numbers stand beside the records, in rounds.json. So an interrupted measurement loses the run that was under way and
nothing else: --earlier goes on with that file, first with the round that was not finished.
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402
import numpy as np  # noqa: E402

from floorit import demo, stats, truth  # noqa: E402
from floorit.errors import FlooritError  # noqa: E402
from floorit.report.build import build  # noqa: E402
from floorit.report.model import to_json  # noqa: E402

AS_SHIPPED, ALL_OFF = "as-shipped", "all-off"
ASKED_ABOUT = 1.05  # speed-ups over this: does the ledger agree with the program's own timer?
AGREEMENT = 0.1  # how far what the ledger saves may be from what the timer saves
SHOWN = 0.005  # of a step: changes of a phase under this are left out
FIGURES = 4  # that are written
ROUNDS = "rounds.json"
WINDOWS = ("first", "not", "alone")  # when a case on a GPU is recorded with the kernel window
PATIENCE = 10.0  # seconds an interrupted run is given to end

EXAMPLES = """\
examples:
  python cases/measure.py                                    all five at CPU scale, 5 rounds
  python cases/measure.py heatmap --rounds 3
  python cases/measure.py detector --only anomaly            one fault again; the others' results stay
  python cases/measure.py --scale gpu --budget 500 --extra "--steps 40" --write-to $OUT
  python cases/measure.py detector --regime data             as truth.toml describes it under [regime.data]
  python cases/measure.py bev --earlier docs/measurements/cases/2026-11-18-h200/bev/rounds.json   more rounds on top
  python cases/measure.py bev --scale gpu --window alone     nothing but the record that predictions are from
  python cases/measure.py bev --extra "--batch-size 8" --dry-run

Needs nothing installed but floorit's dependencies and the cases' libraries: floorit itself is taken from src/.
"""


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit ends it as Ctrl-C does
    try:
        measurements = [Measurement(name, options) for name in options.cases]
        interrupted = measure(measurements, options)
    except FlooritError as error:
        sys.exit(f"measure.py: {error}")
    done = [m for m in measurements if m.rounds]
    if options.json:
        begun = [m.as_json() for m in measurements if m.rounds or m.begun]
        options.json.write_text(json.dumps(begun, indent=1) + "\n")
    if options.window != "alone":
        print("\n\n".join(markdown(m) for m in done) or "no round was finished")
    unfinished = len(done) < len(measurements) and options.window != "alone"
    return 130 if interrupted else 1 if any(m.failed for m in measurements) or unfinished else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: {' '.join(demo.NAMES)}")
    parser.add_argument("--scale", choices=truth.SCALES, default="cpu", help="default: cpu")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--regime", metavar="NAME", help="in another regime than as shipped, where a case has one")
    parser.add_argument(
        "--only", action="append", metavar="FAULT", help="this fault against the case as shipped; may be repeated"
    )
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="begin no round that would end later")
    parser.add_argument("--extra", type=shlex.split, default=[], metavar="WORDS", help='for train.py: "--steps 24"')
    parser.add_argument(
        "--window",
        choices=WINDOWS,
        default=WINDOWS[0],
        help="a case on a GPU is recorded once more as shipped, with the kernel window, which predictions are from:"
        f" after the {WINDOWS[0]} round (default), {WINDOWS[1]} at all, or that {WINDOWS[2]}",
    )
    parser.add_argument("--records", type=Path, metavar="DIR", help="keep the whole record with that window there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run's numbers there")
    parser.add_argument("--earlier", type=Path, metavar="FILE", help="count the rounds that --json wrote there, too")
    parser.add_argument("--dry-run", action="store_true", help="print, but write neither truth.toml nor records")
    parser.add_argument(
        "--write-to", type=Path, default=ROOT, metavar="DIR", help="write there what belongs in the repository"
    )
    options = parser.parse_args()
    if options.dry_run and options.window == "alone":
        parser.error("--window alone writes a record, and nothing else: it does not go with --dry-run")
    options.cases = list(dict.fromkeys(options.cases)) or list(demo.NAMES)
    for name in options.cases:
        if name not in demo.NAMES:
            parser.error(f"there is no case {name!r}; there are {', '.join(demo.NAMES)}")
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    return options


def measure(measurements, options):
    """All rounds, one case after the other in each, so that an early end leaves as many rounds of each; says whether
    it was interrupted."""
    began = time.monotonic()
    try:
        for measurement in measurements:
            demo.make_data(measurement.case, options.scale, sys.executable, sys.stderr)
            if options.window == "alone":
                measurement.record_window()
        for number in range(options.rounds if options.window != "alone" else 0):
            for measurement in (m for m in measurements if not m.failed):
                spent = time.monotonic() - began
                if options.budget and spent + measurement.longest_round > options.budget:
                    say(f"{measurement.case.name}: no round {number + 1}: it would end later than the budget allows")
                    continue
                measurement.round(number)
    except KeyboardInterrupt:
        say("interrupted; all runs that had ended are kept, for --earlier to go on with")
        return True
    return False


def say(text):
    print(text, file=sys.stderr, flush=True)


# -- running ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """What is kept of one run. Seconds a step."""

    step: float  # by the program's own timer
    mean: float  # by the ledger
    phases: dict
    samples: float  # of a step
    memory: int | None  # bytes at the peak on the GPU
    verdict: str
    device: str
    report: dict

    @property
    def on_gpu(self):
        return self.device.startswith("cuda")

    def as_json(self):
        figures = {name: value for name, value in vars(self).items() if name != "report"}
        return {**figures, "environment": self.report["environment"]}

    @classmethod
    def from_json(cls, figures):
        """A run of an earlier measurement, of whose report only the environment was kept."""
        environment = figures.pop("environment")
        return cls(**figures, report={"environment": environment})

    def per_samples(self, count):
        """The same with seconds for so many samples, so that runs with other batches can be compared."""
        factor = count / self.samples
        phases = {phase: seconds * factor for phase, seconds in self.phases.items()}
        return replace(self, step=self.step * factor, mean=self.mean * factor, phases=phases, samples=count)


class Measurement:
    """One case: its arms, and what their runs have given."""

    def __init__(self, name, options):
        folder = ROOT / "cases" / name
        self.case = demo.Case(name=name, folder=folder, truth=truth.load(folder))
        self.options = options
        self.arms = arms(self.case.truth, options.scale, options.only, options.regime)
        self.rounds = list(earlier_rounds(options.earlier, name, self.arms))
        self.begun = earlier_begun(options.earlier, name, self.arms)  # the arms that have run of the round that goes on
        self.recorded = bool(self.rounds)  # by the measurement that made them
        self.failed = False
        self.longest_round = 0.0

    def round(self, number):
        """Every arm once, in random order. A run that fails ends this case."""
        began, found = time.monotonic(), self.begun
        left = [arm for arm in self.arms if arm not in found]
        for at, arm in enumerate(random.sample(left, len(left)), start=len(found) + 1):
            started = time.monotonic()
            try:
                found[arm] = run(self.case, self.arms[arm], self.options)
            except RunFailed as error:
                self.failed = True
                say(f"{self.case.name} {arm} failed; the runs before it are kept\n{error}")
                return
            say(
                f"{self.case.name} round {number + 1} of {self.options.rounds}, {at} of {len(self.arms)}: {arm}:"
                f" {found[arm].step * 1e3:.4g} ms a step, {found[arm].verdict} ({time.monotonic() - started:.0f} s)"
            )
            if not self.options.dry_run:
                self.write_rounds()
                if not self.recorded:
                    self.keep(arm, found[arm])
        self.rounds.append(found)
        self.begun = {}
        self.longest_round = max(self.longest_round, time.monotonic() - began)
        if not self.options.dry_run:
            self.write()

    def write(self):
        """The tables of truth.toml and the numbers of all rounds; the kernel window's record after the first one."""
        write_truth(self.options.write_to / "cases" / self.case.name / truth.NAME, self)
        self.write_rounds()
        if not self.recorded:
            self.recorded = True
            if self.options.window == "first" and self.rounds[-1][AS_SHIPPED].on_gpu:
                self.record_window()

    def write_rounds(self):
        """The numbers of all runs."""
        some = next(iter(self.rounds[0].values() if self.rounds else self.begun.values()))
        (self.records(some) / ROUNDS).write_text(json.dumps([self.as_json()], indent=1) + "\n")

    def record_window(self):
        """As shipped, with the kernel window: what predictions are from. Takes the place of the round's own record."""
        try:
            self.keep(AS_SHIPPED, run(self.case, [], self.options, window=True))
        except RunFailed as error:
            self.failed = True
            say(f"{self.case.name} failed with the kernel window\n{error}")

    def keep(self, arm, ran):
        """Write down the report of a run."""
        text = json.dumps(ran.report, indent=1, ensure_ascii=False) + "\n"
        (self.records(ran) / f"{arm}.json").write_text(text)

    def records(self, ran):
        """The folder of today's records, on the machine of a run."""
        date = time.strftime("%Y-%m-%d", time.gmtime())
        records = self.options.write_to / "docs" / "measurements" / "cases"
        folder = records / f"{date}-{self.key_of(ran)}" / self.case.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def key(self):
        return self.key_of(self.rounds[0][AS_SHIPPED])

    def key_of(self, ran):
        gpu = ran.report["environment"]["gpu"] if ran.on_gpu else None
        return truth.device_key(gpu, self.options.scale, self.options.regime)

    def as_json(self):
        *rounds, begun = [{arm: ran.as_json() for arm, ran in of.items()} for of in [*self.rounds, self.begun]]
        results = {"key": self.key, "measured": msgspec.to_builtins(result(self))} if rounds else {}
        return {"case": self.case.name, **results, "rounds": rounds, "begun": begun}


def earlier_rounds(file, case, arms):
    """Rounds of an earlier measurement of the case that ran the same arms."""
    for measurement in earlier(file, case):
        for found in measurement["rounds"]:
            if set(found) == set(arms):
                yield {arm: Ran.from_json(figures) for arm, figures in found.items()}


def earlier_begun(file, case, arms):
    """The runs of its last round, where that was not finished."""
    found = [measurement.get("begun", {}) for measurement in earlier(file, case)]
    begun = found[-1] if found and set(found[-1]) < set(arms) else {}
    return {arm: Ran.from_json(figures) for arm, figures in begun.items()}


def earlier(file, case):
    """What an earlier measurement wrote of the case."""
    written = json.loads(file.read_text()) if file is not None else []
    return [measurement for measurement in written if measurement["case"] == case]


def arms(known, scale, only=None, regime=None):
    """Name of each arm, and the faults that are off in it."""
    if regime is not None and regime not in known.regimes:
        raise FlooritError(f"{known.case} has no regime {regime!r}; it has {', '.join(known.regimes) or 'none'}")
    names = [fault.name for fault in known.at(scale, regime)]
    if only is None:
        return {AS_SHIPPED: [], **{f"without-{name}": [name] for name in names}, ALL_OFF: ["all"]}
    for name in only:
        if name not in names:
            raise FlooritError(f"{known.case} has no fault {name!r} at this scale; it has {', '.join(names)}")
    return {AS_SHIPPED: [], **{f"without-{name}": [name] for name in only}}


class RunFailed(Exception):
    """A run ended with an error; what it said last."""


def run(case, faults_off, options, window=False):
    """One fresh process under `floorit run`.

    Without the kernel window, which the program's own timer would count and the ledger does not; and both leave out the
    same steps at the start.
    """
    with tempfile.TemporaryDirectory(prefix=f"floorit-{case.name}-") as name:
        folder = Path(name)
        off = [word for fault in faults_off for word in ("--fault-free", fault)]
        regime = case.truth.regimes[options.regime].options if options.regime else []
        script = [sys.executable, str(case.folder / "train.py"), "--scale", options.scale]
        script += [*regime, *off, *options.extra]
        script += ["--data", str(demo.cache() / case.name / options.scale), "--out", str(folder / "out")]
        recorded = ["--quiet", *([] if window else ["--no-window"]), "--out", str(folder / "run")]
        words = [sys.executable, "-m", "floorit", "run", *recorded, "--", *script]
        with (folder / "said.txt").open("w+") as said:
            code = execute(words, folder, said)
            if code:
                said.seek(0)
                raise RunFailed(f"exit code {code}: {shlex.join(script)}\n{said.read()[-3000:]}")
        if window and options.records:
            shutil.copytree(folder / "run", options.records / case.name, dirs_exist_ok=True)
        summary = json.loads((folder / "out" / "summary.json").read_text())
        report = json.loads(to_json(build(folder / "run", summary["warmup"] or None)))
    if not report["step"] or not report["findings"]:
        raise RunFailed(f"no step was recorded: {report['summary']}")
    return Ran(
        step=summary["step_seconds"],
        mean=report["step"]["mean"],
        phases={entry["phase"]: entry["seconds"] for entry in report["ledger"]},
        samples=summary["samples_per_second"] * summary["step_seconds"],
        memory=summary.get("memory_peak"),
        verdict=report["findings"][0]["code"],
        device=summary["device"],
        report=report,
    )


def execute(words, cwd, said):
    """Run to the end; where we are interrupted, nothing of it stays behind."""
    process = subprocess.Popen(
        words, cwd=cwd, stdout=said, stderr=subprocess.STDOUT, env=environment(), start_new_session=True
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise


def environment():
    """Ours, with src/ on the path from wherever a run starts."""
    others = [str(Path(p).absolute()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    path = os.pathsep.join(dict.fromkeys([str(ROOT / "src"), *others]))
    return {**os.environ, "PYTHONPATH": path}


# -- what it means ----------------------------------------------------------------------------------------------


def result(measurement):
    """The rounds as truth.toml has them."""
    options, known, rounds = measurement.options, measurement.case.truth, measurement.rounds
    shipped = [found[AS_SHIPPED] for found in rounds]
    environment = shipped[0].report["environment"]
    by_name = {fault.name: fault for fault in known.faults}
    verdicts = [ran.verdict for ran in shipped]
    every_phase = {phase for fault in known.at(options.scale, options.regime) for phase in fault.phases}
    return truth.Measured(
        date=now(),
        command=command(),
        machine=machine(environment),
        torch=environment["torch"],
        scale=options.scale,
        regime=options.regime,
        rounds=len(rounds),
        step_seconds=stats.mean(np.array([ran.step for ran in shipped])),
        ledger_seconds=stats.mean(np.array([ran.mean for ran in shipped])),
        verdicts={code: verdicts.count(code) for code in dict.fromkeys(verdicts)},
        faults={
            off[0]: gain(shipped, [found[arm] for found in rounds], set(by_name[off[0]].phases))
            for arm, off in measurement.arms.items()
            if off and arm != ALL_OFF
        },
        all_off=gain(shipped, [found[ALL_OFF] for found in rounds], every_phase) if ALL_OFF in rounds[0] else None,
    )


def gain(shipped, without, named):
    """What a change gains: the two arms' runs, in pairs. Seconds are for the samples of one step as shipped."""
    without = [b.per_samples(a.samples) for a, b in zip(shipped, without, strict=True)]
    steps = [np.array([ran.step for ran in arm]) for arm in (shipped, without)]
    means = [np.array([ran.mean for ran in arm]) for arm in (shipped, without)]
    speedup = stats.ratio(*steps)
    saved, ledger_saved = stats.mean(steps[0] - steps[1]), stats.mean(means[0] - means[1])
    changes = phase_changes(shipped, without)
    asked = speedup.value > ASKED_ABOUT
    return truth.Gain(
        speedup=speedup,
        saved=saved,
        ledger_saved=ledger_saved,
        agrees=abs(ledger_saved.value - saved.value) <= AGREEMENT * saved.value if asked else None,
        on_named=sum(changes.get(phase, 0.0) for phase in named) / ledger_saved.value if asked else None,
        phases={phase: change for phase, change in changes.items() if abs(change) >= SHOWN * means[0].mean()},
        memory_saved=memory_saved(shipped, without),
    )


def memory_saved(shipped, without):
    """Bytes, mean over rounds; None where the program does not tell."""
    if any(ran.memory is None for ran in [*shipped, *without]):
        return None
    return float(np.mean([a.memory - b.memory for a, b in zip(shipped, without, strict=True)]))


def phase_changes(shipped, without):
    """Seconds a step by which each phase shrinks, mean over rounds; the largest first."""
    names = {phase for ran in [*shipped, *without] for phase in ran.phases}
    pairs = list(zip(shipped, without, strict=True))
    changes = {
        phase: float(np.mean([a.phases.get(phase, 0.0) - b.phases.get(phase, 0.0) for a, b in pairs]))
        for phase in names
    }
    return dict(sorted(changes.items(), key=lambda item: -abs(item[1])))


def now():
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def command():
    return shlex.join(["python", "cases/measure.py", *sys.argv[1:]])


def machine(environment):
    allowed = [environment[name] for name in ("cores", "cores_allowed", "cores_quota") if environment[name]]
    facts = [environment["cpu"] or "unknown CPU", f"{min(allowed, default=0):g} cores"]
    return ", ".join([*facts, environment["gpu"]] if environment["gpu"] else facts)


# -- truth.toml -------------------------------------------------------------------------------------------------


def write_truth(path, measurement):
    """Put this machine's tables below the marker; what stands above it, and other machines' tables, stay."""
    source = path if path.exists() else measurement.case.folder / truth.NAME
    text = source.read_text(encoding="utf-8")
    known = msgspec.toml.decode(text.encode(), type=truth.Truth)
    merged = {**known.measured, measurement.key: merge(known.measured.get(measurement.key), measurement)}
    above = text.partition(truth.MARKER)[0].rstrip("\n")
    below = toml({"measured": msgspec.to_builtins(merged)})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".toml.part")
    partial.write_text(f"{above}\n\n{truth.MARKER}\n{below}", encoding="utf-8")
    partial.replace(path)


def merge(before, measurement):
    """With --only, one fault's result among the earlier ones, with its own date; else all anew."""
    after = result(measurement)
    if measurement.options.only is None or before is None:
        return after
    dated = {n: msgspec.structs.replace(g, date=after.date, command=after.command) for n, g in after.faults.items()}
    return msgspec.structs.replace(before, faults={**before.faults, **dated})


def toml(table, path=()):
    """A table as TOML. Tables of plain values are written inline, None is left out."""
    values = {name: value for name, value in table.items() if value is not None}
    tables = {name: value for name, value in values.items() if isinstance(value, dict) and not is_plain(value)}
    lines = [f"{key(name)} = {literal(value)}\n" for name, value in values.items() if name not in tables]
    header = f"\n[{'.'.join(map(key, path))}]\n" if lines and path else ""
    return header + "".join(lines) + "".join(toml(value, (*path, name)) for name, value in tables.items())


def is_plain(table):
    return not any(isinstance(value, dict) for value in table.values())


def key(name):
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def literal(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(f"{value:.{FIGURES}g}"))
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key(n)} = {literal(v)}' for n, v in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


# -- shown ------------------------------------------------------------------------------------------------------


def markdown(measurement):
    found, known = result(measurement), measurement.case.truth
    verdicts = ", ".join(f"{code} ({n} of {found.rounds})" for code, n in found.verdicts.items())
    lines = [
        f"### {measurement.case.name} on {measurement.key}",
        "",
        f"Machine: {found.machine}; torch {found.torch}; {found.date}  ",
        f"Command: `{found.command}` (rounds: {found.rounds}; 95 % intervals over rounds)  ",
        f"As shipped: {interval(found.step_seconds, 1e3)} ms a step by its own timer,"
        f" {interval(found.ledger_seconds, 1e3)} by the ledger; verdict {verdicts},"
        f" expected {known.expected(measurement.options.scale, measurement.options.regime)[0]}  ",
        "What is saved is for the samples of one step as shipped.",
        "",
        "| without | at | speed-up | saves, own timer (ms) | saves, ledger (ms) | agree | on the phases named |"
        " phases that change (ms) |",
        "|---|---|---:|---:|---:|---|---:|---|",
    ]
    faults = {fault.name: fault for fault in known.faults}
    for name, each in found.faults.items():
        lines.append(markdown_row(name, f"{faults[name].file}:{faults[name].line}", each))
    if found.all_off is not None:
        lines.append(markdown_row("all", "", found.all_off))
    return "\n".join(lines)


def markdown_row(name, place, each):
    shown = [f"{phase} {-change * 1e3:+.3g}" for phase, change in each.phases.items()]
    changes = ", ".join(filter(None, [*shown, gibibytes(each.memory_saved)]))
    cells = (
        name,
        place,
        f"{interval(each.speedup)}",
        interval(each.saved, 1e3),
        interval(each.ledger_saved, 1e3),
        {True: "yes", False: "**no**", None: ""}[each.agrees],
        "" if each.on_named is None else f"{each.on_named:.0%}",
        changes,
    )
    return f"| {' | '.join(cells)} |"


def gibibytes(saved):
    return "" if saved is None else f"{-saved / 2**30:+.1f} GiB at the peak"


def interval(estimate, scale=1):
    value, low, high = (f"{x * scale:.4g}" for x in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]" if estimate.n > 1 else value


if __name__ == "__main__":
    sys.exit(main())
