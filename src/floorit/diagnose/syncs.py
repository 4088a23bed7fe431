"""Waiting for the GPU: how much of it could go away."""

from __future__ import annotations

from floorit.analyse.stepmodel import Change, apart, bound
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED
from floorit.stats import seconds


def find(facts: Facts, points: list[SyncPoint]) -> list[Finding]:
    """Blocked time is time in which the GPU works: what could go is no more than the time in which it does not.

    Where no kernel window has seen that, the GPU needs at least the blocked time for itself, and what its own clock
    shows it to be behind with.
    """
    most = bound(facts.needs, Change(syncs=0.0))
    if not facts.on_gpu or most <= NAMED:
        return []
    blocked, idle = facts.ledger.seconds("sync"), facts.needs.idle
    said = [
        f"{sum(point.per_step for point in points):.1f} blocking calls a step, {seconds(blocked)} blocked;"
        " the bound is what full overlap of host and GPU could give"
    ]
    if idle is not None:
        lost = idle.get("sync", 0.0)
        said.append(
            f"the GPU is idle for {seconds(apart(facts.needs))} of a step, {seconds(lost)} right after such calls"
        )
    return [
        Finding(
            code="sync-bound",
            title="the host waits for the GPU instead of feeding it",
            share=facts.ledger.share("sync"),
            bound=most,
            evidence=said,
            where=facts.ledger.where("sync"),
        )
    ]
