"""Waiting for the GPU: how much of it could go away."""

from __future__ import annotations

from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED
from floorit.stats import seconds


def find(facts: Facts, points: list[SyncPoint]) -> list[Finding]:
    """Blocked time is time in which the GPU works: without the wait, a step still takes what either side needs.

    While the host is blocked the GPU is busy, so no step can be shorter than the blocked time; and the host needs the
    rest of the step for itself. Host and GPU can at best overlap whole: the bound is the step over the larger part.
    """
    share = facts.ledger.share("sync")
    bound = 1 / max(share, 1 - share) if share else 1.0
    if bound <= NAMED:
        return []
    calls = sum(point.per_step for point in points)
    return [
        Finding(
            code="sync-bound",
            title="the host waits for the GPU instead of feeding it",
            share=share,
            bound=bound,
            evidence=[
                f"{calls:.1f} blocking calls a step, {seconds(facts.ledger.seconds('sync'))} blocked;"
                " the bound is what full overlap of host and GPU could give"
            ],
            where=facts.ledger.where("sync"),
        )
    ]
