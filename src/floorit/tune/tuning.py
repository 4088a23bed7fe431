"""A program tuned: the search, what it came to, and the files that carry it into the next training."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TextIO

import msgspec

from floorit import recipe
from floorit.analyse import habits
from floorit.analyse.controls import PHASES
from floorit.errors import OutputError
from floorit.events import read_record
from floorit.report import build
from floorit.report.model import Report
from floorit.report.words import size
from floorit.runfile import RECORD
from floorit.trial import runner
from floorit.trial.verdict import Outcome
from floorit.tune import advice, judge
from floorit.tune.result import NAME, Asked, Job, Left, Result, to_json
from floorit.tune.search import Search, fixed, stage_folder
from floorit.tune.told import PATCH

ASKED = "asked.json"  # what was wanted


def tune(wanted: Asked, folder: Path, stream: TextIO) -> Result:
    """Search, or go on with the search in the folder; Ctrl-C ends it with what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    _claim(folder, wanted)
    search = Search(wanted, folder, stream)
    search.run()
    result = _account(search, wanted, folder)
    (folder / NAME).write_bytes(to_json(result))
    if result.is_proven:
        assert result.proof is not None
        fixes = {fix.code: fix.value for fix in result.proof.fixes}
        found = recipe.Recipe(fixes=fixes, settings=result.proof.turned)
        recipe.write(folder / recipe.NAME, found, _comments(result))
        result = _with_patch(result, folder, search)
        (folder / NAME).write_bytes(to_json(result))
    return result


def _claim(folder: Path, wanted: Asked) -> None:
    """A folder is that of one search."""
    path = folder / ASKED
    mine = msgspec.json.encode(
        {
            "command": wanted.command,
            "goal": wanted.goal,
            "risks": wanted.risks,
            "batch_arg": wanted.batch_arg,
            "cwd": str(Path.cwd()),
        }
    )
    if path.exists() and path.read_bytes() != mine:
        raise OutputError(f"{folder} holds a search for something else; choose another --out")
    path.write_bytes(mine)


# -- what it came to ----------------------------------------------------------------------------------------------


def _account(search: Search, wanted: Asked, folder: Path) -> Result:
    """All that can be said by now."""
    return Result(
        command=wanted.command,
        goal=wanted.goal,
        stages=search.stages,
        stack=fixed(search.stack),
        proof=search.proof,
        does_not_run=search.does_not_run,
        left=_left(search, folder),
        job=_job(search.proof, folder) if search.stages else None,
        in_source=[],
        advice=_advice(search, wanted, folder),
        stopped=search.stopped,
        interrupted=search.interrupted,
        seconds=search.spent,
        folder=str(folder),
    )


def _report_of(folder: Path, stage: int) -> Report:
    """Of the first run of a stage: of the program with all that had been kept by then."""
    return build.build(stage_folder(folder, stage) / runner.FIRST)


def _left(search: Search, folder: Path) -> Left | None:
    if not search.stages or search.does_not_run:
        return None
    first, report = _report_of(folder, 1), _report_of(folder, len(search.stages))
    return Left(
        gap=report.floor.gap if report.floor is not None else None,
        gap_before=first.floor.gap if first.floor is not None else None,
        only_data=report.floor is not None and report.floor.takes_only_data,
        finding=report.findings[0].code if report.findings else None,
        with_all=search.stages[-1].on == fixed(search.stack),
    )


def _job(proof: Outcome | None, folder: Path) -> Job | None:
    """By the first run of all; what comes once takes as long as before."""
    job = _report_of(folder, 1).job if proof is not None else None
    if proof is None or job is None:
        return None
    before, after, power = job.seconds.value, job.at(judge.gain(proof)), proof.power
    return Job(
        before=before,
        after=after,
        joules_before=power.a * before if power.a is not None else None,
        joules_after=power.b * after if power.b is not None else None,
    )


def _advice(search: Search, wanted: Asked, folder: Path) -> list[str]:
    """What to do where it came to nothing, or rests on little."""
    if not search.stages:
        return []
    sizes = search.stages[0].sizes
    if search.does_not_run and sizes is not None:
        return advice.on_memory(sizes, wanted)
    outcomes = [outcome for stage in search.stages for outcome in stage.outcomes]
    return [*advice.on_results(outcomes, wanted.goal), *advice.on_program(_report_of(folder, 1), search.spent)]


# -- what carries it ----------------------------------------------------------------------------------------------


_RARER = "what goes by evaluations (best checkpoints, early stopping, schedules) sees as many fewer"


def _comments(result: Result) -> list[str]:
    proof = result.proof
    assert proof is not None
    assert proof.speedup is not None
    gain = proof.speedup
    typed = [f"with the program's own argument: {' '.join(proof.command)}"] * (proof.command != result.command)
    peaks = [proof.memory.both] if proof.memory.both is not None else []
    return [
        f"{gain.value:.2f} ({gain.low:.2f} to {gain.high:.2f}) times as fast, by {gain.n} pairs of runs of",
        f"  {' '.join(result.command)}",
        *typed,
        *(f"{size(after)} of memory at the most, {size(before)} as it is" for before, after in peaks),
        f"results: {proof.parity.reason}",
        *(turned.said for turned in proof.turned),
        *([_RARER] * any(turned.code in PHASES for turned in proof.turned)),
        "floorit run --with this file trains with it.",
    ]


def _with_patch(result: Result, folder: Path, search: Search) -> Result:
    """By the first run of all, of the program untouched."""
    from floorit.tune import patch  # LibCST takes 0.2 s to import, which other verbs need not wait for

    reader = read_record(stage_folder(folder, 1) / runner.FIRST / RECORD)
    files = habits.files([*reader.run(), *reader.workers.values()])
    typed = shlex.join(search.dressed().varied) or None
    assert result.proof is not None
    made = patch.make(search.stack, _report_of(folder, 1), files, typed, result.proof.turned)
    (folder / PATCH).unlink(missing_ok=True)  # of the same search, with less time
    if made.diff:
        (folder / PATCH).write_text(made.diff)
    return msgspec.structs.replace(result, in_source=made.told)
