"""What a program's own files say, read once it has run: what they declare, and what their source shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from floorit.analyse import habits
from floorit.declared import gather
from floorit.events import RecordReader
from floorit.runfile import RunFile


def read(run: RunFile, reader: RecordReader, shown: Mapping[str, Path] = MappingProxyType({})) -> RunFile:
    """The run with that; in place of some files it was shown others."""
    from floorit.scan.scan import of_run, whole_path  # takes 0.1 s to import, which the program need not wait for
    from floorit.scan.source import decoded

    processes = reader.run()
    paths = habits.files([*processes, *reader.workers.values()])
    others = {path: shown[real] for path in paths if (real := os.path.realpath(path)) in shown and path.endswith(".py")}
    found = of_run(paths, {whole_path(path): decoded(other.read_bytes())[0] for path, other in others.items()})
    return msgspec.structs.replace(
        run,
        told=gather.gather(processes, shown),
        read=found.findings,
        paced=found.paced,
        recomputing=found.recomputing,
    )
