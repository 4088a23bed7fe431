"""What `floorit watch` does."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

from rich.console import Console
from rich.live import Live

from floorit.language import said
from floorit.language.drawn import drawn
from floorit.watch.scene import Scene, Watcher
from floorit.watch.view import line, render

NICE = 10  # the program comes first, wherever the two share a core
PLAIN = 30.0  # seconds between two plain lines
_QUIT = set(b"qQ")


def run(folder: Path) -> int:
    """Show a run until it ends or one has seen enough; returns the exit code."""
    os.nice(NICE)
    watcher = Watcher(folder)
    console = Console(highlight=False, emoji=False)
    if not sys.stdout.isatty():
        _say(watcher, sys.stdout)
        return 0
    scene = watcher.look()
    if scene.over is None:
        scene = _show(watcher, console, scene)
    if scene.over is None:
        print(said(f"floorit: {line(scene)}"))
    else:
        console.print(drawn(render(scene, console)))
    return 0


def _show(watcher: Watcher, console: Console, scene: Scene) -> Scene:
    """On a screen of its own, which is gone afterwards; the last scene."""
    shown = Live(drawn(render(scene, console)), console=console, screen=True, auto_refresh=False)
    with _keys() as keys:
        try:
            shown.start(refresh=True)
            while scene.over is None and not _is_asked_to_quit(keys, watcher.pause):
                scene = watcher.look()
                shown.update(drawn(render(scene, console)), refresh=True)
        except KeyboardInterrupt:
            pass
        finally:
            shown.stop()  # whenever it was interrupted, also while it began
    return scene


@contextmanager
def _keys() -> Iterator[TextIO | None]:
    """The keyboard, each key as it is pressed, where there is one; and an end by a signal is one like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if not sys.stdin.isatty():
            yield None
            return
        kept = termios.tcgetattr(sys.stdin)
        try:
            tty.setcbreak(sys.stdin)
            yield sys.stdin
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_asked_to_quit(keys: TextIO | None, pause: float) -> bool:
    """Waits until it is time to look again, or a key is pressed."""
    if keys is None:
        time.sleep(pause)
        return False
    ready, _, _ = select.select([keys], [], [], pause)
    return bool(ready) and bool(_QUIT & set(os.read(keys.fileno(), 1024)))


def _say(watcher: Watcher, stream: TextIO) -> None:
    """A plain line now and then, and one at the end."""
    scene, last = watcher.look(), None
    while True:
        now = time.monotonic()
        if last is None or scene.over is not None or now - last >= PLAIN:
            print(said(f"floorit: {line(scene)}"), file=stream, flush=True)
            last = now
        if scene.over is not None:
            return
        time.sleep(watcher.pause)
        scene = watcher.look()
