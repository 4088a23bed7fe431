"""The program's source around the lines that took time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from floorit.analyse.ledger import Line
from floorit.report.model import Report
from floorit.report.paths import is_of_library

AROUND = 3  # lines shown before and after each
MOST_FILES, MOST_LINES = 6, 24  # that are shown, the costliest
LEAST = 0.01  # of the step, or of making batches: less is chance
BATCHES = "batches"  # instead of a phase: the time in which workers make them
_LARGEST = 2**21  # bytes of a file


class Hot(msgspec.Struct, frozen=True):
    """What one line took."""

    share: float
    of: str  # the phase, or BATCHES
    function: str
    inside: str | None


class Row(msgspec.Struct, frozen=True):
    """A line of source; text None: lines are left out here."""

    number: int
    text: str | None
    hot: list[Hot] = []


class File(msgspec.Struct, frozen=True, kw_only=True):
    """Part of one file, or why it cannot be shown."""

    path: str
    rows: list[Row]
    reason: str | None = None  # why there is no text
    is_newer: bool = False  # changed since the program was started


def listing(report: Report, started: float) -> list[File]:
    """The program's own files with the costliest lines, those of the step first."""
    marks = _marks(report)
    largest = sorted(marks.items(), key=lambda item: _weight(item[1]), reverse=True)[:MOST_LINES]
    by_file: dict[str, dict[int, list[Hot]]] = {}
    for (file, line), hot in largest:
        by_file.setdefault(file, {})[line] = hot

    def of_file(path: str) -> tuple[bool, float]:
        return _weight([hot for marks in by_file[path].values() for hot in marks])

    weightiest = sorted(by_file, key=of_file, reverse=True)[:MOST_FILES]
    return [_file(path, by_file[path], report.program.cwd, started) for path in weightiest]


def _weight(marks: list[Hot]) -> tuple[bool, float]:
    """What is part of a step comes before what workers do beside it."""
    of_step = [hot.share for hot in marks if hot.of != BATCHES]
    return bool(of_step), sum(of_step) or sum(hot.share for hot in marks)


def _marks(report: Report) -> dict[tuple[str, int], list[Hot]]:
    marks: dict[tuple[str, int], list[Hot]] = {}
    for entry in report.ledger:
        _mark(marks, entry.where, entry.share, entry.phase)
        if (
            entry.phase == "sync" and not entry.where
        ):  # a blocked thread is not looked at: the calls are timed themselves
            _mark(marks, _blocking(report), entry.share, entry.phase)
    if report.workers is not None and report.workers.count:
        _mark(marks, report.workers.where, 1.0, BATCHES)
    return marks


def _blocking(report: Report) -> list[Line]:
    """The lines that wait for the GPU, by the time that they wait."""
    waiting = [sync for sync in report.syncs if sync.phase == "sync"]
    total = sum(sync.seconds for sync in waiting)
    return [
        Line(file=sync.file, line=sync.line, function=sync.function, share=sync.seconds / total, inside=sync.op)
        for sync in waiting
        if total
    ]


def _mark(marks: dict[tuple[str, int], list[Hot]], lines: Iterable[Line], share: float, of: str) -> None:
    for line in lines:
        if share * line.share >= LEAST and not is_of_library(line.file):
            hot = Hot(share * line.share, of, line.function, line.inside)
            marks.setdefault((line.file, line.line), []).append(hot)


def _file(path: str, lines: dict[int, list[Hot]], cwd: str | None, started: float) -> File:
    source = Path(cwd or "/") / path
    try:
        text = _read(source)
    except OSError as error:
        rows = [Row(number, "", hot) for number, hot in sorted(lines.items())]
        return File(path=path, rows=rows, reason=error.strerror or "it cannot be read")
    newer = bool(started) and source.stat().st_mtime > started
    return File(path=path, rows=_rows(text, lines), is_newer=newer)


def _read(source: Path) -> list[str]:
    """Its lines. A record names what is read, and may come from elsewhere: of what it names, only Python is shown."""
    if source.suffix != ".py":
        raise OSError(0, "it is not a Python file")
    if source.stat().st_size > _LARGEST:
        raise OSError(0, "it is too large")
    return source.read_text(encoding="utf-8", errors="replace").splitlines()


def _rows(text: list[str], lines: dict[int, list[Hot]]) -> list[Row]:
    shown = sorted({n for line in lines for n in range(line - AROUND, line + AROUND + 1) if 1 <= n <= len(text)})
    rows: list[Row] = []
    for number in shown:
        if rows and number > rows[-1].number + 1:
            rows.append(Row(number, None))
        rows.append(Row(number, text[number - 1], lines.get(number, [])))
    return rows
