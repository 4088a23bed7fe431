"""Fixes of an arm that are settings of the program's own: they are turned as it runs, in its command or its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from floorit import turning
from floorit.analyse.controls import PHASES
from floorit.declared import Control
from floorit.fixes import ALL
from floorit.fixes.values import Value
from floorit.record.wire import IN_FORCE, NOT_MET
from floorit.stats import duration
from floorit.trial.arms import Arm
from floorit.trial.trial import Override
from floorit.turning import Turned

AS_BEFORE = 0.9  # of the time that a phase took: with more of it, what should have made it rarer did not
_NO_ROOM = "it stands in a file that the command does not name, and nothing here can show the program another there"
_NOT_THERE = "its value cannot be changed where it stands"


class Own:
    """Of one program: its settings, by the code of the fix that each is the way to."""

    def __init__(self, settings: Mapping[str, list[Control]], *, shows_files: bool) -> None:
        self._settings, self._shows_files = settings, shows_files

    def dress(self, arm: Arm) -> tuple[Arm, list[Override]]:
        """The arm as it is run, and what became of these fixes."""
        told, fixes = [], dict(arm.fixes)
        for fix in ALL:
            turned = turning.turn(fix, arm.fixes.get(fix.code), self._settings.get(fix.code, ()))
            if turned:
                arm, override = self._with(arm, turned, fixes.pop(fix.code))
                told.append(override)
        return msgspec.structs.replace(arm, fixes=fixes), told

    def _with(self, arm: Arm, turned: list[Turned], value: Value) -> tuple[Arm, Override]:
        """The arm with those settings, as far as they can be turned."""
        reasons, done = [], list[Turned]()
        for one in turned:
            made = turning.made(one, arm.command, arm.texts)
            why_not = ""
            if not one.words and not self._shows_files and not turning.names(arm.command, one.control.file):
                why_not = _NO_ROOM
            elif made is None:
                why_not = _NOT_THERE
            else:
                arm = msgspec.structs.replace(arm, command=made[0], texts=made[1])
                done.append(one)
            reasons.append(": ".join(filter(None, [one.said, why_not])))
        state = IN_FORCE if done else NOT_MET
        return arm, Override(code=turned[0].code, value=value, state=state, reason="; ".join(reasons), turned=done)


def felt(told: Iterable[Override], rare: Mapping[str, float], before: Mapping[str, float]) -> Iterator[Override]:
    """The same, by the seconds of a step that what they make rarer takes, and has taken `before`."""
    for override in told:
        phase = PHASES.get(override.code, "")
        now, then = rare.get(phase, 0.0), before.get(phase, 0.0)
        if override.turned and 0 < AS_BEFORE * then <= now:
            took = f"{duration(now)} of a step go to {phase} with it, {duration(then)} without"
            reason = f"{override.reason}: {took}"
            yield msgspec.structs.replace(override, state=NOT_MET, reason=reason, turned=[])
        else:
            yield override


def heard(told: Iterable[Override], commands: Sequence[list[str]]) -> Iterator[Override]:
    """The same, by the words that the program's processes were started with."""
    for override in told:
        if turning.reached(override.turned, commands):
            yield override
        else:
            reason = turning.unheard(override.turned)
            yield msgspec.structs.replace(override, state=NOT_MET, reason=reason, turned=[])
