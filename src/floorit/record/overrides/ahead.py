"""The next batch's copy to the GPU, begun on a stream of its own while the step runs.

A batch that workers have ready is taken from their queue one step early, and what the program has moved of the batch
before is moved of this one too; where the program then moves it itself, it gets what is there. Nothing is waited for,
and the order of batches and of random numbers stays.
"""

import functools

from ..known import Known
from ..traces import hide_ours, is_from_signal
from .order import obstacle_to_torchs
from .training import evaluates

NAME = "copies ahead"
CODES = ("device-prefetch",)
_DEPTH = 4  # of what a batch is made of: how far it is looked into
_NO_CUDA = "the program did not use CUDA"
_UNUSED = "no batch was ready a step early, or none of its tensors was moved by the program's own `to` or `cuda`"


def install(session, asked):
    from torch.utils.data import dataloader as torchs

    (applied,) = asked.values()
    applied.unmet(_NO_CUDA)
    tensor = session.torch.Tensor
    ahead = Ahead(session, applied, _Side(session.torch, tensor.to), "cuda")
    several = torchs._MultiProcessingDataLoaderIter
    session.before_pass.append(ahead.begin)
    session.hook(NAME, torchs._BaseDataLoaderIter.__init__, ahead.made, names=("self", "loader"))
    session.hook(NAME, several._reset, ahead.forget, names=("self",))
    asks = {"names": ("self",), "within_names": ("self",), "outermost": True}
    session.hook(NAME, several._next_data, ahead.is_followed, **asks).within = ahead.hand_out
    for name in ("to", "cuda"):
        session.patches.replace(tensor, name, ahead.moving(name, getattr(tensor, name)))


class _Side:
    """A stream beside the program's own, on each GPU."""

    def __init__(self, torch, move):
        self._cuda = torch.cuda
        self._move = move
        self._streams = {}

    def begin(self, tensor, device):
        """Copy it; what `end` needs, or None where that cannot be."""
        if not tensor.is_pinned() or self._cuda.is_current_stream_capturing():
            return None
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = self._cuda.Stream(device)
        with self._cuda.stream(stream):
            moved = self._move(tensor, device, non_blocking=True)
            return moved, stream.record_event()

    def end(self, begun):
        """The copy, for the stream that the program uses now."""
        moved, event = begun
        stream = self._cuda.current_stream(moved.device)
        stream.wait_event(event)
        moved.record_stream(stream)
        return moved


class _Reading:
    """One iterator of a loader that is trained from."""

    __slots__ = ("devices", "kept")

    def __init__(self, devices):
        self.kept = None  # (the batch that was taken early, None), or (None, what was raised in its place)
        self.devices = devices  # number of a tensor in a batch -> where the program has moved it


class Ahead:
    """All iterators; `side` copies to devices of a kind."""

    def __init__(self, session, applied, side, kind):
        self._session = session
        self._torch = session.torch
        self._applied = applied
        self._side = side
        self._kind = kind
        self._devices = Known()  # of a loader: those of its readings
        self._readings = Known()  # of an iterator
        self._handed = Known()  # of a tensor that was handed out: (the reading's devices, its number in the batch)
        self._begun = Known()  # of a tensor: (what `side` has begun, the tensor's version then)

    # -- passes ---------------------------------------------------------------------------------------------------

    def begin(self, loader, _):
        """A pass over a loader begins."""
        try:
            if self._torch.cuda.is_initialized() and not evaluates(self._session):
                self._follow(loader)
        except Exception as error:
            self._applied.fail("a loader could not be changed: %r" % (error,))

    def _follow(self, loader):
        reason = obstacle_to_torchs(loader)
        self._applied.unmet(reason or _UNUSED)
        if reason is None and id(loader) not in self._devices:
            self._devices.learn(loader, {})
            self._session.patches.assign(loader, "pin_memory", True)

    def made(self, iterator, loader):
        """The iterator of a pass is being made."""
        devices = self._devices.get(id(loader))
        if devices is not None:
            self._readings.learn(iterator, _Reading(devices))

    def forget(self, iterator):
        """Workers that are kept begin another pass; the last may have been left early."""
        reading = self._readings.get(id(iterator))
        if reading is not None:
            reading.kept = None

    # -- batches --------------------------------------------------------------------------------------------------

    def is_followed(self, iterator):
        """The reading of an iterator; None: it is left alone."""
        return self._readings.get(id(iterator))

    def hand_out(self, reading, iterator):
        """The next batch; the one after it is taken too, if it is there, and its copies are begun."""
        try:
            batch = _taken(iterator, reading)
        except BaseException:
            hide_ours()
            raise
        try:
            self._look_ahead(reading, iterator, batch)
        except Exception as error:
            if is_from_signal(error):
                raise
            self._applied.fail("a batch could not be copied ahead: %r" % (error,))
        return batch

    def _look_ahead(self, reading, iterator, batch):
        for number, tensor in enumerate(self._tensors(batch)):
            self._handed.learn(tensor, (reading.devices, number))
        if not reading.devices or not _is_there(iterator):
            return
        try:
            reading.kept = (iterator._next_data(), None)
        except Exception as error:
            reading.kept = (None, error)
        for number, tensor in enumerate(self._tensors(reading.kept[0])):
            device = reading.devices.get(number)
            begun = None if device is None else self._side.begin(tensor, device)
            if begun is not None:
                self._begun.learn(tensor, (begun, tensor._version))

    def _tensors(self, value, depth=0):
        """In a batch, in order."""
        if type(value) is self._torch.Tensor:
            yield value
        elif depth < _DEPTH and isinstance(value, (dict, list, tuple)):
            for item in value.values() if isinstance(value, dict) else value:
                yield from self._tensors(item, depth + 1)

    # -- the program's own copies ---------------------------------------------------------------------------------

    def moving(self, name, method):
        """A method that moves tensors: of one that was copied ahead, the copy goes on from there."""
        is_aimed = self._is_aimed if name == "to" else lambda args, kwargs: True

        @functools.wraps(method)
        def move(tensor, *args, **kwargs):
            try:
                begun = self._begun.pop(id(tensor), None)
                if begun is not None and begun[1] == tensor._version and is_aimed(args, kwargs):
                    moved = method(self._side.end(begun[0]), *args, **kwargs)
                    self._applied.act()
                    return moved
                moved = method(tensor, *args, **kwargs)
            except BaseException:
                hide_ours()
                raise
            handed = self._handed.get(id(tensor))
            if handed is not None and moved.device.type == self._kind:
                devices, number = handed
                devices[number] = moved.device
            return moved

        return move

    def _is_aimed(self, args, kwargs):
        """Whether `to` is called with a device of the kind, and not only with a type."""
        target = kwargs.get("device", kwargs.get("other", args[0] if args else None))
        if self._torch.is_tensor(target):
            target = target.device
        if isinstance(target, (str, self._torch.device)):
            return self._torch.device(target).type == self._kind
        return type(target) is int


def _taken(iterator, reading):
    """The next batch; raises what making it has raised."""
    if reading.kept is None:
        return iterator._next_data()
    (batch, error), reading.kept = reading.kept, None
    if error is not None:
        raise error
    return batch


def _is_there(iterator):
    """Whether the next batch has come from its worker; others that have come are put where torch itself puts them."""
    tasks = iterator._task_info
    while iterator._rcvd_idx in tasks and len(tasks[iterator._rcvd_idx]) == 1:
        if iterator._data_queue.empty():
            return False
        has_come, found = iterator._try_get_data(timeout=0)
        if not has_come:
            return False
        number, data = found
        iterator._tasks_outstanding -= 1
        tasks[number] += (data,)
    return iterator._rcvd_idx in tasks
