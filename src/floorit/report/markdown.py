"""The report as Markdown tables, to be pasted into an issue or a sheet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence

from floorit.analyse.floor import Floor, Rung
from floorit.analyse.footprint import Memory
from floorit.analyse.gpu import Gpu
from floorit.analyse.input import Workers
from floorit.analyse.ledger import Entry
from floorit.analyse.parts import Part
from floorit.analyse.settings import Setting
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.diagnose.settings import word
from floorit.hardware import Environment
from floorit.language import Code, said
from floorit.report import findings, sentences
from floorit.report import memory as of_memory
from floorit.report.model import Program, Report, RunFacts, StepFacts
from floorit.report.paths import with_short_paths
from floorit.report.words import IDLE, PHASES, interval, number, place, several, size, speedup
from floorit.stats import seconds

MOST_SYNCS = 10
_EVALUATION = "eval."


def render(report: Report) -> str:
    """All tables, in the order in which a person needs them."""
    report = with_short_paths(report)
    parts = [f"# floorit: {said(report.summary)}", *section("The run", _run(report))]
    if report.run is not None and report.step is not None:
        parts += section("Where a step's time went", _ledger(report.ledger, report.step))
        parts += section("What was found", _findings(report.findings))
        parts += section("What to do", _fixes(report.findings), _WHAT_IT_RESTS_ON)
        parts += section("Not advised", _not_advised(report.findings))
        parts += section("Loader", _loader(report.workers))
        parts += section("Operations on images, a sample", _operations(report.workers))
        parts += section("GPU", _gpu(report.gpu))
        parts += section("Calls that blocked until the GPU was done", _syncs(report.syncs))
        parts += section("The model's parts", _parts(report.parts), f"By {report.parts_how}.")
        parts += section("What memory is for", _memory(report.memory), _of_memory(report.memory))
        parts += section(_floor_title(report.floor), _floor(report.floor), _of_floor(report.floor))
        parts += section("Settings in force", _settings(report.settings))
    else:
        parts += section("What was found", _findings(report.findings))
    parts += section("Not measured", table(("what", "why"), [(m.what, m.reason) for m in report.missing]))
    return "\n\n".join(parts) + "\n"


_WHAT_IT_RESTS_ON = (
    "Predicted from this run, not tried: from the least to the most that is expected. `floorit try` proves it."
)


def section(title: str, told: str, note: str = "") -> list[str]:
    """A heading and its table; neither where there is nothing to tell."""
    return [f"## {said(title)}", told, *([said(note)] if note else [])] if told else []


def table(head: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """A table; the columns `right` hold numbers."""
    body = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    if not body:
        return ""
    rule = "|".join("---:" if i in right else "---" for i in range(len(head)))
    return "\n".join([f"| {' | '.join(map(_cell, head))} |", f"|{rule}|", *body])


def _cell(value: object) -> str:
    text = said(value) if isinstance(value, str) else str(value)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())


def _facts(rows: Iterable[tuple[str, str | None]]) -> str:
    """A table of names and values, without those that are not known."""
    return table(("", ""), [(name, value) for name, value in rows if value])


def _run(report: Report) -> str:
    rows = [*_of_program(report.program), *_of_machine(report.environment)]
    if report.run is not None and report.step is not None:
        rows += _of_steps(report.run, report.step)
        if report.job is not None:
            rows.append(("job", "; ".join([sentences.of_job(report.job), *sentences.of_job_with_fixes(report.job)])))
        rows += [("mind", warning) for warning in sentences.warnings(report)]
    return _facts(rows)


def _of_program(program: Program) -> list[tuple[str, str | None]]:
    ended = "not seen" if program.exit_code is None else f"exit code {program.exit_code}"
    took = f", after {seconds(program.seconds)}" if program.seconds is not None else ""
    return [("command", f"`{shlex.join(program.command)}`"), ("end", ended + took)]


def _of_machine(machine: Environment) -> list[tuple[str, str | None]]:
    gpus = [f"{gpu.name}, {size(gpu.memory)}" for gpu in machine.gpus]
    versions = [
        f"{name} {version}"
        for name, version in (
            ("torch", machine.torch),
            ("CUDA", machine.cuda),
            ("driver", machine.driver),
            ("Python", machine.python),
        )
        if version
    ]
    cores = f", {several(machine.cores, 'core')}" if machine.cores is not None else ""
    return [
        ("GPU", ", ".join(gpus) or "none"),
        ("CPU", f"{machine.cpu}{cores}" if machine.cpu else f"unknown{cores}"),
        ("memory", size(machine.memory)),
        ("versions", ", ".join(versions)),
    ]


def _of_steps(run: RunFacts, step: StepFacts) -> list[tuple[str, str | None]]:
    pace = run.samples_per_second
    speed = f"{number(pace.value)} ({number(pace.low)} to {number(pace.high)})" if pace is not None else None
    return [
        ("recorded", ", ".join(sentences.of_run(run))),
        ("samples a step", number(run.samples_per_step) if run.samples_per_step else None),
        ("samples a second", speed),
        ("a step, mean", seconds(step.mean)),
        ("a step, median", interval(step.seconds)),
        ("a step, 95 % under", seconds(step.p95)),
    ]


def _ledger(entries: list[Entry], step: StepFacts) -> str:
    on_gpu = any(entry.gpu_seconds for entry in entries)
    head = ["phase", "is", "ms a step", "share", *["on the GPU, ms"] * on_gpu, "most of it at"]
    rows = []
    for entry in entries:
        device = [_known_milli(entry.gpu_seconds)] * on_gpu
        at = place(entry.where[0]) if entry.where else ""
        meaning = PHASES[entry.phase]
        rows.append((Code(entry.phase), meaning, milli(entry.seconds), f"{entry.share:.1%}", *device, at))
    rows.append(("**all**", "", f"**{milli(step.mean)}**", "**100%**", *[""] * on_gpu, ""))
    return table(head, rows, right=range(2, 4 + on_gpu))


def milli(value: float) -> str:
    """Seconds as milliseconds, for a column of them."""
    return f"{value * 1e3:.3f}"


def _findings(found: list[Finding]) -> str:
    return table(
        ("", "finding", "of the step", "without it up to", "at", "evidence"),
        [
            (
                "verdict" if rank == 0 else "also",
                f"**{finding.code}**: {finding.title}",
                f"{finding.share:.0%}" if finding.share is not None else "",
                f"{finding.bound:.2f}x as fast" if finding.bound is not None else "",
                place(finding.where[0]) if finding.where else "",
                "; ".join(finding.evidence),
            )
            for rank, finding in enumerate(found)
        ],
    )


def _fixes(found: list[Finding]) -> str:
    """Of every finding its fixes, each once, and what is to be rewritten; what to do first comes first."""
    against: dict[tuple[str, ...], list[str]] = {}
    order = (
        [advice.fix or advice.finding.rewrite for advice in findings.chosen(found, most=sys.maxsize)] if found else []
    )
    answers = [(answer, finding) for finding in found for answer in (*finding.fixes, finding.rewrite) if answer]
    for answer, finding in sorted(answers, key=lambda it: order.index(it[0]) if it[0] in order else len(order)):
        row = _fix(answer) if isinstance(answer, FixAdvice) else _rewrite(answer)
        against.setdefault(row, []).append(finding.code)
    rows = [(", ".join(codes), *row) for row, codes in against.items()]
    return table(("against", "change", "is", "predicted", "results", "effort"), rows)


def _fix(fix: FixAdvice) -> tuple[str, ...]:
    gain = speedup(fix.speedup) if fix.speedup is not None else "not for speed"
    risk = f"{findings.RISKS[fix.risk]} {fix.proviso}".rstrip()
    return f"`{findings.set_to(fix)}`", findings.described(fix), gain, risk, fix.effort


def _rewrite(rewrite: Rewrite) -> tuple[str, ...]:
    what = f"rewrite `{rewrite.where.function}` ({place(rewrite.where)})"
    return what, "", findings.of_rewrite(rewrite), "as it is rewritten", "a rewrite"


def _not_advised(found: list[Finding]) -> str:
    vain = findings.in_vain(found) if found else []
    return table(("change", "why not"), [(", ".join(f"`{code}`" for code in codes), why) for why, codes in vain])


def _loader(workers: Workers | None) -> str:
    if workers is None:
        return ""
    shares = [(f"of it: {kind.what}", f"{kind.share:.0%} ({several(kind.looks, 'look')})") for kind in workers.time_in]
    lines = [("most at", f"{line.share:.0%} {place(line)} `{line.function}`") for line in workers.where[:3]]
    return _facts(
        [
            ("workers", str(workers.count) if workers.count else "none: the training process makes the batches"),
            ("busy", f"{workers.busy_share:.0%}" if workers.busy_share is not None else None),
            ("a sample, in the dataset", interval(workers.sample_seconds) if workers.sample_seconds else None),
            ("a batch, in the dataset", seconds(workers.fetch_seconds) if workers.fetch_seconds is not None else None),
            ("collate, a batch", interval(workers.collate_seconds) if workers.collate_seconds else None),
            ("sent, a batch", seconds(workers.send_seconds) if workers.send_seconds is not None else None),
            ("received, a batch", seconds(workers.receive_seconds) if workers.receive_seconds is not None else None),
            ("queue empty", f"{workers.queue_empty_share:.0%}" if workers.queue_empty_share is not None else None),
            ("it could give", f"{number(workers.supply.now)} samples/s" if workers.supply else None),
            *shares,
            *lines,
        ]
    )


def _operations(workers: Workers | None) -> str:
    return table(
        ("operation", "setting", "calls", "ms", "share", "at"),
        [
            (
                f"`{operation.name}`",
                operation.setting or "",
                f"{operation.calls:.3g}",
                milli(operation.seconds.value),
                f"{operation.share:.0%}",
                place(operation.where) if operation.where is not None else "",
            )
            for operation in (workers.operations if workers is not None else [])
        ],
        right=(2, 3, 4),
    )


def _gpu(gpu: Gpu | None) -> str:
    if gpu is None:
        return ""
    idle = [
        (f"idle: {IDLE[idle.cause]}", f"{idle.share:.1%}" + (f", at {place(idle.where[0])}" if idle.where else ""))
        for idle in gpu.idle
    ]
    kinds = sentences.of_kernels(gpu) if gpu.kinds else None
    return _facts([("in a step", ", ".join(sentences.of_gpu(gpu))), *idle, ("kernels", kinds)])


def _parts(parts: list[Part]) -> str:
    return table(
        ("part", "class", "forward, ms", "backward, ms", "again, ms", "of the step", "parameters"),
        [
            (
                part.name if part.class_name is None else Code(part.name),
                Code(part.class_name or ""),
                *map(_known_milli, (part.forward_seconds, part.backward_seconds, part.recompute_seconds)),
                f"{part.share:.1%}" if part.share is not None else "",
                f"{part.parameters:,}" if part.parameters is not None else "",
            )
            for part in parts
        ],
        right=range(2, 7),
    )


def _memory(memory: Memory | None) -> str:
    if memory is None:
        return ""
    rows = [(what, size(row.bytes), f"{row.share:.1%}", most) for what, row, most in of_memory.rows(memory)]
    peak = (
        Code(f"**{said('at the peak')}**"),
        f"**{size(memory.peak)}**",
        "100%",
        "; ".join(of_memory.of_peak(memory)[1:]),
    )
    return table(("what", "bytes", "share", "most of it"), [*rows, peak], right=(1, 2))


def _of_memory(memory: Memory | None) -> str:
    lines = [*of_memory.of_device(memory), *of_memory.of_changes(memory)] if memory is not None else []
    return "\n".join(f"- {said(line)}" for line in lines)


def _known_milli(value: float | None) -> str:
    return "" if value is None else milli(value)


def _syncs(syncs: list[SyncPoint]) -> str:
    return table(
        ("call", "at", "a step", "ms a step", "without it"),
        [
            (
                f"`{sync.op}`",
                f"{sync.file}:{sync.line}",
                f"{sync.per_step:.3g}",
                milli(sync.seconds),
                speedup(sync.gain) if sync.gain is not None else "",
            )
            for sync in syncs[:MOST_SYNCS]
        ],
        right=(2, 3),
    )


def _floor(floor: Floor | None) -> str:
    if floor is None:
        return ""
    rows = [(rung.name, _rung(rung), rung.how) for rung in floor.rungs]
    estimated = any(rung.estimate for rung in floor.rungs)
    how = "an estimate; `floorit run --floor` measures it" if estimated else ""
    gap = ("**gap**", f"**{sentences.gap(floor)} times**", how)
    return table(("rung", "ms a step", "how"), [*rows, gap], right=(1,))


def _floor_title(floor: Floor | None) -> str:
    return sentences.WITHOUT_DATA if floor is not None and floor.takes_only_data else "Floor"


def _rung(rung: Rung) -> str:
    least = f"{milli(rung.least)} to " if rung.least is not None and milli(rung.least) != milli(rung.seconds) else ""
    return f"{'about ' if rung.estimate else ''}{least}{milli(rung.seconds)}"


def _of_floor(floor: Floor | None) -> str:
    text = sentences.of_floor(floor) if floor is not None else ""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _settings(settings: list[Setting]) -> str:
    """What is known; of loaders that only evaluate, what was declared."""
    return table(
        ("setting", "in force", "set at", "declared", "declared at"),
        [
            (
                Code(setting.name + (f" **{said('ignored')}**" if setting.ignored else "")),
                Code(word(setting.actual)),
                f"{setting.set_at.file}:{setting.set_at.line}" if setting.set_at is not None else "",
                Code(word(setting.declared)) if setting.declared is not None else "",
                setting.declared_at or "",
            )
            for setting in settings
            if setting.actual is not None and (setting.declared is not None or not setting.name.startswith(_EVALUATION))
        ],
    )
