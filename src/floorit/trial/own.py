"""Fixes of an arm that are settings of the program's own: they are turned as it runs, in its command or its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from floorit import turning, typed
from floorit.analyse.controls import PHASES
from floorit.declared import Control
from floorit.events import Process
from floorit.fixes import ALL
from floorit.fixes.values import Value
from floorit.record.wire import IN_FORCE, NOT_MET
from floorit.stats import duration
from floorit.trial.arms import Arm
from floorit.trial.trial import Override, Trial
from floorit.turning import Turned

AS_BEFORE = 0.9  # of the time that a phase took: with more of it, what should have made it rarer did not
_NO_ROOM = "it stands in a file that the command does not name, and nothing here can show the program another there"
_NOT_THERE = "its value cannot be changed where it stands"
_GIVEN = "the command gives it in another form"
_TAKEN = "it is what another of the fixes has turned"


class Own:
    """Of one program: its settings, by the code of the fix that each is the way to."""

    def __init__(self, settings: Mapping[str, list[Control]], *, shows_files: bool) -> None:
        self._settings, self._shows_files = settings, shows_files

    def dress(self, arm: Arm) -> tuple[Arm, list[Override]]:
        """The arm as it is run, and what became of these fixes."""
        told, fixes = list[Override](), dict(arm.fixes)
        for fix in ALL:
            turned = turning.turn(fix, arm.fixes.get(fix.code), self._settings.get(fix.code, ()))
            if turned:
                taken = [one.control for override in told for one in override.turned]
                arm, override = self._with(arm, turned, fixes.pop(fix.code), taken)
                told.append(override)
        return msgspec.structs.replace(arm, fixes=fixes), told

    def _with(self, arm: Arm, turned: list[Turned], value: Value, taken: Sequence[Control]) -> tuple[Arm, Override]:
        """The arm with those settings, as far as they can be turned."""
        reasons, done = [], list[Turned]()
        for one in turned:
            made = turning.made(one, arm.command, arm.texts)
            why_not = ""
            if one.control in taken:
                why_not = _TAKEN
            elif turning.is_outdone(one, arm.command):
                why_not = _GIVEN
            elif not one.words and not self._shows_files and not typed.names(arm.command, one.control.file):
                why_not = _NO_ROOM
            elif made is None:
                why_not = _NOT_THERE
            else:
                arm = msgspec.structs.replace(arm, command=made[0], texts=made[1])
                done.append(one)
            reasons.append(": ".join(filter(None, [one.said, why_not])))
        state = IN_FORCE if done else NOT_MET
        return arm, Override(code=turned[0].code, value=value, state=state, reason="; ".join(reasons), turned=done)


def felt(told: Iterable[Override], trial: Trial, before: Mapping[str, float]) -> Iterator[Override]:
    """The same, by the seconds of a step that what they make rarer takes, and has taken `before`."""
    for override in told:
        phase = PHASES.get(override.code, "")
        now, then = trial.seldom(phase), before.get(phase, 0.0)
        if override.turned and 0 < AS_BEFORE * then <= now:
            took = f"{duration(now)} of a step go to {phase} with it, {duration(then)} without"
            reason = f"{override.reason}: {took}"
            yield msgspec.structs.replace(override, state=NOT_MET, reason=reason, turned=[])
        else:
            yield override


def found(told: Iterable[Override], processes: Sequence[Process], shown: Mapping[str, Path]) -> Iterator[Override]:
    """The same, by what the program's processes were given and have read."""
    for override in told:
        why_not = turning.why_not(override.turned, processes, shown)
        if why_not is None:
            yield override
        else:
            yield msgspec.structs.replace(override, state=NOT_MET, reason=why_not, turned=[])
