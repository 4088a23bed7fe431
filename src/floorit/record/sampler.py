"""Looks at the training thread's stack a few dozen times a second, and flushes the record.

A thread of its own, invisible to `threading`, that sleeps outside the GIL. It is not running while the process
forks: a child must never inherit a lock it holds, and Python warns of forking with threads.
"""

import _thread
import dis
import os
import sys
from itertools import count
from random import Random
from time import perf_counter, perf_counter_ns

# Seconds between looks, on average, and between flushes: few at first, so that a short run has lines too, then in
# proportion to the time it has run. Each takes the GIL from the program for a moment.
LOOKS = (0.025, 0.8, 1 / 60)  # at first, at most, share of the time it has run
FLUSHES = (0.1, 0.6, 1 / 5)  # so at most the last second is not in the record
# While it looks, a thread that waits for the GIL gets it after so many seconds, not after Python's 5 ms: else looks
# would be put off to the next call that happens to release it, and pure Python would never be seen.
SWITCH_INTERVAL = 5e-5
MOST_PLACES = 20_000  # source lines remembered, so that memory stays bounded
MOST_STACKS = 5_000  # the same for what led to them
DEPTH = 200  # frames looked at

USER, LIBRARY, TORCH, STDLIB, OURS = "user", "library", "torch", "stdlib", "ours"
_OURS = -1  # instead of the number of a line, where the line is ours
_CHECKPOINTING = os.path.join("torch", "utils", "checkpoint.py")


class Sampler:
    """Looks: (when, stack, innermost line). Which phase each fell into is found out later, by the log."""

    def __init__(self, log, writer, flush):
        self._log = log
        self._writer = writer
        self._flush = flush
        self._random = Random(os.getpid())  # its own stream: the program's is not touched
        self._running = None
        self._began = None  # when it first looked
        self._blind = False  # a look has failed: no more of them
        self._forget_places()
        self._looks = []
        self.awake = None  # in a worker: a list of one, true while it fetches

    def start(self):
        """Begin to look, if not already looking."""
        if self._running is None:
            stop, done = _thread.allocate_lock(), _thread.allocate_lock()
            stop.acquire()
            done.acquire()
            self._running = (stop, done)
            if self._began is None:
                self._began = perf_counter()
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_INTERVAL, self._interval))
            _thread.start_new_thread(self._loop, (stop, done))

    def stop(self):
        """Stop looking, and wait until that has happened."""
        if self._running is not None:
            stop, done = self._running
            self._running = None
            stop.release()
            done.acquire(timeout=2.0)
            if abs(sys.getswitchinterval() - SWITCH_INTERVAL) < 1e-6:  # else the program has set its own
                sys.setswitchinterval(self._interval)

    def forget(self):
        """In a forked child: nothing runs, nothing was seen, no place was written to this file."""
        self._running = None
        self._began = None
        self._forget_places()
        self._looks = []

    def _forget_places(self):
        self.places = {}
        self._numbers = count(1)
        self._stacks = {}  # places, innermost first -> number
        self._own = set()  # numbers of the user's lines
        self._points = {}  # see _point
        self._untold = []  # places and stacks that are new

    @property
    def running(self):
        return self._running is not None

    def _loop(self, stop, done):
        look_at, flush_at = self._next_look(), self._next_flush()
        try:
            while not stop.acquire(timeout=max(min(look_at, flush_at) - perf_counter(), 0)):
                if perf_counter() >= look_at:
                    if self._log.naps.is_asleep:
                        awake, asleep = self._log.naps.call()
                        if stop.acquire(timeout=self._random.uniform(awake, asleep) * 1e-9):
                            break
                    if not self._blind:
                        self._try_to_look()
                    look_at = self._next_look()
                if perf_counter() >= flush_at:
                    self._flush()
                    flush_at = self._next_flush()
        except Exception as error:
            self._writer.note("missing", what="the rest of the record", reason=repr(error))
        finally:
            done.release()

    def _try_to_look(self):
        try:
            self._look()
        except Exception as error:
            self._blind = True  # the record is still to be written
            self._writer.note("missing", what="stack samples", reason=repr(error))

    def _next_look(self):
        between, window = max(self._period(*LOOKS), self._log.naps.seconds()), self._log.window
        if window is not None:
            between = min(between, window.looks_every)
        return perf_counter() + between * (0.5 + self._random.random())

    def _next_flush(self):
        return perf_counter() + self._period(*FLUSHES)

    def _period(self, first, longest, share):
        return min(max((perf_counter() - self._began) * share, first), longest)

    def _look(self):
        if self.awake is not None and not self.awake[0]:
            return
        if self._log.marker is not None:
            self._log.attend = self._log.at_border
        frame = sys._current_frames().get(self._log.thread)
        if frame is None:
            return
        now = perf_counter_ns()
        places, leaf = self._places_of(frame)
        if leaf is not None:
            self._looks.append((now, self._stack(places), leaf))

    def _places_of(self, frame):
        """The lines of frames that are the user's or a library's, innermost first, and the innermost that is not ours.

        Where activation checkpointing called a frame, its line is among them: what called it is what asked for it.
        """
        places, leaf = [], None
        for _ in range(DEPTH):
            if frame is None:
                break
            code = frame.f_code
            point = self._points.get((id(code), frame.f_lasti))
            if point is None or (leaf is None and not point[1]):
                point = self._point(frame, leaf is None)
            _, number, leads, ends = point
            if ends:
                break
            if leads:
                places.append(number)
            if leaf is None and number != _OURS:
                leaf = number
            frame = frame.f_back
        return tuple(places), leaf

    def _point(self, frame, is_leaf):
        """What a look needs to know of an instruction, worked out once: finding its line takes Python long.

        Its code (kept, so that no other gets its id); the number of its line (0 where nobody has asked for it yet);
        whether the line is one of those that lead to where the program is; whether the stack ends before it.
        """
        code = frame.f_code
        kind = origin(code.co_filename)
        leads = kind is USER or (kind is TORCH and code.co_filename.endswith(_CHECKPOINTING))
        leads = leads or (kind is LIBRARY and self.awake is None)  # of a worker nobody asks which library called it
        number = _OURS if kind is OURS else self.place(code, line_of(frame), kind) if leads or is_leaf else 0
        ends = self.awake is not None and code.co_name == "_worker_loop"  # below, a forked worker has its parent's
        point = (code, number, leads, ends)
        if kind is USER:
            self._own.add(number)
        if len(self._points) < MOST_PLACES:
            self._points[id(code), frame.f_lasti] = point
        return point

    def _stack(self, places):
        """The number of a stack, told to the record when it is first seen; 0 where no frame leads there."""
        if not places:
            return 0
        number = self._stacks.get(places)
        if number is None:
            if len(self._stacks) >= MOST_STACKS:
                places = tuple(filter(self._own.__contains__, places))[:1]  # of these there are no more than places
                number = self._stacks.get(places)
            if number is None:
                number = self._stacks[places] = len(self._stacks) + 1
                self._untold.append(("stack", {"id": number, "places": places}))
        return number

    def place(self, code, line, kind):
        """The number of a source line, told to the record when it is first seen."""
        key = (code.co_filename, line, code.co_name)
        number = self.places.get(key)
        if number is None:
            if len(self.places) >= MOST_PLACES:
                return 0
            number = self.places[key] = next(self._numbers)
            function = getattr(code, "co_qualname", None)
            more = {}
            if kind in (USER, LIBRARY) and function is None:
                more["first"] = code.co_firstlineno
            if kind is USER and self.awake is not None:
                more["calls"] = _names(code, line)
            file = os.path.abspath(code.co_filename) if kind is USER else code.co_filename
            more.update(id=number, file=file, line=line, function=function or code.co_name, origin=kind)
            self._untold.append(("place", more))
        return number

    def take(self):
        """The looks since the last call; what they refer to has been noted."""
        looks, self._looks = self._looks, []
        self.tell()
        return looks

    def tell(self):
        """Note the places and stacks that are new. Not as they are met: one after the other takes a fraction of it."""
        untold, self._untold = self._untold, []
        for kind, fields in untold:
            self._writer.note(kind, pid=os.getpid(), **fields)


def _names(code, line):
    """Names that a line uses: what it calls that is written in C has no frame of its own."""
    used, now = [], None
    for instruction in dis.get_instructions(code):
        now = instruction.starts_line or now if sys.version_info < (3, 13) else instruction.line_number
        if now == line and instruction.opname.startswith(("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME")):
            used.append(str(instruction.argval))
    return sorted(set(used))


def line_of(frame):
    """The line that a frame is at. Jumps that the compiler adds to a loop have none: it is the one before."""
    if frame.f_lineno is not None:
        return frame.f_lineno
    last = frame.f_code.co_firstlineno
    for begin, _, line in frame.f_code.co_lines():
        if begin > frame.f_lasti:
            break
        last = last if line is None else line
    return last


def caller(skip=1):
    """The nearest frame above that belongs to the user, else the nearest that is not ours; with its origin."""
    frame = sys._getframe(skip)
    nearest = None
    for _ in range(DEPTH):
        if frame is None:
            break
        kind = origin(frame.f_code.co_filename)
        if kind is USER:
            return frame, kind
        if nearest is None and kind is not OURS and kind is not TORCH:
            nearest = (frame, kind)
        frame = frame.f_back
    return nearest or (None, None)


_origins = {}
_TYPED_IN = ("<stdin>", "<string>")  # files of a program that has none
_COMPILED = os.sep + "torchinductor_"  # in the path of what torch.compile has written, unless it was told another
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = tuple(os.path.dirname(file) + os.sep for file in (os.__file__, os.path.realpath(os.__file__)))


def origin(filename):
    """Whose code a file is."""
    kind = _origins.get(filename)
    if kind is None:
        kind = _origins[filename] = _origin(filename)
    return kind


def _origin(filename):
    if filename.startswith(_HERE):
        return OURS
    if filename.startswith("<") and not (filename in _TYPED_IN and _is_typed_in()):
        return STDLIB  # frozen modules and generated code
    if _is_compiled(filename):
        return TORCH
    for folder in ("site-packages", "dist-packages"):
        _, found, inside = filename.partition(os.sep + folder + os.sep)
        if found:
            return TORCH if inside.startswith("torch" + os.sep) else LIBRARY
    if filename.startswith(_STDLIB):
        return STDLIB
    return USER


def _is_typed_in():
    """Whether the program was given with -c, or on stdin; else such code was made by a library."""
    return not hasattr(sys.modules.get("__main__"), "__file__")


def _is_compiled(filename):
    """Whether torch.compile has written it."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return _COMPILED in filename or bool(folder and filename.startswith(os.path.join(os.path.abspath(folder), "")))
