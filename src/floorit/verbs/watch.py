"""`floorit watch`: a run is looked at while it is recorded."""

from __future__ import annotations

import argparse

from floorit.verbs import folders
from floorit.watch import command


def run(options: argparse.Namespace) -> int:
    """Show it; the exit code."""
    return command.run(options.folder or folders.newest())
