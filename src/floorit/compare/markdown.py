"""Two runs side by side as Markdown tables, to be pasted into an issue or a sheet."""

from __future__ import annotations

from floorit.compare import words
from floorit.compare.comparison import Change, Comparison
from floorit.language import Code, said
from floorit.report.markdown import milli, section, table
from floorit.report.words import PHASES, relative


def render(comparison: Comparison) -> str:
    """All tables; what is the same in both has none."""
    parts = [f"# floorit: {said('two runs side by side')}", _speed(comparison)]
    parts += section(f"Where a {comparison.per}'s time went, in ms", _ledger(comparison))
    parts += section("Findings", table(("", "finding"), map(words.finding, comparison.findings)))
    for title, changes in words.differences(comparison):
        parts += section(title.capitalize() if title.islower() else title, _changes(title, changes))
    same = words.alike(comparison)
    parts += [said(f"The same in both: {', '.join(same)}.")] if same else []
    return "\n\n".join(parts) + "\n"


def _speed(comparison: Comparison) -> str:
    speed = comparison.speed
    rows = [("A", f"`{relative(comparison.a)}`"), ("B", f"`{relative(comparison.b)}`")]
    if speed is not None:
        rows += [
            ("speed of A", words.rate(speed.a, speed.unit)),
            ("speed of B", words.rate(speed.b, speed.unit)),
            ("**verdict**", f"**{words.verdict(speed)}**"),
            ("it rests on", words.rests_on(speed)),
        ]
    return table(("", ""), [*rows, *(("mind", caveat) for caveat in comparison.caveats)])


def _ledger(comparison: Comparison) -> str:
    """Every phase of either, and what they add up to."""
    step = comparison.step
    rows = [
        (
            Code(phase.phase),
            PHASES[phase.phase],
            milli(phase.a),
            milli(phase.b),
            _signed(phase.difference),
            _times(phase.a, phase.b),
        )
        for phase in comparison.ledger
    ]
    whole = (milli(step.a), milli(step.b), _signed(step.b - step.a), _times(step.a, step.b))
    head = ("phase", "is", "A", "B", "B less A", "B over A")
    return table(head, [*rows, ("**all**", "", *(f"**{cell}**" for cell in whole))], right=range(2, 6))


def _signed(seconds: float) -> str:
    return f"{seconds * 1e3:+.3f}"


def _times(a: float, b: float) -> str:
    return f"{b / a:.2f}x" if a else ""


def _changes(title: str, changes: list[Change]) -> str:
    return table(("", "A", "B"), [words.cells(title, change) for change in changes])
