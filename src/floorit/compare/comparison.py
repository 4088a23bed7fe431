"""What differs between two recorded runs: values in, values out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from floorit.analyse import handover, series
from floorit.analyse.ledger import ORDER
from floorit.compare import speed
from floorit.compare.speed import Pace, Speed
from floorit.errors import RecordError, UsageError
from floorit.hardware import Environment
from floorit.report import build, trained
from floorit.report.model import Report
from floorit.runfile import RunFile
from floorit.stats import seconds

SCHEMA = 1
# Of all cores, from what share on that is busy the program may have had to share one (two that the kernel counts may be
# one in truth), and what others may use of them without a word.
BUSY, OTHERS = 0.5, 0.02
LEFT = 0.1  # of the cores that others left to it: less cannot be told
SAME_BATCH = 0.01  # by which samples a step may differ: the last batch of an epoch is often smaller
# Of the machine, what tells whether it is the same one.
_MACHINE = ("host", "gpu", "cpu", "cores", "cores_allowed", "cores_quota", "memory")
# What says nothing of how a program runs: how much was free when it began.
_PASSING = ("disk", "shm_free", "gpus")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not the same in both; None: it is not known there, or does not apply."""

    name: str
    a: Any
    b: Any


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the ledger; a phase that did not happen in a run took none of its time."""

    phase: str
    a: float
    b: float
    difference: float  # b less a


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A finding: its place among all (0 is the verdict) and its share of the step; None: it is not there."""

    code: str
    title: str
    a: int | None
    b: int | None
    share_a: float | None
    share_b: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, `a` before and `b` after."""

    schema: int = SCHEMA
    a: str  # their folders
    b: str
    commands: Change | None  # None: it is the same
    environment: list[Change]
    fixes: list[Change]  # applied from outside
    settings: list[Change]  # in force
    per: Literal["step", "sample"]  # what the ledger's seconds are of: where batches differ, a sample
    step: Change  # mean seconds, of the same
    ledger: list[Phase]
    workers: list[Change]
    gpu: list[Change]
    findings: list[Found]
    speed: Speed | None
    caveats: list[str]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as it is compared."""

    folder: str
    report: Report
    pace: Pace
    others: float | None = None  # cores that other programs kept busy
    fixes: dict[str, Any] = {}


def read(folder: Path) -> Side:
    """A run's record. UsageError where there is none to compare."""
    try:
        run, reader = build.load(folder)
    except RecordError as error:
        raise UsageError(str(error)) from None
    found = trained.of_record(reader, run.warmup)
    if not found:
        raise UsageError(f"{folder}: nothing trained in it, so there is nothing to compare")
    report = build.assemble(folder, run, reader)
    assert report.run is not None
    steps = series.find(found[0].process, found[0].iterations).whole_steps()
    others = _others(run, report)
    pace = Pace(seconds=steps, samples=report.run.samples_per_step, slowed=_slowed(run.environment.cores, others))
    return Side(folder=str(folder), report=report, pace=pace, others=others, fixes=dict(run.fixes))


def _others(run: RunFile, report: Report) -> float | None:
    """Cores that other programs kept busy meanwhile, if few were free; None where that is not known."""
    machine, cores = report.machine, run.environment.cores
    if machine is None or not cores or run.cpu_seconds is None or not run.seconds:
        return None
    others = machine.cpu_share.value * cores - run.cpu_seconds / run.seconds
    return others if machine.cpu_share.value > BUSY and others > OTHERS * cores else 0.0


def _slowed(cores: int | None, others: float | None) -> float:
    """How many times as fast the program could have been, had it had the cores that others kept busy."""
    return cores / max(cores - others, LEFT * cores) if cores and others else 1.0


def compare(a: Side, b: Side) -> Comparison:
    """Lay two runs side by side."""
    differs = _batch_differs(a, b)
    per: Literal["step", "sample"] = "sample" if differs else "step"
    found = speed.compare(a.pace, b.pace)
    before, after = a.report, b.report
    environment = _environment(before.environment, after.environment)
    return Comparison(
        a=a.folder,
        b=b.folder,
        commands=_change("command", before.program.command, after.program.command),
        environment=environment,
        fixes=_changes(a.fixes, b.fixes),
        settings=_settings(before, after),
        per=per,
        step=Change(name="step", a=_per(a, _mean(a), per), b=_per(b, _mean(b), per)),
        ledger=_ledger(a, b, per),
        workers=_changes(_workers(before), _workers(after)),
        gpu=_changes(_gpu(before), _gpu(after)),
        findings=_findings(before, after),
        speed=found,
        caveats=_caveats(a, b, found, environment),
    )


def to_json(comparison: Comparison) -> bytes:
    """For programs, and for people too."""
    return msgspec.json.format(msgspec.json.encode(comparison), indent=1) + b"\n"


def _change(name: str, a: Any, b: Any) -> Change | None:
    return None if a == b else Change(name=name, a=a, b=b)


def _changes(a: dict[str, Any], b: dict[str, Any]) -> list[Change]:
    """What is not the same in both, in the order of the first."""
    names = dict.fromkeys([*a, *b])
    return [change for name in names if (change := _change(name, a.get(name), b.get(name))) is not None]


def _settings(a: Report, b: Report) -> list[Change]:
    """In force; none where they were not read in both."""
    if not a.settings or not b.settings:
        return []
    return _changes(*({setting.name: setting.actual for setting in report.settings} for report in (a, b)))


def _environment(a: Environment, b: Environment) -> list[Change]:
    told = [{k: v for k, v in msgspec.structs.asdict(side).items() if k not in _PASSING} for side in (a, b)]
    several = [[gpu.name for gpu in side.gpus] for side in (a, b)]
    gpus = _change("gpus", *several) if max(map(len, several)) > 1 else None
    return [*_changes(*told), *([gpus] if gpus is not None else [])]


def _batch_differs(a: Side, b: Side) -> bool:
    if a.pace.samples is None or b.pace.samples is None:
        return False
    return abs(a.pace.samples - b.pace.samples) > SAME_BATCH * max(a.pace.samples, b.pace.samples)


def _mean(side: Side) -> float:
    assert side.report.step is not None
    return side.report.step.mean


def _per(side: Side, seconds: float, per: str) -> float:
    return seconds / side.pace.samples if per == "sample" and side.pace.samples else seconds


def _ledger(a: Side, b: Side, per: str) -> list[Phase]:
    spent = [{entry.phase: _per(side, entry.seconds, per) for entry in side.report.ledger} for side in (a, b)]
    both = [(p, spent[0].get(p, 0.0), spent[1].get(p, 0.0)) for p in ORDER if p in spent[0] or p in spent[1]]
    return [Phase(phase=phase, a=before, b=after, difference=after - before) for phase, before, after in both]


def _workers(report: Report) -> dict[str, Any]:
    """Of the loader: what is told of it in numbers."""
    if report.workers is None:
        return {}
    told = report.workers
    return {
        "workers": told.count,
        "busy_share": told.busy_share,
        "sample_seconds": told.sample_seconds.value if told.sample_seconds is not None else None,
        "collate_seconds": told.collate_seconds.value if told.collate_seconds is not None else None,
        "queue_empty_share": told.queue_empty_share,
        "supply": told.supply.now if told.supply is not None else None,
    }


def _gpu(report: Report) -> dict[str, Any]:
    if report.gpu is None:
        return {}
    told = report.gpu
    return {
        "busy_share": told.busy_share,
        "power_watts": told.power_watts,
        "memory_peak": told.memory_peak,
        "kernels_per_step": told.kernels_per_step,
        "tensor_share": told.tensor_share,
        "mfu": told.mfu,
    }


def _findings(a: Report, b: Report) -> list[Found]:
    """All of both, in the order of the second, then those that are gone."""
    places = [{finding.code: place for place, finding in reversed(list(enumerate(r.findings)))} for r in (a, b)]
    by_code = {f.code: f for f in reversed([*b.findings, *a.findings])}
    shares = [{f.code: f.share for f in reversed(r.findings)} for r in (a, b)]
    return [
        Found(
            code=code,
            title=by_code[code].title,
            a=places[0].get(code),
            b=places[1].get(code),
            share_a=shares[0].get(code),
            share_b=shares[1].get(code),
        )
        for code in dict.fromkeys([f.code for f in [*b.findings, *a.findings]])
    ]


def _caveats(a: Side, b: Side, found: Speed | None, environment: list[Change]) -> list[str]:
    """What to bear in mind before the speeds are believed."""
    said = []
    first, second = (_script(side.report.program.command) for side in (a, b))
    if first != second and _have_nothing_in_common(_files(a.report), _files(b.report)):
        said.append(f"these are two programs, {first} and {second}: nothing below says what changed")
    elif first != second:
        said.append(f"A is of {first}, B is of {second}: if these are two programs, nothing below says what changed")
    if found is None:
        said.append("one of them has fewer than two steps that count: there is no interval, so no claim of speed")
    elif found.unit == "steps":
        unknown = " and ".join(name for name, side in (("A", a), ("B", b)) if not side.pace.samples)
        said.append(f"samples a step of {unknown} are not known: steps a second are compared, whatever is in a step")
    if _batch_differs(a, b):
        batches = f"{a.pace.samples:.4g} and {b.pace.samples:.4g} samples a step"
        said.append(f"{batches}: steps a second do not compare, samples a second do; times below are of a sample")
    unlike = [change.name for change in environment if change.name in _MACHINE]
    if unlike:
        said.append(f"not the same machine ({', '.join(unlike)}): part of the difference may be the machine's")
    return said + [line for name, side in (("A", a), ("B", b)) for line in _own_caveats(name, side)]


def _have_nothing_in_common(one: set[str], other: set[str]) -> bool:
    return bool(one) and bool(other) and not one & other


def _files(report: Report) -> set[str]:
    """The program's own files in which time was spent, by their names; scripts are called alike everywhere."""
    places = {Path(line.file) for entry in report.ledger for line in entry.where if handover.package(line.file) is None}
    return {path.name for path in places} - {Path(_script(report.program.command)).name}


def _script(command: list[str]) -> str:
    """The first word that is a file of Python's; else the first of all."""
    return next((word for word in command if word.endswith(".py")), command[0] if command else "")


def _own_caveats(name: str, side: Side) -> list[str]:
    said, report = [], side.report
    assert report.run is not None
    if not side.pace.is_enough:
        steps, total = len(side.pace.seconds), seconds(float(side.pace.seconds.sum()))
        said.append(f"{name} has {steps} steps that count, {total} in all: too short for a claim; train longer")
    if not report.settings:
        said.append(f"the settings in force in {name} were not read, so none are compared")
    if not report.run.steady:
        said.append(f"{name} was not steady: its later steps are not like its earlier ones")
    if side.others is None:
        said.append(f"what other programs did to the cores while {name} ran is not known")
    elif round(side.others, 1):
        said.append(
            f"other programs kept about {side.others:.1f} of {report.environment.cores} cores busy while {name} ran"
        )
    if report.program.exit_code is None:
        said.append(f"{name} has not ended, or floorit did not see its end")
    elif report.program.exit_code:
        said.append(f"{name} ended with exit code {report.program.exit_code}")
    return said
