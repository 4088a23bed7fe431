"""`floorit try` and `floorit tune`: a program is run many times, with changes and without."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from floorit import launch, runfile
from floorit.commandline import FOLDER
from floorit.errors import OutputError, UsageError
from floorit.trial import arms, attempt, runner, store
from floorit.trial.table import render as render_trials
from floorit.verbs import folders, telling


def run(options: argparse.Namespace) -> int:
    """Of a try; the exit code."""
    if not options.command:
        raise UsageError("what is to be tried? For example: floorit try --fix workers=8 train.py")
    launch.resolve(options.command)
    folder = _folder(options, store.NAME)
    made = arms.make(options.command, options.fix, options.vary, each=options.each, risk=options.risk)
    result = attempt.attempt(_terms(options), made, folder, sys.stderr)
    telling.tell(options, attempt.to_json(result), render_trials(result))
    if result.outcomes:
        from floorit.trial import page  # as in telling.draw_page

        telling.leave_page(folder, options, lambda: page.write(result, folder))
    return 130 if result.interrupted else 0


def tune(options: argparse.Namespace) -> int:
    """Of a search; the exit code."""
    from floorit.tune import result as searched
    from floorit.tune import tuning
    from floorit.tune.table import render as render_search

    if not options.command:
        raise UsageError("what is to be tuned? For example: floorit tune train.py")
    if options.allow and options.goal == "balanced":
        raise UsageError("--allow training goes with --goal speed or --goal memory")
    if options.batch_arg is not None and not (options.allow and options.goal == "speed"):
        raise UsageError("--batch-arg goes with --goal speed --allow training")
    if options.batch_arg is not None and "{}" not in options.batch_arg:
        raise UsageError("--batch-arg needs {} where the size is to stand, as in: --batch-arg '--batch-size {}'")
    launch.resolve(options.command)
    folder = _folder(options, tuning.ASKED)
    wanted = searched.Asked(
        command=options.command,
        goal=options.goal,
        allowed=options.allow,
        batch_arg=options.batch_arg,
        terms=_terms(options),
    )
    result = tuning.tune(wanted, folder, sys.stderr)
    telling.tell(options, searched.to_json(result), render_search(result))
    if result.stages:
        from floorit.tune import page  # as in telling.draw_page

        telling.leave_page(folder, options, lambda: page.write(result, folder))
    return 130 if result.interrupted else 0


def _folder(options: argparse.Namespace, own: str) -> Path:
    """The folder of a try or a search, which has a file of that name in it, if it was begun before."""
    name = f"{options.verb}-{folders.name_of(options.command)}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder: Path = options.out or folders.unused(Path(FOLDER) / name)
    others = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if (folder / runner.FIRST / runfile.RECORD).exists():  # of a try that was interrupted before its first round
        others -= {runner.FIRST, runner.TRIALS}
    if others and not (folder / own).exists():  # trials may write there, and the first run's folder is made anew
        raise OutputError(f"{folder} holds other files ({min(others)}); choose another --out")
    return folder


def _terms(options: argparse.Namespace) -> attempt.Terms:
    return attempt.Terms(steps=options.steps, budget=options.budget, in_place=options.in_place, quiet=options.quiet)
