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
    logs,
    memory,
    settings,
    syncs,
    threads,
)
from floorit.diagnose.thresholds import COMPUTE_SHARE

_COMPUTE = ("forward", "backward", "recompute", "loss", "optimizer")


def diagnose(facts: Facts, points: list[SyncPoint], out: OutOfMemory | None = None) -> list[Finding]:
    """What the program died of, then switches, then costs by their bound; the model's own work where there are none.

    What is found without a bound comes after: it may be worth nothing. Only `healthy` would belie it.
    """
    costing = input.find(facts) + costs.find(facts) + logs.find(facts) + syncs.find(facts, points) + device.find(facts)
    removable = sorted(costing, key=lambda f: -(f.bound or 0))
    ran_out = memory.find(out)
    died = ran_out if out is not None and out.ended else []
    unweighed = settings.find(facts) + threads.find(facts) + device.too_small(facts) + ([] if died else ran_out)
    rest = [] if removable else [_the_rest(facts)]
    last = [*unweighed, *rest] if rest and rest[0].code == "healthy" else [*rest, *unweighed]
    return died + debugging.find(facts) + removable + last


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
    return Finding(
        code="compute-bound",
        title="the model's own work takes the time",
        share=work,
        bound=bound_of(work),
        evidence=[f"{said}; no removable cost is over a tenth"],
        where=facts.ledger.where("forward", "backward"),
    )
