"""How a verb says what came out: on the terminal, as JSON, and as a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import RenderableType

from floorit import runfile
from floorit.events import RecordReader
from floorit.language import said
from floorit.report import model, terminal, words


def tell(options: argparse.Namespace, as_json: bytes, as_text: RenderableType) -> None:
    """On stdout for programs, on stderr for people."""
    if options.json:
        sys.stdout.buffer.write(as_json)
        sys.stdout.buffer.flush()
    if not options.quiet:
        terminal.draw(as_text, sys.stderr)


def leave_page(folder: Path, options: argparse.Namespace, draw: Callable[[], Path]) -> None:
    """Draw a page and say where it is. All else has been said by then: what fails here hides nothing."""
    try:
        path = draw()
    except OSError as error:
        print(said(f"floorit: the page cannot be written: {error.strerror} ({folder})"), file=sys.stderr)
    except Exception as error:  # a fault of ours must not become the program's exit code
        print(said(f"floorit: the page cannot be drawn: {error!r}"), file=sys.stderr)
    else:
        if not options.quiet:
            print(said(f"the same as a page, to read and to pass on: {words.relative(str(path))}"), file=sys.stderr)


def draw_page(
    report: model.Report, run: runfile.RunFile, reader: RecordReader, folder: Path, file: Path | None = None
) -> Path:
    """The page of a run's report, written."""
    from floorit.report import page  # takes 0.03 s to import, which what draws no page need not wait for

    return page.save(page.render(report, run, reader, folder), file or folder / page.NAME)
