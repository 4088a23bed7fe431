"""How a change is proven: the command, how long it takes, and what writes it into the program."""

from __future__ import annotations

import math
import shlex

from floorit import outlay
from floorit.report.findings import Advice
from floorit.report.model import Report

# What `floorit tune` must be told before it applies a fix; what changes training takes more than a word.
_GOALS = {"exact": [], "rounding": [], "order": ["--goal", "speed"]}


def command(report: Report, *words: str) -> str:
    """The program's own command under floorit."""
    return shlex.join(["floorit", *words, "--", *report.program.command])


def proof(advice: Advice, report: Report) -> str | None:
    """The command that tries it; None where it takes a change of the program."""
    return command(report, "try", "--fix", advice.setting) if advice.setting else None


def time(report: Report) -> str | None:
    """How long trying one change takes; None where that is not known."""
    run, step, whole = report.run, report.step, report.program.seconds
    if run is None or step is None or whole is None or not step.seconds.value:
        return None
    least, most = (
        math.ceil(seconds / 60) for seconds in outlay.of_one_change(whole, run.steps, step.mean, step.seconds.value)
    )
    return f"about {most} minutes" if least >= most else f"{least} to {most} minutes"


def tuning(advice: Advice, report: Report) -> str | None:
    """The command that proves it with others and writes it down; None where it does not apply it."""
    goal = _GOALS.get(advice.fix.risk) if advice.fix is not None and advice.setting else None
    return command(report, "tune", *goal) if goal is not None else None
