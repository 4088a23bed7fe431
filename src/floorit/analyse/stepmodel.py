"""How long a step would take after a change: loader, host and GPU side by side, and what joins them.

Workers make batches beside the loop, also while it evaluates or saves, as far ahead as their queue allows. The host
runs beside the GPU, except where a call blocks. What is not known for certain is looked at three ways: `worst` gives a
change the least that is sure, `best` the most that is possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from floorit.analyse.needs import BETWEEN, ISSUING, Needs, Range
from floorit.stats import Estimate, seconds

Outlook = Literal["worst", "likely", "best"]
_LEAST_LEFT = 0.001  # of a step: nothing makes it shorter than this
_IS_LIMIT = 0.8  # of the loop, that the GPU is busy: more, and it is what limits
# Seconds that each worker takes to start and to end, once a pass: 17 to 60 ms on two cores with other work, less on a
# quiet machine (docs/measurements/2026-11-17-workers.md).
_STARTS = Range(0.005, 0.02, 0.08)
_HIDES = ("eval", "checkpoint")  # the workers of a pass that has begun go on meanwhile


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What would be different. Factors are of what there is now: 1 leaves it, 0 takes it away."""

    phases: dict[str, float] = {}  # work of a phase, on the host and on the GPU
    issue: float = 1.0  # host's time to give the GPU its work, which stays the same
    syncs: float = 1.0  # blocked time
    transfers: float = 1.0  # copies to the GPU that the step waits for
    gpu: Range = Range(1.0, 1.0, 1.0)  # work of the GPU
    loader: Range = Range(1.0, 1.0, 1.0)  # work of a batch
    workers: int | None = None  # None: as many as now
    reads_on: bool = False  # workers make batches between passes, too


_NOTHING = Change()


def together(changes: Iterable[Change]) -> Change:
    """All of them at once: of what two of them touch, each leaves its part of what the other has left."""
    whole = _NOTHING
    for one in changes:
        phases = {**whole.phases, **{phase: whole.phases.get(phase, 1.0) * left for phase, left in one.phases.items()}}
        whole = Change(
            phases=phases,
            issue=whole.issue * one.issue,
            syncs=whole.syncs * one.syncs,
            transfers=whole.transfers * one.transfers,
            gpu=_both(whole.gpu, one.gpu),
            loader=_both(whole.loader, one.loader),
            workers=one.workers if one.workers is not None else whole.workers,
            reads_on=whole.reads_on or one.reads_on,
        )
    return whole


def _both(a: Range, b: Range) -> Range:
    return Range(a.low * b.low, a.likely * b.likely, a.high * b.high)


def gain(needs: Needs, change: Change) -> Estimate:
    """The speed-up of a change, from the least that is sure to the most that is possible."""
    likely = _saved(needs, change, "likely")
    low = min(_saved(needs, change, "worst"), likely)
    high = max(_saved(needs, change, "best"), likely)
    # Neither what is saved nor what is left is known better than the step itself.
    most = min(high * (1 + needs.spread), high + (needs.step - high) * needs.spread)
    return Estimate(
        value=_speedup(needs, likely),
        low=_speedup(needs, low * (1 - needs.spread)),
        high=_speedup(needs, max(most, high)),
        n=needs.n,
    )


def step(needs: Needs, change: Change) -> Estimate:
    """Seconds of a step after a change."""
    speedup = gain(needs, change)
    return Estimate(
        value=needs.step / speedup.value, low=needs.step / speedup.high, high=needs.step / speedup.low, n=needs.n
    )


def bound(needs: Needs, change: Change, *, alone: bool = False) -> float:
    """The speed-up if all that a change could take away went, and no wait for data came in its place.

    `alone`: and the loop no longer shared its cores with the loader's workers.
    """
    saved = _in_loop(needs, change, "best")
    if alone:
        saved += (needs.loop - saved) * (1 - 1 / needs.crowd)
    saved += sum((1 - change.phases.get(phase, 1.0)) * needs.host.get(phase, 0.0) for phase in BETWEEN)
    waited = (1 - change.phases.get("data_wait", 1.0)) * needs.host.get("data_wait", 0.0)
    if needs.gpu is not None:
        waited -= min(max(needs.gpu.low - needs.loop, 0.0), waited)  # the GPU works while the host waits for data
    return _speedup(needs, saved + waited)


def without_data(needs: Needs) -> float:
    """The least seconds that a step may take without its data path.

    The loop has the cores that workers took, and an evaluation does not wait for its own loader either.
    """
    change = Change(phases={"data_wait": 0.0, "epoch_gap": 0.0, "eval": 1 - needs.eval_waits})
    return needs.step / bound(needs, change, alone=True)


def limit(needs: Needs) -> str:
    """Which of loader, GPU and host a step cannot be shorter than, in words."""
    loader = needs.loader
    if needs.starved and loader is not None and loader.workers:
        each = loader.work.high / loader.workers
        return f"{loader.workers} workers need {seconds(each)} a batch, and the loop waits {seconds(needs.wait)} for it"
    if needs.starved:
        return f"{seconds(needs.wait)} of {seconds(needs.step)} are the wait for data"
    if needs.gpu is not None and needs.gpu.likely > _IS_LIMIT * needs.loop:
        return f"the GPU works for {seconds(needs.gpu.likely)} of {seconds(needs.step)}"
    return f"the host needs {seconds(needs.loop - needs.host.get('sync', 0.0))} of {seconds(needs.step)}"


def without(*phases: str) -> Change:
    """The change after which these phases take no time."""
    return Change(phases=dict.fromkeys(phases, 0.0))


def _speedup(needs: Needs, saved: float) -> float:
    return needs.step / max(needs.step - saved, _LEAST_LEFT * needs.step)


def _saved(needs: Needs, change: Change, outlook: Outlook) -> float:
    """Two steps of the model are compared, so that what it leaves out falls on both alike."""
    return _pipeline(needs, _NOTHING, outlook) - _pipeline(needs, change, outlook)


def _pick(of: Range, outlook: Outlook) -> float:
    """Of what costs time: the more of it remains, the worse."""
    return {"worst": of.high, "likely": of.likely, "best": of.low}[outlook]


# -- the loop: host and GPU ----------------------------------------------------------------------------------------


def _in_loop(needs: Needs, change: Change, outlook: Outlook) -> float:
    """Seconds that the loop becomes shorter by, the wait for data left out."""
    parts = {phase: factor for phase, factor in change.phases.items() if phase not in (*BETWEEN, "data_wait", "sync")}
    if needs.gpu is None:
        return sum((1 - factor) * needs.host.get(phase, 0.0) for phase, factor in parts.items())
    saved = sum(_of_host(needs, phase, factor, needs.busy_in(phase), outlook) for phase, factor in parts.items())
    saved += sum(_of_host(needs, phase, change.issue, 0.0, outlook) for phase in ISSUING)
    saved += _of_syncs(needs, change, outlook) + _of_transfers(needs, change, outlook)
    saved += _of_gpu(needs, _off_gpu(needs, change, outlook), outlook)
    busy = max(_left_to_gpu(needs, change, outlook) - needs.making, 0.0)  # the GPU works while batches are made
    return max(min(saved, needs.loop - busy), 0.0)


def _left_to_gpu(needs: Needs, change: Change, outlook: Outlook) -> float:
    """What the GPU still has to do: no step is shorter."""
    if needs.gpu is None:
        return 0.0
    gone = sum((1 - factor) * needs.busy_in(phase) for phase, factor in change.phases.items())
    gone += _off_gpu(needs, change, outlook) + (1 - change.transfers) * needs.copies_alone
    return max(_pick(needs.gpu, outlook) - gone, 0.0)


def _of_host(needs: Needs, phase: str, factor: float, busy: float, outlook: Outlook) -> float:
    """Less work in a phase. The step feels it as far as the GPU was idle for it, or was given less.

    Or more, where the host then runs further ahead: not where it waits for the GPU in every step all the same.
    """
    spent = needs.host.get(phase, 0.0)
    if needs.idle is None or (outlook == "best" and not needs.catches_up):
        return (1 - factor) * max(spent, busy)
    later = needs.idle.get("data_wait", 0.0) if needs.making else 0.0  # what the GPU is late with, it does then
    felt = min(max(needs.idle_by(phase), needs.idle_in.get(phase, 0.0)) + later, spent)
    if outlook != "worst":
        return min((1 - factor) * max(spent, busy), felt + (1 - factor) * busy)
    return max((1 - factor) * spent - (spent - felt), 0.0)


def _of_syncs(needs: Needs, change: Change, outlook: Outlook) -> float:
    """Blocked time is the GPU's work. Without it the host runs ahead, and what left the GPU idle may be hidden.

    Sure is only the idle time that the blocking calls themselves are to blame for.
    """
    blocked = needs.host.get("sync", 0.0)
    if needs.idle is not None and outlook == "worst":
        blocked = min(blocked, needs.idle.get("sync", 0.0))
    return (1 - change.syncs) * min(blocked, apart(needs))


def _of_transfers(needs: Needs, change: Change, outlook: Outlook) -> float:
    """A copy that waits may have waited for earlier work of the GPU: then the wait only moves."""
    share, spent = 1 - change.transfers, needs.host.get("h2d", 0.0)
    if outlook == "best":
        return share * max(spent, needs.copies_alone)
    if needs.idle is None:
        return share * spent / 2 if outlook == "likely" else 0.0
    felt = min(needs.idle.get("h2d", 0.0), spent)
    return share * (felt + needs.copies_alone) if outlook == "likely" else 0.0


def apart(needs: Needs) -> float:
    """Seconds of the host's work in which the GPU has none: what full overlap of the two could save at most.

    Not what the host does now and then, for longer than the GPU has something before it.
    """
    return max(needs.loop - needs.bursts + needs.making - needs.gpu.low, 0.0) if needs.gpu is not None else 0.0


def _off_gpu(needs: Needs, change: Change, outlook: Outlook) -> float:
    """Seconds of the GPU's work that go: the more it has, the more of them."""
    assert needs.gpu is not None
    busy = {"worst": needs.gpu.low, "likely": needs.gpu.likely, "best": needs.gpu.high}[outlook]
    computing = max(busy - needs.copies_alone, 0.0)
    return computing * (1 - _pick(change.gpu, outlook))


def _of_gpu(needs: Needs, gone: float, outlook: Outlook) -> float:
    """Less work of the GPU: sure where the host is seen to wait for it, else as likely as the GPU is busy."""
    assert needs.gpu is not None
    if outlook == "best":
        return gone
    if outlook == "worst":
        return min(gone, needs.host.get("sync", 0.0))
    return gone * min(needs.gpu.likely / needs.loop, 1.0) if needs.loop else 0.0


# -- the loader beside it ------------------------------------------------------------------------------------------


def _pipeline(needs: Needs, change: Change, outlook: Outlook) -> float:
    """A step: whichever of loop and loader takes longer, and what lies between steps."""
    loop = needs.loop - _in_loop(needs, change, outlook)
    busy = _left_to_gpu(needs, change, outlook)
    between = {phase: _between(needs, change, phase, outlook) for phase in BETWEEN}
    loader = needs.loader
    left = _pick(change.loader, outlook)
    wait = needs.host.get("data_wait", 0.0) * change.phases.get("data_wait", 1.0)
    count = 0 if loader is None else loader.workers if change.workers is None else change.workers
    if loader is None or not count:
        return max(loop + wait * left, busy) + sum(between.values())
    hidden_now = {phase for phase in _HIDES if _hides(needs, phase, outlook)}
    hidden = set(_HIDES) if change.reads_on else hidden_now
    alone = sum(spent for phase, spent in between.items() if phase not in hidden)
    beside = sum(spent for phase, spent in between.items() if phase in hidden)
    work = _pick(loader.work, outlook) * left
    supply = _pace(needs, hidden_now, outlook) * work / count
    if change.reads_on and outlook != "best":  # what is made before a pass gives its first batch now, is made beside it
        supply += min(needs.host.get("epoch_gap", 0.0), needs.passes * work)
    stall = sum(max(between[phase] - _ahead(needs, phase, supply), 0.0) for phase in hidden)
    crowded = _crowded(needs, change, work, loop, outlook) if change.workers is not None else 0.0
    if not loader.workers:  # each pass begins with processes to be started and a batch that nobody made ahead
        alone += needs.passes * (count * _pick(_STARTS, outlook) + work)
    return alone + max(loop + loader.receive + beside, busy + beside, supply + stall, crowded)


def _between(needs: Needs, change: Change, phase: str, outlook: Outlook) -> float:
    """It shrinks with the loader's work too: a pass begins with a batch to be made, an evaluation waits for its own."""
    spent = needs.host.get(phase, 0.0) * change.phases.get(phase, 1.0)
    if outlook == "worst" or needs.loader is None:
        return spent
    less = 1 - _pick(change.loader, outlook)
    if phase == "epoch_gap":
        return spent - less * min(spent, needs.loader.work.likely * needs.passes)
    return spent - less * spent * needs.eval_waits if phase == "eval" else spent


def _hides(needs: Needs, phase: str, outlook: Outlook) -> bool:
    """Whether workers make batches meanwhile: not at the end of a pass over the data, when there are none to make."""
    if outlook == "best" or needs.loader is None or not needs.loader.workers:
        return False
    return phase == "checkpoint" or needs.evals > needs.passes


def _ahead(needs: Needs, phase: str, supply: float) -> float:
    """How much of an interruption the workers can use until their queue is full; how often one saves is not known."""
    assert needs.loader is not None
    return needs.evals * needs.loader.ahead * supply if phase == "eval" else float("inf")


def _pace(needs: Needs, hidden: set[str], outlook: Outlook) -> float:
    """How much slower or faster than their work says the workers are seen to deliver.

    Where the loop waits for them, their pace is its own; where it does not, they are at least as fast as it is.
    """
    assert needs.loader is not None
    alone = sum(needs.host.get(phase, 0.0) for phase in BETWEEN if phase not in hidden)
    room = needs.step - alone
    expected = _pick(needs.loader.work, outlook) / max(needs.loader.workers, 1)
    if not needs.loader.workers or not expected:
        return 1.0
    seen = _supply(needs, room, hidden) / expected
    return seen if needs.starved else min(seen, 1.0)


def _supply(needs: Needs, room: float, hidden: set[str]) -> float:
    """Seconds between two batches, of workers that stand still while an evaluation outlasts their queue."""
    assert needs.loader is not None
    evaluating, ahead = needs.host.get("eval", 0.0), needs.evals * needs.loader.ahead
    if "eval" not in hidden or evaluating <= ahead * room or ahead >= 1:
        return room
    return (room - evaluating) / (1 - ahead)


def _crowded(needs: Needs, change: Change, work: float, loop: float, outlook: Outlook) -> float:
    """The least that all cores together need for the loop and the workers; no more than a step takes now."""
    if needs.cores is None:
        return 0.0
    computing = loop - needs.host.get("sync", 0.0) * change.syncs
    room = needs.step - sum(needs.host.get(phase, 0.0) for phase in BETWEEN)
    return min((work + computing * _pick(needs.threads, outlook)) / needs.cores, room)
