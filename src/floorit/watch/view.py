"""A run at one moment, as a terminal shows it, and as a line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from floorit.analyse.ledger import ORDER
from floorit.analyse.recent import ENDLESS
from floorit.report import findings
from floorit.report.paths import with_short_paths
from floorit.report.terminal import COLOURS
from floorit.report.words import PHASES, number, place, relative, several, size
from floorit.stats import Floats, duration, seconds
from floorit.vitals import GpuSample, Sample
from floorit.watch.scene import Scene

WIDE = 140  # columns from which on two stand side by side
LOW = 32  # rows under which what would wrap is cut
MARGIN = 4  # columns between them
BAR = 20  # columns of a full bar
SMALL = 0.005  # shares under this are left out
READ = 2**20  # bytes a second from disk: less is not worth a word
SPARKS, MOST_SPARKS = "▁▂▃▄▅▆▇█", 30
_FINISHING = "the program has ended, floorit has not"
_KEYS = "q ends this view; the program goes on"


def render(scene: Scene, console: Console) -> RenderableType:
    """What is seen now."""
    width = console.width
    head = [*_head(scene, width), Text()]
    if scene.recent is None:
        return Group(*head, Text("no training step yet"), Text(), *_machine(scene.machine, console), *_foot(scene))
    is_low = console.height < LOW and scene.over is None
    lately = [_ledger(scene), Text(), *_loader(scene), *_machine(scene.machine, console)]
    found = _found(scene, is_low)
    if width < WIDE:
        return Group(*head, *lately, Text(), *found, *_foot(scene))
    columns = Table.grid(padding=(0, MARGIN, 0, 0), expand=True)
    columns.add_column(ratio=1)
    columns.add_column(ratio=1)
    columns.add_row(Group(*lately), Group(*found))
    return Group(*head, columns, *_foot(scene))


def line(scene: Scene) -> str:
    """The same in a line, for a pipe."""
    parts = [_count(scene)]
    if scene.recent is not None:
        parts += _pace(scene)
        waits = scene.recent.phases.get("data_wait", 0.0) / scene.recent.seconds if scene.recent.seconds else 0.0
        parts.append(f"{waits:.0%} waiting for data")
    parts += [left for left in (_left(scene),) if left]
    if scene.stalled is not None:
        parts.append(f"no step for {duration(scene.stalled)}")
    if scene.report is not None and scene.report.findings:
        parts.append(f"so far {scene.report.summary.rstrip('.')}")
    if scene.is_finishing:
        parts.append(_FINISHING)
    return "; ".join([*parts, *([scene.over] if scene.over else [])])


def _head(scene: Scene, width: int) -> list[RenderableType]:
    """Which run, how far it is, and how fast it goes."""
    state = Text(scene.over, style="yellow") if scene.over else Text("running", style="green")
    if scene.is_finishing:
        state = Text(_FINISHING, style="yellow")
    elif scene.seconds is not None:
        state.append(f" {'after' if scene.over else 'for'} {duration(scene.seconds)}")
    title = Table.grid(expand=True)
    title.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    title.add_column(no_wrap=True, justify="right")
    title.add_row(Text(shlex.join(map(relative, scene.run.command)), style="bold"), Text.assemble("  ", state))
    progress = Table.grid(padding=(0, 2, 0, 0))
    progress.add_row(Text(_count(scene), style="bold"), *_bar(scene, width), Text(_left(scene) or ""))
    lines: list[RenderableType] = [title, progress]
    if scene.recent is not None:
        ranks = [f"{_ranks(scene)} ranks; this is rank 0"] if _ranks(scene) > 1 else []
        lines.append(Text(" · ".join([*_pace(scene), *ranks])))
    if scene.stalled is not None:
        lines.append(Text(f"no step for {duration(scene.stalled)}", style="yellow"))
    return lines


def _count(scene: Scene) -> str:
    """Steps, of as many as the whole run has or else this epoch, where that is known."""
    if not scene.steps:
        return "no training step yet"
    total, lately = _total(scene), scene.recent
    if total is not None:
        return f"step {scene.steps:,} of {total:,}"
    if lately is not None and lately.batches is not None:
        return f"step {scene.steps:,}: {lately.batch:,} of {lately.batches:,} in epoch {lately.epoch}"
    return f"step {scene.steps:,}"


def _total(scene: Scene) -> int | None:
    job = scene.report.job if scene.report is not None else None
    return job.steps if job is not None and job.steps >= scene.steps else None


def _bar(scene: Scene, width: int) -> list[RenderableType]:
    total, done = _total(scene), scene.steps
    if total is None and scene.recent is not None and scene.recent.batches is not None:
        total, done = scene.recent.batches, scene.recent.batch or 0
    if total is None:
        return []
    return [ProgressBar(total=total, completed=done, width=max(width // 4, 10)), Text(f"{done / total:.0%}")]


def _left(scene: Scene) -> str | None:
    """As long as the whole job is said to take, less what has passed; else what is left of the epoch."""
    lately = scene.recent
    if scene.over is not None or scene.is_finishing or lately is None or lately.mean is None:
        return None
    job = scene.report.job if scene.report is not None else None
    if job is not None and _total(scene) is not None and scene.seconds is not None:
        return f"about {duration(max(job.seconds.value - scene.seconds, 0.0))} left"
    if lately.batches is not None and lately.batch is not None and lately.batches * lately.mean < ENDLESS:
        return f"about {duration((lately.batches - lately.batch) * lately.mean)} left in this epoch"
    return None


def _pace(scene: Scene) -> list[str]:
    lately = scene.recent
    if lately is None or lately.mean is None:
        return []
    parts = [f"{seconds(lately.mean)} a step"]
    if lately.samples_per_second is not None:
        of_one = " of this rank" if _ranks(scene) > 1 else ""
        parts.append(f"{number(lately.samples_per_second)} samples/s{of_one}")
    return parts


def _ranks(scene: Scene) -> int:
    return scene.report.run.ranks if scene.report is not None and scene.report.run is not None else 1


def _ledger(scene: Scene) -> RenderableType:
    lately = scene.recent
    assert lately is not None
    steps = several(lately.steps, "step")
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column(f"the last {seconds(lately.seconds)}: {steps}", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=BAR)
    for title in ("a step", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    shares = {phase: spent / lately.seconds for phase, spent in lately.phases.items()} if lately.seconds else {}
    for phase in sorted(shares, key=lambda phase: (-round(shares[phase], 2), ORDER.index(phase))):
        if shares[phase] >= SMALL:
            bar = Text("█" * max(1, round(shares[phase] * BAR)), style=COLOURS.get(phase, "green"))
            each = lately.phases[phase] / max(lately.steps, 1)
            table.add_row(PHASES[phase], bar, seconds(each), f"{shares[phase]:.1%}")
    return table


def _loader(scene: Scene) -> list[RenderableType]:
    lately = scene.recent
    assert lately is not None
    if lately.workers is None:
        return []
    if not lately.workers:
        return [_row("loader", "no workers: the training process makes the batches itself")]
    parts = [several(lately.workers, "worker")]
    if lately.workers_busy is not None:
        parts.append(f"{lately.workers_busy:.0%} busy")
    if lately.queue_empty is not None:
        parts.append(f"queue empty {lately.queue_empty:.0%} of the times a batch was wanted")
    return [_row("loader", " · ".join(parts))]


def _machine(samples: list[Sample], console: Console) -> list[RenderableType]:
    """Its GPUs and cores, by the last minute's samples."""
    if not samples:
        return []
    rows = []
    for at, gpu in enumerate(samples[-1].gpus):
        own = [sample.gpus[at] for sample in samples if at < len(sample.gpus)]
        name = f"GPU {at}" if len(samples[-1].gpus) > 1 else "GPU"
        rows.append(_row(name, " · ".join(_gpu(gpu, own)), _sparks([g.busy for g in own], console)))
    parts = [f"cores {np.mean([sample.cpu for sample in samples]):.0%} busy"]
    for who, used in (("training", _mean(s.training for s in samples)), ("workers", _mean(s.workers for s in samples))):
        parts += [f"{used:.1f} cores by {who}"] if used is not None else []
    parts.append(f"{size(samples[-1].memory_free)} of memory free")
    read = _mean(sample.disk for sample in samples)
    parts += [f"{size(int(read))}/s from disk"] if read is not None and read > READ else []
    rows.append(_row("machine", " · ".join(parts)))
    return rows


def _gpu(now: GpuSample, own: list[GpuSample]) -> list[str]:
    parts = []
    power = _mean(gpu.power for gpu in own)
    if power is not None:
        limit = f" of {now.power_limit:.0f}" if now.power_limit is not None else ""
        parts.append(f"{power:.0f}{limit} W")
    told = (
        ("active", _mean(gpu.graphics for gpu in own)),
        ("SMs", _mean(gpu.sm for gpu in own)),
        ("tensor cores", _mean(gpu.tensor for gpu in own)),
    )
    busy = _mean(gpu.busy for gpu in own)
    if busy is not None and told[0][1] is None:
        parts.append(f"busy {busy:.0%}")
    parts += [f"{name} {share:.0%}" for name, share in told if share is not None]
    if now.memory is not None:
        parts.append(size(now.memory))
    return parts or ["the driver says nothing of it"]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _sparks(values: list[float | None], console: Console) -> str:
    """Shares as a row of small bars; nothing where the terminal has none."""
    known = [value for value in values if value is not None]
    if len(known) < 2 or not console.encoding.startswith("utf"):
        return ""
    chunks: list[Floats] = np.array_split(np.array(known), min(MOST_SPARKS, len(known)))
    return "".join(SPARKS[min(int(float(chunk.mean()) * len(SPARKS)), len(SPARKS) - 1)] for chunk in chunks)


def _row(name: str, text: str, sparks: str = "") -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=8)
    table.add_column(overflow="fold")
    table.add_row(name, Text.assemble(text, (f"  {sparks}", "dim")) if sparks else Text(text))
    return table


def _found(scene: Scene, is_low: bool) -> list[RenderableType]:
    """The verdict as it stands, by the code of the report."""
    report = scene.report
    if report is None or not report.findings or report.run is None:
        return []
    report = with_short_paths(report)
    (first, *others), run = report.findings, report.run
    assert run is not None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=8)
    table.add_column(overflow="ellipsis" if is_low else "fold", no_wrap=is_low)
    table.add_row("verdict" if scene.over else "so far", Text(f"{first.code}: {first.title}", style="bold"))
    for said in filter(None, [findings.weight(first), *(f"at {place(at)}  {at.function}" for at in first.where[:1])]):
        table.add_row("", Text(said))
    for at, advice in enumerate(findings.chosen(report.findings)[:2]):
        table.add_row("" if at else "to do", Text.assemble((advice.what, "bold"), f"  {advice.promise}"))
    for finding in others[:2]:
        table.add_row("also", Text(f"{finding.code}: {findings.in_brief(finding)}"))
    basis = f"by {scene.report_steps:,} steps, {run.warmup_steps} of them warm-up"
    table.add_row("", Text(basis + ("" if run.steady else "; not steady yet"), style="dim"))
    return [table]


def _foot(scene: Scene) -> list[RenderableType]:
    """What to do next."""
    again = f"floorit report {relative(scene.folder)}"
    return [Text(), Text(again if scene.over else f"{_KEYS}; {again}", style="dim")]
