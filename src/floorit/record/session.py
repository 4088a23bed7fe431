"""One recorded process: its log, its sampler, its file, from torch's import to the end."""

import atexit
import functools
import os
import sys
import time
from threading import get_ident

from . import wire
from .compiling import compilations
from .lines import LineTrack
from .log import Log
from .names import Names
from .operations import Operations
from .patch import Hooks, LeanHooks, Patches
from .sampler import Sampler, caller
from .traces import hide_ours, is_from_signal
from .windows import Windows
from .writer import Writer

# The parent writes here after how many backward calls the program is to end, and the kernel window to open.
STOP, WINDOW = "stop", "window"
MEMORY_EVERY = 5.0  # seconds between two readings of the GPU's memory that are noted where nothing has grown
# What is read, and the allocator's names for it.
_MEMORY = {
    "allocated": ("allocated_bytes", "current"),
    "peak": ("allocated_bytes", "peak"),
    "reserved": ("reserved_bytes", "current"),
    "reserved_peak": ("reserved_bytes", "peak"),
    "split": ("inactive_split_bytes", "current"),
}
_COUNTS = {"retries": "num_alloc_retries", "ooms": "num_ooms"}


class Session:
    """What the probes share."""

    def __init__(self, folder, torch):
        self.torch = torch
        self.folder = folder
        self.patches = Patches()
        self.log = Log()
        self.writer = Writer(folder)
        self.sampler = Sampler(self.log, self.writer, self.flush)
        self.log.lines = LineTrack(self.log, self.sampler)
        self.fetches = []  # (end, samples, worker, sample, collate and sending time): nanoseconds
        self.time_fetch = lambda: None  # has the next batch that is made in this process timed
        self.operations = Operations(self)  # on images, in some of the batches made in this process
        self.syncs = {}  # (file, line, function, op) -> [calls, nanoseconds] since the last flush
        self.received = [0, 0]  # batches unpickled, and the nanoseconds that took
        self.traced = 0  # nanoseconds that anomaly detection has formatted stack traces for
        self.trained = set()  # ids of the parameters that optimizers update
        self.elsewhere = {}  # thread -> pass over the data it is in, of threads that are not accounted for
        self.when_trained_changes = lambda: None  # told when there is a new optimizer
        self.look_at_input = lambda check: None  # has a check called with the next input of the model
        self.has_overrides = wire.FIXES in os.environ
        self.call_models_by = lambda call: None  # has the outermost modules called by (facts, module, args, kwargs)
        self.trained_models = list  # modules that are called from outside of any other, and that optimizers update
        self.other_models = list  # modules that are called so, and that none does
        self.optimizers = list  # that are alive
        self.look_at_backward = lambda check: None  # has a check called with the roots of backward passes, or none
        self.has_saved_hooks = False  # whether the program says itself what is saved for a backward pass
        self._lasting = []
        self._compiled = (compilations(), time.perf_counter_ns())
        self.returned_losses = ()  # graph nodes of the scalars that the last forward pass returned
        self.announced = False
        self.is_worker = False
        self.is_forked = False
        self.on_cuda = []  # installed when the program first uses CUDA
        self.last_words = []  # called when the process ends, unless it is a worker
        self.overrides_told = lambda: None  # told that the process ends, a worker too
        self.memory_error = lambda: None  # told that an error may be passing through the loader
        self.readings = None  # of the settings in force, once their probe is installed
        self.scaled_steps = lambda: (0, 0)  # asked for through a GradScaler, and not taken by it
        self.count_waiting = lambda: 0  # batches that the loader has ready
        self.ddp_times = lambda: None  # of communication, as DDP takes them; None where it has none
        self.before_pass = []  # told before a pass over a loader, which was made at a place
        self.number_of_loader = lambda loader: 0  # its number in the record; 0: it has none
        self.has_graphs = False  # whether the program has captured a CUDA graph
        self.recomputing = 0  # activation checkpoints that are being computed again
        self.make_counting = lambda: None  # in a floor run: what counts the operations of a few steps
        self.windows = Windows(self)
        self.names = Names(self)
        self._device = None  # the GPU that the training thread uses
        self._memory_noted = self._memory_read = 0.0  # when
        self._grown = None  # what the last note of it had, of what only grows
        os.register_at_fork(before=self._before_fork, after_in_child=self._forked)
        atexit.register(self.close)
        self._close_before(os, "_exit")
        self._unsettle()

    # -- what probes ask ----------------------------------------------------------------------------------------

    def mine(self):
        """Whether the calling thread is the one whose time is accounted for."""
        return self.log.alone or get_ident() == self.log.thread

    def adopt(self):
        """The thread that trains is the one whose time is accounted for."""
        thread = get_ident()
        if thread != self.log.thread and not self.log.backwards:
            self.log.reset()
            self.log.events.append((self.log.started, self.elsewhere.get(thread, 0) << wire.SHIFT | wire.ADOPTED))

    def hook(self, probe, function, enter, leave=None, result=None, *, names=(), **more):
        """Run hooks inside a Python function; should one raise, all of them stop and the report says so."""
        kind = LeanHooks if "choose" in more else Hooks
        hooks = kind(enter, leave, result, log=self.log, **more)

        def failed(error):
            if is_from_signal(error):
                self.log.events.append((time.perf_counter_ns(), wire.FAILED))
                return True
            hooks.off()
            self.failed(probe, error)
            return False

        hooks.failed = failed
        hooks.interrupted = hide_ours
        self.patches.inside(function, hooks, names)
        return hooks

    def hook_phase(self, function, phase):
        """Book every call of a Python function to a phase."""
        return self.patches.spanning(function, self.log, wire.IN + phase, wire.OUT + phase)

    def replace_phase(self, owner, name, phase):
        """The same for a function written in C, which can only be replaced."""
        log, function = self.log, getattr(owner, name)
        enter, leave = wire.IN + phase, wire.OUT + phase

        @functools.wraps(function)
        def timed(*args, **kwargs):
            try:
                if not log.alone and get_ident() != log.thread:
                    return function(*args, **kwargs)
                log.add(enter)
                try:
                    return function(*args, **kwargs)
                finally:
                    log.add(leave)
            except BaseException:
                hide_ours()
                raise

        self.patches.replace(owner, name, timed)

    def remember(self, kind, **fields):
        """Note a fact that every process that trains must have in its own file."""
        self._lasting.append((kind, fields))
        if self.announced:
            self.writer.note(kind, **fields)

    def failed(self, probe, error):
        """A probe has raised and is switched off."""
        self.log.events.append((time.perf_counter_ns(), wire.FAILED))
        self.missing(probe, "the probe failed while running: %r" % (error,))

    def missing(self, what, reason):
        """Say in the report what could not be measured, and why."""
        self.remember("missing", what=what, reason=str(reason))

    def blocked(self, op, started):
        """The training thread was blocked by a call on the GPU since `started`."""
        now = time.perf_counter_ns()
        self.log.leaf(wire.SYNC, started)
        frame, _ = caller(2)
        key = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, op) if frame else ("", 0, "", op)
        entry = self.syncs.get(key)
        if entry is None:
            if len(self.syncs) > 5000:
                return
            entry = self.syncs[key] = [0, 0]
        entry[0] += 1
        entry[1] += now - started

    def settle(self):
        """What can only begin once the program trains. Called at a border."""
        self.log.settle = None
        if not self.announced:
            self._announce()
        if not self.sampler.running:
            self.sampler.start()
        if self.on_cuda and self.torch.cuda.is_initialized():
            self._device = self.torch.cuda.current_device()
            waiting, self.on_cuda = self.on_cuda, []
            for install in waiting:
                install()

    def graph_begins(self):
        """The program captures a CUDA graph."""
        self.has_graphs = True

    def _before_fork(self):
        if self.mine():
            self.windows.before_fork()
            if self.log.counting is not None:
                self.log.counting.pause()
        self.sampler.stop()
        self._unsettle()

    def _unsettle(self):
        self.log.settle = self.settle
        self.log.attend = self.log.at_border

    # -- the file -----------------------------------------------------------------------------------------------

    def _announce(self):
        self.announced = True
        torch = self.torch
        environ = os.environ
        self.writer.note(
            "process",
            version=wire.VERSION,
            pid=os.getpid(),
            host=os.uname().nodename,
            rank=environ.get("RANK"),
            local_rank=environ.get("LOCAL_RANK"),
            world=environ.get("WORLD_SIZE"),
            argv=list(getattr(sys, "orig_argv", sys.argv)),
            cwd=_cwd(),
            executable=sys.executable,
            python=sys.version.split()[0],
            torch=str(torch.__version__),
            cuda=torch.version.cuda,
            threads=torch.get_num_threads(),
            started=self.log.started * 1e-9,
            clock=time.perf_counter(),
            wall=time.time(),
        )
        for kind, fields in self._lasting:
            self.writer.note(kind, **fields)

    def flush(self):
        """Append to the file what has come since the last time."""
        looks = self.sampler.take()
        if looks:
            self.writer.note("samples", pid=os.getpid(), worker=self.is_worker, looks=looks)
        lines = self.log.lines.take()
        if lines:
            self.sampler.tell()
            self.writer.note("lines", taken=lines)
        if self.syncs:
            syncs, self.syncs = self.syncs, {}
            self.writer.note("syncs", at=time.perf_counter(), sites=[[*k, *v] for k, v in syncs.items()])
        if self.received[0]:
            received, self.received = self.received, [0, 0]
            self.writer.note("received", at=time.perf_counter(), batches=received[0], seconds=received[1] * 1e-9)
        if self.traced:
            traced, self.traced = self.traced, 0
            self.writer.note("traces", at=time.perf_counter(), seconds=traced * 1e-9)
        self.names.tell()
        if not self.is_worker:
            self._look_for_compilation()
            if self._device is not None:
                self._read_memory()
        # The looks and lines were taken first: the events they belong to are in this log, or in the next.
        blocks = [(wire.LOG_TAG, self.log.take()), (wire.FETCH_TAG, self._take_fetches())]
        if self.log.marker is not None:
            blocks.append((wire.MARKS_TAG, self.log.marker.take()))
        self.writer.flush(*blocks)
        if not self.is_worker:
            self.log.lines.wanted = max(self.log.lines.wanted, 1)
            self._look_for_requests()
            if self.readings is not None and self.readings.are_due():
                self.log.due = self.readings.read
            self.log.attend = self.log.at_border
            if self.on_cuda and self.torch.cuda.is_initialized():
                self._unsettle()

    def _take_fetches(self):
        count, pid = len(self.fetches), os.getpid()
        fetches = self.fetches[:count]
        del self.fetches[:count]
        return b"".join(
            wire.FETCH.pack(end * 1e-9, pid, samples, worker, *[ns * 1e-9 for ns in spent])
            for end, samples, worker, *spent in fetches
        )

    def _look_for_compilation(self):
        (before, then), count, now = self._compiled, compilations(), time.perf_counter_ns()
        self._compiled = (count, now)
        if count:
            self.log.naps.give_up()  # compiled code may rest on the hooks being there
        if count != before:
            self.log.events.append((now, (now - then) << wire.SHIFT | wire.COMPILED))

    def _look_for_requests(self):
        backwards = self._asked(STOP)
        if backwards is not None:
            self.log.stop_at = backwards
        backwards = None if self.windows.are_asked else self._asked(WINDOW)
        if backwards is not None:
            self.windows.open_after(backwards)

    def _asked(self, name):
        """After how many backward passes the parent wants something done; None: it has not asked."""
        path = os.path.join(self.folder, name)
        if not os.access(path, os.F_OK):  # a fraction of what an open that fails takes, at every flush
            return None
        try:
            with open(path) as request:
                return int(request.read() or 0)
        except (OSError, ValueError):
            return None

    def _read_memory(self):
        """What tensors and torch's cache have on the GPU, noted as it grows. Asks the allocator, not the GPU."""
        since, now = self._memory_read, time.perf_counter()
        self._memory_read = now
        try:
            stats = self.torch._C._cuda_memoryStats(self._device)
            read = {name: stats[key]["all"][which] for name, (key, which) in _MEMORY.items()}
            counts = {name: stats.get(key, 0) for name, key in _COUNTS.items()}
            grown = (read["peak"], read["reserved_peak"], counts)
            if grown != self._grown or now - self._memory_noted > MEMORY_EVERY:
                self._memory_noted, self._grown = now, grown
                self.writer.note("memory", device=self._device, since=since, at=now, **read, **counts)
        except Exception as error:
            self._device = None
            self.missing("gpu.memory_peak", repr(error))

    def close(self):
        """The process ends: write the rest."""
        try:
            self._close()
        except Exception:
            pass  # leaving matters more than the last rows

    def _close(self):
        self.sampler.stop()
        if self.is_forked and not self.announced and not self.is_worker:
            return
        if not self.is_worker:
            if not self.announced:
                self._announce()
            self.log.stop_at = None
            self.windows.give_up("the program ended before it was over")
            if self.log.counting is not None:
                self.log.counting.end()
            self.log.end()
            self._say_last_words()
            self._memory_noted = 0.0
            if self.log.marker is not None:
                self.log.marker.end()
            if self.readings is not None and self.log.backwards:
                self.readings.read(training=False)
            self.writer.note("end", at=time.perf_counter(), stopped=self.log.is_stopped)
        self.overrides_told()
        self.flush()

    def _say_last_words(self):
        for say in self.last_words:
            try:
                say()
            except Exception as error:
                self.missing("the end of the program", repr(error))

    def _close_before(self, owner, name):
        function = getattr(owner, name)

        @functools.wraps(function)
        def closing(*args, **kwargs):
            self.close()
            return function(*args, **kwargs)

        self.patches.replace(owner, name, closing)

    # -- other processes ----------------------------------------------------------------------------------------

    def _forked(self):
        self.writer.abandon()
        self.sampler.forget()
        if self.log.marker is not None:
            _never_free(self.log.marker)
            self.log.marker = None
        self.windows.forget()
        self.log.counting = self.make_counting()
        self._device = None
        self.log.naps.forget()
        self.log.reset()
        self.log.lines = LineTrack(self.log, self.sampler)
        if self.readings is not None:
            self.readings.forget()
        self.syncs = {}
        self.received = [0, 0]
        self.traced = 0
        self.names.forget()
        del self.fetches[:]
        self.announced = False
        self._unsettle()
        self.is_forked = True

    def become_worker(self):
        """This process loads data for another: its rows go to a file it shares with the other workers."""
        import multiprocessing

        parent = multiprocessing.parent_process()
        self.is_worker = True
        self.log.reset()
        self.writer.use("workers-%s-%d.rec" % (os.uname().nodename, parent.pid if parent else os.getppid()))


def _never_free(track):
    """Freeing a CUDA event in a forked child would touch CUDA there, which aborts the process."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(track))


def _cwd():
    try:
        return os.getcwd()
    except OSError:
        return None
