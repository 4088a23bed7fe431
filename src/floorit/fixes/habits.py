"""What a loop does too often, or for a debugging session that is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from floorit.analyse.needs import Range
from floorit.analyse.stepmodel import Change, apart, gain
from floorit.fixes import values
from floorit.fixes.fix import CLAIMED, NO_GPU, Fix, Known, foretold, rarer
from floorit.fixes.values import Value
from floorit.stats import Estimate, seconds

# What anomaly detection takes beside its stack traces, in times what these take: with twelve small layers 0.4 (20 and
# 50 % of the step), in the detector case 0.9 (-0.1 to 1.9, of six pairs). No more than half of what is left.
_BESIDE_TRACES = Range(0.0, 0.4, 1.0)
_FOR_NOTHING = ("synchronize", "empty_cache")  # calls that block, and of which the override leaves none
_HELD = "batch-has-it"  # as reading the source calls it
_TWICE = 2
_TIMES_AS_RARE = values.whole(_TWICE, 1 << 20)  # as the program has it; nobody means more


def _anomaly(known: Known) -> Estimate | str:
    if known.setting("anomaly_detection") is not True:
        return "anomaly detection is off"
    share = known.shares.get("debug-left-on")
    if share is None:
        return "what it costs was not timed"
    left = 1 - min(share, 0.99)
    low, likely, high = (1 / (left - min(t * share, left / 2)) for t in msgspec.structs.astuple(_BESIDE_TRACES))
    return Estimate(value=likely, low=low, high=high, n=known.needs.n)


def _launch_blocking(known: Known) -> Estimate | str:
    if known.setting("CUDA_LAUNCH_BLOCKING") in (None, "", "0"):
        return "CUDA_LAUNCH_BLOCKING is not set"
    if not known.on_gpu:
        return NO_GPU
    # Host and GPU take turns now; at best each is hidden behind the other.
    return Estimate(value=2**0.5, low=1.0, high=2.0, n=known.needs.n)


def _sync_off(known: Known) -> Estimate | str:
    if known.unseen:
        return known.unseen
    needs = known.needs
    blocked = needs.host.get("sync", 0.0)
    if not blocked:
        return "no blocking call was seen"
    if apart(needs) < (CLAIMED - 1) * needs.step:
        return (
            f"the host is blocked for {seconds(blocked)} of a step, but the GPU works meanwhile:"
            f" it is idle for {seconds(apart(needs))}"
        )
    return gain(needs, Change(syncs=0.0))


def _sync_off_applied(known: Known) -> Estimate | str:
    """From outside only what returns nothing can be left out."""
    said = _sync_off(known)
    if isinstance(said, str):
        return said
    made = _without_syncs(known, None)
    return made if isinstance(made, str) else gain(known.needs, made)


def _without_syncs(known: Known, _: Value) -> Change | str:
    total = sum(point.seconds for point in known.syncs)
    left_out = sum(point.seconds for point in known.syncs if point.op in _FOR_NOTHING)
    if not left_out:
        return "no `synchronize` or `empty_cache` blocks: other calls are asked for what the program goes on with"
    return Change(syncs=1 - left_out / total)


_Makes: TypeAlias = "Callable[[Known, Value], Change | str]"


def _rarer(code: str, finding: str, phase: str) -> tuple[_Makes, Callable[[Known], int]]:
    """Once in a while is enough: so often that it takes a twentieth of the step, but at least once in the training."""

    def share(known: Known) -> float:
        return max(known.shares.get(finding, 0.0), known.share(phase))

    def change(known: Known, times: Value) -> Change | str:
        spent = known.share(phase)
        if not spent:
            return "the program does not do it while it trains"
        if known.times.get(code, _TWICE) < _TWICE:
            return "the whole training does it once"
        left = 1 / (times if isinstance(times, int) and times else value(known))
        beyond = max(share(known) - spent, 0.0)  # what is made for it, in the program's own code
        own = known.share("other")
        parts = {phase: left, **({"other": 1 - (1 - left) * min(beyond / own, 1.0)} if own and beyond else {})}
        return Change(phases=parts)

    def value(known: Known) -> int:
        enough, most = rarer(share(known)), known.times.get(code)
        return max(min(enough, int(most)), _TWICE) if most is not None else enough

    return change, value


_log, _log_value = _rarer("log-every", "logging-bound", "logging")
_eval_rarer, _eval_value = _rarer("eval-every", "eval-bound", "eval")
_checkpoint, _checkpoint_value = _rarer("checkpoint-every", "checkpoint-bound", "checkpoint")


def _eval(known: Known, times: Value) -> Change | str:
    if known.ungraded and known.share("eval"):
        return "what the model computes without gradient may be what it is trained on (rollouts, generated samples)"
    return _eval_rarer(known, times)


def _from_batch(known: Known, _: Value) -> Change | str:
    """All that the line takes in the loop's own code is spared: what is taken instead has come with the batch."""
    habit, own = known.habit(_HELD), known.share("other")
    if habit is None or habit.seconds is None or not own:
        return "nothing is seen to be computed that the batch has"
    return Change(phases={"other": 1 - min(habit.share / own, 1.0)})


FIXES = (
    Fix(
        code="anomaly",
        summary="anomaly detection off",
        risk="exact",
        effort="a flag",
        addresses=("debug-left-on",),
        setting="anomaly_detection",
        predict=_anomaly,
        value=lambda known: False,
        takes=values.ONLY_OFF,
    ),
    Fix(
        code="launch-blocking",
        summary="CUDA_LAUNCH_BLOCKING unset",
        risk="exact",
        effort="a flag",
        addresses=("debug-left-on",),
        predict=_launch_blocking,
        value=lambda known: False,
        takes=values.ONLY_OFF,
    ),
    Fix(
        code="sync-off",
        summary="numbers are fetched from the GPU later, or not in every step",
        risk="exact",
        effort="a few lines",
        addresses=("sync-bound",),
        predict=_sync_off,
        predict_applied=_sync_off_applied,
        change=_without_syncs,
        takes=values.ONLY_ON,
        popular=True,
    ),
    Fix(
        code="log-every",
        summary="logging only every so many times",
        risk="exact",
        effort="a flag",
        addresses=("logging-bound",),
        predict=foretold(_log),
        change=_log,
        value=_log_value,
        by_setting=True,
        takes=_TIMES_AS_RARE,
    ),
    Fix(
        code="eval-every",
        summary="evaluation only every so many times",
        risk="exact",
        proviso="of training, where evaluation draws no random numbers",
        effort="a flag",
        addresses=("eval-bound",),
        predict=foretold(_eval),
        change=_eval,
        value=_eval_value,
        by_setting=True,
        takes=_TIMES_AS_RARE,
    ),
    Fix(
        code="checkpoint-every",
        summary="checkpoints only every so many times",
        risk="exact",
        effort="a flag",
        addresses=("checkpoint-bound",),
        predict=foretold(_checkpoint),
        change=_checkpoint,
        value=_checkpoint_value,
        by_setting=True,
        takes=_TIMES_AS_RARE,
    ),
    Fix(
        code="from-batch",
        summary="what the batch has is taken from it instead of computed anew",
        risk="exact",
        proviso="where both are the same",
        effort="a few lines",
        addresses=("python-bound",),
        predict=foretold(_from_batch),
        change=_from_batch,
        value=lambda known: True,
        habit=_HELD,
        by_setting=True,
        takes=values.ONLY_ON,
    ),
)
