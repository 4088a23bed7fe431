"""Memory that runs out, on the GPU or the host: what was asked for, what held the rest, and where the program was.

Nothing runs before it happens. CUDA's allocator calls us just before it raises; other errors are looked at where the
loader hands them on, where the program prints one, and where one has ended the program.
"""

import errno
import os
import sys
import time
import weakref
from threading import get_ident

from ..held import tensors
from ..sampler import USER, origin
from ..wire import BACKWARD, CHECKPOINT, DATA_WAIT, EVAL, FORWARD, OPTIMIZER, PHASES, RECOMPUTE

NAME = "running out of memory"
MOST = 20  # noted in a process
_DEEPEST = 200  # frames looked at
_MOST_INPUTS = 8
_FIRST, _LAST = 400, 600  # characters kept of a message: a worker's has its traceback in between
_LONGEST_CHAIN = 5
# Whose errors are read: the text of another may be code of the program's own.
_MODULES = ("builtins", "torch", "numpy", "cv2")
_WORDS = (
    "out of memory",
    "allocate memory",
    "unable to allocate",
    "insufficient memory",
    "memoryerror",
    "bad_alloc",
    "dataloader worker (pid",
    "shared memory",
    "no space left on device",
)
_STATS = {
    "allocated": "allocated_bytes",
    "reserved": "reserved_bytes",
    "split": "inactive_split_bytes",
}
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
# Parts of torch, and the phase that their frames stand for.
_PARTS = (
    (os.path.join("torch", "utils", "data", ""), DATA_WAIT),
    (os.path.join("torch", "optim", ""), OPTIMIZER),
    (os.path.join("torch", "autograd", "__init__.py"), BACKWARD),
    (os.path.join("torch", "serialization.py"), CHECKPOINT),
)
_CALLS = "_wrapped_call_impl"  # of a module: the function of torch that every call passes through


def install(session):
    import traceback

    from torch.optim.optimizer import Optimizer

    shortage = _Shortage(session)
    session.memory_error = shortage.passing
    session.optimizers = shortage.optimizers
    session.last_words.append(shortage.ending)
    session.on_cuda.append(shortage.observe_cuda)
    session.hook(NAME, Optimizer.__init__, lambda optimizer: optimizer, shortage.made_optimizer, names=("self",))
    session.hook(NAME, traceback.TracebackException.__init__, shortage.printed, names=("exc_value",))


class _Shortage:
    """What is noted each time."""

    def __init__(self, session):
        self._session = session
        self._optimizers = []  # weak references
        self._left = MOST
        self._noted = None  # id and text of the last error: it passes us more than once

    def made_optimizer(self, optimizer):
        self._optimizers = [ref for ref in self._optimizers if ref() is not None] + [weakref.ref(optimizer)]

    def optimizers(self):
        """Those that are alive."""
        return [optimizer for optimizer in (ref() for ref in self._optimizers) if optimizer is not None]

    # -- how we hear of it --------------------------------------------------------------------------------------

    def observe_cuda(self):
        """CUDA is in use by now: to attach an observer would initialise it."""
        attach = getattr(self._session.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is None:
            return  # the error's own message is read instead
        try:
            attach(self._cuda_is_out)
        except Exception as error:
            self._session.missing(NAME, "CUDA's allocator cannot be observed: %r" % (error,))

    def _cuda_is_out(self, device, asked, total, free):
        """Called by the allocator, which then raises; also where torch tries something and makes do without."""
        try:
            if self._left > 0:
                self._note_cuda(device, asked, total, free)
        except Exception as error:
            self._session.missing(NAME, "the probe failed while running: %r" % (error,))

    def passing(self):
        """An error may be on its way through the loader to the program."""
        self._consider(sys.exc_info()[1])

    def printed(self, error):
        """The program, or Python, is about to print an error."""
        self._consider(error)

    def ending(self):
        """The process ends: perhaps by an error that nobody caught."""
        error = getattr(sys, "last_value", None)
        if error is not None:
            self._consider(error, ended=True)

    # -- what is noted ------------------------------------------------------------------------------------------

    def _consider(self, error, ended=False):
        if self._session.is_worker or not isinstance(error, Exception) or isinstance(error, StopIteration):
            return
        chain = list(_chain(error))
        texts = [_text(each) for each in chain]
        short = next((each for each, text in zip(chain, texts, strict=True) if _is_shortage(each, text)), error)
        frames = _frames_of(short)
        killed = _killed_workers(frames)
        if not (killed or any(map(_is_shortage, chain, texts))) or (self._left <= 0 and not ended):
            return
        again = self._noted == (id(error), texts)
        self._noted = (id(error), texts)
        if again:
            if ended:
                self._session.remember("memory_error", source="end", at=time.perf_counter())
            return
        on_gpu = any("OutOfMemoryError" in type(each).__name__ for each in chain)
        self._note(
            "exception",
            frames,
            _phase(frames),
            types=[type(each).__name__ for each in chain],
            messages=[
                text if len(text) <= _FIRST + _LAST else text[:_FIRST] + " ... " + text[-_LAST:] for text in texts
            ],
            held=None if on_gpu else self._held("cpu", None),
            limit=_limit(),
            killed=killed,
        )
        if ended:
            self._session.remember("memory_error", source="end", at=time.perf_counter())

    def _note_cuda(self, device, asked, total, free):
        session = self._session
        torch = session.torch
        frames = list(_stack(sys._getframe(2)))
        phase = _phase(frames)
        if get_ident() != session.log.thread:  # the engine of autograd has threads of its own
            waiting = list(_stack(sys._current_frames().get(session.log.thread)))
            phase = RECOMPUTE if phase in (FORWARD, EVAL) else phase if phase is not None else _phase(waiting)
            frames = frames if _users(frames) else waiting
        stats = torch._C._cuda_memoryStats(device)
        self._note(
            "allocator",
            frames,
            phase,
            device=device,
            asked=asked,
            allowed=total,  # less than there is where the program has set a fraction
            total=torch.cuda.get_device_properties(device).total_memory,
            free=free,
            retries=stats.get("num_alloc_retries"),
            held=self._held("cuda", device),
            **{name: stats[key]["all"]["current"] for name, key in _STATS.items()},
        )

    def _note(self, source, frames, phase, **more):
        session = self._session
        self._left -= 1
        user = _users(frames)
        readings = session.readings
        session.remember(
            "memory_error",
            source=source,
            at=time.perf_counter(),
            backwards=session.log.backwards,
            phase=None if phase is None else PHASES[phase],
            place=None if user is None else [os.path.abspath(user[0].f_code.co_filename), user[1], _name(user[0])],
            inputs=_inputs(session.torch, frames),
            autocast=readings is not None and readings.has_autocast(),
            allocator=next((os.environ[name] for name in _ALLOCATOR if name in os.environ), None),
            **more,
        )

    def _held(self, kind, index):
        """Bytes by type that the known optimizers' parameters, gradients and state have on a device."""
        optimizers = self.optimizers()
        if not optimizers:
            return None
        kept = tensors(self._session.torch, [], optimizers)
        return {what: _bytes(found, kind, index) for what, found in kept.items() if what != "buffers"}


def _bytes(kept, kind, index):
    found = {}
    for tensor in {id(tensor): tensor for tensor in kept}.values():
        device = tensor.device
        if device.type == kind and (index is None or device.index == index):
            dtype = str(tensor.dtype).rpartition(".")[2]
            found[dtype] = found.get(dtype, 0) + tensor.numel() * tensor.element_size()
    return found


def _limit():
    """Bytes of addresses that this process may have; None: as many as it likes."""
    import resource  # only now: a program whose memory lasts does not find it loaded

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


# -- errors -----------------------------------------------------------------------------------------------------


def _chain(error):
    """An error and what led to it, as Python prints them."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _text(error):
    return str(error) if type(error).__module__.partition(".")[0] in _MODULES else ""


def _is_shortage(error, text):
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    small = text.lower()
    return any(word in small for word in _WORDS)


# -- where ------------------------------------------------------------------------------------------------------


def _stack(frame):
    """(frame, line) from the innermost outwards."""
    for _ in range(_DEEPEST):
        if frame is None:
            return
        yield frame, frame.f_lineno
        frame = frame.f_back


def _frames_of(error):
    """The same of the frames that an error has passed."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1][:_DEEPEST]


def _users(frames):
    return next(((frame, line) for frame, line in frames if origin(frame.f_code.co_filename) is USER), None)


def _name(frame):
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)


def _phase(frames):
    """The phase that frames stand for, the innermost first; a model called inside of backward computes again."""
    called = None
    for frame, _ in frames:
        code = frame.f_code
        if code.co_name == _CALLS:
            called = frame
        part = next((phase for path, phase in _PARTS if path in code.co_filename), None)
        if part == BACKWARD and called is not None:
            return RECOMPUTE
        if part is not None and called is None:
            return part
    if called is None:
        return None
    return FORWARD if getattr(called.f_locals.get("self"), "training", True) else EVAL


def _killed_workers(frames):
    """Signals that ended workers of the loader whose frames are among these."""
    for frame, _ in frames:
        if _PARTS[0][0] in frame.f_code.co_filename:
            workers = getattr(frame.f_locals.get("self"), "_workers", ())
            codes = [worker.exitcode for worker in workers]
            return [-code for code in codes if code is not None and code < 0]
    return []


def _inputs(torch, frames):
    """Shape and type of what the model was called with; None where it was not being called."""
    calls = [frame for frame, _ in frames if frame.f_code.co_name == _CALLS]
    if not calls:
        return None
    given = calls[-1].f_locals
    values = [*given.get("args", ()), *given.get("kwargs", {}).values()]
    return [[list(v.shape), str(v.dtype).rpartition(".")[2]] for v in values if torch.is_tensor(v)][:_MOST_INPUTS]
