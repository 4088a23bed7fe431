"""report.html: a run explained on one page that needs no network, from the report and its record."""

from __future__ import annotations

from pathlib import Path

from floorit.events import RecordReader
from floorit.report.model import Report
from floorit.report.page import document, view
from floorit.runfile import RunFile

NAME = "report.html"


def save(html: str, file: Path) -> Path:
    """Write a page, whole or not at all; where it is."""
    partial = file.with_name(file.name + ".part")
    partial.write_text(html, encoding="utf-8")
    return partial.replace(file)


def render(report: Report, run: RunFile, reader: RecordReader, folder: Path) -> str:
    """The page of a run; `folder` has the samples of the machine."""
    seen = view.look(report, run, reader, folder)
    return document.document("run.html", view.values(report, run, seen), view.drawn(report, seen))
