"""The report as text for a terminal; in a pipe, the same text without colour."""

from __future__ import annotations

import os
import shlex
from functools import partial
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.floor import LIMIT, Floor
from floorit.analyse.gpu import Gpu
from floorit.analyse.input import Workers
from floorit.analyse.job import Job
from floorit.analyse.ledger import Entry, Line
from floorit.analyse.settings import Setting
from floorit.diagnose.settings import word
from floorit.hardware import Environment
from floorit.language import Code
from floorit.language.drawn import Names, drawn
from floorit.report import findings, images, proving, sentences
from floorit.report import habits as of_source
from floorit.report import memory as of_memory
from floorit.report import named as of_names
from floorit.report import overrides as of_overrides
from floorit.report import parts as of_model
from floorit.report.model import NO_CUDA, PHYSICAL, Report, RunFacts
from floorit.report.paths import with_short_paths
from floorit.report.sentences import SMALL
from floorit.report.words import IDLE, PHASES, inside, interval, number, place, relative, size
from floorit.stats import seconds

WIDTH = 100  # in a pipe, and at most
BAR = 24  # columns of a full bar
WITH_LINE = 0.02  # of a phase with less, the line that was seen most is chance
COLOURS = {
    "data_wait": "red",
    "h2d": "magenta",
    "sync": "magenta",
    "logging": "yellow",
    "checkpoint": "yellow",
    "eval": "yellow",
    "epoch_gap": "red",
    "other": "yellow",
    "unattributed": "bright_black",
    "recompute": "cyan",
}


def show(report: Report, stream: TextIO) -> None:
    """Write the report to a stream."""
    draw(render(report), stream)


def draw(what: RenderableType, stream: TextIO) -> None:
    """Write anything as the report is written."""
    _console(stream).print(drawn(what))


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else WIDTH
    console = Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False)
    if console.width > WIDTH:
        console = Console(file=stream, width=WIDTH, highlight=False, emoji=False)
    return console


def text(report: Report, width: int = WIDTH) -> str:
    """The report as plain text."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(file=nowhere, width=width, record=True, highlight=False, emoji=False, color_system=None)
        console.print(drawn(render(report)))
        return console.export_text()


def render(report: Report) -> RenderableType:
    """What is shown, in the order in which a person needs it."""
    report = with_short_paths(report)
    parts: list[RenderableType] = [Text()]
    if report.run is None or report.step is None:
        parts += [
            Text(f"floorit: {report.summary}", style="bold"),
            Text(sentences.hint_untrained(report)),
            *findings.render(report.findings, partial(_proof, report)),
        ]
    else:
        parts += [_headline(report), *_job(report.job), Text(), _ledger(report.ledger), Text()]
        parts += of_names.render(report.spans)
        if report.workers is not None:
            parts += [_workers(report.workers, report.run), *_images(report), Text()]
        if report.gpu is not None:
            parts += [_gpu(report.gpu), Text()]
        parts += of_model.render(report.parts, report.parts_how)
        parts += of_memory.render(report.memory)
        if report.floor is not None:
            parts += [_floor(report.floor), Text()]
        parts += [*_lines(report), *of_source.render(report.habits), *_settings(report.settings)]
        parts += findings.render(report.findings, partial(_proof, report))
    parts += [*of_overrides.render(report.overrides), *_missing(report), *_footer(report)]
    return Group(*parts)


def _headline(report: Report) -> RenderableType:
    run, step = report.run, report.step
    assert run is not None
    assert step is not None
    pace = Text.assemble(
        ("step ", "bold"),
        (seconds(step.mean), "bold"),
        f" on average · median {interval(step.seconds)} · 95 % under {seconds(step.p95)}",
    )
    if run.samples_per_second is not None:
        pace.append(f" · {number(run.samples_per_second.value)} samples/s")
    lines = [Text("floorit: " + ", ".join(sentences.of_run(run))), pace]
    ranks = sentences.of_ranks(report)
    lines += [Text("ranks  " + "; ".join(ranks), style="bold")] if ranks else []
    return Group(*lines, *(Text(warning, style="yellow") for warning in sentences.warnings(report)))


def _job(job: Job | None) -> list[RenderableType]:
    """How long all of it takes."""
    if job is None:
        return []
    faster = [Text(f"     {said}") for said in sentences.of_job_with_fixes(job)]
    return [Text(f"job  {sentences.of_job(job)}"), Text(f"     {job.how}", style="dim"), *faster]


def _ledger(entries: list[Entry]) -> RenderableType:
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    on_gpu = any(entry.gpu_seconds for entry in entries)
    table.add_column("where a step's time went", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("a step", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    if on_gpu:
        table.add_column("on the GPU", justify="right", no_wrap=True)
    table.add_column("most of it at", overflow="fold")
    for entry in sorted(entries, key=lambda e: -e.share):
        if entry.share < SMALL:
            continue
        cells: list[Text | str] = [
            Text(PHASES[entry.phase]),
            Text("█" * max(1, round(entry.share * BAR)), style=COLOURS.get(entry.phase, "green")),
            seconds(entry.seconds),
            f"{entry.share:.1%}",
            *([seconds(entry.gpu_seconds) if entry.gpu_seconds else ""] if on_gpu else []),
            Text(place(entry.where[0]) if entry.where and entry.share >= WITH_LINE else "", style="dim"),
        ]
        table.add_row(*cells)
    small = [entry for entry in entries if entry.share < SMALL and entry.seconds > 0]
    if small:
        names = ", ".join(PHASES[entry.phase] for entry in small)
        total = sum(entry.seconds for entry in small)
        share = sum(entry.share for entry in small)
        blank = [""] if on_gpu else []
        table.add_row("the rest", "", seconds(total), f"{share:.1%}", *blank, Text(names, style="dim"))
    return table


def _workers(workers: Workers, run: RunFacts) -> RenderableType:
    lines = [Text("  " + _line(line)) for line in workers.where[:3]]
    path = " · ".join(sentences.of_data_path(workers, run))
    loader = "loader: " + " · ".join(sentences.of_loader(workers))
    return Group(Text(loader), *([Text("  " + path)] if path else []), *lines)


def _images(report: Report) -> list[RenderableType]:
    """Where the step waits for data: the operations on images that it waits for."""
    if report.workers is None or "input-bound" not in [finding.code for finding in report.findings]:
        return []
    return [Text("  " + line) for line in images.lines(report.workers)]


def _gpu(gpu: Gpu) -> RenderableType:
    """Busy and idle time, and the kinds of kernels that took most."""
    head = Text("GPU: " + " · ".join(sentences.of_gpu(gpu)))
    if gpu.busy_share is None:
        return head
    idle = [Text(f"  {i.share:5.1%} idle: {IDLE[i.cause]}{_at(i.where)}") for i in gpu.idle if i.share >= SMALL]
    return Group(head, Text(f"  kernels: {sentences.of_kernels(gpu)}"), *idle)


def _floor(floor: Floor) -> RenderableType:
    """How far the step is from the fastest that the same work could go."""
    if floor.takes_only_data:
        return Group(Text(sentences.of_waiting(floor)), Text(f"  {sentences.of_floor(floor)}", style="dim"))
    rungs = [f"{rung.name} {'about ' if rung.estimate else ''}{seconds(rung.seconds)}" for rung in floor.rungs]
    measured = "" if not any(rung.estimate for rung in floor.rungs) else " (an estimate; --floor measures it)"
    gap = f"a step takes {floor.gap:.2f} times its floor{measured}"
    limit = [Text(f"  {LIMIT}: {floor.limit.how}", style="dim")] if floor.limit is not None else []
    return Group(
        Text(f"floor: {' > '.join(rungs)}: {gap}"), Text(f"  {sentences.of_floor(floor)}", style="dim"), *limit
    )


def _proof(report: Report, best: list[findings.Advice]) -> list[Text]:
    """Of the first change that can be made from outside: the command, and what it takes."""
    first = next((advice for advice in best if advice.setting), None)
    if report.findings[0].code == "out-of-memory":
        return []  # as it is, it does not run
    if first is None:
        return [Text(f"after the change: {proving.command(report, 'run')}")] if best else []
    time = proving.time(report)
    took = f"takes {time}; nothing is edited" if time else "nothing is edited"
    lines = [Names(proving.proof(first, report) or ""), Text(took)]
    tuning = proving.tuning(first, report)
    if tuning is not None:
        lines += [Text("and write it down, as a patch where a line of the source decides it:"), Names(tuning)]
    return lines


def _at(where: list[Line]) -> str:
    return f", at {place(where[0])}" if where else ""


def _lines(report: Report) -> list[RenderableType]:
    """Source lines by their share of the whole step."""
    shown = sentences.costly_lines(report.ledger, 6)
    if not shown:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("the lines that cost most", overflow="fold")
    table.add_column("of the step", justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    for share, phase, line in shown:
        table.add_row(_text_line(line), f"{share:.1%}", Code(phase))
    return [table, Text()]


def _settings(settings: list[Setting]) -> list[RenderableType]:
    """Only those that are not in force as declared."""
    ignored = [setting for setting in settings if setting.ignored]
    if not ignored:
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("settings ignored", no_wrap=True)
    table.add_column("declared", overflow="fold")
    table.add_column("in force", overflow="fold")
    for setting in ignored:
        set_at = f"  {relative(setting.set_at.file)}:{setting.set_at.line}" if setting.set_at else ""
        table.add_row(
            Code(setting.name),
            Names.assemble(word(setting.declared), (f"  {relative(setting.declared_at or '')}", "dim")),
            Names.assemble((word(setting.actual), "yellow"), (set_at, "dim")),
        )
    return [table, Text()]


def _text_line(line: Line) -> Text:
    return Text.assemble(place(line), (f"  {line.function}{inside(line)}", "dim"))


def _line(line: Line) -> str:
    return f"{line.share:4.0%}  {place(line)}  {line.function}"


def _missing(report: Report) -> list[RenderableType]:
    said_above = {
        *("floor: without data", "parts.activation_bytes", "gpu.dtype_shares"),
        *("workers.supply", "workers.time_in", "workers.operations"),
        *(["workers.drained"] if report.floor is None or any(rung.estimate for rung in report.floor.rungs) else []),
        *("memory.predicted", "memory.activations", "memory.not_torch"),
    }
    if any(m.what == "parts" for m in report.missing):  # its window opens with the other's, or not at all
        said_above.add("memory")
    if report.floor is None or any(rung.estimate for rung in report.floor.rungs):
        said_above |= set(PHYSICAL)
    without_gpu = not report.environment.gpus
    untold = [m for m in report.missing if m.what not in said_above and not (without_gpu and m.reason == NO_CUDA)]
    return [Text(f"not measured: {', '.join(what)}: {why}", style="dim") for why, what in sentences.by_reason(untold)]


def _footer(report: Report) -> list[RenderableType]:
    folder = shlex.quote(relative(report.record))
    code = report.program.exit_code if report.run is not None else None  # else it was said above
    ended = [] if code in (0, None) else [Text(f"the program ended with exit code {code}", style="yellow")]
    return [*ended, Text(f"record and report.json in {folder}; again with: floorit report {folder}", style="dim")]


def show_environment(environment: Environment, stream: TextIO) -> None:
    """The machine, one fact a line."""
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _environment_rows(environment):
        table.add_row(name, value)
    draw(table, stream)


def _environment_rows(e: Environment) -> list[tuple[str, str]]:
    def known(value: object) -> str:
        return "unknown" if value is None else str(value)

    gpus = [
        f"{gpu.name}, {size(gpu.memory)}" + (f", {gpu.power_limit:.0f} W" if gpu.power_limit else "") for gpu in e.gpus
    ]
    allowed = f", {e.cores_allowed} by affinity" if e.cores_allowed is not None else ""
    quota = f", {e.cores_quota:g} by cgroup" if e.cores_quota is not None else ""
    limit = f", {size(e.memory_limit)} by cgroup" if e.memory_limit is not None else ""
    return [
        ("GPU", "\n".join(gpus) or "none (no NVIDIA driver answers)"),
        ("driver", known(e.driver)),
        ("CUDA", known(e.cuda)),
        ("cuDNN", known(e.cudnn)),
        ("torch", known(e.torch)),
        ("Python", known(e.python)),
        ("CPU", known(e.cpu)),
        ("cores", known(e.cores) + allowed + quota),
        ("memory", size(e.memory) + limit),
        ("/dev/shm", f"{size(e.shm)}, {size(e.shm_free)} free"),
        ("disk", f"{size(e.disk)} free"),
        ("system", known(e.system)),
    ]
