"""The windows of a process: which are opened one after the other when the parent asks, and what stands in their way."""

import functools
from threading import get_ident

from . import allocations
from .compiling import compilations
from .parts import Calls, Marked, Timed, are_on_gpu
from .parts import obstacle as parts_obstacle
from .window import Kineto, Window, obstacle, profiler_is_active

_OWN_PROFILER = "the program uses torch's profiler itself"


class Windows:
    """The one that follows memory, the kernel window, the one that times calls of parts, the one that marks them.

    In this order, because the last takes CUPTI down.
    """

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._torch = session.torch
        self._has_profiler = False  # whether the program has started a profiler of its own
        self._imported_in = get_ident()  # the thread that has imported torch
        self.are_asked = False
        self._memory = None  # the window that follows memory
        self.is_own_history = False  # whether it is we who have the allocator's history switched on or off

    def forget(self):
        """In a forked child: nothing has been asked of it."""
        self._log.window = None
        self.are_asked = False

    def open_after(self, backwards):
        """The parent asks for them, after so many backward passes."""
        self.are_asked = True
        session = self._session
        calls = Calls(session)
        parts = self._make(backwards, lambda: Marked(session, calls), self._parts_obstacle, "parts", None)
        timed = self._make(backwards, lambda: Timed(self._log, calls), self._timed_obstacle, "calls", parts)
        kineto = functools.partial(Kineto, self._torch, lambda: session.has_graphs)
        kernels = self._make(backwards, kineto, self._obstacle, "window", timed)
        memory = functools.partial(self._watch_memory, calls)
        self._memory = self._make(backwards, memory, self._memory_obstacle, "allocations", kernels)
        self._log.window = self._memory

    def profiler_starts(self):
        """The program starts a profiler of its own: ours must be out of its way."""
        self._has_profiler = True
        self.give_up(_OWN_PROFILER)

    def history_starts(self):
        """The program asks for the history of allocations itself: ours must be out of its way."""
        if self._memory is not None and self._log.window is self._memory and not self.is_own_history:
            self._memory.give_up("the program itself has torch keep the history of its allocations")

    def give_up(self, reason):
        """The one that is open or to be opened, and those that would follow it."""
        before, window = None, self._log.window
        while window is not None and window is not before:
            window.give_up(reason)
            before, window = window, self._log.window

    def before_fork(self):
        """A child must not inherit one that is open."""
        window = self._log.window
        if window is not None:
            window.interrupt("the program started another process while it was open")

    def _make(self, backwards, kineto, find_obstacle, name, following):
        around = (self._log, self._session.writer, backwards)
        return Window(*around, kineto, find_obstacle, self._session.count_waiting, name=name, following=following)

    def _watch_memory(self, calls):
        kind = allocations.Allocated if allocations.is_on_gpu(self._session) else allocations.Saved
        return kind(self._session, calls if self._parts_are_seen() is None else None)

    def _memory_obstacle(self):
        return allocations.obstacle(self._session)

    def _parts_are_seen(self):
        models = self._session.trained_models()
        return parts_obstacle(self._torch, models, self._session.has_graphs, compilations())

    def _obstacle(self):
        return self._profiler_obstacle() or obstacle(self._torch)

    def _profiler_obstacle(self):
        if self._has_profiler:
            return _OWN_PROFILER
        if get_ident() != self._imported_in:  # else the profiler complains on the program's stderr
            return "it trains in another thread than the one that imported torch"
        return "another profiler was active" if profiler_is_active(self._torch) else None

    def _timed_obstacle(self):
        return "kernels are timed" if are_on_gpu(self._session.trained_models()) else self._parts_obstacle()

    def _parts_obstacle(self):
        models, reason = self._session.trained_models(), self._parts_are_seen()
        if reason is None and not self._log.window.is_watching:  # else the window before this one has asked
            reason = self._obstacle() if are_on_gpu(models) else self._profiler_obstacle()
        return reason
