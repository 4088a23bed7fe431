"""`floorit demo`: one of the cases is recorded, and what was found shown beside what is true."""

from __future__ import annotations

import argparse
import sys

from floorit import demo, launch
from floorit.language import said
from floorit.report import beside, terminal, words
from floorit.truth import Scale
from floorit.verbs import folders
from floorit.verbs.run import record
from floorit.verbs.settled import Settled


def run(options: argparse.Namespace) -> int:
    """Of one case; the program's exit code."""
    case = demo.outside_of_libraries(demo.find(options.case))
    python = demo.examine(launch.interpreter(), ask_cuda=options.scale is None)
    demo.require(python)
    scale: Scale = options.scale or ("gpu" if python.cuda else "cpu")
    folder = folders.make(options.out, case.name)
    data = demo.make_data(case, scale, python.path, sys.stderr)
    options.command = demo.command(case, scale, python.path, data, folder / "train")
    print(said(f"floorit: recording {' '.join(map(words.relative, options.command))}"), file=sys.stderr, flush=True)
    report, code = record(Settled(command=options.command), folder, options)
    if report is not None:
        terminal.draw(beside.render(beside.compare(report, case.truth, case.folder, scale)), sys.stderr)
    return launch.leave_like(code)
