"""All findings in the order in which they matter; the first is the verdict."""

from __future__ import annotations

from floorit.analyse.memory import OutOfMemory
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import (
    Facts,
    Finding,
    bound_of,
    costs,
    debugging,
    device,
    input,
    memory,
    settings,
    syncs,
    threads,
)
from floorit.diagnose.thresholds import BUSY, COMPUTE_SHARE

_COMPUTE = ("forward", "backward", "recompute", "loss", "optimizer")


def diagnose(facts: Facts, points: list[SyncPoint], out: OutOfMemory | None = None) -> list[Finding]:
    """What the program died of, then switches and crowds, then costs by their bound, then the model's own work.

    That is told where there is no cost, and where the GPU is seen to be busy with it. What is found without a bound
    comes after: it may be worth nothing. Only `healthy` would belie it.
    """
    small, crowd = device.too_small(facts), threads.find(facts)
    costing = input.find(facts) + costs.find(facts) + syncs.find(facts, points) + small + device.find(facts)
    removable = sorted((f for f in costing if f.bound is not None), key=lambda f: -(f.bound or 0))
    ran_out = memory.find(out)
    died = ran_out if out is not None and out.ended else []
    before = crowd if crowd and threads.comes_first(facts) else []
    unbounded = [f for f in small if f.bound is None]
    unweighed = settings.find(facts) + ([] if before else crowd) + unbounded + ([] if died else ran_out)
    rest = [_the_rest(facts)] if not removable else _busy(facts)
    last = [*unweighed, *rest] if rest and rest[0].code == "healthy" else [*rest, *unweighed]
    return died + debugging.find(facts) + before + removable + last


def _busy(facts: Facts) -> list[Finding]:
    """The GPU's own work, beside costs that can be removed."""
    gpu = facts.gpu
    if gpu is None or gpu.busy_share is None:
        return []
    computing = gpu.busy_share - (gpu.copies_alone_share or 0.0) - (gpu.comm_alone_share or 0.0)
    return [_computing(facts, computing, f"the GPU computes for {computing:.0%} of a step")] if computing > BUSY else []


def _the_rest(facts: Facts) -> Finding:
    """Nothing can be removed: either the model's own work fills the step, or nothing stands out."""
    if facts.gpu is not None and facts.gpu.busy_share is not None and facts.needs.gpu is not None:
        share = work = facts.needs.gpu.likely / facts.needs.step
        said = f"the GPU is busy for {work:.0%} of the step"
    else:
        blocked = ("sync",) if facts.on_gpu else ()
        share = facts.ledger.share(*_COMPUTE, *blocked)
        work = facts.ledger.share("forward", "backward", *blocked)
        said = f"{work:.0%} of the step is the forward and the backward pass"
    if work < COMPUTE_SHARE:
        return Finding(
            code="healthy",
            title="nothing stands out",
            share=share,
            bound=None,
            evidence=[f"{share:.0%} of the step is model, loss and optimizer; no other cost is over a tenth of it"],
            where=[],
        )
    return _computing(facts, work, f"{said}; no removable cost is over a tenth")


def _computing(facts: Facts, share: float, said: str) -> Finding:
    """The model's lines are named, as these can be changed: that of `backward()` says nothing."""
    kinds = facts.gpu.kinds[:3] if facts.gpu is not None else []
    most = f"of its kernels' time {', '.join(f'{kind.kind} {kind.share:.0%}' for kind in kinds)}"
    return Finding(
        code="compute-bound",
        title="the model's own work takes the time",
        share=share,
        bound=bound_of(share),
        evidence=[said, *([most] if kinds else [])],
        where=facts.ledger.where("forward") or facts.ledger.where("backward"),
    )
