"""Exclusive time: at any moment the training thread is in exactly one phase.

What passes is booked to the phase it passes in, so the phases of a stretch add up to its wall time by construction.
Some time can only be named by what follows it. It is booked as PENDING and settled later: the code after a forward
pass is the loss if a backward pass follows, and the code since the batch arrived is the forward pass itself if no
module was called before the backward.
"""

from __future__ import annotations

from floorit.record.wire import BACKWARD, FORWARD, LOSS, OPTIMIZER, OTHER, PHASES, RECOMPUTE

PENDING = len(PHASES)
BASES = (OTHER, OPTIMIZER, PENDING)  # phases in which a call of the model is a forward pass


class Clock:
    """The phases of one thread. Nanoseconds."""

    def __init__(self, now: int) -> None:
        self.spent = [0] * (PENDING + 1)
        self.open: list[tuple[int, int]] = []  # (what opened the phase, the phase around it), outermost first
        self.current = PENDING
        self.since = now
        self.base = OTHER  # what PENDING becomes when no backward follows
        self.becomes = FORWARD  # what it becomes when one does
        self.settled: int | None = None  # what PENDING has just become

    def passes(self, now: int) -> None:
        """Book what has passed to the current phase. Time never goes back."""
        if now > self.since:
            self.spent[self.current] += now - self.since
            self.since = now

    def enter(self, phase: int, key: int) -> None:
        """Begin a phase inside the current one."""
        self.open.append((key, self.current))
        self.current = phase

    def leave(self, *keys: int) -> int | None:
        """End the innermost phase opened by one of these, and any left open inside it; which of them it was."""
        for index in range(len(self.open) - 1, -1, -1):
            key, around = self.open[index]
            if key in keys:
                del self.open[index:]
                self.current = around
                return key
        return None

    def leaf(self, phase: int, nanoseconds: int) -> None:
        """The last so many nanoseconds, as far as they are not booked yet, were another phase."""
        self.spent[phase] += nanoseconds
        self.spent[self.current] -= nanoseconds

    def enter_settling(self, phase: int, key: int, loss_known: bool = False) -> None:
        """Begin a pass over the model or a step, which says what was pending before it.

        Before a backward pass it was the loss, unless that came out of the forward pass; else it was neither.
        """
        named = self.base
        if phase == BACKWARD and self.current == PENDING and not (loss_known and self.becomes == LOSS):
            named = self.becomes
        self.settle(named)
        if self.current == PENDING:
            self.current = self.base
        self.enter(phase, key)

    def leave_forward(self) -> None:
        """A forward pass has ended. From here on, time is the loss, if a backward follows."""
        if self.current in BASES:
            if self.current != PENDING:
                self.base = self.current
            self.current, self.becomes = PENDING, LOSS

    def settle(self, phase: int) -> None:
        """What was pending has a name now."""
        self.spent[phase] += self.spent[PENDING]
        self.spent[PENDING] = 0
        self.settled = phase

    def unwind(self) -> None:
        """At the top of the loop, drop an optimizer step that an exception left open."""
        if self.open and self.current == OPTIMIZER and all(around in BASES for _, around in self.open):
            self.current = self.open[0][1]
            self.open.clear()

    def in_backward(self) -> bool:
        return self.current in (BACKWARD, RECOMPUTE) or any(around == BACKWARD for _, around in self.open)

    def cut(self) -> list[int]:
        """Close the stretch: its nanoseconds by phase.

        From here on, time is the forward pass of a program without modules, if a backward follows.
        """
        self.settle(self.base)
        if self.current == PENDING:
            self.current = self.base
        if self.current == OTHER and not self.open:
            self.current, self.base, self.becomes = PENDING, OTHER, FORWARD
        spent, self.spent = self.spent, [0] * (PENDING + 1)
        return spent
