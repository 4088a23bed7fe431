"""The search: what should help most is tried, what is proven is kept, and the program is looked at anew.

Each stage is a try of its own in a folder of its own: the program with what was kept so far, against the same with one
more change each. What is saved of it decides what comes next, so a search that is begun again goes the same way up to
where it was cut off. At the end all that was kept is proven together, against the program untouched.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TextIO

import msgspec

from floorit import turning
from floorit.declared import Control
from floorit.errors import RanOut, TrialError
from floorit.fixes import asked
from floorit.fixes.fix import CLAIMED, Known
from floorit.fixes.values import Value
from floorit.language import said
from floorit.report import build
from floorit.report.model import Report
from floorit.stats import Estimate, duration
from floorit.trial import attempt, conduct, runner, statistics
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.trial import Trial
from floorit.trial.verdict import Fixed, Outcome
from floorit.tune import candidates, judge, probing
from floorit.tune.candidates import BATCH, Candidate, Key
from floorit.tune.dressing import Dressing
from floorit.tune.result import Asked, Stage
from floorit.tune.sizes import Sizes

AT_ONCE = 4  # changes of a stage, where there is time for them
FIRST_SHARE = 0.6  # of the budget, for the first stage: more are to come
SIZES_SHARE = 0.35  # of what is left when a size of batches is looked for
# Runs of a stage besides those of its changes: the first, the program against itself, and the program as it is.
_BESIDE = 1 + 4 + statistics.FEWEST
_OF_CHANGE = statistics.FEWEST  # of one that gains; another is left after conduct.HOPE
_OF_PROOF = _BESIDE + statistics.FEWEST
_OF_SIZES = 3  # at the least: the program's own, and two others
_OVER = "over"  # the file in the folder of a stage that has ended: with more time, the search goes on after it
_FULL_EPOCH = 4  # batches that an epoch is to have at the least
# Why it ended, where speed is sought, and where memory is.
_NOTHING = (
    "nothing that can be applied from outside should make it 2% faster",
    "nothing else that can be applied from outside is known to take less memory",
)
_RAN_OUT = (
    "what to do: floorit tune --goal speed --allow training looks for a size of batches that fits; floorit try with"
    " --fix recompute=on, amp=bf16 or optimizer-8bit=on shows what takes less"
)
_NONE_PROVEN = (
    "nothing that was tried was proven faster with its results intact, and nothing else should be",
    "nothing that was tried was proven to take less memory at 95% of the speed, and nothing else is known to",
)


class Search:
    """A search as far as it has come."""

    def __init__(self, wanted: Asked, folder: Path, stream: TextIO) -> None:
        self._wanted, self._folder, self._stream = wanted, folder, stream
        self._dressing = Dressing(wanted.command, wanted.batch_arg)
        self.stack: dict[str, Value] = {}
        self.stages: list[Stage] = []
        self._tried: set[Key] = set()  # and not kept
        self._barred: set[str] = set()  # fixes that do not apply to this program, or that it does not run with
        self._sizes: Sizes | None = None  # of batches, once it was looked for one
        self._slow: list[tuple[Candidate, float]] = []  # what saves memory at too high a price: times as fast
        self._speed = 1.0  # of the program with what was kept, in times of that as it is
        self._before: tuple[float, set[Key], set[str], list[tuple[Candidate, float]]] = (0.0, set(), set(), [])
        self._taken_back: Path | None = None  # the stage that was given what had been spared for another
        self.proof: Outcome | None = None
        self.spent = 0.0  # seconds of runs
        self._run_seconds = 0.0  # of a run on average, in the slowest stage
        self.stopped = ""
        self.interrupted = False

    def run(self) -> None:
        """Stage after stage, then the proof."""
        while not self.stopped:
            self._stage()
        kept = [o for stage in self.stages for o in stage.outcomes if o.name == stage.kept]
        if len(kept) == 1:
            (self.proof,) = kept  # it was against the program untouched
        if len(self.stack) > 1 and not self.interrupted and (len(kept) > 1 or self._has_room_to_prove):
            self._prove(len(kept))

    @property
    def does_not_run(self) -> bool:
        """Whether the program, as it is, has not enough memory."""
        return bool(self.stages) and not self._run_seconds

    @property
    def settings(self) -> dict[str, list[Control]]:
        """Of the program untouched: what is kept of them is turned from there in each stage."""
        known = attempt.known_of(stage_folder(self._folder, 1)) if self.stages else None
        return turning.settings(known) if known is not None else {}

    def dressed(self) -> Arm:
        """The program with all that was kept."""
        return self._dressing.dress(self.stack)

    # -- stages -------------------------------------------------------------------------------------------------

    @property
    def _room(self) -> float:
        """Seconds for the next stage: of what is left, without what the proof will take."""
        left = self._wanted.terms.budget - self.spent
        if not self.stages:
            return left if self._taken_back is not None else left * FIRST_SHARE
        return left - self._run_seconds * _OF_PROOF

    @property
    def _wants_size(self) -> bool:
        """Whether it has still to be looked for a size of batches."""
        return self._wanted.wants_size and self._sizes is None

    def _stage(self) -> None:
        if self.stages and self._room < self._run_seconds * (_BESIDE + _OF_CHANGE):
            if self._taken_back is not None or not self._unclear():
                self._stop_for_want_of_room()
                return
            self._take_back()
        where = stage_folder(self._folder, len(self.stages) + 1)
        if where != self._taken_back:
            self._say(f"stage {len(self.stages) + 1}: {self._base.name}")
        sized = probing.load(where)
        for_size = sized.seconds if sized is not None else SIZES_SHARE * self._room if self._wants_size else 0.0
        room = self._room - for_size
        self._before = self.spent, set(self._tried), set(self._barred), list(self._slow)

        def choose(known: Known | None, pilot: Trial) -> list[Arm]:
            return [self._arm(candidate) for candidate in self._choose(known, pilot, where, room, for_size)]

        over = where / _OVER
        sought: conduct.Sought = "memory" if self._wanted.goal == "memory" else "speed"
        budget = 0.0 if over.exists() else room
        terms = msgspec.structs.replace(self._wanted.terms, budget=budget, sought=sought)
        try:
            tried = attempt.attempt(
                terms, [self._base], where, self._stream, choose, self._predicted(where), self.settings
            )
        except (TrialError, KeyboardInterrupt) as error:
            self._end_with(error, where)
            return
        self._take(tried, probing.load(where))
        if self.stopped and not self.interrupted and self._taken_back is None and self._unclear():
            self.stopped = ""
            self._take_back()
        elif not self.interrupted and not (self.stopped and self._unclear()):
            over.touch()

    def _take_back(self) -> None:
        """There will be no other stage, and the last one left something unclear: it has all the time that is left."""
        self._say(f"stage {len(self.stages)} goes on: {', '.join(self._unclear())}")
        self._taken_back = stage_folder(self._folder, len(self.stages))
        (self._taken_back / _OVER).unlink(missing_ok=True)
        self.stages.pop()
        self.spent, self._tried, self._barred, self._slow = self._before

    def _stop_for_want_of_room(self) -> None:
        if self._unclear():  # more time may tell more of it
            (stage_folder(self._folder, len(self.stages)) / _OVER).unlink(missing_ok=True)
        needed = self.spent + self._run_seconds * (_BESIDE + _OF_CHANGE + _OF_PROOF)
        self.stopped = (
            f"the budget has no room for another stage; with --budget {math.ceil(needed / 60)}m and the same --out"
            " it goes on"
        )

    def _end_with(self, error: TrialError | KeyboardInterrupt, where: Path) -> None:
        """A stage could not be gone through with; the first one must."""
        if isinstance(error, RanOut) and not self.stages:
            self._fit(error, where)
        elif not self.stages:
            raise error
        elif isinstance(error, KeyboardInterrupt):
            self._interrupt()
        else:
            self.stopped = f"with what was kept, {error}"

    def _choose(self, known: Known | None, pilot: Trial, where: Path, room: float, for_size: float) -> list[Candidate]:
        if known is None:
            return []
        found = self._candidates(known)
        if self._wants_size and (not found or room < pilot.seconds * 2 * (_BESIDE + _OF_CHANGE)):
            found = sorted([*found, *self._sized(known, pilot, where, for_size)], key=lambda one: -one.worth)
        affordable = 1 + int((room / pilot.seconds - _BESIDE - _OF_CHANGE) / conduct.HOPE)
        return found[: min(max(affordable, 1), AT_ONCE)]

    def _candidates(self, known: Known) -> list[Candidate]:
        found = candidates.find(known, self.stack, self._tried, self._wanted.risks, self._wanted.goal)
        found += self._made_up_for(known)
        return [one for one in found if not self._barred & set(one.changes) and self._can_be_seen(one)]

    def _made_up_for(self, known: Known) -> list[Candidate]:
        """What saves memory and was too slow, with the change that should make it fast enough."""
        if not self._slow:
            return []
        quick = candidates.find(known, self.stack, self._tried, self._wanted.risks, "balanced")
        made = [candidates.made_up_for(slow, speed, fast) for slow, speed in self._slow for fast in quick[:1]]
        enough = [one for one in made if one.predicted and one.predicted.value * self._speed > judge.SPEED_KEPT]
        return [one for one in enough if one.key not in self._tried and not one.key & candidates.key(self.stack)]

    def _can_be_seen(self, candidate: Candidate) -> bool:
        """Whether the most that it may gain is more than the program against itself differs by."""
        seen = [o.noise for stage in self.stages for o in stage.outcomes if o.noise is not None]
        if self._wanted.goal == "memory":
            return True
        return candidate.predicted is None or not seen or candidate.predicted.high > 1 + min(seen)

    def _sized(self, known: Known, pilot: Trial, where: Path, room: float) -> list[Candidate]:
        """Batches of another size, looked for with what was kept."""
        own = known.setting("batch_size")
        batch = own if isinstance(own, int) and own > 0 else round(pilot.samples or 0)
        if not batch:
            return []
        self._say("looking for a size of batches")
        savers = self._savers(known)
        probe = probing.Probe(where, self._wanted.terms, self._on_top, self._stream, room)
        found = probe.find(batch, pilot, _most(where, batch), savers)
        return probing.candidates_of(found, savers)

    def _fit(self, error: RanOut, where: Path) -> None:
        """The program does not run as it is: a size that fits is looked for, where that is allowed."""
        report = build.build(where / runner.FIRST)
        own = _own_size(report)
        if not self._wanted.wants_size or own is None:
            raise RanOut(f"{error}\n{_RAN_OUT}") from None
        self._say("it runs out of memory as it is: looking for a size of batches that fits")
        spent = report.program.seconds or 0.0
        pilot = Trial(arm=AS_IS, state="failed", seconds=spent, ran_out=True, reason="it runs out of memory")
        probe = probing.Probe(where, self._wanted.terms, self._on_top, self._stream, self._wanted.terms.budget)
        found = probe.find(own, pilot, None, [])
        self.spent += found.seconds  # the first run's, too
        self.stages.append(Stage(on=[], outcomes=[], sizes=found, seconds=0.0))
        self.stopped = str(error)

    def _savers(self, known: Known) -> list[Candidate]:
        found = candidates.savers(known, self.stack, self._wanted.risks)
        return [saver for saver in found if not self._barred & set(saver.changes)]

    def _predicted(self, where: Path) -> attempt.Predict:
        """What a change should gain: by itself as in a try, together as it was chosen."""

        def predict(arm: Arm, known: Known | None) -> Estimate | str:
            new = {code: value for code, value in self._dressing.changes(arm).items() if self.stack.get(code) != value}
            if known is None or (len(new) == 1 and BATCH not in new):
                return attempt.predict(msgspec.structs.replace(arm, fixes=new, varied=[]), known)
            sized = probing.load(where)
            found = [*self._candidates(known), *(probing.candidates_of(sized, self._savers(known)) if sized else [])]
            said = next((one.predicted for one in found if one.changes == new), None)
            return said or attempt.predict(msgspec.structs.replace(arm, fixes=new, varied=[]), known)

        return predict

    @property
    def _base(self) -> Arm:
        return self._dressing.dress(self.stack, f"with {' '.join(asked.written(self.stack))}" if self.stack else AS_IS)

    def _on_top(self, changes: dict[str, Value]) -> Arm:
        return self._dressing.dress({**self.stack, **changes})

    def _arm(self, candidate: Candidate) -> Arm:
        name = " ".join(asked.written(candidate.changes))
        return msgspec.structs.replace(self._on_top(candidate.changes), name=name, risk=candidate.risk)

    def _take(self, tried: attempt.Result, sizes: Sizes | None) -> None:
        """What a stage showed: the best is kept, what did not help is not tried again."""
        self.spent += tried.seconds + (sizes.seconds if sizes is not None else 0.0)
        self._sizes = sizes or self._sizes
        self._run_seconds = max(self._run_seconds, tried.seconds / tried.trials)
        goal = self._wanted.goal
        kept = [one for one in tried.outcomes if judge.is_kept(goal, one, speed=self._speed)]
        best = max(kept, key=lambda outcome: judge.score(goal, outcome), default=None)
        self.stages.append(
            Stage(
                on=fixed(self.stack),
                outcomes=tried.outcomes,
                kept=best.name if best is not None else None,
                speed=self._speed,
                sizes=sizes,
                seconds=tried.seconds,
            )
        )
        for outcome in tried.outcomes:
            self._learn(outcome, is_kept=outcome in kept)
        if best is not None:
            self.stack = self._dressing.changes(best)
            self._speed *= judge.gain(best)
            self._say(f"kept: {best.name}")
        if tried.interrupted:
            self._interrupt()
        elif not tried.outcomes:
            self.stopped = _NOTHING[goal == "memory"]
        elif best is None and self._nothing_left():
            unclear = self._unclear()
            more = f"; {', '.join(unclear)}: unclear so far, a larger --budget and the same --out go on with it"
            self.stopped = _NONE_PROVEN[goal == "memory"] + (more if unclear else "")

    def _unclear(self) -> list[str]:
        """What the last stage had no time to tell: it may well be what is sought."""
        last = self.stages[-1]
        return [
            outcome.name
            for outcome in last.outcomes
            if last.kept is None
            and outcome.verdict == "unclear"
            and (outcome.speedup is None or self._wanted.goal == "memory" or judge.gain(outcome) >= CLAIMED)
        ]

    def _learn(self, outcome: Outcome, *, is_kept: bool) -> None:
        """What did not help is not tried again; what does not apply, with no other value either."""
        new = {code: value for code, value in self._dressing.changes(outcome).items() if self.stack.get(code) != value}
        if not is_kept:
            self._tried.add(candidates.key(new))
        if not is_kept and self._wanted.goal == "memory" and len(new) == 1 and judge.saves(outcome):
            slow = Candidate(changes=new, risk=outcome.risk, predicted=None)
            self._slow.append((slow, judge.gain(outcome)))
        if outcome.verdict in ("does not apply", "failed") and len(new) == 1:
            self._barred |= set(new)

    def _interrupt(self) -> None:
        self.interrupted, self.stopped = True, "it was interrupted"

    def _nothing_left(self) -> bool:
        known = attempt.known_of(stage_folder(self._folder, len(self.stages)))
        return known is None or (not self._candidates(known) and not self._wants_size)

    # -- the proof ----------------------------------------------------------------------------------------------

    @property
    def _has_room_to_prove(self) -> bool:
        return self._wanted.terms.budget - self.spent >= self._run_seconds * (_OF_PROOF + statistics.FEWEST)

    def _prove(self, kept: int) -> None:
        """All that was kept, against the program untouched; and all but one, which may have become useless."""
        self._say(f"the proof: {' '.join(asked.written(self.stack))} against the program as it is")
        untouched = Arm(name=AS_IS, command=self._wanted.command)
        budget = max(self._wanted.terms.budget - self.spent, self._run_seconds * _OF_PROOF)
        terms = msgspec.structs.replace(self._wanted.terms, budget=budget)
        stacks = [self.stack]
        room = int((budget / self._run_seconds - _OF_PROOF) / statistics.FEWEST)
        for code in self._doubtful()[: max(room, 0)]:
            stacks.append({other: value for other, value in self.stack.items() if other != code})
        arms = [self._dressing.dress(stack) for stack in stacks]
        where = self._folder / f"proof-{kept}"
        try:  # one that was begun with less time has the arms that it was begun with
            proven = attempt.attempt(
                terms, [untouched], where, self._stream, choose=lambda known, pilot: arms, settings=self.settings
            )
        except KeyboardInterrupt:
            self._interrupt()
            return
        except TrialError as error:
            self.stopped = f"it could not be proven together: {error}"
            return
        self.spent += proven.seconds
        if proven.interrupted:
            self._interrupt()
        self._settle_on(*proven.outcomes)

    def _doubtful(self) -> list[str]:
        """What may have become useless: a change that came last, by itself, was proven on top of all others."""
        last = next(stage for stage in reversed(self.stages) if stage.kept is not None)
        new = [code for code in self.stack if code not in {fix.code for fix in last.on}]
        return [code for code in self.stack if code not in new or len(new) > 1]

    def _settle_on(self, whole: Outcome, *lesser: Outcome) -> None:
        """All that was kept, unless less of it is as good, or is proven where all of it is not."""
        goal = self._wanted.goal
        good = [one for one in lesser if judge.is_kept(goal, one, speed=1.0)]
        if judge.is_kept(goal, whole, speed=1.0):
            good = [one for one in good if judge.score(goal, one) >= judge.score(goal, whole)]
        else:  # what was kept first was tried on the untouched program: that is its proof
            good += [one for one in self.stages[0].outcomes if one.name == self.stages[0].kept]
        self.proof = max(good, key=lambda outcome: judge.score(goal, outcome), default=whole)
        if self.proof is not whole:
            kept = self._dressing.changes(self.proof)
            self._say(f"taken out again: {' '.join(sorted(set(self.stack) - set(kept)))}")
            self.stack = kept

    # -- what is said ------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        if not self._wanted.terms.quiet:
            left = max(self._wanted.terms.budget - self.spent, 0.0)
            print(said(f"floorit: {text} ({duration(left)} of the budget left)"), file=self._stream, flush=True)


def stage_folder(folder: Path, number: int) -> Path:
    """The folder of a stage's try."""
    return folder / f"stage-{number}"


def fixed(stack: dict[str, Value]) -> list[Fixed]:
    """Changes as they are told."""
    return [Fixed(code=code, value=value) for code, value in stack.items()]


def _own_size(report: Report) -> int | None:
    """The size of batches of a program that ran out of memory."""
    said = next((setting.actual for setting in report.settings if setting.name == "batch_size"), None)
    batch = report.out_of_memory.batch if report.out_of_memory is not None else None
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else batch


def _most(where: Path, own: int) -> int | None:
    """The largest batch with which an epoch still has a few; None where its length is not known."""
    job = build.build(where / runner.FIRST).job
    return own * job.steps_per_epoch // _FULL_EPOCH if job is not None and job.steps_per_epoch else None
