"""Which expressions are tensors, and where they lie, as far as a function's text tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from typing import Protocol

from floorit.scan.devices import Devices, moves
from floorit.scan.heat import BACKWARD, Heat
from floorit.scan.project import OF_TENSORS, Function, Project, is_own
from floorit.scan.source import COMPREHENSIONS, Source, argument, dotted, has_stars, last_word, walk

_PASSES = 2  # over the assignments of a function: what is used above may be set below, in a loop
_MODEL = re.compile(
    r"(?:.*_)?(?:model|net|network|criterion\w*|loss_fn|loss_func\w*|compute_loss\w*|generator|discriminator|encoder|decoder|backbone"
    r"|policy|critic|actor|agent|unet|ddp|net[DG]|net[DG]_\w+)",
    re.IGNORECASE,
)
# Calls that make one, and return no tensor: `create_model(opt)`, `Net()`.
_MAKES_MODEL = re.compile(
    r"_?(?:(?i:create|build|make|get|load|init|initiali[sz]e|define|setup|set_up|prepare|wrap|new|instantiate|compile)_.*|[A-Z].*)"
)
_PLACES = re.compile(r".*(?:device|gpu|cuda|rank).*", re.IGNORECASE)
_SPEAKS_OF_GPU = re.compile(
    r"cuda|gpu|device|rank|fsdp|distributed|accelerat|fabric|lightning|Trainer|xpu|mps", re.IGNORECASE
)
_MAKES = frozenset(
    "tensor as_tensor zeros ones empty full rand randn randint randperm arange linspace eye from_numpy".split()
)
# Methods and attributes of a tensor that are no tensors.
_PLAIN = frozenset(
    "item tolist numpy size dim numel shape ndim device dtype stride is_cuda requires_grad backward nelement"
    " element_size get_device is_contiguous type layout grad_fn names data_ptr is_leaf is_sparse itemsize nbytes"
    " ndimension is_floating_point is_complex has_names keys items".split()
)
_NO_TENSORS = frozenset(
    "manual_seed device dtype no_grad Size save load compile numel equal allclose isinstance".split()
)
_ASKS = ("is_", "has_", "get_", "set_")  # how functions of torch begin that return no tensor
_PACKS = "pack_padded_sequence"
_CONVERTS = frozenset("float int bool len str repr print isinstance range type getattr hasattr".split())


class Kind(Enum):
    """Where a tensor lies."""

    DEVICE = "on the device"
    HOST = "in the host's memory"
    GIVEN = "on the device, if it is a tensor: handed to a model, or one of several things that it returns"


class Lookup(Protocol):
    """Kinds by name."""

    def get(self, name: str, /) -> Kind | None: ...


class _Names(dict[str, Kind]):
    """The names of a function: what each is at its end, and what it has been on the way, in the order of the text."""

    def __init__(self, known: dict[str, Kind] | None = None) -> None:
        super().__init__(known or {})
        self._given = dict(self)  # before the first line
        self.line = 0  # that is being read
        self._steps: dict[str, list[tuple[int, Kind | None]]] = {}
        self._from: dict[str, int] = {}  # the first line that one reaches which is set in the function
        self._loaded: set[str] = set()  # those that a loader gave, as it gave them

    def begin(self) -> None:
        """The text is read once more."""
        self._steps.clear()

    def note(self, name: str, kind: Kind | None) -> None:
        """From this line on it is that; None: nobody knows what."""
        self._steps.setdefault(name, []).append((self.line, kind))

    def __setitem__(self, name: str, kind: Kind) -> None:
        super().__setitem__(name, kind)
        self.note(name, kind)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.note(name, None)

    def settle(self, name: str, kind: Kind) -> None:
        """It is that from the first line to the last."""
        self[name] = kind
        self._steps[name] = [(0, kind)]

    def load(self, name: str) -> None:
        """A loader gives it, in the host's memory."""
        self[name] = Kind.HOST
        self._loaded.add(name)

    def is_loaded(self, name: str) -> bool:
        """Whether a loader gave it."""
        return name in self._loaded

    def unload(self, name: str) -> None:
        """It is set to something else of which nobody knows what it is."""
        if name in self._loaded:
            self._loaded.discard(name)
            self.pop(name, None)
            self.note(name, None)

    def reach(self, name: str, line: int) -> None:
        """From a line on it is something that the function has set it to, known or not."""
        self._from[name] = min(line, self._from.get(name, line))

    def before(self, node: ast.AST) -> _Before:
        """As they are where a node stands."""
        return _Before(self, getattr(node, "lineno", self.line + 1))

    def at(self, name: str, line: int) -> Kind | None:
        """What a name was last set to above a line, or given as; where nobody knows what that is, what it is at the
        end."""
        earlier = [kind for set_at, kind in self._steps.get(name, ()) if set_at < line]
        if earlier:
            return earlier[-1]
        return self._given.get(name) or (self.get(name) if self._from.get(name, line) <= line else None)


class _Before:
    """The names of a function, above one of its lines."""

    def __init__(self, names: _Names, line: int) -> None:
        self._names, self._line = names, line

    def get(self, name: str, /) -> Kind | None:
        return self._names.at(name, self._line)


class Kinds:
    """Of the functions of a project."""

    def __init__(self, project: Project, heat: Heat, devices: Devices) -> None:
        self._project, self._heat, self._devices = project, heat, devices
        self._known: dict[tuple[Source, ast.AST | None], _Names] = {}
        self._on_host: dict[Source, bool] = {}
        self._to_host: dict[Source, dict[ast.AST | None, list[ast.Call]]] = {}
        self._sets: dict[Source, dict[ast.AST | None, list[ast.stmt]]] = {}

    def of(self, source: Source, node: ast.AST) -> Kind | None:
        """What an expression is; None where it is no tensor, or that can't be told."""
        kind = self._kind(source, node, self._names(source, source.function(node)).before(node))
        return Kind.HOST if kind is not None and self.trains_on_host(source) else kind

    def trains_on_host(self, source: Source) -> bool:
        """Whether a file is a program of its own that never speaks of a GPU."""
        if source not in self._on_host:
            is_program = bool(self._heat.loops_of(source)) and not self._project.imported(source)
            self._on_host[source] = is_program and _SPEAKS_OF_GPU.search(source.text) is None
        return self._on_host[source]

    def is_on_device(self, source: Source, node: ast.AST) -> bool:
        """Whether it is surely a tensor, of those that training computes with."""
        return self.of(source, node) is Kind.DEVICE

    def may_be_on_device(self, source: Source, node: ast.AST) -> bool:
        """Whether it lies there if it is a tensor at all."""
        return self.of(source, node) in (Kind.DEVICE, Kind.GIVEN)

    # -- names of a function --------------------------------------------------------------------------------------

    def _names(self, source: Source, inside: ast.AST | None) -> _Names:
        key = (source, inside)
        if key not in self._known:
            self._known[key] = _Names()  # for functions that call themselves
            self._known[key] = self._learn(source, inside)
        return self._known[key]

    def _learn(self, source: Source, inside: ast.AST | None) -> _Names:
        outer: dict[str, Kind] = {}
        function = self._project.functions.get(inside) if inside is not None else None
        if function is not None:
            outer = dict(self._names(source, source.function(function.node)))
            for name in _all_parameters(function):
                outer.pop(name, None)
            outer.update(self._parameters(function))
        names = _Names(outer)
        nodes = self._bindings(source).get(inside, [])
        losses, on_host = self._goes_backward(source, inside), self._computed_on_host(source, inside)
        for _ in range(_PASSES):
            names.begin()
            for node in nodes:
                names.line = node.lineno
                for name in _set_by(node):
                    names.reach(name, _reached_from(source, node))
                self._assign(source, node, names)
            names.update(dict.fromkeys(losses, Kind.DEVICE))
        for name in (*self._packed_by(source, inside), *on_host):
            names.settle(name, Kind.HOST)
        return names

    def _bindings(self, source: Source) -> dict[ast.AST | None, list[ast.stmt]]:
        """Where each function of a file sets names, in the order of the text."""
        if source not in self._sets:
            found: dict[ast.AST | None, list[ast.stmt]] = {}
            kinds: tuple[type[ast.stmt], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)
            for node in sorted(source.all(*kinds), key=lambda node: node.lineno):
                found.setdefault(source.function(node), []).append(node)
            self._sets[source] = found
        return self._sets[source]

    def _calls(self, source: Source, inside: ast.AST | None) -> list[ast.Call]:
        function = self._project.functions.get(inside) if inside is not None else None
        return function.calls if function is not None else [c for c in source.all(ast.Call) if not source.function(c)]

    def _goes_backward(self, source: Source, inside: ast.AST | None) -> set[str]:
        """Names of a function that are surely tensors: `name.backward()`, `engine.backward(name)`."""
        losses = map(loss_of, self._calls(source, inside))
        return {dotted(loss) for loss in losses if loss is not None} - {""}

    def _computed_on_host(self, source: Source, inside: ast.AST | None) -> set[str]:
        """Names that are set to what a call makes of nothing but tensors that were moved to the CPU before."""
        moved = {name for call in self._moves_to_host(source, inside) for name in _set_by(source.statement(call))}
        made = (one for one in self._bindings(source).get(inside, []) if moved and isinstance(one, ast.Assign))
        return {
            name
            for one in made
            if isinstance(one.value, ast.Call) and one.value.args and moved.issuperset(map(last_word, one.value.args))
            for name in _set_by(one)
        }

    def _moves_to_host(self, source: Source, inside: ast.AST | None) -> list[ast.Call]:
        """The calls of a function that move something to a device which is surely the CPU."""
        if source not in self._to_host:
            found: dict[ast.AST | None, list[ast.Call]] = {}
            for call in source.methods.get("to", ()):
                where = moves(call)
                if where is not None and self._devices.is_cpu(source, where):
                    found.setdefault(source.function(call), []).append(call)
            self._to_host[source] = found
        return self._to_host[source].get(inside, [])

    def _packed_by(self, source: Source, inside: ast.AST | None) -> set[str]:
        """Lengths of sequences as `pack_padded_sequence` takes them: in the host's memory. Not what is copied there."""
        if _PACKS not in source.words:
            return set()
        packs = (call for call in self._calls(source, inside) if last_word(call.func) == _PACKS)
        lengths = {given.id for call in packs if isinstance(given := argument(call, "lengths", 1), ast.Name)}
        copied = (node for node in self._bindings(source).get(inside, []) if isinstance(node, ast.Assign))
        made = {last_word(target) for node in copied if isinstance(node.value, ast.Call) for target in node.targets}
        return lengths - made

    def _assign(self, source: Source, node: ast.AST, names: _Names) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(source, target, node.value, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(source, node.target, node.value, names)
        elif isinstance(node, ast.AugAssign):
            kind = self._kind(source, node.value, names)
            if isinstance(node.target, ast.Name) and kind is not None:
                names[node.target.id] = kind
        elif isinstance(node, ast.For):
            for part in walk(node.target):
                if isinstance(part, ast.Name):
                    names.note(part.id, None)
            for name in self._loaded(source, node):
                names.load(name)
            for target, value in _turns(node.target, node.iter):
                kind = self._kind(source, value, names)
                if kind is not None and isinstance(target, ast.Name):
                    names[target.id] = _part(kind)

    def _loaded(self, source: Source, loop: ast.For) -> set[str]:
        """The names of a batch in a loop that trains, where one of them is moved to the device: all came without."""
        if loop not in self._heat.loops:
            return set()
        given = {name for target, _ in _turns(loop.target, loop.iter) for name in _named(target)}
        batch, changed = set(given), set()
        calls = []
        for part in (part for statement in loop.body for part in walk(statement)):
            if isinstance(part, ast.Assign) and _base(part.value) in given:
                batch.update(_set_by(part))
            elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
                changed.add(_base(part))
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                calls.append((part, part.func))
        is_moved = any(_base(method.value) in batch and self._is_move(source, call) for call, method in calls)
        return given - changed if is_moved else set()

    def _is_move(self, source: Source, call: ast.Call) -> bool:
        """Whether a call moves something to what may be a GPU."""
        where = moves(call)
        is_elsewhere = where is not None and not self._devices.is_cpu(source, where)
        return last_word(call.func) == "cuda" or (is_elsewhere and bool(_PLACES.fullmatch(last_word(where or call))))

    def _bind(self, source: Source, target: ast.AST, value: ast.expr, names: _Names, *, is_part: bool = False) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = (
                value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
            )
            for number, part in enumerate(target.elts):
                self._bind(source, part, parts[number] if parts else value, names, is_part=not parts)
        elif isinstance(target, (ast.Name, ast.Attribute)):
            name = dotted(target)
            kind = self._kind(source, value, names)
            if is_part and kind is not None and not self._returns_tensors(source, value):
                kind = _part(kind)
            if _is_plain(value):
                kind = None
            if name and kind is not None and not _MODEL.fullmatch(last_word(target)):
                if kind is Kind.HOST and names.is_loaded(_base(value)):
                    names.load(name)
                else:
                    names[name] = kind
            elif name in names and isinstance(target, ast.Name) and _is_plain(value):
                del names[name]
            elif kind is None:
                names.unload(name)

    def _parameters(self, function: Function) -> dict[str, Kind]:
        found: dict[str, Kind] = {}
        names = function.parameters
        for source, call in self._callers(function):
            if has_stars(call):
                continue
            caller = self._names(source, source.function(call)).before(call)
            for position, name in enumerate(names):
                given = argument(call, name, position)
                kind = self._kind(source, given, caller) if given is not None else None
                if kind is not None:
                    found.setdefault(name, kind)
        if function in self._heat.steps and function.owner is not None and self._project.is_module(function.owner):
            for name in _plain_parameters(function):
                found.setdefault(name, Kind.GIVEN)
        return found

    def _callers(self, function: Function) -> list[tuple[Source, ast.Call]]:
        """Those that training has, if there are any: an evaluation may have its tensors elsewhere."""
        all_there_are = self._heat.callers.get(function, [])
        return [one for one in all_there_are if self._heat.is_in_step(*one)] or all_there_are

    # -- expressions ----------------------------------------------------------------------------------------------

    def _kind(self, source: Source, node: ast.AST, names: Lookup) -> Kind | None:
        if isinstance(node, ast.Name):
            through = _turned(source, node)
            if through is not None:
                kind = self._kind(source, through, names)
                return _part(kind) if kind is not None else None
            return names.get(node.id)
        if isinstance(node, ast.Attribute):
            if node.attr in _PLAIN:
                return None
            return names.get(dotted(node)) or self._kind(source, node.value, names)
        if isinstance(node, ast.Subscript):
            return self._kind(source, node.value, names)
        if isinstance(node, ast.Call):
            return self._called(source, node, names)
        if isinstance(node, ast.BinOp):
            kind = self._joined(source, (node.left, node.right), names)
            is_size = any(_is_size(side) for side in (node.left, node.right))
            return None if is_size and kind is Kind.GIVEN else kind
        if isinstance(node, ast.UnaryOp):
            return None if isinstance(node.op, ast.Not) else self._kind(source, node.operand, names)
        if isinstance(node, ast.Compare):
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
                return None
            if any(isinstance(c, ast.Constant) and not isinstance(c.value, (int, float)) for c in node.comparators):
                return None
            return self._joined(source, (node.left, *node.comparators), names)
        if isinstance(node, ast.IfExp):
            return self._joined(source, (node.body, node.orelse), names)
        if isinstance(node, (ast.List, ast.Tuple)):
            return self._joined(source, tuple(node.elts), names)
        return None

    def _joined(self, source: Source, nodes: tuple[ast.AST, ...], names: Lookup) -> Kind | None:
        kinds = [self._kind(source, node, names) for node in nodes]
        return next((kind for kind in (Kind.DEVICE, Kind.GIVEN, Kind.HOST) if kind in kinds), None)

    def _called(self, source: Source, call: ast.Call, names: Lookup) -> Kind | None:
        function = call.func
        name = source.name(function)
        last = last_word(function)
        if name.startswith(("torch.", "torchvision.")) and not self._kind(source, function, names):
            return self._of_torch(source, call, last, names)
        if isinstance(function, ast.Attribute):
            base = self._kind(source, function.value, names)
            if last in _PLAIN:
                return None
            if last == "cpu":
                return Kind.HOST if base is not None or not _MODEL.fullmatch(last_word(function.value)) else None
            if last in ("to", "cuda"):
                return self._moved(source, call, base)
            if base is Kind.GIVEN and last in OF_TENSORS:
                return Kind.DEVICE
            if base is not None:
                return base
            if last == "clip_grad_norm_":
                return Kind.DEVICE
        if name in _CONVERTS:
            return None
        if name == "sum" and call.args:
            return self._kind(source, call.args[0], names)
        if _is_model_called(function) or self._is_module(source, function):
            return Kind.DEVICE
        return Kind.HOST if is_own(function) and self._returns_from_host(source, call) else None

    def _returns_from_host(self, source: Source, call: ast.Call) -> bool:
        """Whether a method of the same object moves something to the CPU, and returns what lies there."""
        found = self._project.called(source, call)
        if not found or not found[0].returns or not self._moves_to_host(found[0].source, found[0].node):
            return False
        names = self._names(found[0].source, found[0].node)
        return all(self._kind(found[0].source, one, names.before(one)) is Kind.HOST for one in found[0].returns)

    def _of_torch(self, source: Source, call: ast.Call, last: str, names: Lookup) -> Kind | None:
        if last.endswith("Tensor"):
            return Kind.DEVICE if source.name(call.func).startswith("torch.cuda.") else Kind.HOST
        if last == "Variable" and call.args:
            return self._kind(source, call.args[0], names)
        if last in _NO_TENSORS or last.startswith(_ASKS) or not last[:1].islower():
            return None
        if last == "clip_grad_norm_":
            return Kind.DEVICE
        if last in _MAKES:
            where = argument(call, "device")
            if where is None or self._devices.is_cpu(source, where):
                return Kind.HOST
            return Kind.DEVICE
        joined = self._joined(source, (*call.args, *(k.value for k in call.keywords)), names)
        if joined is None and call.args and not isinstance(call.args[0], ast.Constant) and self._is_model(source, call):
            return Kind.DEVICE
        return Kind.DEVICE if joined is Kind.GIVEN else joined

    def _is_model(self, source: Source, node: ast.AST) -> bool:
        """Whether it stands in a method of a model that runs in every step: all tensors of which lie on the device."""
        inside = source.function(node)
        function = self._project.functions.get(inside) if inside is not None else None
        if function is None or function.owner is None or function not in self._heat.steps:
            return False
        return self._project.is_module(function.owner)

    def _returns_tensors(self, source: Source, value: ast.expr) -> bool:
        """Whether a call whose result is taken apart returns tensors only: `x.max(1)`, `torch.topk(x, 5)`."""
        if not isinstance(value, ast.Call):
            return False
        name = source.name(value.func)
        is_module = _is_model_called(value.func) or self._is_module(source, value.func)
        return name.startswith("torch.") or (
            not is_module and isinstance(value.func, ast.Attribute) and value.func.attr in OF_TENSORS
        )

    def _moved(self, source: Source, call: ast.Call, base: Kind | None) -> Kind | None:
        assert isinstance(call.func, ast.Attribute)
        moved = call.func.value
        if _MODEL.fullmatch(last_word(moved)) or self._project.class_of(source, moved) is not None:
            return None
        if call.func.attr == "cuda":
            return Kind.DEVICE
        where = argument(call, "device", 0)
        if where is None:
            return base
        if isinstance(where, ast.Constant):
            return Kind.HOST if where.value == "cpu" else Kind.DEVICE
        if self._devices.is_cpu(source, where):
            return Kind.HOST
        return Kind.DEVICE if _PLACES.fullmatch(last_word(where)) else base

    def _is_module(self, source: Source, function: ast.AST) -> bool:
        """Whether what is called is a module of the model that it is called in: `self.conv1(x)`."""
        owner = self._project.class_of(source, function)
        if owner is not None:
            return self._project.is_module(owner)
        if not isinstance(function, ast.Attribute) or dotted(function.value) != "self":
            return False
        inside = self._project.class_of(source, function.value)
        if inside is None or not self._project.is_module(inside) or self._project.method(inside, function.attr):
            return False
        made = inside.attributes.get(function.attr)
        return isinstance(made, ast.Call) and inside.source.name(made.func).startswith("torch.nn.")


def _is_model_called(function: ast.expr) -> bool:
    """Whether what is called is a model, by its name."""
    name = last_word(function)
    return _MODEL.fullmatch(name) is not None and (is_own(function) or not _MAKES_MODEL.fullmatch(name))


def _named(target: ast.expr) -> list[str]:
    return [part.id for part in walk(target) if isinstance(part, ast.Name)]


def _base(node: ast.expr) -> str:
    """`x` of `x[0]["y"]`"""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _set_by(statement: ast.stmt) -> Iterator[str]:
    """The plain names that a statement sets."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    parts = (part for target in targets for part in walk(target))
    yield from (part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


def _reached_from(source: Source, statement: ast.stmt) -> int:
    """The first line that runs after a statement: of the outermost loop around it in its function, or the next."""
    inside, line = source.function(statement), (statement.end_lineno or statement.lineno) + 1
    for here in source.around(statement):
        if here is inside:
            break
        if isinstance(here, (ast.For, ast.While)):
            line = here.lineno
    return line


def loss_of(call: ast.Call) -> ast.expr | None:
    """What a call goes backward from, if it does: `loss` also of `scaler.scale(loss).backward()`."""
    if last_word(call.func) not in BACKWARD or not isinstance(call.func, ast.Attribute):
        return None
    if call.args:
        return call.args[0]
    value = call.func.value
    is_scaled = isinstance(value, ast.Call) and last_word(value.func) == "scale" and len(value.args) == 1
    return value.args[0] if is_scaled and isinstance(value, ast.Call) else value


def _turns(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a loop gives its targets each time round, as parts of what: through `enumerate` and `zip`."""
    given = iterated.args if isinstance(iterated, ast.Call) else []
    name = last_word(iterated.func) if isinstance(iterated, ast.Call) else ""
    if name == "enumerate" and given and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        yield from _turns(target.elts[1], given[0])
    elif name == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(given):
        for part, value in zip(target.elts, given, strict=True):
            yield from _turns(part, value)
    else:
        yield target, iterated


def _turned(source: Source, name: ast.Name) -> ast.expr | None:
    """What a comprehension goes through whose name that is, whatever has the name outside of it."""
    for here in source.around(name):
        if isinstance(here, ast.stmt):
            return None
        if isinstance(here, COMPREHENSIONS):
            for generator in here.generators:
                is_set = any(isinstance(part, ast.Name) and part.id == name.id for part in walk(generator.target))
                if is_set and not _is_within(source, name, generator.iter):
                    return generator.iter
    return None


def _is_within(source: Source, node: ast.AST, around: ast.AST) -> bool:
    return node is around or around in source.around(node)


def _part(kind: Kind) -> Kind:
    """Of one thing out of several of this kind."""
    return Kind.GIVEN if kind is Kind.DEVICE else kind


def _plain_parameters(function: Function) -> list[str]:
    """Those that may be tensors: without a default that is none, and without another annotation."""
    given = function.node.args
    arguments = [*given.posonlyargs, *given.args][1:]
    defaults = dict(
        zip([a.arg for a in arguments[len(arguments) - len(given.defaults) :]], given.defaults, strict=False)
    )
    plain = []
    for one in arguments:
        default = defaults.get(one.arg)
        if isinstance(default, ast.Constant) and default.value is not None:
            continue
        if one.annotation is None or "Tensor" in ast.unparse(one.annotation):
            plain.append(one.arg)
    return plain


def _is_size(node: ast.expr) -> bool:
    """`x.size(0)`, `x.shape[0]`, `len(x)`"""
    if isinstance(node, ast.Subscript):
        node = node.value
    return last_word(node.func if isinstance(node, ast.Call) else node) in ("size", "shape", "len", "numel", "dim")


def _all_parameters(function: Function) -> list[str]:
    given = function.node.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _is_plain(value: ast.expr) -> bool:
    """Whether a value is surely no tensor."""
    if isinstance(value, ast.IfExp):  # x.item() if … else x
        return any(isinstance(branch, ast.Call) and _is_plain(branch) for branch in (value.body, value.orelse))
    if isinstance(value, ast.Call):
        return last_word(value.func) in _PLAIN or last_word(value.func) in _CONVERTS
    return isinstance(value, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict))
