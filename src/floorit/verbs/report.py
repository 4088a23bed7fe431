"""`floorit report`: what was recorded, drawn again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from floorit import cores, runfile
from floorit.errors import OutputError
from floorit.events import RecordReader
from floorit.language import said
from floorit.report import build, markdown, model, sheet, terminal, trained, words
from floorit.report import trace as trace_file
from floorit.verbs import folders, telling


def run(options: argparse.Namespace) -> int:
    """In the form that is asked for; the exit code."""
    folder = options.folder or folders.newest()
    if options.csv:
        run, reader = build.load(folder, options.warmup)
        sys.stdout.write(sheet.render(trained.of_record(reader, run.warmup)))
        return 0
    if options.trace is not None:
        return _draw_trace(folder, *build.load(folder, options.warmup), options.trace)
    report, run, reader = build.merge(folder, options.warmup, cores.spread)
    if options.html is not None:
        file = Path(options.html) if options.html else None
        try:
            print(words.relative(str(telling.draw_page(report, run, reader, folder, file))))
        except OSError as error:
            raise OutputError(f"the page cannot be written: {error.strerror} ({file or folder})") from None
    elif options.json:
        sys.stdout.buffer.write(model.to_json(report))
    elif options.markdown:
        sys.stdout.write(markdown.render(report))
    else:
        terminal.show(report, sys.stdout)
    return 0


def _draw_trace(folder: Path, run: runfile.RunFile, reader: RecordReader, file: Path) -> int:
    made = trace_file.make(folder, run, reader)
    try:
        file.write_bytes(trace_file.to_json(made))
    except OSError as error:
        raise OutputError(f"{file} cannot be written: {error.strerror}") from None
    print(said(f"floorit: {trace_file.said(made)} in {words.relative(str(file))}"), file=sys.stderr)
    return 0
