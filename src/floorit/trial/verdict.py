"""What is said of each arm: trial.json is this (DESIGN section 9)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from floorit.fixes.fix import Risk
from floorit.fixes.values import Value
from floorit.stats import Estimate
from floorit.trial import conduct, disturbance, guard, memory, overrides, statistics
from floorit.trial.arms import Arm
from floorit.trial.guard import Parity
from floorit.trial.memory import Memory
from floorit.trial.state import State
from floorit.trial.trial import Override, Pair, Trial
from floorit.turning import Turned

SCHEMA = 1
LOUD = statistics.SMALL - 1  # noise over this hides what a try is meant to find
Word = Literal["faster", "not faster", "unclear", "changed results", "failed", "does not apply"]


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """A fix of an arm."""

    code: str
    value: Value


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that did not run well."""

    reason: str
    last: list[str]  # lines that the program said
    said: str | None  # the file with all of them


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """Watts that the GPU drew while it trained, on average over the trials; None where nobody said."""

    a: float | None = None
    b: float | None = None


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the steps that a GradScaler did not take, on average over the trials; None where there is none."""

    a: float | None = None
    b: float | None = None


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds until the steps were steady, by the median trial; of `b` also in the first, when nothing was compiled."""

    a: float | None
    b: float | None
    b_first: float | None
    pays_after: int | None  # steps after which a faster arm has made up for its first start


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One arm against the program as it is."""

    name: str
    fixes: list[Fixed]
    command: list[str]
    entries: list[str] = []  # of the program's own files, with the values that they had: `hyp.yaml:mosaic=0`
    risk: Risk
    verdict: Word
    reason: str
    speedup: Estimate | None
    noise: float | None  # what A against A shows over as many pairs: nothing under it is claimed
    predicted: Estimate | None
    not_predicted: str | None  # why; it may be that it would gain nothing
    parity: Parity
    pairs: list[Pair]
    memory: Memory
    startup: Startup
    power: Power = Power()
    skipped: Skipped = Skipped()
    overrides: list[Override] = []
    failure: Failure | None = None
    disturbed: list[str] = []  # what came between, and what was done about that

    @property
    def turned(self) -> list[Turned]:
        """The program's own settings that are other than as it is."""
        return [turned for override in self.overrides for turned in override.turned]


def outcomes(state: State, predict: Callable[[Arm], Estimate | str]) -> list[Outcome]:
    """Of every arm, in the order in which they were asked for."""
    return [_outcome(state, arm, predict(arm)) for arm in state.changed]


def _outcome(state: State, arm: Arm, predicted: Estimate | str) -> Outcome:
    pairs = state.pairs(arm)
    gain = statistics.speedup(pairs, len(state.changed))
    band = statistics.noise(state.noise_pairs(), len(pairs))
    parity = guard.compare(state, arm)
    failed = state.failure(arm)
    verdict, reason = _verdict(state, arm, failed, parity, gain, band)
    return Outcome(
        name=arm.name,
        fixes=[Fixed(code=code, value=value) for code, value in arm.fixes.items()],
        command=arm.command,
        entries=[str(entry) for entry in arm.entries],
        risk=arm.risk,
        verdict=verdict,
        reason=reason,
        speedup=gain,
        noise=band,
        predicted=predicted if isinstance(predicted, Estimate) else None,
        not_predicted=predicted if isinstance(predicted, str) else None,
        parity=parity,
        pairs=pairs,
        memory=memory.compare(state, arm),
        startup=_startup(state, arm, pairs, verdict),
        power=Power(**_both(state, arm, lambda trial: trial.watts)),
        skipped=Skipped(**_both(state, arm, lambda trial: trial.skipped)),
        overrides=overrides.told(state, arm),
        failure=None if failed is None else Failure(reason=failed.reason or "", last=failed.last, said=failed.said),
        disturbed=disturbance.told(state, arm),
    )


def _verdict(
    state: State, arm: Arm, failed: Trial | None, parity: Parity, gain: Estimate | None, band: float | None
) -> tuple[Word, str]:
    if failed is not None:
        return "failed", failed.reason or "it did not run well"
    obstacle = overrides.obstacle(state, arm)
    if obstacle is not None:
        return obstacle
    if parity.is_failure:
        return "failed", parity.reason
    if parity.status == "changed" and arm.risk != "training":
        return "changed results", parity.reason
    speed = statistics.judge(gain, band)
    unverified = "; its results are unverified" if speed == "faster" and parity.status == "unverified" else ""
    return speed, _reason(state, arm, speed, gain, band) + unverified


def _reason(state: State, arm: Arm, speed: statistics.Speed, gain: Estimate | None, band: float | None) -> str:
    if gain is None or band is None:
        return _too_few(state, arm)
    if speed == "faster":
        return f"the program against itself stays within {band:.1%} over {gain.n} pairs"
    if speed == "unclear":
        if statistics.is_narrow(state.pairs(arm), len(state.changed)):
            between = f"{gain.low - 1:+.1%} to {gain.high - 1:+.1%}"
            return f"{between} is too close to the {_least(band):.1%} that may be claimed"
        remedy = "a larger --budget narrows the interval, or more --steps"
        return f"{remedy}; {_loud(band)}" if band > LOUD else remedy
    if statistics.is_slower(gain, band):
        return f"it is slower: {gain.value:.3f} times as fast"
    return f"it gains at most {max(gain.high - 1, 0.0):.1%}; nothing under {_least(band):.1%} is claimed"


def _loud(band: float) -> str:
    if band > 1:
        return "the program against itself differs by more than its own time here: is the machine busy?"
    return f"the program against itself differs by up to {band:.0%} here: is the machine busy?"


def _least(band: float) -> float:
    return max(statistics.CLAIMED - 1, band)


def _too_few(state: State, arm: Arm) -> str:
    unlike = next((found for found in state.compared(arm) if isinstance(found, str)), None)
    if unlike is not None:
        return unlike
    if conduct.failures_of_base(state) >= conduct.FLAKY:
        return "the program as it is does not always run well"
    return "there are too few pairs for an interval: a larger --budget allows more"


def _both(state: State, arm: Arm, of: Callable[[Trial], float | None]) -> dict[str, float | None]:
    """A figure of the program as it is, and with the arm: the mean over the trials that have it."""
    found = {}
    for name, which in (("a", state.base), ("b", arm)):
        known = [value for trial in state.of(which) if (value := of(trial)) is not None]
        found[name] = float(np.mean(known)) if known else None
    return found


def _startup(state: State, arm: Arm, pairs: list[Pair], verdict: Word) -> Startup:
    a, b = ([s for t in state.of(which) if (s := t.startup) is not None] for which in (state.base, arm))
    saved = float(np.median([pair.a - pair.b for pair in pairs])) if pairs else 0.0
    extra = b[0] - float(np.median(a)) if a and b else 0.0
    pays = math.ceil(extra / saved) if verdict == "faster" and saved > 0 and extra > 0 else None
    return Startup(
        a=float(np.median(a)) if a else None,
        b=float(np.median(b)) if b else None,
        b_first=b[0] if b else None,
        pays_after=pays,
    )
