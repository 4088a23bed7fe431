"""What `floorit compare` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from floorit.compare import comparison, limit, markdown, page
from floorit.compare.table import render
from floorit.errors import OutputError
from floorit.language import said
from floorit.report import terminal
from floorit.report.words import relative


def run(options: argparse.Namespace) -> int:
    """Show what differs; returns the exit code."""
    allowed = limit.parse(options.fail_if) if options.fail_if is not None else None
    a, b = comparison.read(options.a), comparison.read(options.b)
    found = comparison.compare(a, b)
    if options.html is not None:
        _write(page.render(found, a, b), Path(options.html) if options.html else options.b / page.NAME)
    elif options.json:
        sys.stdout.buffer.write(comparison.to_json(found))
    elif options.markdown:
        sys.stdout.write(markdown.render(found))
    else:
        terminal.draw(render(found), sys.stdout)
    return 0 if allowed is None else _judge(found, allowed)


def _write(html: str, file: Path) -> None:
    try:
        file.write_text(html, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"the page cannot be written: {error.strerror} ({file})") from None
    print(relative(str(file)))


def _judge(found: comparison.Comparison, allowed: limit.Limit) -> int:
    """1 where B is surely slower by more than is allowed, and what to say of it."""
    if found.speed is None:
        told = "floorit: --fail-if: there is no interval, so nothing is said to be slower"
        print(said(told), file=sys.stderr)
        return 0
    if not limit.is_exceeded(allowed, found.speed):
        return 0
    least, names = 1 - found.speed.ratio.high, (relative(found.b), relative(found.a))
    told = f"{names[0]} is at least {least:.1%} slower than {names[1]}; {allowed.slower:.1%} is allowed"
    print(said(f"floorit: {told}"), file=sys.stderr)
    return 1
