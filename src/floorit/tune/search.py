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

from floorit import recipe
from floorit.analyse import habits
from floorit.analyse.job import AROUND, START
from floorit.errors import OutputError, TrialError
from floorit.events import read_record
from floorit.fixes import asked
from floorit.fixes.fix import Known, Risk
from floorit.fixes.values import Value
from floorit.language import said
from floorit.report import build
from floorit.report.words import duration
from floorit.runfile import RECORD
from floorit.stats import Estimate
from floorit.trial import attempt, conduct, runner, statistics
from floorit.trial.arms import AS_IS, Arm, riskiest
from floorit.trial.attempt import Terms
from floorit.trial.trial import Trial
from floorit.trial.verdict import Fixed, Outcome
from floorit.tune import candidates
from floorit.tune.candidates import Candidate, Goal
from floorit.tune.told import PATCH, Told

SCHEMA = 1
NAME, ASKED = "tune.json", "asked.json"  # what is said of it, and what was wanted
AT_ONCE = 4  # changes of a stage, where there is time for them
FIRST_SHARE = 0.6  # of the budget, for the first stage: more are to come
# Runs of a stage besides those of its changes: the first, the program against itself, and the program as it is.
_BESIDE = 1 + 4 + statistics.FEWEST
_OF_CHANGE = statistics.FEWEST  # of one that gains; another is left after conduct.HOPE
_OF_PROOF = 4 + 2 * statistics.FEWEST
_OVER = "over"  # the file in the folder of a stage that has ended: with more time, the search goes on after it


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants tuned."""

    command: list[str]
    goal: Goal
    allowed: list[Risk]  # besides those of the goal
    terms: Terms

    @property
    def risks(self) -> tuple[Risk, ...]:
        """What a change may do to results."""
        return (*candidates.GOALS[self.goal], *self.allowed)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried on top of what."""

    on: list[Fixed]
    outcomes: list[Outcome]
    kept: str | None = None  # the name of the outcome that was
    seconds: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """How the program stood in its last run."""

    gap: float | None  # how many times its floor a step takes
    finding: str | None  # what holds it there
    with_all: bool  # whether that run had all that was kept


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The whole training, from its first line to its last, as it is configured: seconds."""

    before: float
    after: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All that is said of a search: tune.json."""

    schema: int = SCHEMA
    command: list[str]
    goal: Goal
    stages: list[Stage]
    stack: list[Fixed]
    proof: Outcome | None  # of all that was kept, against the program untouched
    left: Left | None
    job: Job | None  # None where how long it is to train is not known
    in_source: list[Told]  # what of it the patch does, and what is to be done by hand
    stopped: str  # why it ended
    interrupted: bool
    seconds: float  # of all runs
    folder: str

    @property
    def is_proven(self) -> bool:
        """Whether all that was kept makes the untouched program faster."""
        return self.proof is not None and self.proof.verdict == "faster"


def to_json(result: Result) -> bytes:
    """tune.json."""
    return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"


def tune(wanted: Asked, folder: Path, stream: TextIO) -> Result:
    """Search, or go on with the search in the folder; Ctrl-C ends it with what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    _claim(folder, wanted)
    search = Search(wanted, folder, stream)
    search.run()
    result = search.result()
    (folder / NAME).write_bytes(to_json(result))
    if result.is_proven:
        recipe.write(folder / recipe.NAME, search.stack, _comments(result))
        result = _with_patch(result, folder, search.stack)
        (folder / NAME).write_bytes(to_json(result))
    return result


def _with_patch(result: Result, folder: Path, stack: dict[str, Value]) -> Result:
    """By the first run of all, of the program untouched."""
    from floorit.tune import patch  # LibCST takes 0.2 s to import, which other verbs need not wait for

    first = _stage_folder(folder, 1) / runner.FIRST
    reader = read_record(first / RECORD)
    made = patch.make(stack, build.build(first), habits.files([*reader.run(), *reader.workers.values()]))
    if made.diff:
        (folder / PATCH).write_text(made.diff)
    return msgspec.structs.replace(result, in_source=made.told)


def _claim(folder: Path, wanted: Asked) -> None:
    """A folder is that of one search."""
    path = folder / ASKED
    mine = msgspec.json.encode({"command": wanted.command, "risks": wanted.risks, "cwd": str(Path.cwd())})
    if path.exists() and path.read_bytes() != mine:
        raise OutputError(f"{folder} holds a search for something else; choose another --out")
    path.write_bytes(mine)


class Search:
    """A search as far as it has come."""

    def __init__(self, wanted: Asked, folder: Path, stream: TextIO) -> None:
        self._wanted, self._folder, self._stream = wanted, folder, stream
        self.stack: dict[str, Value] = {}
        self._stages: list[Stage] = []
        self._tried: set[tuple[str, Value]] = set()  # and not kept
        self._barred: set[str] = set()  # fixes that do not apply to this program, or that it does not run with
        self._proof: Outcome | None = None
        self._spent = 0.0  # seconds of runs
        self._run_seconds = 0.0  # of a run on average, in the slowest stage
        self._stopped = ""
        self._interrupted = False

    def run(self) -> None:
        """Stage after stage, then the proof."""
        while not self._stopped:
            self._stage()
        kept = [o for stage in self._stages for o in stage.outcomes if o.name == stage.kept]
        if len(kept) == 1:
            (self._proof,) = kept  # it was against the program untouched
        elif kept and not self._interrupted:
            self._prove(len(kept))

    def result(self) -> Result:
        """All that can be said by now."""
        return Result(
            command=self._wanted.command,
            goal=self._wanted.goal,
            stages=self._stages,
            stack=_fixed(self.stack),
            proof=self._proof,
            left=self._left(),
            job=self._job(),
            in_source=[],
            stopped=self._stopped,
            interrupted=self._interrupted,
            seconds=self._spent,
            folder=str(self._folder),
        )

    @property
    def _room(self) -> float:
        """Seconds for the next stage: of what is left, without what the proof will take."""
        left = self._wanted.terms.budget - self._spent
        return left - self._run_seconds * _OF_PROOF if self._stages else left * FIRST_SHARE

    def _stage(self) -> None:
        if self._stages and self._room < self._run_seconds * (_BESIDE + _OF_CHANGE):
            needed = self._spent + self._run_seconds * (_BESIDE + _OF_CHANGE + _OF_PROOF)
            self._stopped = (
                f"the budget has no room for another stage; with --budget {math.ceil(needed / 60)}m and the same --out"
                " it goes on"
            )
            return
        number, room = len(self._stages) + 1, self._room
        self._say(f"stage {number}: {self._base.name}")

        def choose(known: Known | None, pilot: Trial) -> list[Arm]:
            return [self._arm(candidate) for candidate in self._choose(known, pilot, room)]

        def predicted(arm: Arm, known: Known | None) -> Estimate | str:
            code = next(code for code, value in arm.fixes.items() if self.stack.get(code) != value)
            return attempt.predict(msgspec.structs.replace(arm, fixes={code: arm.fixes[code]}), known)

        where = _stage_folder(self._folder, number)
        over = where / _OVER
        terms = msgspec.structs.replace(self._wanted.terms, budget=0.0 if over.exists() else room, spares=True)
        try:
            tried = attempt.attempt(terms, [self._base], where, self._stream, choose, predicted)
        except (TrialError, KeyboardInterrupt) as error:
            if not self._stages:
                raise
            if isinstance(error, KeyboardInterrupt):
                self._interrupt()
            else:
                self._stopped = f"with what was kept, {error}"
        else:
            if not tried.interrupted:
                over.touch()
            self._take(tried)

    def _choose(self, known: Known | None, pilot: Trial, room: float) -> list[Candidate]:
        if known is None:
            return []
        found = self._candidates(known)
        affordable = 1 + int((room / pilot.seconds - _BESIDE - _OF_CHANGE) / conduct.HOPE)
        return found[: min(max(affordable, 1), AT_ONCE)]

    def _candidates(self, known: Known) -> list[Candidate]:
        found = candidates.find(known, self.stack, self._tried, self._wanted.risks)
        return [candidate for candidate in found if candidate.code not in self._barred]

    @property
    def _base(self) -> Arm:
        name = f"with {' '.join(asked.written(self.stack))}" if self.stack else AS_IS
        return Arm(name=name, command=self._wanted.command, fixes=self.stack, risk=riskiest(self.stack))

    def _arm(self, candidate: Candidate) -> Arm:
        return Arm(
            name=asked.written({candidate.code: candidate.value})[0],
            command=self._wanted.command,
            fixes={**self.stack, candidate.code: candidate.value},
            risk=candidate.risk,
        )

    def _take(self, tried: attempt.Result) -> None:
        """What a stage showed: the best is kept, what did not help is not tried again."""
        self._spent += tried.seconds
        self._run_seconds = max(self._run_seconds, tried.seconds / tried.trials)
        best = max(filter(_is_kept, tried.outcomes), key=_gain, default=None)
        stage = Stage(on=_fixed(self.stack), outcomes=tried.outcomes, seconds=tried.seconds)
        for outcome in tried.outcomes:
            (new,) = [fix for fix in outcome.fixes if fix not in stage.on]
            if not _is_kept(outcome):
                self._tried.add((new.code, new.value))
            if outcome.verdict in ("does not apply", "failed"):
                self._barred.add(new.code)
        self._stages.append(stage if best is None else msgspec.structs.replace(stage, kept=best.name))
        if best is not None:
            self.stack = {fix.code: fix.value for fix in best.fixes}
            self._say(f"kept: {best.name}")
        if tried.interrupted:
            self._interrupt()
        elif not tried.outcomes:
            self._stopped = "nothing that can be applied from outside should make it 2% faster"
        elif best is None and self._nothing_left():
            self._stopped = "nothing that was tried was proven faster, and nothing else should be"

    def _interrupt(self) -> None:
        self._interrupted, self._stopped = True, "it was interrupted"

    def _nothing_left(self) -> bool:
        known = attempt.known_of(_stage_folder(self._folder, len(self._stages)))
        return known is None or not self._candidates(known)

    def _prove(self, kept: int) -> None:
        """All that was kept, against the program untouched; and all but one, which may have become useless."""
        self._say(f"the proof: {' '.join(asked.written(self.stack))} against the program as it is")
        untouched = Arm(name=AS_IS, command=self._wanted.command)
        budget = max(self._wanted.terms.budget - self._spent, self._run_seconds * _OF_PROOF)
        terms = msgspec.structs.replace(self._wanted.terms, budget=budget)
        stacks = [self.stack]
        room = int((budget / self._run_seconds - _OF_PROOF) / statistics.FEWEST)
        for code in list(self.stack)[:-1][: max(room, 0)]:  # the last was proven on top of all others
            stacks.append({other: value for other, value in self.stack.items() if other != code})
        arms = [self._together(stack) for stack in stacks]
        where = self._folder / f"proof-{kept}"
        try:  # one that was begun with less time has the arms that it was begun with
            proven = attempt.attempt(terms, [untouched], where, self._stream, choose=lambda known, pilot: arms)
        except KeyboardInterrupt:
            self._interrupt()
            return
        except TrialError as error:
            self._stopped = f"it could not be proven together: {error}"
            return
        self._spent += proven.seconds
        if proven.interrupted:
            self._interrupt()
        self._settle_on(*proven.outcomes)

    def _together(self, stack: dict[str, Value]) -> Arm:
        name = " ".join(asked.written(stack))
        return Arm(name=name, command=self._wanted.command, fixes=stack, risk=riskiest(stack))

    def _settle_on(self, whole: Outcome, *lesser: Outcome) -> None:
        """All that was kept, unless less of it is as fast."""
        fast = [outcome for outcome in lesser if _is_kept(outcome) and _gain(outcome) >= _gain(whole)]
        self._proof = max(fast, key=_gain, default=whole)
        if self._proof is not whole:
            kept = {fix.code: fix.value for fix in self._proof.fixes}
            self._say(f"taken out again: {' '.join(sorted(set(self.stack) - set(kept)))}")
            self.stack = kept

    def _left(self) -> Left | None:
        """By the first run of the last stage."""
        if not self._stages:
            return None
        report = build.build(_stage_folder(self._folder, len(self._stages)) / runner.FIRST)
        return Left(
            gap=report.floor.gap if report.floor is not None else None,
            finding=report.findings[0].code if report.findings else None,
            with_all=self._stages[-1].on == _fixed(self.stack),
        )

    def _job(self) -> Job | None:
        """By the first run of all; what comes once takes as long as before."""
        if self._proof is None or not self._stages:
            return None
        job = build.build(_stage_folder(self._folder, 1) / runner.FIRST).job
        if job is None:
            return None
        once = sum(share.seconds for share in job.shares if share.what in (START, AROUND))
        return Job(before=job.seconds.value, after=once + (job.seconds.value - once) / _gain(self._proof))

    def _say(self, text: str) -> None:
        if not self._wanted.terms.quiet:
            left = max(self._wanted.terms.budget - self._spent, 0.0)
            print(said(f"floorit: {text} ({duration(left)} of the budget left)"), file=self._stream, flush=True)


def _stage_folder(folder: Path, number: int) -> Path:
    return folder / f"stage-{number}"


def _is_kept(outcome: Outcome) -> bool:
    """What is faster, and does to results no more than it may; what could not be verified is not."""
    return outcome.verdict == "faster" and outcome.parity.status != "unverified"


def _gain(outcome: Outcome) -> float:
    return outcome.speedup.value if outcome.speedup is not None else 1.0


def _fixed(stack: dict[str, Value]) -> list[Fixed]:
    return [Fixed(code=code, value=value) for code, value in stack.items()]


def _comments(result: Result) -> list[str]:
    assert result.proof is not None
    assert result.proof.speedup is not None
    gain = result.proof.speedup
    return [
        f"{gain.value:.2f} ({gain.low:.2f} to {gain.high:.2f}) times as fast, by {gain.n} pairs of runs of",
        f"  {' '.join(result.command)}",
        f"results: {result.proof.parity.reason}",
        "floorit run --with this file trains with it.",
    ]
