"""The live line while a program runs: the bottom row of a terminal, or now and then a plain line."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from floorit import replay
from floorit.analyse import iterations
from floorit.analyse.recent import ENDLESS
from floorit.events import Process, RecordReader
from floorit.language import said, speaks_utf8
from floorit.record import wire
from floorit.stats import duration

REFRESH = 1.0  # seconds between two states of the line on a terminal
EPOCH = 10.0  # seconds: of one that is shorter, the time left is old before it is read
PLAIN = 30.0  # seconds between two plain lines
SHARE = 0.02  # of the time that may go into lines: a run of days has many steps to count
RECENT = 50  # iterations the line looks at
RECENT_PASSES = 2  # over data, of a process: training's and evaluation's; workers of earlier ones are gone
MARGIN = 2.0  # seconds that every rank is given to hear of what it is asked
# The kernel window opens once so many steps were steady, for so many seconds in all.
STEADY_STEPS, STEADY_SECONDS = 10, 3.0
# Seconds that the end of a run waits for both windows to be over; more than they take where nothing closes them.
WINDOW_LIMIT = 150.0


class Live:
    """Reads the record as it grows, shows it, and asks the program to end where that was wished."""

    def __init__(
        self,
        record: Path,
        *,
        stream: TextIO,
        quiet: bool,
        steps: int | None,
        window: bool,
        enough: Callable[[iterations.Iterations], bool] | None = None,
    ) -> None:
        """`steps` is after how many steady ones the program is to end; `enough` says it where a number does not."""
        self.reader = RecordReader(record)
        self._record = record
        self._stream = stream
        self._quiet = quiet
        self._steps = steps
        self._enough = enough or (None if steps is None else lambda found: len(found.after_warmup) >= steps)
        self.has_asked_to_stop = False
        self._wants_window = window
        self._window_asked: float | None = None  # when
        self.warned = False
        self._started = self._last = time.monotonic()
        self._took = 0.0  # seconds, the last look
        self._bar = None if quiet or not stream.isatty() else BottomLine(stream)

    def watch(self) -> None:
        """One look."""
        now = time.monotonic()
        is_asking = self._enough or self._wants_window
        pause = REFRESH if self._bar or is_asking else PLAIN
        if now - self._last < (pause if is_asking else max(pause, self._took / SHARE)):
            return
        self._last = now
        self._look(now)
        self._took = time.monotonic() - now

    def _look(self, now: float) -> None:
        self.reader.read()
        self._warn()
        found = [(p, i) for p in self.reader.run() if (i := iterations.find(p)) is not None]
        if self._wants_window and found:
            self._ask_for_window(found, now)
        if self._enough and found and not self._window_is_open(found, now):
            self._ask_to_stop(found)
        if self._quiet:
            return
        if self._bar:
            self._bar.show(self._text(found))
        elif now - self._started >= PLAIN:
            self._started = now
            text = self._text(found)
            print(said(f"floorit: {text}"), file=self._stream, flush=True)

    @property
    def has_stopped(self) -> bool:
        """Whether the program was ended because it was asked to; it may have come to its end before it heard of it."""
        return self.has_asked_to_stop and any(process.stopped for process in self.reader.run())

    def pids(self) -> tuple[list[int], list[int]]:
        """The processes that train on this machine, as far as they are known by now, and their loaders' workers."""
        here = [process for process in self.reader.run() if process.key[0] == os.uname().nodename]
        recent = [made for process in here for made in list(process.iterators.values())[-RECENT_PASSES:]]
        workers = list(dict.fromkeys(pid for made in recent for pid in made["pids"]))
        return [process.key[1] for process in here], workers

    def close(self) -> None:
        """The program has ended."""
        if self._bar:
            self._bar.close()
        self.reader.read()
        self._warn()

    def _warn(self) -> None:
        """A record that cannot be written is said once, at once."""
        if self.warned:
            return
        status = self._record / "status"
        reason = status.read_bytes().rstrip(b"\0\n ") if status.exists() else b"its folder is gone"
        if reason:
            self.warned = True
            text = reason.decode(errors="replace")
            print(said(f"\nfloorit: the record cannot be written: {text}. The program goes on."), file=self._stream)

    def _ask_to_stop(self, found: list[tuple[Process, iterations.Iterations]]) -> None:
        """All ranks are to end after the same backward pass, a little later than the furthest has got to."""
        if not self.has_asked_to_stop and self._enough is not None and all(self._enough(i) for _, i in found):
            self.has_asked_to_stop = True
            self._ask("stop", found)

    def _ask_for_window(self, found: list[tuple[Process, iterations.Iterations]], now: float) -> None:
        """All ranks are to watch the same steps, once all are steady."""
        if all(_is_settled(i) for _, i in found):
            self._wants_window = False
            with suppress(OSError):  # a folder that cannot be written is said elsewhere
                self._ask("window", found)
                self._window_asked = now

    def _window_is_open(self, found: list[tuple[Process, iterations.Iterations]], now: float) -> bool:
        """Whether it has been asked for and is not over yet: its steps do not count, so the end waits for it."""
        if self._window_asked is None or now - self._window_asked > WINDOW_LIMIT:
            return False
        return any(process.window is None or process.parts is None for process, _ in found)

    def _ask(self, what: str, found: list[tuple[Process, iterations.Iterations]]) -> None:
        """Tell all ranks to do something after the same backward pass, a little later than the furthest has got to."""
        furthest = max(int(p.rows["backwards"].sum()) for p, _ in found)
        pace = max(float(i.after_warmup[-RECENT:].mean()) for _, i in found)
        margin = int(MARGIN / max(pace, 1e-6)) + 1 if len(found) > 1 else 0
        request = self._record / f"{what}.part"
        request.write_text(str(furthest + margin))
        request.replace(self._record / what)

    def _text(self, found: list[tuple[Process, iterations.Iterations]]) -> str:
        if not found:
            return "recording; no training step yet"
        process, current = found[0]
        pace = float((current.after_warmup if len(current.after_warmup) else current.seconds)[-RECENT:].mean())
        parts = [f"step {current.count}", f"{pace * 1e3:,.{0 if pace >= 0.1 else 1}f} ms/step"]
        samples = float(current.samples[-RECENT:].mean())
        if samples and pace:
            parts.append(f"{samples / pace:,.0f} samples/s")
        parts.append(f"{_waiting(process, current):.0%} waiting for data")
        left = self._left(process, current, pace)
        if left:
            parts.append(left)
        return " · ".join(parts) if speaks_utf8(self._stream) else ", ".join(parts)

    def _left(self, process: Process, current: iterations.Iterations, pace: float) -> str | None:
        if self._steps:
            return f"{duration(max(self._steps - len(current.after_warmup), 0) * pace)} left"
        rows = process.rows
        this = process.iterators.get(int(rows["iterator"][-1]), {})
        length = process.loaders.get(this.get("loader", 0), {}).get("length")
        if not length:
            return None
        done = int(((rows["iterator"] == this["id"]) & (rows["opened"] == replay.BATCH)).sum())
        is_told = done <= length and EPOCH <= length * pace < ENDLESS
        return f"{duration(max(length - done, 0) * pace)} left in this epoch" if is_told else None


def _is_settled(current: iterations.Iterations) -> bool:
    times = current.after_warmup
    is_long_enough = len(times) >= STEADY_STEPS and float(times.sum()) >= STEADY_SECONDS
    return is_long_enough and not current.compiled[-STEADY_STEPS:].any()


def _waiting(process: Process, current: iterations.Iterations) -> float:
    recent = process.rows[(current.of_row >= max(current.count - RECENT, 0)) & ~current.windowed]
    total = float(recent["seconds"].sum())
    return float(recent["seconds"][:, wire.DATA_WAIT].sum()) / total if total else 0.0


def _cut(text: str, columns: int) -> str:
    """As much of a text as fits into a row, in which some characters are two columns wide."""
    return text if cell_len(text) <= columns else set_cell_size(text, columns)


class BottomLine:
    """The last row of a terminal, kept out of the way of what scrolls above it (as apt does)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows = 0

    def show(self, text: str) -> None:
        size = os.get_terminal_size(self._stream.fileno())
        if size.lines < 5:
            return
        if size.lines != self._rows:
            self._rows = size.lines
            self._write(f"\n\0337\033[1;{size.lines - 1}r\0338\033[1A")  # the row below is ours from now on
        shown = _cut(said(text), size.columns - 9)
        self._write(f"\0337\033[{size.lines};1H\033[2K\033[2mfloorit\033[0m {shown}\0338")

    def close(self) -> None:
        if self._rows:
            self._write(f"\0337\033[r\033[{self._rows};1H\033[2K\0338")
            self._rows = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
