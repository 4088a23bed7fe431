"""The folders that runs, tries and searches are kept in."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from floorit import launch, runfile
from floorit.commandline import FOLDER
from floorit.errors import OutputError, RecordError
from floorit.language import said


def name_of(command: list[str]) -> str:
    """What a command is called for short."""
    return Path(next((word for word in command if word.endswith(".py")), command[0])).stem.strip("-") or "run"


def make(wanted: Path | None, name: str) -> Path:
    """The run's folder, with room for a record in it. One that cannot be written must not keep the program from
    training: then the record goes to a temporary folder."""
    stamped = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = wanted or unused(Path(FOLDER) / stamped)
    try:
        _prepare(folder)
    except OSError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix=f"floorit-{stamped}-"))
        told = f"floorit: {folder} cannot be written ({error.strerror}); recording to {elsewhere}"
        print(said(told), file=sys.stderr)
        folder = elsewhere
        _prepare(folder)
    return folder


def unused(folder: Path) -> Path:
    """The same, or with a number behind it where there is one."""
    number, candidate = 1, folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}.{number}")
    return candidate


def _prepare(folder: Path) -> None:
    record = folder / runfile.RECORD
    if record.is_dir() and any(record.iterdir()):
        raise OutputError(f"{folder} already holds a record; choose another --out")
    launch.make_record(folder)


def newest() -> Path:
    """Of the newest run."""
    runs = sorted(Path(FOLDER).glob(f"*/{runfile.NAME}"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise RecordError(f"there is no run in {FOLDER}/; name one, or make one: floorit run train.py")
    return runs[-1].parent
