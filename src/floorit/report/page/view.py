"""What the page of a run shows: the record looked at once more, and values for the template and the charts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec

from floorit import vitals
from floorit.analyse import course, trace
from floorit.analyse.course import Course
from floorit.events import Place, RecordReader
from floorit.report import findings, images, paths, proving, sentences
from floorit.report import memory as of_memory
from floorit.report import trained as trainings
from floorit.report.model import Missing, Report
from floorit.report.page import listing, samples, series
from floorit.report.page.samples import Samples
from floorit.report.page.series import Steps
from floorit.report.words import IDLE, PHASES, around, inside
from floorit.runfile import RunFile
from floorit.stats import seconds

MOST_ROWS = 20  # of a table that stands for a chart
MOST_ADVICE = 12


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the page needs of the record beyond the report."""

    steps: Steps | None = None
    course: Course | str = "nothing trained"  # or why there is none
    samples: Samples | None = None
    training: tuple[float, float] | None = None  # seconds since the start: when warm-up was over, and the last step
    started: float = 0.0  # seconds since the epoch


def look(report: Report, run: RunFile, reader: RecordReader, folder: Path) -> Seen:
    """Read the series and one step out of the record."""
    processes = reader.run()
    found = (t for process in processes if (t := trainings.examine(process, run.warmup)) is not None)
    trained = next(found, None)
    machine = vitals.load(folder)
    began = [float(p.facts["started"]) for p in processes[:1] if p.facts.get("started")]
    since = min([*began, *(sample.at for sample in machine[:1])], default=0.0)
    sampled = samples.examine(machine, since)
    if trained is None or not report.ledger:
        return Seen(samples=sampled, started=run.started)
    begin, end = trainings.stretch(trained)
    return Seen(
        steps=series.examine(trained.process, trained.iterations, report.ledger),
        course=_course(trained, reader),
        samples=sampled,
        training=(begin - since, end - since),
        started=run.started,
    )


def _course(trained: trainings.Trained, reader: RecordReader) -> Course | str:
    """A step in the kernel window where there is one, else the host's part of a usual step."""
    process, iterations = trained.process, trained.iterations
    window = process.window or {}
    if "file" in window:
        try:
            read = trace.parse((reader.folder / Path(window["file"]).name).read_bytes())
        except (OSError, ValueError):
            read = None
        found = course.watched(process, iterations, window, read) if read is not None else ""
        if isinstance(found, Course):
            return found
    return course.usual(process, iterations, lambda begin, end: reader.spans_between(process, begin, end))


def values(report: Report, run: RunFile, seen: Seen) -> dict[str, Any]:
    """What the template is filled with."""
    short = paths.with_short_paths(report)
    shown = _listing(report, seen.started)
    return {
        "report": short,
        "command": shlex.join(report.program.command),
        "started": seen.started,
        "phases": PHASES,
        "causes": IDLE,
        "of_floor": sentences.of_floor(report.floor) if report.floor else None,
        "gap": sentences.gap(report.floor) if report.floor else None,
        "without_data": sentences.without_data(report.floor) if report.floor else None,
        "floor_title": sentences.WITHOUT_DATA,
        "floor_command": proving.command(report, "run", "--floor") if report.floor and not run.floor else None,
        "again": shlex.join(["floorit", "report", "--html", report.record]),
        "ledger": sorted(short.ledger, key=lambda entry: -entry.share),
        "listing": shown,
        "source": {(file.path, row.number): row.text for file in shown for row in file.rows if row.text},
        "missing": sentences.by_reason(_missing(report, seen)),
        "parts": sorted(short.parts[:-1], key=lambda part: -part.seconds) + short.parts[-1:],
        "memory": _memory(report),
        "ignored": [setting for setting in short.settings if setting.ignored],
        "in_force": [setting for setting in short.settings if not setting.ignored],
        **_advised(short),
        **_said(short),
        **_shown(report, seen),
    }


def _advised(report: Report) -> dict[str, Any]:
    """What was found and what to do."""
    told = {"set_to": findings.set_to, "promise": findings.promise, "weight": findings.weight}
    told |= {"in_brief": findings.in_brief, "around": around, "where_to_change": findings.where_to_change}
    told |= {"takes": findings.takes, "inside": inside}
    if not report.findings:
        return {**told, "first": None, "is_out_of_memory": False, "advice": [], "nothing": None, "in_vain": []}
    first, advice = report.findings[0], findings.chosen(report.findings, MOST_ADVICE)
    return {
        **told,
        "first": first,
        "left_on": [finding for finding in report.findings[1:] if finding.is_switch],
        "is_out_of_memory": first.code == "out-of-memory",
        "advice": [(item, proving.proof(item, report)) for item in advice],
        "provable": next((item for item in advice if item.setting), None),
        "prove": lambda item: proving.proof(item, report),
        "tune": lambda item: proving.tuning(item, report),
        "try_time": proving.time(report),
        "rerun": proving.command(report, "run"),
        "nothing": findings.NOTHING if not advice and findings.promises_nothing(report.findings) else None,
        "in_vain": findings.in_vain(report.findings),
    }


def _said(report: Report) -> dict[str, Any]:
    """In words, as on a terminal."""
    workers = report.workers
    return {
        "facts": sentences.of_run(report.run) if report.run else [sentences.hint_untrained(report)],
        "warnings": sentences.warnings(report),
        "of_ranks": sentences.of_ranks(report),
        "job": sentences.of_job(report.job) if report.job else None,
        "job_with_fixes": sentences.of_job_with_fixes(report.job) if report.job else [],
        "loader": sentences.of_loader(workers) if workers else [],
        "data_path": sentences.of_data_path(workers, report.run) if workers and report.run else [],
        "images": images.lines(workers) if workers else [],
        "gpu_facts": sentences.of_gpu(report.gpu) if report.gpu else [],
    }


def _shown(report: Report, seen: Seen) -> dict[str, Any]:
    """What the charts show, and the tables that stand for them."""
    return {
        "steps": seen.steps,
        "steps_rows": _steps_rows(seen.steps) if seen.steps else [],
        "course": seen.course,
        "course_rows": _course_rows(seen.course, report) if isinstance(seen.course, Course) else [],
        "samples": seen.samples,
        "samples_rows": _samples_rows(seen.samples) if seen.samples else [],
    }


def drawn(report: Report, seen: Seen) -> dict[str, Any]:
    """What the charts are drawn from."""
    return {
        "phases": PHASES,
        "causes": IDLE,
        "steps": seen.steps,
        "course": _bars(seen.course, report) if isinstance(seen.course, Course) else None,
        "samples": seen.samples,
        "training": seen.training,
    }


# Colours of the phases, for what memory is for.
_COLOURS = {
    "parameters": "optimizer",
    "buffers": "loss",
    "gradients": "recompute",
    "optimizer state": "eval",
    "activations": "forward",
    "batch": "h2d",
    "left over": "other",
    "temporary": "backward",
    "rounding": "logging",
    "other steps": "checkpoint",
}


def _memory(report: Report) -> dict[str, Any] | None:
    """The memory ledger: its rows with their colours, and what is said below."""
    memory = report.memory
    if memory is None:
        return None
    rows = [(what, row, _COLOURS.get(row.what, "unattributed"), most) for what, row, most in of_memory.rows(memory)]
    effects = [(of_memory.setting(e), of_memory.of_effect(e), memory.peak + e.bytes, e.how) for e in memory.effects]
    said = [*of_memory.of_peak(memory), *of_memory.of_device(memory)]
    return {"rows": rows, "said": said, "batches": memory.predicted, "effects": effects, "parts": memory.activations}


def _missing(report: Report, seen: Seen) -> list[Missing]:
    said = [*report.missing]
    if report.step is not None and isinstance(seen.course, str):
        said.append(Missing(what="a step as it went", reason=seen.course))
    if seen.samples is None:
        said.append(Missing(what="the machine over time", reason="fewer than two samples were taken"))
    return said


def _listing(report: Report, started: float) -> list[listing.File]:
    folders = paths.folders(report.program)
    return [
        msgspec.structs.replace(file, path=paths.short(file.path, folders)) for file in listing.listing(report, started)
    ]


def _steps_rows(steps: Steps) -> list[tuple[str, float, float, float, list[float]]]:
    """Some twenty parts of the run: which steps, their mean, least and most, and the seconds of each phase."""
    bins = len(steps.least)
    each = -(-bins // MOST_ROWS)
    rows = []
    for begin in range(0, bins, each):
        end = min(begin + each, bins)
        first, last = begin * steps.width + 1, min(end * steps.width, steps.count)
        sizes = [min(steps.width, steps.count - at * steps.width) for at in range(begin, end)]
        means = [
            sum(v * n for v, n in zip(column[begin:end], sizes, strict=True)) / sum(sizes) for column in steps.means
        ]
        numbers = f"{first:,} to {last:,}" if last > first else f"{first:,}"
        rows.append((numbers, sum(means), min(steps.least[begin:end]), max(steps.most[begin:end]), means))
    return rows


def _course_rows(of: Course, report: Report) -> list[tuple[str, str, str, float, str]]:
    """The longest stretches of each lane, in the order of time."""
    rows = []
    for lane, bars, names in (("host", of.host, PHASES), ("GPU", of.gpu, {}), ("GPU idle", of.idle, IDLE)):
        longest = sorted(bars, key=lambda bar: bar.begin - bar.end)[:MOST_ROWS]
        for bar in sorted(longest, key=lambda bar: bar.begin):
            what = names.get(bar.what, bar.what)
            rows.append((lane, what, seconds(bar.begin), bar.end - bar.begin, _at(bar.place, report)))
    return rows


def _at(place: Place | None, report: Report) -> str:
    return f"{paths.short(place.file, paths.folders(report.program))}:{place.line}" if place is not None else ""


def _bars(of: Course, report: Report) -> dict[str, Any]:
    """The lanes with their places as text."""

    def lane(bars: list[course.Bar]) -> list[tuple[float, float, str, str]]:
        return [(float(f"{b.begin:.7g}"), float(f"{b.end:.7g}"), b.what, _at(b.place, report)) for b in bars]

    return {
        "step": of.step,
        "seconds": of.seconds,
        "end": of.end,
        "lanes": {"host": lane(of.host), "gpu": lane(of.gpu), "idle": lane(of.idle)},
    }


def _samples_rows(of: Samples) -> list[tuple[float, list[float | None]]]:
    """Some twenty moments."""
    each = -(-len(of.at) // MOST_ROWS)
    return [(of.at[at], [curve.values[at] for curve in of.curves]) for at in range(0, len(of.at), each)]
