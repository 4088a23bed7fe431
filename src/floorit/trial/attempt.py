"""A whole try: the first run, what the rest will cost, the trials, and what may be said of them."""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, TypeAlias

import msgspec

from floorit import turning
from floorit.analyse.controls import PHASES
from floorit.declared import Control
from floorit.errors import RanOut, TrialError
from floorit.fixes import ALL
from floorit.fixes.fix import Known, foretell_together
from floorit.fixes.values import spelled
from floorit.report import advice, build
from floorit.report.words import several
from floorit.sandbox import Sandbox, sandbox
from floorit.stats import Estimate, duration
from floorit.trial import conduct, runner, statistics, store, verdict
from floorit.trial.arms import Arm
from floorit.trial.own import Own
from floorit.trial.progress import Progress
from floorit.trial.state import State
from floorit.trial.trial import ENOUGH, Trial
from floorit.trial.verdict import SCHEMA, Outcome

NAME = "trial.json"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How a person wants something tried."""

    steps: int | None
    budget: float  # seconds
    in_place: bool
    quiet: bool
    sought: conduct.Sought | None = None  # time is spared on what shows none of it at first


Predict: TypeAlias = Callable[[Arm, Known | None], Estimate | str]
# Which changes to try, by what is known of the program as it is and how it ran.
Choose: TypeAlias = Callable[[Known | None, Trial], list[Arm]]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All that is said of a try."""

    schema: int = SCHEMA
    command: list[str]
    outcomes: list[Outcome]
    steps: int  # steady ones of each trial
    trials: int
    seconds: float  # of all trials
    interrupted: bool
    folder: str


def to_json(result: Result) -> bytes:
    """trial.json: the first arm's outcome, what holds for all, and the other arms."""
    whole = msgspec.to_builtins(result)
    first, *others = whole.pop("outcomes")
    return msgspec.json.format(msgspec.json.encode({**first, **whole, "others": others}), indent=1) + b"\n"


def predict(arm: Arm, known: Known | None) -> Estimate | str:
    """What an arm should gain by the first run, or why that is not known, or that it would not."""
    if arm.varied or arm.entries:
        return "what the program's own arguments and files do is not known"
    if known is None:
        return "nothing trained in the first run"
    asked = {fix: arm.fixes[fix.code] for fix in ALL if fix.code in arm.fixes}
    if len(asked) > 1:
        return foretell_together(asked, known)
    [(fix, value)] = asked.items()
    said, advised = fix.foretell(known), fix.value(known) if fix.value is not None else None
    if isinstance(said, str) or fix.value is None or value is None or value == advised:
        return said
    if fix.change is not None and not isinstance(fix.change(known, value), str):
        return foretell_together(asked, known)
    return f"it is made for {fix.code}={spelled(advised)}: {said.value:.2f} times as fast"


def attempt(
    terms: Terms,
    arms: list[Arm],
    folder: Path,
    stream: TextIO,
    choose: Choose | None = None,
    predicted: Predict = predict,
    settings: Mapping[str, list[Control]] | None = None,
) -> Result:
    """Run it, or go on with the one that is in the folder; Ctrl-C ends it with what there is.

    The first of the arms is the program as it is. Where `choose` says what to try, there is no other yet. `settings`
    are those of the program's own that are known before its first run here, by the code of the fix that each is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = store.resume(folder, arms, terms.steps, is_begun_with_base=choose is not None)
    progress = Progress(stream, quiet=terms.quiet, budget=terms.budget)
    progress.count(state.seconds())
    interrupted = False
    with place(folder, terms) as kept, _ending_as_interrupted():
        try:
            _conduct(state, folder, kept, terms, progress, choose, settings or {})
        except KeyboardInterrupt:
            if state.pilot is None:
                raise
            interrupted = True
        finally:
            progress.close()
    result = _result(state, folder, predicted, interrupted)
    if result.outcomes:
        (folder / NAME).write_bytes(to_json(result))
    return result


@contextmanager
def place(folder: Path, terms: Terms) -> Iterator[Sandbox | None]:
    """Where the program's writes go: None is where they always do."""
    if terms.in_place:
        yield None
        return
    with sandbox(folder.absolute()) as kept:
        if kept is None:
            raise TrialError("nothing here keeps what trials write away from your files; --in-place does without")
        yield kept


@contextmanager
def _ending_as_interrupted() -> Iterator[None]:
    """A scheduler's signals end a try as Ctrl-C does."""
    previous = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _conduct(
    state: State,
    folder: Path,
    kept: Sandbox | None,
    terms: Terms,
    progress: Progress,
    choose: Choose | None,
    settings: Mapping[str, list[Control]],
) -> None:
    run = runner.Runner(folder, kept, progress.tick)
    run.steps = state.steps
    run.own = Own(settings, shows_files=run.shows_files)
    if state.pilot is None:
        _first_run(state, folder, run, terms, progress)
    assert state.pilot is not None
    known = known_of(folder)
    if choose is not None and not state.changed:
        state.arms += choose(known, state.pilot)
        store.save(folder, state)
    if not state.changed:
        return
    run.own = Own({**(turning.settings(known) if known is not None else {}), **settings}, shows_files=run.shows_files)
    run.steps, run.limit = state.steps, runner.limit_for(state.pilot)
    run.samples = state.pilot.samples
    fresh = [phase for code, phase in PHASES.items() if code not in state.base.fixes]
    run.rare = {phase: state.pilot.seldom(phase) for phase in fresh}
    if not state.rounds:
        progress.say(_cost(state, terms))

    def trial(arm: Arm, *, jitter: float = 0.0) -> Trial:
        run.beyond = max((t.warmup for t in state.trials()), default=0)
        progress.begin()
        done = run(arm, jitter=jitter)
        progress.over(done)
        return done

    def save(state: State) -> None:
        store.save(folder, state)

    conduct.conduct(
        state, trial, save, budget=terms.budget, dice=random.Random(), told=progress.stage, sought=terms.sought
    )


def _first_run(state: State, folder: Path, run: runner.Runner, terms: Terms, progress: Progress) -> None:
    progress.stage("first run")
    run.limit = max(terms.budget, runner.PATIENCE)
    progress.begin()
    done = run.pilot(state.base)
    progress.over(done)
    if done.state != "ran":
        said = "\n".join(f"  {line}" for line in done.last)
        if done.ran_out:
            raise RanOut(f"the program as it is ran out of memory: {done.reason}; see {done.said}")
        hint = "; --in-place lets it write its files" if run.refuses_writes else ""
        raise TrialError(f"the program as it is did not run well: {done.reason}; see {done.said}{hint}\n{said}\n")
    if done.pace is None or len(done.starts) - 1 - done.warmup < ENOUGH:
        raise TrialError(
            f"the program has only {len(done.starts)} steps, {done.warmup} of them warm-up: too few to compare; let it"
            " train for more epochs, or on more data"
        )
    state.pilot = done
    state.steps = state.steps or runner.steps_for(done.pace)
    store.save(folder, state)


def _cost(state: State, terms: Terms) -> str:
    """What a try will cost, by its first run."""
    assert state.pilot is not None
    budget = terms.budget
    least = state.pilot.seconds + conduct.least_seconds(state, budget, spares=terms.sought is not None)
    told = f"a run takes {duration(state.pilot.seconds)}; {several(len(state.changed), 'change')} against it as it is:"
    always = conduct.sure_seconds(state, budget)
    if always > budget:
        told = f"{told} {duration(always)}, as one round and the program against itself are always run;"
        return f"{told} --budget {math.ceil(least / 60)}m has room for the {statistics.FEWEST} pairs of a verdict"
    if least <= budget:
        return f"{told} {duration(least)} in all at the least, {duration(budget)} at the most"
    if terms.sought is not None:
        return f"{told} {duration(budget)}, which may be too little"
    room = f"--budget {math.ceil(least / 60)}m has room for the {statistics.FEWEST} pairs that a verdict rests on"
    return f"{told} {duration(budget)}, which may be too little; {room}"


def known_of(folder: Path) -> Known | None:
    """What predictions rest on, by the first run of the try in a folder."""
    return advice.known_of(build.build(folder / runner.FIRST))


def _result(state: State, folder: Path, predicted: Predict, interrupted: bool) -> Result:
    known = known_of(folder)
    return Result(
        command=state.base.command,
        outcomes=verdict.outcomes(state, lambda arm: predicted(arm, known)),
        steps=state.steps or 0,
        trials=len(state.every_trial()),
        seconds=state.seconds(),
        interrupted=interrupted,
        folder=str(folder),
    )
