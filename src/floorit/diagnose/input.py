"""Waiting for data: whether nobody makes batches ahead, the workers are too slow, or taking a batch is."""

from __future__ import annotations

from floorit.analyse.input import Workers
from floorit.analyse.ledger import Line
from floorit.diagnose import Facts, Finding, bound_of
from floorit.diagnose.thresholds import NAMED, QUEUE_EMPTY


def find(facts: Facts) -> list[Finding]:
    """One finding, if waiting for the loader is worth naming."""
    share = facts.ledger.share("data_wait")
    if bound_of(share) <= NAMED:
        return []
    reason, where = _reason(facts.workers)
    return [
        Finding(
            code="input-bound",
            title="the training loop waits for data",
            share=share,
            bound=bound_of(share),
            evidence=[reason],
            where=where or facts.ledger.where("data_wait"),
        )
    ]


def _reason(workers: Workers | None) -> tuple[str, list[Line]]:
    """Why it waits, and the lines that cost it: those of the workers only where they are what is too slow."""
    if workers is None:
        return "the loader is not torch's DataLoader: nothing is known of what is behind it", []
    if not workers.count:
        return "the loader has no workers: the training process makes each batch itself, and nothing runs beside it", []
    if workers.queue_empty_share is None or workers.busy_share is None:
        return "the workers' own figures are missing", workers.where
    if workers.queue_empty_share >= QUEUE_EMPTY:
        return (
            f"no batch was ready {workers.queue_empty_share:.0%} of the times one was wanted:"
            f" {workers.count} workers, {workers.busy_share:.0%} busy, cannot keep up",
            workers.where,
        )
    return (
        f"a batch was ready {1 - workers.queue_empty_share:.0%} of the times one was wanted:"
        " the time goes into receiving it, not into making it",
        [],
    )
