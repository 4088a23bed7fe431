"""Windows: a few steps, once, watched through torch's own profiler. In the kernel window, all that the GPU ran.

It opens at a border of the loop that the parent has named, and closes at a later one. A kernel that was launched before
it opened is not seen, and one that still runs when it closes is lost: so the steps that count begin when the GPU has
done all that was launched before, and it closes when the GPU has done all that was launched in them. Both are told by
an event that is asked now and then, never waited for. Opening and closing hold the program up while the loader's
workers go on, so no step counts, in the window or after it, before the loader is no further ahead than it was.

CUPTI, by which the profiler watches, makes each launch slower for as long as it is in the process, whether it watches
or not. So it is taken down afterwards, which the profiler does by itself, in a thread of its own, if an environment
variable is set when it stops and until that thread has ended: else the thread leaves a part of CUPTI in the process.
Not where the program has captured a CUDA graph: that may crash.

A child process must not inherit an open window. Where the program starts one, as a loader does its workers between
epochs, the window is closed and opens again when training goes on; then the fewest steps are enough.

A window may be followed by another: where the first has ended well, at once, so that steps are disturbed once.
"""

import json
import os
import time
from threading import get_ident
from time import perf_counter_ns

from .wire import WINDOW_IN, WINDOW_OUT

# How many steps count: so many seconds of them, at least and at most so many; but where steps are long, one that has
# taken so long is enough, because a trace grows by megabytes a second.
SECONDS, FEWEST, MOST = 1.0, 3, 10
LONG = 3.0
LIMIT = 60.0  # seconds after which it is closed, whatever it has seen
ATTEMPTS = 4  # how often it opens, where what the program does in between closes it too soon
TAKE_DOWN = 1.0, 20.0  # seconds that taking CUPTI down is given at least, and at most
CATCH_UP = 10.0  # seconds after which the loader is taken to be as far ahead as it always is
CATCH_UP_AGAIN = 0.5  # the same where a pass over the data has just begun: it has been nowhere near that
# Tools that use CUPTI too, which serves one at a time.
_TOOLS = {"KINETO_USE_DAEMON": "a profiling daemon", "CUDA_INJECTION64_PATH": "a tool injected into CUDA"}
_TOOL_PREFIXES = {"NSYS_": "Nsight Systems", "NV_NSIGHT_": "an Nsight tool", "NV_COMPUTE_PROFILER_": "Nsight Compute"}
_LOG_LEVEL = "KINETO_LOG_LEVEL"  # without it some versions write to the program's stderr
_TAKE_DOWN = "TEARDOWN_CUPTI"  # read by C code alone, so it is kept out of os.environ, which the program may look at

_WAITING, _WARMING, _MEASURING, _DRAINING, _SETTLING, _OVER = range(6)


# Seconds between looks at the stack while kernels are watched: where the host waits for the GPU is told by a look that
# falls into that time, in which torch lets other threads run. And before that, so that the first does not come late.
OFTEN, SOON = 0.002, 0.05


class Kineto:
    """Torch's profiler without its Python half, which synchronizes and which compiled code looks at."""

    looks_every = OFTEN

    def __init__(self, torch, has_graphs, on_gpu=True, with_operators=False):
        from torch._C import _autograd, _profiler

        self._calls = _autograd
        self._has_graphs = has_graphs  # () -> whether the program has captured any
        self._stopped = float("-inf")
        self._takes_down = frozenset()  # the threads that came while it stopped
        self._event = torch.cuda.Event
        self.is_on_gpu = on_gpu
        self.capturing = torch.cuda.is_current_stream_capturing if self.is_on_gpu else _never
        # Launches are among CUDA's own activities; the CPU's would cost a callback for each operator.
        kinds = _profiler.ProfilerActivity
        self._activities = {kinds.CUDA} if self.is_on_gpu else set()
        if with_operators:
            self._activities.add(kinds.CPU)
        state, config = _profiler.ProfilerState.KINETO, _profiler._ExperimentalConfig()
        with_types = on_gpu and with_operators  # of the operators' inputs
        self._config = _profiler.ProfilerConfig(state, with_types, False, False, False, False, config)

    def start(self):
        loud = _LOG_LEVEL not in os.environ
        if loud:
            os.environ[_LOG_LEVEL] = "99"
        try:
            self._calls._prepare_profiler(self._config, self._activities)
            self._calls._enable_profiler(self._config, self._activities)
        finally:
            if loud:
                del os.environ[_LOG_LEVEL]

    def stop(self, take_down=True):
        """What was seen: it has `save(path)`. From now on CUPTI is being taken down, until `let_be` is called."""
        if not (take_down and self.is_on_gpu and not self._has_graphs() and _TAKE_DOWN not in os.environ):
            return self._calls._disable_profiler()
        before = _threads()
        os.putenv(_TAKE_DOWN, "1")
        seen = self._calls._disable_profiler()
        self._takes_down = _threads() - before
        self._stopped = time.perf_counter()
        return seen

    def cancel(self):
        """Stop, if it has started. CUPTI stays: another profiler may be about to use it."""
        if self._calls._profiler_enabled():
            self._calls._disable_profiler()

    def is_down(self):
        """Whether CUPTI has been taken down, or has been given time enough for it."""
        least, most = TAKE_DOWN
        since = time.perf_counter() - self._stopped
        return since > most or (since > least and not self._takes_down & _threads())

    def let_be(self):
        """No longer take it down."""
        if _TAKE_DOWN not in os.environ:
            os.unsetenv(_TAKE_DOWN)

    def facts(self):
        """What is noted beside the trace."""
        return {}

    def mark(self):
        """An event that is done when the GPU has done all that was launched so far."""
        if not self.is_on_gpu:
            return DONE
        event = self._event()
        event.record()
        return event


class _Done:
    """Stands for an event where there is no GPU."""

    def query(self):
        return True


DONE = _Done()


class Watcher:
    """What a window has open, where that is no profiler: nothing to wait for, nothing to take down.

    It has `start`, and `stop` and `cancel`, which end it; what was seen is in `_seen`.
    """

    _seen = ()

    def save(self, path):
        """Write what was seen."""
        with open(path, "w") as file:
            json.dump(self._seen, file, separators=(",", ":"))

    def facts(self):
        """What is noted beside the file."""
        return {}

    def mark(self):
        """An event that is done when the GPU has done all that was launched so far."""
        return DONE

    def capturing(self):
        """Whether a CUDA graph is being captured."""
        return False

    def is_down(self):
        """Whether what watched has been taken down."""
        return True

    def let_be(self):
        """No longer take it down."""


def _never():
    return False


def _threads():
    """Those of this process, Python's or not."""
    try:
        return frozenset(os.listdir("/proc/self/task"))
    except OSError:
        return frozenset()  # no Linux


def profiler_is_active(torch):
    """Whether one is, ours or another."""
    return torch._C._autograd._profiler_enabled() or torch.autograd.profiler._is_profiler_enabled


def obstacle(torch):
    """Why kernels cannot be watched here, or None."""
    if not torch.cuda.is_initialized():
        return "the program did not use CUDA"
    if torch.version.cuda is None:
        return "only NVIDIA GPUs are watched"
    for name in os.environ:
        tool = _TOOLS.get(name) or next((t for prefix, t in _TOOL_PREFIXES.items() if name.startswith(prefix)), None)
        if tool:
            return "%s may be attached (%s is set)" % (tool, name)
    if torch.profiler.ProfilerActivity.CUDA not in torch.autograd._supported_activities():
        return "this build of torch cannot watch kernels"
    return None


class Window:
    """One window, from when it is asked for to when its trace is written, or to why there is none."""

    def __init__(self, log, writer, begin, kineto, find_obstacle, count_waiting, name="window", following=None):
        self._log = log
        self._writer = writer
        self._name = name  # of its note and of its trace
        self._following = following  # another window, to be opened after this one
        self._begin = begin  # backward passes after which it opens
        self._make_kineto = kineto  # () -> Kineto; called at the border, where its cost is left out
        self._find_obstacle = find_obstacle
        self._count_waiting = count_waiting
        self._waited = None  # batches that waited when it opened
        self._kineto = None
        self._state = _WAITING
        self._is_told = False  # whether the log has the word that it, or the one before it, has opened
        self._mark = None
        self._opened = self._thread = 0
        self._resumed = 0  # when it last held the program up
        self._passes = 0  # backward passes at the last border that ended a step
        self._first = self._last = 0  # when the steps that count began and ended
        self._steps = 0
        self._clocks = []
        self._interruptions = 0

    @property
    def is_watching(self):
        return self._state in (_WARMING, _MEASURING, _DRAINING)

    @property
    def looks_every(self):
        """Seconds between looks at the stack."""
        return getattr(self._kineto, "looks_every", SOON) if self.is_watching else SOON

    def at_border(self, now):
        """A border has passed; whether the stretch that follows is inside of the window."""
        if self._log.backwards < self._begin:
            return False
        try:
            return self._advance(now)
        except Exception as error:
            self.give_up("it failed: %r" % (error,))
            return False

    def give_up(self, reason):
        """Close it, if it is open, and say why there is no trace."""
        if self._state == _SETTLING:
            self._end()
        elif self._state != _OVER:
            try:
                if self.is_watching and get_ident() == self._thread:
                    self._kineto.cancel()
            except Exception as error:
                reason = "%s; and it could not be closed: %r" % (reason, error)
            self._writer.note(self._name, reason=reason)
            self._end()

    def interrupt(self, reason):
        """Close it, if it is open, and let it open again in the next step that trains: so often, then give it up."""
        if not self.is_watching:
            return
        self._interruptions += 1
        if self._interruptions >= ATTEMPTS or self._is_full() or get_ident() != self._thread:
            self.give_up(reason)
            return
        try:
            self._kineto.cancel()
        except Exception as error:
            self.give_up("%s; and it could not be closed: %r" % (reason, error))
            return
        self._log.events.append((perf_counter_ns(), WINDOW_OUT))
        self._state, self._is_told = _WAITING, False
        self._begin = self._log.backwards + 1
        self._mark, self._steps, self._clocks = None, 0, []

    def _advance(self, now):
        if self._state == _WAITING:
            return self._open()
        if self._state == _SETTLING:
            if self._has_caught_up(now) and self._kineto.is_down():
                self._end()
            return False
        if self._kineto.capturing():  # asking after an event would spoil the program's graph
            return True
        if now - self._opened > LIMIT * 1e9:
            self.give_up("its steps were not over after %d s" % LIMIT)
            return False
        if self._log.backwards == self._passes:
            return True  # not the end of a step
        self._passes = self._log.backwards
        return self._next_step(now)

    def _open(self):
        reason = self._find_obstacle()
        if reason is not None:
            self.give_up(reason)
            return False
        kineto = self._kineto = self._make_kineto()
        if kineto.capturing():
            return False
        if self._waited is None:
            self._waited = self._count_waiting()
        self._thread, self._opened = get_ident(), perf_counter_ns()
        self._state = _WARMING
        self._log.events.append((self._opened, WINDOW_IN))
        self._is_told = True
        kineto.start()
        self._resumed = perf_counter_ns()
        self._clocks.append(_clocks())
        self._mark = kineto.mark()
        self._passes = self._log.backwards
        return True

    def _next_step(self, now):
        """A step has ended at `now`."""
        if self._state == _WARMING:
            if self._mark.query() and (self._has_caught_up(now) or self._is_full()):
                self._state, self._first = _MEASURING, now
        elif self._state == _MEASURING:
            self._steps += 1
            if self._is_enough((now - self._first) * 1e-9):
                self._state, self._last, self._mark = _DRAINING, now, self._kineto.mark()
        elif self._mark.query():
            self._ask_following()
            self._save()
            return self._following is not None and self._hand_over(now)
        return True

    def _is_enough(self, seconds):
        most = getattr(self._kineto, "most_steps", MOST)
        wanted = 0.0 if self._interruptions else SECONDS
        is_enough = self._steps >= most or (self._steps >= FEWEST and seconds >= wanted)
        return is_enough or seconds >= LONG or self._is_full()

    def _is_full(self):
        """Whether so much has been seen that more would be in the program's way."""
        return getattr(self._kineto, "is_full", _never)()

    def _save(self):
        self._clocks.append(_clocks())
        name = "%s-%s-%d.json" % (self._name, os.uname().nodename, os.getpid())
        path = os.path.join(self._writer.folder, name)
        self._kineto.stop(take_down=self._following is None).save(path + ".part")
        os.replace(path + ".part", path)
        self._state, self._resumed = _SETTLING, perf_counter_ns()
        measured = [self._first, self._last]
        self._writer.note(self._name, file=name, measured=measured, clocks=self._clocks, **self._kineto.facts())

    def _ask_following(self):
        """Windows that are to follow and cannot say so, and are forgotten."""
        while self._following is not None:
            try:
                reason = self._following._find_obstacle()
            except Exception as error:  # which must not end this one
                reason = "it failed: %r" % (error,)
            if reason is None:
                return
            self._following.give_up(reason)
            self._following = self._following._following

    def _hand_over(self, now):
        """The other window opens at once; what settles, settles after it."""
        following = self._log.window = self._following
        following._waited, following._is_told = self._waited, True
        self._state, self._kineto = _OVER, None
        return following.at_border(now)

    def _has_caught_up(self, now):
        patience = CATCH_UP_AGAIN if self._interruptions else CATCH_UP
        return self._count_waiting() <= self._waited or now - self._resumed > patience * 1e9

    def _end(self):
        if self._state == _SETTLING:
            self._kineto.let_be()
        self._state = _OVER
        if self._is_told:
            self._log.events.append((perf_counter_ns(), WINDOW_OUT))
        self._mark = self._kineto = None
        if self._log.window is self:
            self._log.window = self._following


def _clocks():
    """The log's clock and the trace's (nanoseconds since the epoch), read at one moment."""
    before = perf_counter_ns()
    wall = time.time_ns()
    return [(before + perf_counter_ns()) // 2, wall]
