"""What is said while trials run: a line for each that is over, and on a terminal, the time left in the last row."""

from __future__ import annotations

import time
from typing import TextIO

from floorit import live
from floorit.language import said
from floorit.stats import duration, seconds
from floorit.trial.trial import Trial


class Progress:
    """On a stream; `quiet` says nothing."""

    def __init__(self, stream: TextIO, *, quiet: bool, budget: float) -> None:
        self._stream = stream
        self._quiet = quiet
        self._budget = budget
        self._bar = live.BottomLine(stream) if stream.isatty() and not quiet else None
        self._stage = ""
        self._spent = 0.0  # seconds of trials that are over
        self._began = self._shown = time.monotonic()

    def say(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            print(said(f"floorit: {text}"), file=self._stream, flush=True)

    def stage(self, text: str) -> None:
        """What comes now."""
        self._stage = text

    def count(self, spent: float) -> None:
        """So many seconds were spent by an earlier call."""
        self._spent = spent

    def begin(self) -> None:
        """A trial begins."""
        self._began = time.monotonic()

    def tick(self) -> None:
        """A trial goes on."""
        now = time.monotonic()
        if self._bar is not None and now - self._shown >= live.REFRESH:
            self._shown = now
            self._bar.show(f"{self._stage}: {now - self._began:.0f} s, {self._left(now - self._began)}")

    def over(self, trial: Trial) -> None:
        """A trial has ended."""
        how = f"{seconds(trial.pace)} a step" if trial.pace is not None else trial.reason or trial.state
        self._spent += trial.seconds
        self.say(f"{self._stage}: {trial.arm}: {how} (took {duration(trial.seconds)}; {self._left(0.0)})")

    def close(self) -> None:
        """Give the last row back."""
        if self._bar is not None:
            self._bar.close()

    def _left(self, now: float) -> str:
        return f"at most {duration(max(self._budget - self._spent - now, 0.0))} left"
