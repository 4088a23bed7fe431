"""What `floorit scan` does."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from floorit.language import said
from floorit.scan import output
from floorit.scan.preferences import Preferences, settled
from floorit.scan.rules import ALL
from floorit.scan.scan import scan


def run(options: argparse.Namespace) -> int:
    """Read, say what was found, change what is to be changed; the exit code."""
    gc.disable()
    try:
        return _run(options)
    finally:
        gc.freeze()  # Python looks through all there is once more as it ends: a third of a second for a large project
        gc.enable()


def _run(options: argparse.Namespace) -> int:
    if options.rules:
        output.show(output.render_rules(ALL), sys.stdout)
        return 0
    wanted = settled(options.paths, options.select, options.ignore, options.exclude)
    result = scan(options.paths, wanted.rules(), wanted.exclude, processes=_cores(), asked=wanted.is_by_name)
    if options.diff or options.fix:
        _mend(options, wanted)
    if options.json:
        sys.stdout.buffer.write(output.to_json(result))
    elif not options.diff:
        output.show(output.render(result), sys.stdout)
    return 1 if (result.findings or result.problems) and not options.exit_zero else 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _mend(options: argparse.Namespace, wanted: Preferences) -> None:
    from floorit.scan import mend  # LibCST takes 0.2 s to import, which reading alone need not wait for

    for change in mend.changes(options.paths, wanted.rules(), wanted.exclude, wanted.is_by_name):
        if options.diff:
            sys.stdout.write(change.diff())
        if options.fix:
            change.write()
            told = f"floorit: {output.plural(change.count, 'place')} changed in {change.file}"
            print(said(told), file=sys.stderr)
