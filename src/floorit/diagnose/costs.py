"""Findings that are a phase of the ledger, with the code around it: the cost is its share, the bound follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import msgspec

from floorit.analyse import callers
from floorit.analyse.handover import package
from floorit.analyse.ledger import Ledger, Line, lines
from floorit.analyse.stepmodel import Change, bound, gain
from floorit.diagnose import Facts, Finding, around
from floorit.diagnose.thresholds import FELT, MOSTLY_ELSEWHERE, NAMED
from floorit.events import Sample
from floorit.stats import seconds

MOST_OF_IT = 0.4  # of the step: what takes less is not said to take the time
_UNGRADED_TITLE = "calling the model without gradient takes the time"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A removable cost: its code, the phase that it is, and how it is said."""

    code: str
    phase: str
    title: str
    meaning: str
    asking: Callable[[callers.Looks], list[Line]] | None = None  # the lines that ask for it
    batches_meanwhile: bool = False  # the loader's workers go on while it lasts
    around: str | None = None  # what its own functions do besides; None: they are not looked for


COSTS = (
    Cost(
        code="python-bound",
        phase="other",
        title="the program's own code in the loop takes the time",
        meaning="time outside of loader, model, loss, backward and optimizer; the lines name it",
    ),
    Cost(
        code="loss-bound",
        phase="loss",
        title="computing the loss takes the time",
        meaning="from the end of the forward pass to the start of backward; its share of backward is not in it",
    ),
    Cost(
        code="recompute-bound",
        phase="recompute",
        title="the backward pass computes activations a second time",
        meaning="activation checkpointing saves memory and pays with this time",
        asking=callers.checkpoint_calls,
    ),
    Cost(
        code="optimizer-bound",
        phase="optimizer",
        title="the optimizer takes the time",
        meaning="steps, clearing and clipping gradients, loss scaling",
    ),
    Cost(
        code="eval-bound",
        phase="eval",
        title="evaluation takes the time",
        meaning="passes over data without a backward pass, between training steps",
        asking=partial(callers.leaving_training, "eval"),
        batches_meanwhile=True,
    ),
    Cost(
        code="checkpoint-bound",
        phase="checkpoint",
        title="saving checkpoints takes the time",
        meaning="torch.save and safetensors, while training waits",
        asking=partial(callers.leaving_training, "checkpoint"),
        batches_meanwhile=True,
        around="in the functions that save, beside the writing",
    ),
    Cost(
        code="epoch-gap",
        phase="epoch_gap",
        title="the loop stands still between epochs",
        meaning="loader and workers are started again for each pass over the data",
        batches_meanwhile=True,
    ),
    Cost(
        code="logging-bound",
        phase="logging",
        title="logging takes the time",
        meaning="printing, progress bars, scalars, figures and images written by the training thread",
        around="in the functions that make what is written",
    ),
)


def find(facts: Facts) -> list[Finding]:
    """A finding for each cost that is worth naming."""
    found = (finding(cost, facts) for cost in COSTS if _is_felt(cost, facts))
    return [f for f in found if f.bound is not None and f.bound > NAMED]


def _is_felt(cost: Cost, facts: Facts) -> bool:
    """Where the GPU's idle time is known: whether the step is likely to feel it, or the GPU works meanwhile."""
    made = _around(cost, facts.ledger)
    return facts.needs.idle is None or gain(facts.needs, _without(cost, made, facts.ledger)).value > FELT


def _around(cost: Cost, ledger: Ledger) -> list[Sample]:
    return around.find(cost.phase, ledger.looks) if cost.around else []


def _of_own(made: list[Sample], ledger: Ledger) -> float:
    """The share of the program's own code that is there for the cost."""
    return len(made) / len(ledger.looks["other"]) if made else 0.0


def _without(cost: Cost, made: list[Sample], ledger: Ledger) -> Change:
    return Change(phases={cost.phase: 0.0, **({"other": 1 - _of_own(made, ledger)} if made else {})})


def finding(cost: Cost, facts: Facts) -> Finding:
    """One cost as a finding, whatever its size."""
    ledger = facts.ledger
    made = _around(cost, ledger)
    beside = ledger.seconds("other") * _of_own(made, ledger)
    share = (ledger.seconds(cost.phase) + beside) / ledger.mean if ledger.mean else 0.0
    title = _UNGRADED_TITLE if _is_ungraded(cost, facts) else cost.title
    return Finding(
        code=cost.code,
        title=title if share >= MOST_OF_IT else title.replace("takes the time", "takes part of the time"),
        share=share,
        of_which=_of_which(cost, ledger, beside),
        bound=bound(facts.needs, _without(cost, made, ledger)),
        evidence=_evidence(cost, facts, beside),
        where=_where(cost, ledger, made),
    )


def _of_which(cost: Cost, ledger: Ledger, beside: float) -> str:
    """The cost's own row of the ledger, and what is there for it in another."""
    if not beside:
        return ""
    around = f"{beside / ledger.mean:.1%} {cost.around}, which python-bound counts too"
    return f"{ledger.share(cost.phase):.1%} itself, {around}"


def _evidence(cost: Cost, facts: Facts, beside: float) -> list[str]:
    ledger = facts.ledger
    said = [f"{seconds(ledger.seconds(cost.phase))} of a step of {seconds(ledger.mean)}: {cost.meaning}"]
    if _is_ungraded(cost, facts):
        said.append(
            "no loader is read, and no function is called an evaluation: it may make what the model is trained on"
        )
    said += _of_libraries(ledger) if cost.phase == "other" else []
    if beside:
        said.append(f"and {seconds(beside)} {cost.around}; python-bound counts it too")
    if cost.batches_meanwhile and facts.workers is not None and facts.workers.count:
        said.append("the loader's workers make batches meanwhile: part of it may come back as waiting for data")
    return said


def _is_ungraded(cost: Cost, facts: Facts) -> bool:
    """Whether it cannot be told if the model is evaluated, or plays and generates what it is then trained on."""
    has_loader = facts.workers is not None
    return cost.phase == "eval" and callers.may_be_trained_on(facts.ledger.looks, facts.needs.evals, has_loader)


def _of_libraries(ledger: Ledger) -> list[str]:
    """How much of the program's own code is that of libraries, which run the loop for it."""
    looks = ledger.looks.get("other", [])
    found = Counter(package(s.user.file) for s in looks if s.user is not None and s.user.is_library)
    return [
        f"{count / len(looks):.0%} of it is in {name}, not in files of the program"
        for name, count in found.most_common(1)
        if count > MOSTLY_ELSEWHERE * len(looks)
    ]


def _where(cost: Cost, ledger: Ledger, made: list[Sample]) -> list[Line]:
    """The lines that ask for it, which are what can be changed, then those that it happens at."""
    asking = cost.asking(ledger.looks) if cost.asking else []
    known = {(line.file, line.line) for line in asking}
    happens = lines([*ledger.looks.get(cost.phase, ()), *made]) if made else ledger.where(cost.phase)
    return asking + [line for line in happens if (line.file, line.line) not in known]
