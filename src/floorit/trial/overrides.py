"""Whether the fixes of an arm were in force in the program's process, as it said itself."""

from __future__ import annotations

from typing import Literal

from floorit.record.wire import FAILED_OVERRIDE, NOT_MET
from floorit.trial.arms import Arm
from floorit.trial.state import State
from floorit.trial.trial import Override

_NEVER = "the program never did what it would change"

Obstacle = tuple[Literal["failed", "does not apply"], str]


def told(state: State, arm: Arm) -> list[Override]:
    """What became of each fix, by the arm's last trial; one of which nothing was said was not applied."""
    trials = state.of(arm)
    if not trials:
        return []
    last = {override.code: override for override in trials[-1].overrides}
    return [last.get(code, _unheard(code)) for code in arm.fixes]


def obstacle(state: State, arm: Arm) -> Obstacle | None:
    """Why the arm's trials do not show its fixes; None where they do."""
    overrides = told(state, arm)
    broken = next((override for override in overrides if override.state == FAILED_OVERRIDE), None)
    if broken is not None:
        return "failed", f"{broken.code} could not be applied: {broken.reason}"
    own = [o for o in overrides if o.code not in state.base.fixes or state.base.fixes[o.code] != arm.fixes[o.code]]
    unmet = [override for override in own if override.state == NOT_MET]
    if unmet and len(unmet) == len(own) and not arm.varied and not arm.entries:
        return "does not apply", "; ".join(f"{override.code}: {override.reason or _NEVER}" for override in unmet)
    return None


def _unheard(code: str) -> Override:
    return Override(code=code, state=FAILED_OVERRIDE, reason="the program's record has no word of it")
