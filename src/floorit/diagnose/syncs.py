"""Waiting for the GPU: how much of it could go away."""

from __future__ import annotations

from floorit.analyse.ledger import Line
from floorit.analyse.stepmodel import Change, apart, bound
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED
from floorit.stats import seconds

_MOST_LINES = 3
_WORTH_A_LINE = 0.05  # of the blocked time
_ASKED = ("backward", "recompute")  # phases that do what lines of the forward pass lead to


def find(facts: Facts, points: list[SyncPoint]) -> list[Finding]:
    """Blocked time is time in which the GPU works: what could go is no more than the time in which it does not.

    Where no kernel window has seen that, the GPU needs at least the blocked time for itself, and what its own clock
    shows it to be behind with.
    """
    most = bound(facts.needs, Change(syncs=0.0))
    if not facts.on_gpu or most <= NAMED:
        return []
    blocked, idle = facts.needs.host.get("sync", 0.0), facts.needs.idle
    said = [
        f"{sum(point.per_step for point in points):.1f} blocking calls a step, {seconds(blocked)} blocked;"
        " the bound is what full overlap of host and GPU could give"
    ]
    if facts.needs.waits:
        said.append(
            f"{seconds(facts.needs.waits)} of it is part of other phases: calls that wait although no number is asked"
            " for, as to index by a mask, where torch must know how many elements are chosen"
        )
    again = sum(point.seconds for point in points if point.phase in _ASKED)
    if again:
        said.append(f"{seconds(again)} of it in the backward pass, which waits for what such a call has chosen, too")
    if idle is not None:
        lost = idle.get("sync", 0.0)
        said.append(
            f"the GPU is idle for {seconds(apart(facts.needs))} of a step, {seconds(lost)} right after such calls"
        )
    return [
        Finding(
            code="sync-bound",
            title="the host waits for the GPU instead of feeding it",
            share=blocked / facts.needs.step,
            bound=most,
            evidence=said,
            where=_lines(points) or facts.ledger.where("sync"),
        )
    ]


def _lines(points: list[SyncPoint]) -> list[Line]:
    """The calls that block longest; those of the backward pass last, which waits for what others have asked of it."""
    total = sum(point.seconds for point in points)
    longest = sorted(points, key=lambda point: (point.phase in _ASKED, -point.seconds))[:_MOST_LINES]
    return [
        Line(file=point.file, line=point.line, function=point.function, share=point.seconds / total, inside=point.op)
        for point in longest
        if total and point.file and point.seconds >= _WORTH_A_LINE * total
    ]
