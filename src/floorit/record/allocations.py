"""A window of its own in which each piece of memory is noted that the model's work takes and gives back.

On a GPU torch's allocator keeps the history of what it does, without stacks, and is asked for it at the end: nothing
is reset, nothing waits, and CUPTI has no part in it. On a CPU there is no such history: there, as a backward pass
begins, what its graph has saved is added up.
"""

from time import perf_counter_ns

from . import held
from .parts import are_on_gpu
from .window import Watcher

NAME = "memory"
MOST = 400_000  # of the allocator's actions that are kept
_STATS = ("allocated_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes")
_SIGNS = {"alloc": 1, "free_requested": -1}
_RAW, _SAVED = "_raw", "_saved_"


def is_on_gpu(session):
    """Whether it is the GPU's memory that the model's work takes."""
    models = session.trained_models()
    return session.torch.cuda.is_initialized() and (not models or are_on_gpu(models))


def obstacle(session):
    """Why nothing can be told here, or None."""
    torch = session.torch
    if not is_on_gpu(session):
        return None if session.trained_models() else "no call of a module that trains was seen"
    if not hasattr(torch.cuda.memory, "_record_memory_history") or not hasattr(torch._C, "_cuda_isHistoryEnabled"):
        return "this build of torch keeps no history of its allocations"
    if torch.cuda.get_allocator_backend() != "native":
        return "the program has another allocator than torch's own, which keeps no history"
    if torch._C._cuda_isHistoryEnabled():
        return "the program itself has torch keep the history of its allocations"
    return None


class _Watch(Watcher):
    """What both kinds have in common."""

    def __init__(self, session, calls):
        self._session = session
        self._calls = calls  # of the model's parts; None where they cannot be told apart
        self._facts = {}
        self._marks = []  # number of the part, when its call began and ended
        self._seen = {}

    def facts(self):
        """What is noted beside the file."""
        parts = self._calls.facts() if self._calls is not None else {"parts": [], "left_out": 0}
        return {**self._facts, **parts}

    def _note_held(self, kind, index=None):
        session = self._session
        models = [*session.trained_models(), *session.other_models()]
        self._facts = held.facts(session.torch, models, session.optimizers(), kind, index)

    def _call_parts(self):
        if self._calls is not None:
            self._calls.on(self._enter, self._leave)

    def _leave_parts(self):
        if self._calls is not None:
            self._calls.off()


class Allocated(_Watch):
    """On a GPU: the allocator's own history."""

    most_steps = 3

    def __init__(self, session, calls):
        super().__init__(session, calls)
        torch = session.torch
        self._memory = torch.cuda.memory
        self._device = torch.cuda.current_device()
        self._stats_of = torch._C._cuda_memoryStats
        self.capturing = torch.cuda.is_current_stream_capturing
        self._borders = []  # the allocator's figures at the borders of parts
        self._is_recording = False

    def start(self):
        """Have the history kept from now on."""
        self._note_held("cuda", self._device)
        self._is_recording = True
        self._keep_history("all", context=None, stacks="python", max_entries=MOST)
        self._read()
        self._call_parts()

    def stop(self, take_down):
        """What was seen."""
        self._leave_parts()
        self._read()
        try:
            taken = self._memory._snapshot()["device_traces"][self._device]
        finally:
            self._end_history()
        if len(taken) >= MOST:
            raise RuntimeError("the allocator did more in a few steps than is kept")
        actions = [(e["time_us"], e["addr"], _SIGNS[e["action"]] * e["size"]) for e in taken if e["action"] in _SIGNS]
        times, addresses, sizes = zip(*actions) if actions else ((), (), ())
        self._seen = {
            "times": times,
            "addresses": addresses,
            "bytes": sizes,
            "borders": self._borders,
            "calls": self._marks,
        }
        return self

    def cancel(self):
        """Stop."""
        self._leave_parts()
        self._end_history()

    def facts(self):
        """What is noted beside the file."""
        return {**super().facts(), "on_gpu": True, "device": self._device}

    def _end_history(self):
        if self._is_recording:
            self._is_recording = False
            self._keep_history(None)

    def _keep_history(self, *how, **more):
        windows = self._session.windows
        windows.is_own_history = True
        try:
            self._memory._record_memory_history(*how, **more)
        finally:
            windows.is_own_history = False

    def _enter(self, number):
        self._read()
        return number, perf_counter_ns()

    def _leave(self, token):
        self._marks.append((*token, perf_counter_ns()))
        self._read()

    def _read(self):
        """Asks torch's allocator, not the GPU."""
        stats = self._stats_of(self._device)
        self._borders.append((perf_counter_ns(), *(stats[name]["all"]["current"] for name in _STATS)))


class Saved(_Watch):
    """On a CPU: what the graph of a backward pass has saved for it, by the part that saved it."""

    most_steps = 1

    def __init__(self, session, calls):
        super().__init__(session, calls)
        self._number = session.torch._C._autograd._get_sequence_nr
        self._passes = []  # [bytes by part, of nobody's parts] of each backward pass
        self._reason = None

    def start(self):
        """Look at the graphs of the backward passes to come."""
        self._note_held("cpu")
        self._kept = {address for address, *_ in self._facts["held"]}
        self._call_parts()
        self._session.look_at_backward(self._backward)

    def stop(self, take_down):
        """What was seen."""
        self.cancel()
        self._seen = {"passes": self._passes, "reason": self._reason}
        return self

    def cancel(self):
        """Stop."""
        self._leave_parts()
        self._session.look_at_backward(None)

    def facts(self):
        """What is noted beside the file."""
        return {**super().facts(), "on_gpu": False}

    def _enter(self, number):
        return None if self._session.log.backward else (number, self._number())

    def _leave(self, token):
        self._marks.append((*token, self._number()))

    def _backward(self, roots):
        marks, self._marks = self._marks, []
        if self._session.has_saved_hooks:
            self._reason = "the program says itself what is saved for a backward pass: it is computed again, or packed"
            return
        try:
            self._passes.append(_by_part(self._session.torch, roots, self._kept, marks))
        except Exception as error:  # which must not end the hooks around backward passes
            self._reason = "the graph of a backward pass could not be read: %r" % (error,)


def _by_part(torch, roots, known, marks):
    """Bytes that the graph below some tensors has saved, by the part that was the first to; -1: outside of all."""
    taken, found = set(known), {}
    for node in sorted(_graph(torch, roots), key=lambda node: node._sequence_nr()):
        size = sum(_fresh(torch, tensor, taken) for tensor in _saved(torch, node))
        if size:
            number = node._sequence_nr()
            part = next((part for part, first, last in marks if first <= number < last), -1)
            found[part] = found.get(part, 0) + size
    return list(found.items())


def _graph(torch, roots):
    """All nodes below some tensors."""
    waiting, seen = [root.grad_fn for root in roots if torch.is_tensor(root)], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return seen


def _saved(torch, node):
    """The tensors that a node of the graph has saved."""
    kind = type(node)
    names = [name for name in dir(kind) if name.startswith(_SAVED) and hasattr(kind, _RAW + name)]
    if "saved_tensors" in dir(kind):  # a function of the program's own
        names.append("saved_tensors")
    for name in names:
        try:
            value = getattr(node, name)
        except RuntimeError:  # it has been changed since: the backward pass will say so itself
            continue
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if torch.is_tensor(tensor):
                yield tensor


def _fresh(torch, tensor, taken):
    """Bytes of what a tensor lies in, the first time that it is seen."""
    with torch._C.DisableTorchFunctionSubclass():
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if tensor.device.type != "cpu" or address in taken:
            return 0
        taken.add(address)
        return storage.nbytes()
