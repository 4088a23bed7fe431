"""Paths as a person knows them, for where there is little room; report.json has them whole."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from floorit.analyse.ledger import Line
from floorit.diagnose import Finding
from floorit.report.model import Program, Report

MOST = 40  # characters of a path: what the ledger has room for in 100 columns
_LIBRARIES = ("site-packages", "dist-packages")
_LEFT_OUT = "..."


def with_short_paths(report: Report) -> Report:
    """The same report, to be shown."""
    folders = _folders(report.program)

    def shorten(where: list[Line]) -> list[Line]:
        return [_short_line(line, folders) for line in where]

    workers = report.workers
    return msgspec.structs.replace(
        report,
        ledger=[msgspec.structs.replace(entry, where=shorten(entry.where)) for entry in report.ledger],
        workers=msgspec.structs.replace(workers, where=shorten(workers.where)) if workers else None,
        findings=[_shortened(finding, folders) for finding in report.findings],
    )


def _shortened(finding: Finding, folders: list[PurePosixPath]) -> Finding:
    where = [_short_line(line, folders) for line in finding.where]
    rewrite = finding.rewrite
    if rewrite is not None:
        rewrite = msgspec.structs.replace(rewrite, where=_short_line(rewrite.where, folders))
    return msgspec.structs.replace(finding, where=where, rewrite=rewrite)


def _short_line(line: Line, folders: list[PurePosixPath]) -> Line:
    return msgspec.structs.replace(line, file=short(line.file, folders))


def _folders(program: Program) -> list[PurePosixPath]:
    """Where the program was started, and where its script is."""
    if program.cwd is None:
        return []
    cwd = PurePosixPath(program.cwd)
    script = next((cwd / word for word in program.command if word.endswith(".py")), None)
    return [cwd, script.parent] if script else [cwd]


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
