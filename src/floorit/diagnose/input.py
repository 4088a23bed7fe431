"""Waiting for data: whether nobody makes batches ahead, the workers are too slow, or taking a batch is."""

from __future__ import annotations

from floorit.analyse.input import Workers
from floorit.analyse.ledger import Line
from floorit.analyse.stepmodel import bound, without
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import NAMED, RECEIVING
from floorit.stats import seconds


def find(facts: Facts) -> list[Finding]:
    """One finding, if waiting for the loader is worth naming."""
    share = facts.ledger.share("data_wait")
    measured, no_wait = facts.without_data, without("data_wait")
    # A step without its data path has no gaps between epochs either: those are a finding of their own.
    apart = facts.needs.host.get("epoch_gap", 0.0)
    if ((facts.needs.step - apart) / measured if measured else bound(facts.needs, no_wait)) <= NAMED:
        return []
    # Workers that are always ahead have the cores to spare: without them the loop would have no more.
    crowds = facts.workers is None or not facts.workers.always_ready
    most = facts.needs.step / measured if measured else bound(facts.needs, no_wait, alone=crowds)
    reason, where = _reason(facts.workers, facts.ledger.seconds("data_wait"))
    return [
        Finding(
            code="input-bound",
            title="the training loop waits for data",
            share=share,
            bound=most,
            evidence=[reason, *([f"without its data path a step took {seconds(measured)}"] if measured else [])],
            where=where or facts.ledger.where("data_wait"),
        )
    ]


def _reason(workers: Workers | None, waited: float) -> tuple[str, list[Line]]:
    """Why it waits, and the lines that cost it: those of the workers only where they are what is too slow."""
    if workers is None:
        return "the loader is not torch's DataLoader: nothing is known of what is behind it", []
    if not workers.count:
        return "the loader has no workers: the training process makes each batch itself, and nothing runs beside it", []
    received = workers.receive_seconds or 0.0
    if not workers.pinned and received > RECEIVING * waited:  # pinned batches are received by a thread of their own
        return (
            f"of {seconds(waited)} a step, {seconds(received)} go into receiving a batch from its worker:"
            " making it is not what takes the time",
            [],
        )
    if workers.always_ready:
        return (
            f"when the next batch is wanted, {workers.queue_mean:.1f} of at most {workers.most_ahead} wait:"
            f" the {seconds(waited)} a step go into taking one over from its worker,"
            " making it is not what takes the time",
            [],
        )
    busy = f", {workers.busy_share:.0%} busy" if workers.busy_share is not None else ""
    makers = "one worker" if workers.count == 1 else f"{workers.count} workers"
    return f"the next batch is not ready when it is wanted: {makers}{busy}, cannot keep up", workers.where
