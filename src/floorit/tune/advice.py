"""What to do where a search came to nothing, or where what it says rests on little."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from floorit.fixes import asked
from floorit.report.model import Report
from floorit.stats import duration
from floorit.trial.verdict import Outcome
from floorit.tune import judge
from floorit.tune.candidates import Goal
from floorit.tune.result import Asked
from floorit.tune.sizes import Sizes


def on_results(outcomes: Iterable[Outcome], goal: Goal) -> list[str]:
    """What would have been kept, had its results been verified."""
    said = []
    for outcome in outcomes:
        reaches = judge.saves(outcome) if goal == "memory" else outcome.verdict == "faster"
        if outcome.parity.status == "unverified" and reaches:
            said.append(
                f"{outcome.name} was not kept: its results are unverified ({outcome.parity.reason}). What to do:"
                " compare what the program itself says of its results, and run it with"
                f" {' '.join(f'--fix {fix}' for fix in asked.written({f.code: f.value for f in outcome.fixes}))}"
            )
    return said


def on_program(report: Report, spent: float) -> list[str]:
    """What of the program makes a search worth little."""
    said = []
    if report.run is not None and not report.run.steady:
        said.append(
            "the steps of the first run were not steady: later ones were not like earlier ones. What to do: longer"
            " trials (--steps), or a part of the training where its steps are alike"
        )
    length = report.job.seconds.value if report.job is not None else None
    if length is None and report.run is not None and not report.run.stopped:
        length = report.program.seconds
    if length is not None and length < spent:
        said.append(
            f"the whole training takes {duration(length)}, less than this search: it pays where the program is run"
            " often, or for longer"
        )
    return said


def on_memory(sizes: Sizes, wanted: Asked) -> list[str]:
    """Of a program that does not run as it is."""
    if sizes.chosen is None and sizes.by == "time":
        return ["what to do: a larger --budget, or a smaller batch to begin with"]
    if sizes.chosen is None:
        return [
            "what to do: no size of batches fits, so it is not the batch: floorit run says what holds the memory, and"
            " --fix recompute=on, amp=bf16 or optimizer-8bit=on take less"
        ]
    size = str(sizes.chosen)
    own = wanted.batch_arg.replace("{}", size) if wanted.batch_arg is not None else None
    if own is not None:
        return [f"what to do: type {own} in the command, then tune that: {shlex.join(wanted.command)} {own}"]
    run = f"floorit run --fix batch={size} {shlex.join(wanted.command)}"
    return [f"what to do: make batches of {size} ({run} does, with their learning rate), then tune that"]
