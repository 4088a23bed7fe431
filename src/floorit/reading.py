"""What a program's own files say, read once it has run: what they declare, and what their source shows."""

from __future__ import annotations

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
    from floorit.scan.scan import of_run  # takes 0.1 s to import, which the program need not wait for

    processes = reader.run()
    found = of_run(habits.files([*processes, *reader.workers.values()]))
    return msgspec.structs.replace(
        run,
        told=gather.gather(processes, shown),
        read=found.findings,
        paced=found.paced,
        recomputing=found.recomputing,
    )
