"""`floorit env`: the machine, and the torch that programs would use."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from floorit import hardware, launch
from floorit.report import terminal


def run(options: argparse.Namespace) -> int:
    """Describe them; the exit code."""
    environment = launch.with_torch(hardware.examine(Path.cwd()))
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(environment), indent=1) + b"\n")
    else:
        terminal.show_environment(environment, sys.stdout)
    return 0
