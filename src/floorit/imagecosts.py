"""Has the program's Python time operations on images, and other ways to do them, after the program has ended."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import msgspec

from floorit import imagebench
from floorit.analyse.alternatives import Measured, asked
from floorit.analyse.input import watched_batches
from floorit.events import Process, RecordReader

MEANING = "what operations on images cost here, and other ways to do them"
SECONDS = 6.0  # of measuring, in all
PATIENCE = 60.0  # seconds for libraries to be imported and slow operations to have their fewest rounds


def measure(reader: RecordReader) -> Measured:
    """Of the first process that trained and whose batches were seen to work on images, or to read files."""
    for process in reader.run():
        watched = watched_batches(process, reader.workers_of(process))
        wanted = asked(watched) if watched is not None else []
        files = sorted({path for paths in watched.files.values() for path in paths}) if watched is not None else []
        if wanted or files:
            plan = {"seconds": SECONDS, "operations": wanted, "files": files}
            return _run(process, plan, wanted)
    return Measured(reason="no operation on images and no file was seen where batches are made")


def _run(process: Process, plan: dict[str, object], wanted: Sequence[dict[str, object]]) -> Measured:
    python = str(process.facts.get("executable"))
    try:
        ended = subprocess.run(
            [python, imagebench.__file__],
            input=json.dumps(plan).encode(),
            capture_output=True,
            timeout=SECONDS + PATIENCE,
            check=True,
            cwd=process.facts.get("cwd"),
        )
        found = msgspec.json.decode(ended.stdout, type=Measured)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        return Measured(reason=f"it could not be measured: {error}")
    named = [
        msgspec.structs.replace(made, name=operation["name"], flag=operation["flag"])
        for operation, made in zip(wanted, found.operations, strict=True)
    ]
    return msgspec.structs.replace(found, operations=named)
