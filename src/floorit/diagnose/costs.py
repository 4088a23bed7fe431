"""Findings that are one or more phases of the ledger: the cost is their share, the bound follows from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from floorit.analyse import callers
from floorit.analyse.ledger import Ledger, Line
from floorit.analyse.stepmodel import bound, gain, without
from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import FELT, NAMED
from floorit.stats import seconds


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A removable cost: its code, the phases that make it up, and how it is said."""

    code: str
    phases: tuple[str, ...]
    title: str
    meaning: str
    asking: Callable[[callers.Looks], list[Line]] | None = None  # the lines that ask for it
    batches_meanwhile: bool = False  # the loader's workers go on while it lasts


COSTS = (
    Cost(
        code="python-bound",
        phases=("other",),
        title="the program's own code in the loop takes the time",
        meaning="time outside of loader, model, loss, backward and optimizer; the lines name it",
    ),
    Cost(
        code="loss-bound",
        phases=("loss",),
        title="computing the loss takes the time",
        meaning="from the end of the forward pass to the start of backward; its share of backward is not in it",
    ),
    Cost(
        code="recompute-bound",
        phases=("recompute",),
        title="the backward pass computes activations a second time",
        meaning="activation checkpointing saves memory and pays with this time",
        asking=callers.checkpoint_calls,
    ),
    Cost(
        code="optimizer-bound",
        phases=("optimizer",),
        title="the optimizer takes the time",
        meaning="steps, clearing and clipping gradients, loss scaling",
    ),
    Cost(
        code="eval-bound",
        phases=("eval",),
        title="evaluation takes the time",
        meaning="passes over data without a backward pass, between training steps",
        asking=partial(callers.leaving_training, "eval"),
        batches_meanwhile=True,
    ),
    Cost(
        code="checkpoint-bound",
        phases=("checkpoint",),
        title="saving checkpoints takes the time",
        meaning="torch.save and safetensors, while training waits",
        asking=partial(callers.leaving_training, "checkpoint"),
        batches_meanwhile=True,
    ),
    Cost(
        code="epoch-gap",
        phases=("epoch_gap",),
        title="the loop stands still between epochs",
        meaning="loader and workers are started again for each pass over the data",
        batches_meanwhile=True,
    ),
)


def find(facts: Facts) -> list[Finding]:
    """A finding for each cost that is worth naming."""
    found = (finding(cost, facts) for cost in COSTS if _is_felt(cost, facts))
    return [f for f in found if f.bound is not None and f.bound > NAMED]


def _is_felt(cost: Cost, facts: Facts) -> bool:
    """Where the GPU's idle time is known: whether the step is likely to feel it, or the GPU works meanwhile."""
    return facts.needs.idle is None or gain(facts.needs, without(*cost.phases)).value > FELT


def finding(cost: Cost, facts: Facts) -> Finding:
    """One cost as a finding, whatever its size."""
    ledger = facts.ledger
    share = ledger.share(*cost.phases)
    return Finding(
        code=cost.code,
        title=cost.title,
        share=share,
        bound=bound(facts.needs, without(*cost.phases)),
        evidence=_evidence(cost, facts),
        where=_where(cost, ledger),
    )


def _evidence(cost: Cost, facts: Facts) -> list[str]:
    ledger = facts.ledger
    said = [f"{seconds(ledger.seconds(*cost.phases))} of a step of {seconds(ledger.mean)}: {cost.meaning}"]
    if cost.batches_meanwhile and facts.workers is not None and facts.workers.count:
        said.append("the loader's workers make batches meanwhile: part of it may come back as waiting for data")
    return said


def _where(cost: Cost, ledger: Ledger) -> list[Line]:
    """The lines that ask for it, which are what can be changed, then those that it happens at."""
    asking = cost.asking(ledger.looks) if cost.asking else []
    known = {(line.file, line.line) for line in asking}
    return asking + [line for line in ledger.where(*cost.phases) if (line.file, line.line) not in known]
