"""The parts of the model, and their calls marked in a trace: for the few steps of a window of their own.

Parts are what a person would name: the model's children, and where there are repeated stages, each stage. Torch's own
profiler tells of every operator in these steps, backward ones with the number of the forward one they belong to, so a
mark around each call of a part is all that is added.
"""

import os
import re
import sys
from time import perf_counter_ns

from .window import SOON, Kineto, Watcher
from .wire import PART

NAME = "parts of the model"
MOST = 40  # parts that are told apart
# Bytes that a process without a GPU may grow by while it is watched: putting a trace together takes six times as much,
# and as many seconds, of which a step with 100,000 operators would need a minute.
ROOM = 16 << 20
_NUMBER = re.compile(r"\d+$")
_WRAPPED = "module."  # where DistributedDataParallel and DataParallel keep the model


class Part:
    """One part: a module, or several in a list that are not told apart."""

    __slots__ = ("is_stage", "module", "name")

    def __init__(self, name, module, is_stage=False):
        self.name = name
        self.module = module
        self.is_stage = is_stage  # one of several alike: its own children are not shown

    def facts(self, nn):
        """What is noted of it."""
        count = len(self.module) if isinstance(self.module, (nn.ModuleList, nn.ModuleDict)) else 1
        name = self.name[len(_WRAPPED) :] if self.name.startswith(_WRAPPED) else self.name
        kind = type(self.module).__name__
        return {"name": name, "class": kind, "count": count, "parameters": _parameters(self.module)}


def choose(nn, models):
    """The parts of the models that train, and how many more there would be."""
    held = {id(inner) for model in models for inner in model.modules() if inner is not model}
    roots = [model for model in models if id(model) not in held]
    parts = [Part("", roots[0])] if len(roots) == 1 else _by_class(roots)
    whole = sum(map(_parameters, roots))
    grows = True
    while grows:
        grows = False
        for part in list(parts):
            inside = _children(part) if _is_opened(nn, part, whole) else []
            if inside and (len(parts) - 1 + len(inside) <= MOST or len(parts) == 1):
                at = parts.index(part)
                parts[at : at + 1] = inside
                grows = True
    largest = sorted(parts, key=lambda part: -_parameters(part.module))[:MOST]
    return [part for part in parts if part in largest], len(parts) - len(largest)


def _parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def _by_class(roots):
    """Models that are called one after the other have no names but those of their classes."""
    names = [type(root).__name__ for root in roots]
    numbers = [names[: at + 1].count(name) for at, name in enumerate(names)]
    return [
        Part(name if number == 1 else "%s %d" % (name, number), root)
        for name, number, root in zip(names, numbers, roots)
    ]


def _children(part):
    named = list(part.module.named_children())
    inside = []
    for name, child in named:
        alike = [other for other, sibling in named if other != name and _are_alike(name, child, other, sibling)]
        inside.append(Part("%s.%s" % (part.name, name) if part.name else name, child, bool(alike)))
    return inside


def _are_alike(name, child, other, sibling):
    """Whether two siblings are stages of one kind: by their class, or by names that differ in their number."""
    stem = _NUMBER.sub("", name)
    return type(child) is type(sibling) or (bool(stem) and stem != name and stem == _NUMBER.sub("", other))


def _is_opened(nn, part, whole):
    """Whether its children are shown in its place: of a wrapper, of a list, and of what has stages in it."""
    if part.is_stage:
        return False
    if isinstance(part.module, (nn.ModuleList, nn.ModuleDict)) or _parameters(part.module) == whole:
        return True
    return any(_has_stages(nn, inner) for inner in part.module.modules())


def _has_stages(nn, module):
    if not isinstance(module, (nn.ModuleList, nn.Sequential)):
        return False
    composed = [type(child) for child in module.children() if next(child.children(), None) is not None]
    return len(set(composed)) < len(composed)


def obstacle(torch, models, has_graphs, compilations):
    """Why parts cannot be told apart here, or None."""
    if compilations:
        return "torch.compile was in use: the calls of inner modules are not seen"
    if has_graphs:
        return "the program captured a CUDA graph: the calls of modules are not seen when it is replayed"
    if not models:
        return "no call of a module that trains was seen"
    script = sys.modules.get("torch.jit")
    if script is not None and any(isinstance(model, script.ScriptModule) for model in models):
        return "the model is TorchScript: the calls of inner modules are not seen"
    if len(_devices(models)) > 1 or not _devices(models) <= {"cpu", "cuda"}:
        return "the model is on %s" % " and ".join(sorted(_devices(models)))
    if len(choose(torch.nn, models)[0]) < 2:
        return "the model is a single part"
    return None


def are_on_gpu(models):
    """Whether it is the GPU that computes them."""
    return _devices(models) == {"cuda"}


def _devices(models):
    return {parameter.device.type for model in models for parameter in model.parameters()}


class Calls:
    """The calls of parts, from outside of any other part: hooked while a window wants them."""

    def __init__(self, session):
        self._session = session
        self._parts, self._numbers = None, {}  # id of a module -> number of its part
        self._left_out = 0
        self._hooks = self._code = None

    def on(self, enter, leave):
        """From now on `enter` is called with the number of the part, and `leave` with what it returned."""
        session, numbers = self._session, self._numbers
        if self._parts is None:
            self._choose()

        def enters(module):
            number = numbers.get(id(module))
            return None if number is None else enter(number)

        if self._hooks is None:
            call = session.torch.nn.Module._call_impl
            self._hooks = session.hook(NAME, call, enters, leave, names=("self",), outermost=True)
            self._code = self._hooks.hooked
        else:
            self._hooks.enter, self._hooks.leave, self._hooks.hooked = enters, leave, self._code
            self._hooks.reset()

    def off(self):
        """Leave calls alone, also after one that is open now."""
        if self._hooks is not None:
            self._hooks.off()

    def facts(self):
        """What is noted of the parts."""
        nn = self._session.torch.nn
        return {"parts": [part.facts(nn) for part in self._parts], "left_out": self._left_out}

    def _choose(self):
        self._parts, self._left_out = choose(self._session.torch.nn, self._session.trained_models())
        for number, part in enumerate(self._parts):
            for module in part.module.modules():
                self._numbers.setdefault(id(module), number)


class Timed(Watcher):
    """Stands for a profiler where there is no GPU: the calls of parts in the forward pass, by the log's clock.

    To be told of each operator takes memory between the program's own, so tensors land on fresh pages and the host is
    slower in some parts than in others. What can be timed without, is.
    """

    def __init__(self, log, calls):
        self._log = log
        self._calls = calls
        self._seen = []  # number of the part, begin, end

    def start(self):
        """Time calls from the next on."""
        self._calls.on(self._enter, self._leave)

    def stop(self, take_down):
        """What was seen."""
        self._calls.off()
        return self

    def cancel(self):
        """Stop."""
        self._calls.off()

    def _enter(self, number):
        return None if self._log.backward else (number, perf_counter_ns())

    def _leave(self, token):
        self._seen.append((*token, perf_counter_ns()))


class Marked(Kineto):
    """The profiler with operators, and the calls of parts marked in its trace."""

    looks_every = SOON

    def __init__(self, session, calls):
        on_gpu = are_on_gpu(session.trained_models())
        super().__init__(session.torch, lambda: session.has_graphs, on_gpu=on_gpu, with_operators=True)
        self._log = session.log
        self._of_parts = calls
        self._marked = session.torch._C._profiler._RecordFunctionFast
        self._memory = _allocated(session.torch) if self.is_on_gpu else None
        self._kept = []  # (time, number of the part, bytes that a call of it left allocated)
        self._resident = 0  # bytes of the process when it started

    def is_full(self):
        """Whether so many operators were seen that no further step is to be watched."""
        return not self.is_on_gpu and _resident() - self._resident > ROOM

    def start(self):
        """Watch, and mark from the next call on."""
        super().start()
        self._resident = _resident()
        self._of_parts.on(self._enter, self._leave)

    def stop(self, take_down=True):
        """What was seen."""
        self._of_parts.off()
        return super().stop(take_down)

    def cancel(self):
        """Stop, if it has started."""
        self._of_parts.off()
        super().cancel()

    def facts(self):
        """What is noted beside the trace."""
        return {**self._of_parts.facts(), "on_gpu": self.is_on_gpu, "kept": self._kept}

    def _enter(self, number):
        mark = self._marked(PART + str(number))
        before = self._memory() if self._memory is not None and not self._log.backward else None
        mark.__enter__()
        return number, mark, before

    def _leave(self, token):
        number, mark, before = token
        mark.__exit__(None, None, None)
        if before is not None:
            self._kept.append((perf_counter_ns(), number, self._memory() - before))


def _resident():
    """Bytes of memory that the process has; 0 where Linux does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _allocated(torch):
    """A function that asks torch's allocator (not the GPU) for the bytes that tensors have."""
    stats, device = torch._C._cuda_memoryStats, torch.cuda.current_device()
    return lambda: stats(device)["allocated_bytes"]["all"]["current"]
