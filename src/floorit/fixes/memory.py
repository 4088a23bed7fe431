"""Time that is paid for memory, and memory that could buy time."""

from __future__ import annotations

import msgspec

from floorit.analyse.stepmodel import Change, gain
from floorit.fixes import values
from floorit.fixes.fix import Fix, Known
from floorit.fixes.values import Value
from floorit.stats import Estimate, seconds

# Of the GPU's memory in use at the peak: more, and there is no room for what recomputing saves.
_FULL = 0.85
# What checkpointing costs the host beside recomputing (states of random numbers, hooks on what is saved), of the time
# that recomputing takes: least, likely, most. It was 0.1 to 0.5 in five measurements of cases/deblur.
_BESIDE = (0.0, 0.2, 0.5)
# A batch so many times as large.
_TIMES = 2
# Samples of a batch, batches of a step: nobody means more.
_LARGEST = 1 << 20


def _recompute(known: Known) -> Estimate | str:
    used, foretold = known.memory_used, known.memory_used_with("recompute")
    if foretold is not None and foretold > _FULL:
        return f"the peak would be {foretold:.0%} of the GPU's memory: there is no room for what recomputing saves"
    if foretold is None and used is not None and used > _FULL:
        return f"the peak is {used:.0%} of the GPU's memory: there is no room for what recomputing saves"
    return _if_there_were_room(known)


def _if_there_were_room(known: Known) -> Estimate | str:
    if not known.needs.host.get("recompute"):
        return "nothing is recomputed"
    least, likely, most = (gain(known.needs, _without_recompute(known, beside)) for beside in _BESIDE)
    return msgspec.structs.replace(likely, low=least.low, high=most.high)


def _kept(known: Known, wanted: Value) -> Change | str:
    if wanted is True:
        return "what recomputing takes is not foretold"
    return _without_recompute(known, _BESIDE[1]) if known.needs.host.get("recompute") else "nothing is recomputed"


def _without_recompute(known: Known, beside: float) -> Change:
    """Nothing recomputed, and none of what the host does for it in forward and backward."""
    host = known.needs.host
    issuing = host.get("forward", 0.0) + host.get("backward", 0.0)
    left = 1 - min(beside * host["recompute"] / issuing, 1.0) if issuing else 1.0
    if not known.unseen:
        return Change(phases={"recompute": 0.0}, issue=left)
    return Change(phases={"recompute": 0.0, "forward": left, "backward": left})


def _accumulate(known: Known) -> Estimate | str:
    if known.ranks < 2 and not known.share("optimizer"):
        return "no optimizer step was seen"
    parts = {"optimizer": 1 / _TIMES, "grad_sync": 1 / _TIMES}
    return gain(known.needs, Change(phases=parts))


def _batch(known: Known) -> Estimate | str:
    """Twice as many samples a step: the host's time stays, the GPU's and the loader's double."""
    needs = known.needs
    if needs.gpu is None:
        return known.unseen if known.on_gpu else f"{known.unseen}; on a CPU it is not predicted"
    if "out-of-memory" in known.shares:
        return "memory ran out as it is"
    if needs.starved:
        return f"the loop waits {seconds(needs.wait)} of a step for batches: larger ones take longer to make"
    if known.memory_used is None:
        return "how much of the GPU's memory is free is not known"
    foretold = known.memory_used_with("batch")
    if foretold is not None and foretold > _FULL:
        return f"the peak would be {foretold:.0%} of the GPU's memory: twice the batch may not fit"
    if foretold is None and known.memory_used * _TIMES > _FULL:
        return f"the peak is {known.memory_used:.0%} of the GPU's memory: twice the batch may not fit"
    return batched(known, _TIMES)


def batched(known: Known, times: float) -> Estimate:
    """The gain in samples a second of a batch so many times as large.

    At worst the GPU's added work comes after what the host does, and what lies between steps comes once an epoch, of
    which a step is a larger part then; at best it fills the time in which the GPU was idle, and comes as seldom.
    """
    needs = known.needs
    assert needs.gpu is not None
    supply = needs.loader.work.likely / needs.loader.workers if needs.loader and needs.loader.workers else 0.0
    rest = needs.step - needs.loop
    of_epochs = sum(needs.host.get(phase, 0.0) for phase in ("eval", "epoch_gap"))

    def paced(loop: float, more: float = 0.0) -> float:
        return times * needs.step / (rest + more + max(loop, times * supply))

    low = paced(needs.loop + (times - 1) * min(needs.gpu.high, needs.loop), (times - 1) * of_epochs)
    high = paced(max(needs.loop, times * min(needs.gpu.low, needs.loop)))
    return Estimate(value=(low * high) ** 0.5, low=low, high=high, n=needs.n)


def _allocator(known: Known) -> Estimate | str:
    return "the allocator's settings make room, not time: memory did not run out"


def _eight_bits(known: Known) -> Estimate | str:
    return "an optimizer's state of 8 bits makes room, not time: memory did not run out"


FIXES = (
    Fix(
        code="recompute",
        summary="activations are kept instead of computed twice; takes memory",
        risk="exact",
        effort="a few lines",
        addresses=("recompute-bound",),
        predict=_recompute,
        predict_with_room=_if_there_were_room,
        change=_kept,
        value=lambda known: False,
        saves=lambda known: None if known.needs.host.get("recompute") else True,
        needs_memory=True,
        takes=values.SWITCH_OFF,
    ),
    Fix(
        code="accumulate",
        summary="several batches for one optimizer step; other training",
        risk="training",
        effort="a few lines",
        addresses=("optimizer-bound", "comm-bound"),
        setting="accumulation",
        predict=_accumulate,
        value=lambda known: _TIMES,
        takes=values.whole(2, _LARGEST, default=_TIMES),
    ),
    Fix(
        code="batch",
        summary="more samples a step; other training",
        risk="training",
        effort="a flag",
        addresses=("launch-bound", "batch-too-small"),
        setting="batch_size",
        predict=_batch,
        value=lambda known: f"x{_TIMES}",
        takes=values.size(_LARGEST, default=f"x{_TIMES}"),
        popular=True,
    ),
    Fix(
        code="allocator",
        summary="the allocator's segments can grow",
        risk="exact",
        effort="a flag",
        addresses=("out-of-memory",),
        predict=_allocator,
        takes=values.one_of("expandable", default="expandable"),
    ),
    Fix(
        code="optimizer-8bit",
        summary="the optimizer's state in 8 bits; other training",
        risk="training",
        effort="a few lines",
        addresses=("out-of-memory",),
        predict=_eight_bits,
        saves=lambda known: True if known.on_gpu else None,
        takes=values.ONLY_ON,
    ),
)
