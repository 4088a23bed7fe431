"""All trials of a try, as they are kept: what is said of it is worked out of this alone."""

from __future__ import annotations

import msgspec

from floorit.analyse.controls import PHASES
from floorit.trial import trial
from floorit.trial.arms import Arm
from floorit.trial.trial import Pair, Trial


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Trials one after the other, as they ran."""

    trials: list[Trial]

    @property
    def order(self) -> list[str]:
        """The names of their arms."""
        return [trial.arm for trial in self.trials]

    def of(self, arm: str) -> Trial | None:
        """The trial of an arm."""
        return next((trial for trial in self.trials if trial.arm == arm), None)


class State(msgspec.Struct, kw_only=True):
    """A try, as far as it has come. The first arm is the program as it is."""

    version: int = 1
    cwd: str
    arms: list[Arm]
    steps: int | None = None  # steady ones of each trial; None: not known yet
    pilot: Trial | None = None
    alike: list[Round] = []  # the program against itself
    rounds: list[Round] = []
    disturbed: list[Round] = []  # that something else came between: they were made again, and tell nothing
    yardsticks: dict[str, Trial] = {}  # by the size of the rounding error that was planted

    @property
    def base(self) -> Arm:
        """The program as it is."""
        return self.arms[0]

    @property
    def changed(self) -> list[Arm]:
        """The program with each change."""
        return self.arms[1:]

    def trials(self) -> list[Trial]:
        """All that count but the first, in order."""
        return [trial for round in (*self.alike, *self.rounds) for trial in round.trials]

    def every_trial(self) -> list[Trial]:
        """Also the first, and those that do not count."""
        first = [self.pilot] if self.pilot is not None else []
        lost = [trial for round in self.disturbed for trial in round.trials]
        return [*first, *self.trials(), *lost, *self.yardsticks.values()]

    def of(self, arm: Arm) -> list[Trial]:
        """The trials of an arm that ran well."""
        return [trial for trial in self.trials() if trial.arm == arm.name and trial.state == "ran"]

    def seconds(self) -> float:
        """That it has taken so far."""
        return sum(trial.seconds for trial in self.every_trial())

    def failure(self, arm: Arm) -> Trial | None:
        """The trial in which an arm did not run well."""
        return next((t for t in self.trials() if t.arm == arm.name and t.state != "ran"), None)

    def noise_pairs(self) -> list[Pair]:
        """The program against itself: where it ran twice in a row, and its runs of every two rounds."""
        runs = [one for round in self.rounds if (one := round.of(self.base.name)) is not None]
        twos = [tuple(round.trials) for round in self.alike] + list(zip(runs[::2], runs[1::2], strict=False))
        found = [trial.pair(a, b, "ab") for a, b in twos if a.state == b.state == "ran"]
        return [pair for pair in found if isinstance(pair, Pair)]

    def pairs(self, arm: Arm) -> list[Pair]:
        """The program as it is against an arm."""
        return [pair for pair in self.compared(arm) if isinstance(pair, Pair)]

    def compared(self, arm: Arm) -> list[Pair | str]:
        """The same, with why where two trials cannot be compared."""
        found = list[Pair | str]()
        for round in self.rounds:
            a, b = round.of(self.base.name), round.of(arm.name)
            if a is not None and b is not None and a.state == b.state == "ran":
                order = "ab" if round.trials.index(a) < round.trials.index(b) else "ba"
                found.append(trial.pair(a, b, order, self._rarer(b)))
        return found

    def _rarer(self, b: Trial) -> dict[str, int]:
        """The phases that a trial had so many times as rarely as the program as it is, by settings of its own."""
        own = [one for one in b.overrides if one.turned and one.code in PHASES and one.code not in self.base.fixes]
        return {PHASES[one.code]: one.value for one in own if isinstance(one.value, int)}
