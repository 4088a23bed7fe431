"""Paths as a person knows them, for where there is little room; report.json has them whole."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import msgspec

from floorit.analyse.settings import Setting
from floorit.report.model import Program, Report

MOST = 40  # characters of a path: what the ledger has room for in 100 columns
_LIBRARIES = ("site-packages", "dist-packages")
_LEFT_OUT = "..."


def with_short_paths(report: Report) -> Report:
    """The same report, to be shown: every place in it, wherever it stands."""
    known = folders(report.program)

    def shown(value: Any) -> Any:
        if isinstance(value, list):
            return [shown(item) for item in value]
        if not isinstance(value, msgspec.Struct):
            return value
        changes = {name: shown(getattr(value, name)) for name in value.__struct_fields__}
        if "file" in changes:
            changes["file"] = short(changes["file"], known)
        if isinstance(value, Setting) and value.declared_at and value.declared_at.startswith("/"):
            file, _, line = value.declared_at.rpartition(":")
            changes["declared_at"] = f"{short(file, known)}:{line}"
        return msgspec.structs.replace(value, **changes)

    shortened: Report = shown(report)
    return shortened


def folders(program: Program) -> list[PurePosixPath]:
    """Where the program was started, and where its script is."""
    if program.cwd is None:
        return []
    cwd = PurePosixPath(program.cwd)
    script = next((cwd / word for word in program.command if word.endswith(".py")), None)
    return [cwd, script.parent] if script else [cwd]


def is_of_library(path: str) -> bool:
    """Whether it was installed, and is not the program's own."""
    return any(name in PurePosixPath(path).parts for name in _LIBRARIES)


def short(path: str, folders: list[PurePosixPath]) -> str:
    """Relative to the library it is in, else to the first of the folders that it is in; cut if that is too long."""
    whole = PurePosixPath(path)
    parts = whole.parts
    for name in _LIBRARIES:
        if name in parts:
            return _cut(parts[parts.index(name) + 1 :])
    inside = next((folder for folder in folders if folder.name and whole.is_relative_to(folder)), None)
    return _cut(whole.relative_to(inside).parts if inside else parts)


def _cut(parts: tuple[str, ...]) -> str:
    """The first folder and as many of the last parts as there is room for."""
    path = PurePosixPath(*parts)
    first = 2 if path.is_absolute() else 1
    for kept in range(first + 1, len(parts)):
        if len(str(path)) <= MOST:
            break
        path = PurePosixPath(*parts[:first], _LEFT_OUT, *parts[kept:])
    return str(path)
