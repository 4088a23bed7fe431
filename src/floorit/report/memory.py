"""What memory is for, in words and as a table."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from floorit.analyse.footprint import REST, Effect, Memory, PartBytes, Share
from floorit.report.words import PHASES, several, size

KINDS = {
    "parameters": "parameters",
    "buffers": "buffers of the model",
    "gradients": "gradients",
    "optimizer state": "the optimizer's state",
    "activations": "activations",
    "batch": "the batch, your own code",
    "left over": "kept from the step before",
    "temporary": "temporary",
    "rounding": "rounding of blocks",
    "other steps": "more in other steps",
    "unattributed": "not attributed",
}
REST_OF_PROCESS = "the rest of the process"
# Of the peak: rows with less are one; on a CPU, tensors that have less are not worth a table; less of a change is not
# said.
SMALL, MUCH, CHANGES = 0.01, 0.1, 0.01
MOST_PARTS = 3
BAR = 24


def render(memory: Memory | None) -> list[RenderableType]:
    """A few lines, where there is something to tell."""
    if memory is None or (memory.where == "host" and 1 - memory.of("unattributed") / memory.peak < MUCH):
        return []
    table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim", pad_edge=False)
    table.add_column("what memory is for", no_wrap=True)
    for column in ("", "at the peak", "share"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    table.add_column("", overflow="fold")
    for what, row, most in rows(memory):
        bar = Text("█" * max(1, round(row.share * BAR)), style="cyan")
        table.add_row(Text(what), bar, size(row.bytes), f"{row.share:.1%}", Text(most, style="dim"))
    lines = [*of_device(memory), *of_changes(memory)]
    return [Text("memory: " + " · ".join(of_peak(memory))), table, *(Text("  " + line) for line in lines), Text()]


def rows(memory: Memory) -> list[tuple[str, Share, str]]:
    """The ledger with names for people, and what of each row is most; what is next to nothing is one row."""
    small = [row for row in memory.ledger if abs(row.share) < SMALL]
    small = small if len(small) > 1 else []
    named = [(_name(memory, row), row, _most(memory, row)) for row in memory.ledger if row not in small]
    if not small:
        return named
    rest = sum(row.bytes for row in small)
    kinds = ", ".join(_name(memory, row) for row in small)
    return [*named, ("the rest", Share(what="rest", bytes=rest, share=rest / memory.peak), kinds)]


def _name(memory: Memory, row: Share) -> str:
    return REST_OF_PROCESS if memory.where == "host" and row.what == "unattributed" else KINDS[row.what]


def _most(memory: Memory, row: Share) -> str:
    """Of activations the parts that keep most, of what is held the types of number."""
    if row.what == "activations":
        most = memory.activations[:MOST_PARTS]
        return ", ".join(map(_part, most))
    return ", ".join(row.dtypes) if row.dtypes else ""


def _part(part: PartBytes) -> str:
    return f"the rest {size(part.bytes)}" if part.name == REST else f"{part.name} {size(part.bytes)}"


def of_peak(memory: Memory) -> list[str]:
    """How much there was, and when."""
    of = f" of {size(memory.total)}" if memory.total else ""
    if memory.where == "host":
        return [f"{size(memory.peak)} in the process at most"]
    said = [f"{size(memory.peak)}{of} in tensors at the peak"]
    if memory.phase is not None:
        said.append(f"in the {PHASES[memory.phase]}, by {several(memory.steps, 'step')} watched")
    worst = memory.worst
    if worst is not None:
        last = f" to {worst.last_step}" if worst.last_step != worst.first_step else ""
        said.append(f"first reached in step {worst.first_step}{last} ({worst.when})")
    if memory.evaluation is not None:
        said.append(f"evaluation {'at most ' if memory.evaluation_is_most else ''}{size(memory.evaluation)}")
    return said


def of_device(memory: Memory) -> list[str]:
    """What there is on the GPU besides tensors."""
    said = []
    if memory.reserved is not None and memory.cache is not None:
        said.append(f"torch's allocator had {size(memory.reserved)}: {size(memory.cache)} of it cache")
        if memory.fragments:
            said.append(f"{size(memory.fragments)} free in pieces of blocks in use near the peak")
    if memory.not_torch is not None:
        said.append(f"CUDA and what else is not torch's {size(memory.not_torch)}")
    if memory.retries:
        said.append(f"{several(memory.retries, 'time')} it had to give its cache back to go on, which takes long")
    return [" · ".join(said)] if said else []


def of_changes(memory: Memory) -> list[str]:
    """The peak with another batch, and with other settings."""
    said = []
    if memory.predicted:
        batches = ", ".join(f"x{f.times:g} {size(f.bytes)}" for f in memory.predicted)
        fixed = f"; {size(memory.fixed)} whatever the batch" if memory.fixed is not None else ""
        each = f", {size(round(memory.per_sample))} a sample" if memory.per_sample is not None else ""
        said.append(f"predicted for other batches: {batches}{fixed}{each}")
    others = [e for e in memory.effects if e.code != "batch" and abs(e.bytes) >= CHANGES * memory.peak]
    if others:
        said.append("predicted for other settings: " + ", ".join(f"{setting(e)} {of_effect(e)}" for e in others))
    return said


def setting(effect: Effect) -> str:
    """As `--fix` takes it."""
    return effect.code if effect.value is None else f"{effect.code}={effect.value}"


def of_effect(effect: Effect) -> str:
    """What it does to the peak."""
    return f"{'at the best ' if effect.is_bound else ''}{change(effect.bytes)}"


def change(more: int) -> str:
    """Bytes more or less at the peak."""
    return f"{'+' if more > 0 else '-'}{size(abs(more))}" if more else "no change"
