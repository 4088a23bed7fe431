"""Waiting for the GPU: how much of it could go away."""

from __future__ import annotations

from floorit.analyse.stepmodel import Change, bound
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED
from floorit.stats import seconds


def find(facts: Facts, points: list[SyncPoint]) -> list[Finding]:
    """Blocked time is time in which the GPU works: only what leaves it idle afterwards could go.

    Where a kernel window has seen that idle time, it is the cost. Where none has, the GPU needs at least the blocked
    time for itself, and what its own clock shows it to be behind with: the bound is what full overlap could give.
    """
    most = bound(facts.needs, Change(syncs=0.0))
    if not facts.on_gpu or most <= NAMED:
        return []
    blocked, idle = facts.ledger.seconds("sync"), facts.needs.idle
    calls = f"{sum(point.per_step for point in points):.1f} blocking calls a step, {seconds(blocked)} blocked"
    if idle is None:
        share, said = facts.ledger.share("sync"), f"{calls}; the bound is what full overlap of host and GPU could give"
    else:
        lost = idle.get("sync", 0.0)
        share, said = lost / facts.needs.step, f"{calls}; the GPU is idle for {seconds(lost)} of a step because of them"
    return [
        Finding(
            code="sync-bound",
            title="the host waits for the GPU instead of feeding it",
            share=share,
            bound=most,
            evidence=[said],
            where=facts.ledger.where("sync"),
        )
    ]
