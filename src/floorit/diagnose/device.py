"""What keeps the GPU waiting, or busy with other things than the model: launches, copies, other ranks."""

from __future__ import annotations

from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Line
from floorit.analyse.ranks import LateRank
from floorit.analyse.stepmodel import Change, bound
from floorit.diagnose import Facts, Finding, bound_of, place_of
from floorit.diagnose.thresholds import FEW_SAMPLES, MOSTLY_FREE, NAMED
from floorit.stats import seconds

_MODEL = ("forward", "backward")  # loss, recomputation and optimizer have findings of their own


def find(facts: Facts) -> list[Finding]:
    """A finding for each that is worth naming."""
    return [f for f in (_launch(facts), _transfer(facts), _comm(facts)) if f is not None]


def too_small(facts: Facts) -> list[Finding]:
    """A batch that leaves the GPU idle between short kernels, and most of its memory free.

    Where it has few samples, it is why launches take the time, and costs as much: a larger one is launched as soon.
    """
    gpu, launch = facts.gpu, _launch(facts)
    if launch is None or gpu is None or not gpu.memory_peak or not facts.gpu_memory:
        return []
    used = gpu.memory_peak / facts.gpu_memory
    if used > MOSTLY_FREE:
        return []
    has_few = facts.batch is not None and facts.batch <= FEW_SAMPLES
    few = f"{facts.batch:g} samples a step" if has_few else ""
    room = f"{_kernels(gpu)}; {used:.0%} of the GPU's memory in use at the peak"
    return [
        Finding(
            code="batch-too-small",
            title="the GPU has room for more samples a step",
            share=launch.share if has_few else None,
            bound=launch.bound if has_few else None,
            evidence=[*filter(None, [few]), room],
            where=place_of(facts, "batch_size"),
        )
    ]


def _launch(facts: Facts) -> Finding | None:
    needs, gpu = facts.needs, facts.gpu
    if needs.idle is None or needs.gpu is None or gpu is None:
        return None
    lost = sum(needs.idle_by(phase) for phase in _MODEL) - min(_in_backward(facts), needs.idle_by("backward"))
    share = lost / needs.step
    if bound_of(share) <= NAMED:
        return None
    return Finding(
        code="launch-bound",
        title="the host cannot give the GPU its work fast enough",
        share=share,
        bound=bound_of(share),
        evidence=[
            f"the GPU is idle for {seconds(lost)} of a step while forward and backward pass are issued",
            _kernels(gpu),
        ],
        where=_idle_lines(gpu, "launch"),
    )


def _transfer(facts: Facts) -> Finding | None:
    needs, gpu = facts.needs, facts.gpu
    if needs.gpu is None:
        return None
    most = bound(needs, Change(transfers=0.0))
    if most <= NAMED:
        return None
    copying = facts.ledger.seconds("h2d")
    said = [f"{seconds(copying)} of a step of {seconds(needs.step)}: the host copies to the GPU"]
    if needs.copies_alone:
        said.append(f"for {seconds(needs.copies_alone)} of it the GPU does nothing but copy")
    lines = _idle_lines(gpu, "h2d") if gpu is not None else []
    return Finding(
        code="transfer-bound",
        title="copies to the GPU hold up the step",
        share=max(copying, needs.copies_alone) / needs.step,
        bound=most,
        evidence=said,
        where=facts.ledger.where("h2d") or lines,
    )


def _comm(facts: Facts) -> Finding | None:
    """As the GPU is seen to do nothing else; else by the host's calls, and by what DDP times inside of backward."""
    needs, gpu, ledger = facts.needs, facts.gpu, facts.ledger
    called, inside = ledger.seconds("grad_sync"), _in_backward(facts)
    said, lost, where = [], called + inside, ledger.where("grad_sync")
    if needs.idle is not None and gpu is not None:
        waited, alone = needs.idle.get("comm", 0.0), (gpu.comm_alone_share or 0.0) * needs.within
        said.append(f"the GPU only communicates for {seconds(alone)} of a step, and waits for it for {seconds(waited)}")
        lost, where = max(waited + alone, inside), _idle_lines(gpu, "comm") or where
    elif called:
        said.append(f"{seconds(called)} of a step of {seconds(needs.step)} in collectives that the program calls")
    if inside:
        said.append(f"backward waits {seconds(inside)} of a step for gradients of other ranks, {_by(facts)}")
    late = facts.late if facts.late is not None and facts.late.rank != facts.process.rank else None
    if late is not None:
        said.append(of_late(late))
        where = late.where or where
    share = lost / needs.step
    if bound_of(share) <= NAMED:
        return None
    return Finding(
        code="comm-bound",
        title=f"rank {late.rank} is late, and the others wait for it" if late else "the ranks wait for each other",
        share=share,
        bound=bound_of(share),
        evidence=said,
        where=ledger.where("backward") if inside > lost / 2 and not (late and late.where) else where,
    )


def of_late(late: LateRank) -> str:
    """What is said of the rank that the others wait for."""
    by = f"rank {late.rank} needs {seconds(late.seconds.value)} of a step more than the others"
    if late.phase is None or late.phase_seconds is None or late.others_seconds is None:
        return by
    own, others = seconds(late.phase_seconds), seconds(late.others_seconds)
    return f"{by}: {own} in {late.phase}, where they need {others}"


def _in_backward(facts: Facts) -> float:
    """Seconds of a step that DDP waits inside of backward; what its first passes took more is not taken for it."""
    return min(max(facts.ddp_waits or 0.0, facts.waits or 0.0), facts.ledger.seconds("backward"))


def _by(facts: Facts) -> str:
    """Whose clock says so."""
    is_ddps = (facts.ddp_waits or 0.0) >= (facts.waits or 0.0)
    return "by DDP's own clock" if is_ddps else "by what the slowest of them does before it"


def _kernels(gpu: Gpu) -> str:
    count = gpu.kernels_per_step or 0.0
    busy = (gpu.busy_share or 0.0) * (gpu.step_seconds or 0.0)
    each = f", {seconds(busy / count)} each on average" if count else ""
    return f"{count:.0f} kernels a step{each}: the GPU is busy for {gpu.busy_share:.0%}"


def _idle_lines(gpu: Gpu, cause: str) -> list[Line]:
    return next((idle.where for idle in gpu.idle if idle.cause == cause), [])
