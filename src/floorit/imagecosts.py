"""Has the program's Python time operations on images, and other ways to do them, after the program has ended."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import msgspec

from floorit import imagebench
from floorit.analyse.alternatives import Measured, asked
from floorit.analyse.input import watched_batches
from floorit.events import RecordReader

MEANING = "what operations on images cost here, and other ways to do them"
NOTHING = Measured(reason="no operation on images and no file was seen where batches are made")
SECONDS = 6.0  # of measuring, in all
PATIENCE = 60.0  # seconds for libraries to be imported and slow operations to have their fewest rounds


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured, and by whom."""

    python: str
    cwd: str | None
    operations: list[dict[str, Any]]
    files: list[str]


def plan(reader: RecordReader) -> Plan | None:
    """By the first process whose batches were seen to work on images, or to read files; None if there is none."""
    for process in reader.run():
        watched = watched_batches(process, reader.workers_of(process))
        if watched is None:
            continue
        wanted = asked(watched)
        files = sorted({path for paths in watched.files.values() for path in paths})
        if wanted or files:
            python = str(process.facts.get("executable"))
            return Plan(python=python, cwd=process.facts.get("cwd"), operations=wanted, files=files)
    return None


def measure(plan: Plan) -> Measured:
    """Run it. Whatever happens here, the report stands."""
    told = {"seconds": SECONDS, "operations": plan.operations, "files": plan.files}
    try:
        ended = subprocess.run(
            [plan.python, imagebench.__file__],
            input=json.dumps(told).encode(),
            capture_output=True,
            timeout=SECONDS + PATIENCE,
            check=True,
            cwd=plan.cwd,
        )
        found = msgspec.json.decode(ended.stdout, type=Measured)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        return Measured(reason=f"it could not be measured: {error}")
    named = [
        msgspec.structs.replace(made, name=operation["name"], flag=operation["flag"])
        for operation, made in zip(plan.operations, found.operations, strict=True)
    ]
    return msgspec.structs.replace(found, operations=named)
