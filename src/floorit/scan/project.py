"""All files together: their functions and classes, and which of them a call reaches."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from floorit.scan.commands import Commands
from floorit.scan.entries import Entries
from floorit.scan.source import FunctionNode, Source, dotted, has_stars, last_word

_HOPS = 4  # that a name is followed through files that only hand it on
# Methods of so many things that a call says nothing about which is meant.
_COMMON = frozenset(
    "add append backward build call clear close copy cpu cuda eval extend fit flush forward from_config get init items"
    " join keys load log main next open parameters pop put read reset resize run save send set setup split start"
    " state_dict step stop sum to train transform update values wait write".split()
)
# Methods that what is not a tensor seldom has.
OF_TENSORS = frozenset(
    "abs all amax amin any argmax argmin bool clamp clone contiguous cpu cuda detach double exp expand flatten float"
    " gather half int log log_softmax long max masked_fill mean min mm ne new_tensor nonzero norm permute pow prod"
    " relu reshape sigmoid softmax sqrt square squeeze std sum t tanh to topk transpose type_as unsqueeze var"
    " view".split()
)
# Importing, or making objects, by a name that is a string.
_IMPORTS_BY_NAME = frozenset(
    "import_module __import__ instantiate instantiate_from_config fromfile LightningCLI".split()
)

# What is imported by these names is never a folder of the project that happens to be called so.
_LIBRARIES = frozenset("torch torchvision torchaudio numpy".split())
# What is made of a model, and has its methods, or the model as a part of it.
_AROUND_MODELS = frozenset("DataParallel DistributedDataParallel DDP FullyShardedDataParallel FSDP compile".split())

# How the names of a library's modules end.
_MODULES = (
    "Head",
    "Loss",
    "Net",
    "Layer",
    "Block",
    "Module",
    "Model",
    "Attention",
    "Transformer",
    "Detector",
    "Encoder",
)


class Class:
    """One that the project defines."""

    def __init__(self, source: Source, node: ast.ClassDef) -> None:
        self.source, self.node, self.name = source, node, node.name
        self.methods: dict[str, Function] = {}
        self.bases = [source.name(base) for base in node.bases]
        self.attributes: dict[str, ast.expr] = {}  # of self -> what it is first set to


class Function:
    """One that the project defines, or a lambda."""

    def __init__(self, source: Source, node: FunctionNode, owner: Class | None) -> None:
        self.source, self.node, self.owner = source, node, owner
        self.name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self.calls: list[ast.Call] = []

    @property
    def parameters(self) -> list[str]:
        """By position, without the object that a method belongs to."""
        given = self.node.args
        names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        is_bound = self.owner is not None and not any(dotted(d) == "staticmethod" for d in self.decorators)
        return names[1:] if is_bound else names

    @cached_property
    def returns(self) -> list[ast.expr]:
        """What it may return."""
        if isinstance(self.node, ast.Lambda):
            return [self.node.body]
        found = (node for node in self.source.all(ast.Return) if self.source.function(node) is self.node)
        return [node.value for node in found if node.value is not None]

    @property
    def decorators(self) -> list[ast.expr]:
        return [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list


class Project:
    """The files that were read."""

    def __init__(
        self,
        sources: list[Source],
        configs: Iterable[Path] = (),
        commands: Iterable[Path] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        self.sources = sources
        self.commands = Commands(commands)
        self.is_whole = is_whole  # none of its files could not be read
        self.entries = Entries(sources, configs, self.commands, self.set_once)
        self.functions: dict[ast.AST, Function] = {}
        self.classes: dict[ast.AST, Class] = {}
        self._tops: dict[Source, dict[str, Function | Class]] = {source: {} for source in sources}
        self._assigned: dict[tuple[Source, ast.AST | None], dict[str, ast.expr]] = {}
        self._changing: dict[Source, set[tuple[ast.AST | None, str]]] = {}
        self._unpacked: dict[tuple[Source, ast.AST | None], dict[str, ast.expr]] = {}  # a, b = value
        self._packages = {source.path.parent for source in sources if source.path.name == "__init__.py"}
        self._imported: dict[Source, set[Source]] = {}
        self._modules: dict[tuple[Source, str], Source | None] = {}
        self._is_imported: set[Source] | None = None
        self._importers: dict[Source | None, list[tuple[Source, ast.stmt]]] | None = None
        self._heirs: dict[Class, list[Class]] | None = None
        self._families: dict[Class, list[Class]] = {}
        self._found: dict[tuple[Source, str], Function | Class | None] = {}
        self._called: dict[ast.Call, list[Function]] = {}
        self._is_module: dict[Class, bool] = {}
        self._inner: dict[ast.AST, dict[str, Function]] = defaultdict(dict)  # functions defined in a function
        self._owners: dict[str, list[Class]] = defaultdict(list)  # of a method's name
        self._files: dict[str, list[Source]] = defaultdict(list)  # by the last word of the module
        for source in sources:
            self._files[_words(source.path)[-1]].append(source)
            self._define(source)
        for owner in self.classes.values():
            for name in owner.methods:
                self._owners[name].append(owner)
        self._last_words = {*self._owners, *(name for tops in self._tops.values() for name in tops)}
        self._last_words.update(name for source in sources for name in source.imports)  # of what `a.b.c` may be

    # -- what there is ------------------------------------------------------------------------------------------

    def _define(self, source: Source) -> None:
        for node in source.all(ast.ClassDef):
            self.classes[node] = Class(source, node)
            if source.parents.get(node) is source.tree:
                self._tops[source][node.name] = self.classes[node]
        for function in source.functions():
            self._add(source, function)
        for assignment in source.all(ast.Assign):
            for target in assignment.targets:
                self._assign(source, target, assignment.value)
        for annotated in source.all(ast.AnnAssign):
            if annotated.value is not None:
                self._assign(source, annotated.target, annotated.value)
        for call in source.all(ast.Call):
            inside = source.function(call)
            if inside is not None:
                self.functions[inside].calls.append(call)

    def _add(self, source: Source, node: FunctionNode) -> None:
        parent = source.parents.get(node)
        owner = self.classes.get(parent) if parent is not None else None
        function = self.functions[node] = Function(source, node, owner)
        if owner is not None:
            owner.methods[function.name] = function
        elif parent is source.tree:
            self._tops[source][function.name] = function
        elif (inside := source.function(node)) is not None:
            self._inner[inside][function.name] = function

    def _assign(self, source: Source, target: ast.AST, value: ast.expr) -> None:
        inside = source.function(target)
        if isinstance(target, ast.Name):
            self._assigned.setdefault((source, inside), {}).setdefault(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(source, target, value)
        elif is_own(target) and inside is not None:
            owner = self.functions[inside].owner
            if owner is not None:
                owner.attributes.setdefault(target.attr, value)

    def _unpack(self, source: Source, target: ast.Tuple | ast.List, value: ast.expr) -> None:
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for part, given in zip(target.elts, value.elts, strict=True):
                self._assign(source, part, given)
            return
        known = self._unpacked.setdefault((source, source.function(target)), {})
        for part in target.elts:
            if isinstance(part, ast.Name):
                known.setdefault(part.id, value)

    # -- what a name leads to -----------------------------------------------------------------------------------

    def assigned(self, source: Source, node: ast.AST, name: str) -> ast.expr | None:
        """What a plain name that is read at `node` is first set to, in the functions around it or in the file."""
        return self._set(source, node, name)[1]

    def set_once(self, source: Source, node: ast.AST, name: str) -> ast.expr | None:
        """What a plain name that is read at `node` is set to, if that happens in one place only."""
        inside, value = self._set(source, node, name)
        if source not in self._changing:
            self._changing[source] = _changing(source)
        return None if {(inside, name), (None, name)} & self._changing[source] else value

    def set_elsewhere(self, source: Source, node: ast.AST) -> tuple[Source, ast.expr] | None:
        """What a name out of another file is set to there, with that file, if that happens in one place only."""
        where, _, last = source.name(node).rpartition(".")
        module = self._module(source, where) if where else None
        value = self.set_once(module, module.tree, last) if module is not None else None
        return (module, value) if module is not None and value is not None else None

    def _set(self, source: Source, node: ast.AST, name: str) -> tuple[ast.AST | None, ast.expr | None]:
        """The function in which a name is set, and what to."""
        inside: ast.AST | None = node
        while inside is not None:
            inside = source.function(inside)
            value = self._assigned.get((source, inside), {}).get(name)
            if value is not None:
                return inside, value
        return None, None

    def unpacked(self, source: Source, node: ast.AST, name: str) -> ast.expr | None:
        """What a plain name that is read at `node` is a part of: `a, b = value`."""
        inside: ast.AST | None = node
        while inside is not None:
            inside = source.function(inside)
            value = self._unpacked.get((source, inside), {}).get(name)
            if value is not None:
                return value
        return None

    def called(self, source: Source, call: ast.Call) -> list[Function]:
        """The functions of the project that a call may run; none where that can't be told."""
        if call not in self._called:
            self._called[call] = self._functions_of(source, call)
        return self._called[call]

    def _functions_of(self, source: Source, call: ast.Call) -> list[Function]:
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr not in self._last_words and not is_own(function):
            return []  # most calls, told in a tenth of the time
        if source.name(function).partition(".")[0] in _LIBRARIES:
            return []
        found = self._callable(source, call.func) or self._only_one(source, call)
        if isinstance(found, Class):
            return [method for method in (self.method(found, "__init__"),) if method is not None]
        if found is not None:
            return [found, *(self._overrides(found) if is_own(call.func) else [])]
        instance = self.class_of(source, call.func)
        if instance is not None:
            names = ("forward", "__call__") if self.is_module(instance) else ("__call__",)
            return [method for name in names if (method := self.method(instance, name)) is not None][:1]
        return self._left_to_heirs(source, call.func)

    def _left_to_heirs(self, source: Source, node: ast.AST) -> list[Function]:
        """The methods that `self.name` may be where only classes that inherit from its own have it."""
        owner = self._enclosing(source, node) if is_own(node) else None
        heirs = self.descendants(owner) if owner is not None else []
        return [heir.methods[last_word(node)] for heir in heirs if last_word(node) in heir.methods]

    def _callable(self, source: Source, node: ast.AST) -> Function | Class | None:
        if isinstance(node, ast.Name):
            nested = self._nested(source, node)
            return nested or self.find(source, source.name(node))
        if not isinstance(node, ast.Attribute):
            return None
        if isinstance(node.value, ast.Call) and dotted(node.value.func) == "super":
            return self._inherited(source, node)
        owner = self.class_of(source, node.value)
        if owner is not None:
            return self.method(owner, node.attr)
        return self.find(source, source.name(node))

    def _inherited(self, source: Source, node: ast.Attribute) -> Function | None:
        """`super().step`, as far as the project has it; not `__init__`, whose arguments are another object's."""
        owner = self._enclosing(source, node) if node.attr != "__init__" else None
        above = (one for one in self.family(owner) if one is not owner) if owner is not None else ()
        return next((one.methods[node.attr] for one in above if node.attr in one.methods), None)

    def _only_one(self, source: Source, call: ast.Call) -> Function | None:
        """The only method of a name, called on something of which nothing is known, if it takes what is given."""
        node = call.func
        if not isinstance(node, ast.Attribute) or node.attr in _COMMON or node.attr in OF_TENSORS:
            return None
        owners = self._owners.get(node.attr, [])
        if len(owners) != 1 or self.class_of(source, node.value) is not None or self._is_foreign(source, node.value):
            return None
        method = owners[0].methods[node.attr]
        return method if _fits(method, call) else None

    def _is_foreign(self, source: Source, node: ast.AST, hops: int = _HOPS) -> bool:
        """Whether an object comes out of a library, or is Python's own: `torch.randn(3)`, `", "`."""
        while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            if is_own(node):
                owner = self._enclosing(source, node)
                return owner is not None and self._comes_from_outside(
                    owner.source, self._attribute(owner, node.attr), hops
                )
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name):
            return isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict))
        if node.id in source.imports:
            return not self._is_of_project(source, source.imports[node.id])
        return self._comes_from_outside(source, self.assigned(source, node, node.id), hops)

    def _comes_from_outside(self, source: Source, made: ast.expr | None, hops: int) -> bool:
        if isinstance(made, ast.Call) and last_word(made.func) in _AROUND_MODELS:
            return False
        return made is not None and hops > 0 and self._is_foreign(source, made, hops - 1)

    def _is_of_project(self, source: Source, name: str) -> bool:
        """Whether a full name begins with that of one of the project's files."""
        words = name.split(".")
        return any(self._module(source, ".".join(words[:count]) or ".") for count in range(len(words), 0, -1))

    def _overrides(self, function: Function) -> list[Function]:
        """The methods that classes derived from its own have in its place."""
        own = function.owner
        others = [owner for owner in self._owners[function.name] if owner is not own]
        return [owner.methods[function.name] for owner in others if any(own is c for c in self.family(owner))]

    def methods_of(self, name: str) -> list[Function]:
        """All methods of a name, but those that do nothing."""
        return [owner.methods[name] for owner in self._owners.get(name, ()) if not _is_empty(owner.methods[name])]

    def has_several(self, node: ast.AST) -> bool:
        """Whether a method is called that several of the project's classes have, and not much else."""
        return isinstance(node, ast.Attribute) and node.attr not in _COMMON and len(self._owners[node.attr]) > 1

    def _nested(self, source: Source, node: ast.Name) -> Function | None:
        """A function defined inside of one that the name stands in."""
        inside = source.function(node)
        while inside is not None:
            found = self._inner.get(inside, {}).get(node.id)
            if found is not None:
                return found
            inside = source.function(inside)
        return None

    def class_of(self, source: Source, node: ast.AST) -> Class | None:
        """The project's class of which an expression is an instance."""
        if isinstance(node, ast.Name):
            if node.id == "self":
                return self._enclosing(source, node)
            made = self.assigned(source, node, node.id)
        elif is_own(node):
            owner = self._enclosing(source, node)
            made = self._attribute(owner, node.attr) if owner is not None else None
            if owner is not None and made is not None:
                source = owner.source
        else:
            made = node if isinstance(node, ast.Call) else None
        if isinstance(made, ast.IfExp):  # either; what both have is what is asked for
            made = made.body
        while isinstance(made, ast.Call):
            found = self.find(source, source.name(made.func))
            if isinstance(found, Class):
                return found
            made = _before_moving(made)
        return None

    def _enclosing(self, source: Source, node: ast.AST) -> Class | None:
        return next((self.classes[here] for here in source.around(node) if isinstance(here, ast.ClassDef)), None)

    def _attribute(self, owner: Class, name: str) -> ast.expr | None:
        return next((c.attributes[name] for c in self.family(owner) if name in c.attributes), None)

    def method(self, owner: Class, name: str) -> Function | None:
        """Of a class or of those of the project that it inherits from."""
        return next((c.methods[name] for c in self.family(owner) if name in c.methods), None)

    def family(self, owner: Class) -> list[Class]:
        """A class and those of the project that it inherits from."""
        if owner not in self._families:
            found: dict[Class, None] = {}
            stack = [owner]
            while stack:
                one = stack.pop()
                if one not in found:
                    found[one] = None
                    stack += [base for name in one.bases if isinstance(base := self.find(one.source, name), Class)]
            self._families[owner] = list(found)
        return self._families[owner]

    def descendants(self, owner: Class) -> list[Class]:
        """A class and those of the project that inherit from it."""
        if self._heirs is None:
            self._heirs = defaultdict(list)
            for one in self.classes.values():
                for above in self.family(one):
                    self._heirs[above].append(one)
        return self._heirs.get(owner, [owner])

    def ancestors(self, owner: Class) -> set[str]:
        """Full names of all classes that it inherits from, as far as they can be read."""
        return {name for one in self.family(owner) for name in one.bases}

    def is_module(self, owner: Class) -> bool:
        """Whether it is one of torch's modules, or of a library's that has a `forward` and is called like one."""
        if owner not in self._is_module:
            self._is_module[owner] = self._inherits_module(owner)
        return self._is_module[owner]

    def _inherits_module(self, owner: Class) -> bool:
        names = {name.split(".")[-1] for name in self.ancestors(owner)}
        if not names.isdisjoint(("Module", "LightningModule", "BaseModule", "BaseModel", "Sequential")):
            return True
        return any(name.endswith(_MODULES) for name in names) and self.method(owner, "forward") is not None

    def find(self, source: Source, name: str) -> Function | Class | None:
        """What a full name, as seen from a file, stands for in the project."""
        key = (source, name)
        if key not in self._found:
            self._found[key] = self._find(source, name)
        return self._found[key]

    def _find(self, source: Source, name: str) -> Function | Class | None:
        for _ in range(_HOPS):
            if not name:
                return None
            if "." not in name:
                return self._tops[source].get(name) or self._by_star(source, name)
            where, _, last = name.rpartition(".")
            module = self._module(source, where or ".")
            if module is None:
                return self._static(source, where, last)
            found = self._tops[module].get(last)
            if found is not None:
                return found
            source, name = module, module.imports.get(last, last)
        return None

    def _by_star(self, source: Source, name: str) -> Function | Class | None:
        """What `from utils import *` gives a name to."""
        for where in source.stars:
            module = self._module(source, where)
            if module is not None and module is not source and name in self._tops[module]:
                return self._tops[module][name]
        return None

    # -- which files run together -------------------------------------------------------------------------------

    def reached(self, entry: Source) -> frozenset[Source] | None:
        """A file and all that it imports, and that these import; None where that can't be told, as one of them
        imports by a name made up while it runs."""
        found, stack = {entry}, [entry]
        while stack:
            source = stack.pop()
            if not source.words.isdisjoint(_IMPORTS_BY_NAME):
                return None
            new = self.imported(source) - found
            found |= new
            stack += new
        return frozenset(found)

    def is_named(self, name: str) -> bool:
        """Whether anything in the project has this name, or a short text that is it, besides its definition."""
        return any(name in source.words for source in self.sources)

    def is_imported(self, source: Source) -> bool:
        """Whether another file imports it."""
        if self._is_imported is None:
            self._is_imported = {module for one in self.sources for module in self.imported(one)}
        return source in self._is_imported

    def importers(self, source: Source) -> list[tuple[Source, ast.stmt]]:
        """The statements of other files that import a file."""
        if self._importers is None:
            self._importers = defaultdict(list)
            for one in self.sources:
                for node in _imports(one):
                    for module in {self._module(one, name) for name in _names_of(node)} - {None, one}:
                        self._importers[module].append((one, node))
        return self._importers[source]

    def imported(self, source: Source) -> set[Source]:
        """The files that a file imports itself."""
        if source not in self._imported:
            modules = (self._module(source, name) for name in _imported_names(source))
            self._imported[source] = {module for module in modules if module is not None and module is not source}
        return self._imported[source]

    def _static(self, source: Source, where: str, last: str) -> Function | None:
        owner = self._tops[source].get(where)
        return self.method(owner, last) if isinstance(owner, Class) else None

    def _module(self, source: Source, name: str) -> Source | None:
        """The file that a module's name, as seen from a file, stands for."""
        key = (source, name)
        if key not in self._modules:
            self._modules[key] = self._find_module(source, name)
        return self._modules[key]

    def _find_module(self, source: Source, name: str) -> Source | None:
        dots = len(name) - len(name.lstrip("."))
        words = [word for word in name.split(".") if word]
        if dots:
            folder = source.path.parent
            for _ in range(dots - 1):
                folder = folder.parent
            target = folder.joinpath(*words)
            return next(
                (s for s in self._files.get(words[-1] if words else folder.name, ()) if _is_at(s.path, target)), None
            )
        if not words or words[0] in _LIBRARIES:
            return None
        fits = [s for s in self._files.get(words[-1], ()) if _words(s.path)[-len(words) :] == words]
        return max(fits, key=lambda s: _nearness(s, source.path, self._is_outermost(s, words)), default=None)

    def _is_outermost(self, source: Source, words: list[str]) -> bool:
        """Whether no package is around the folder in which the name of a module begins."""
        path = source.path.parent if source.path.name == "__init__.py" else source.path
        return path.parents[len(words) - 1] not in self._packages


def _imported_names(source: Source) -> Iterator[str]:
    for node in _imports(source):
        yield from _names_of(node)


def _imports(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
    yield from source.all(ast.Import)
    yield from source.all(ast.ImportFrom)


def _names_of(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    where = "." * node.level + (node.module or "")
    yield where
    yield from (f"{where}{'' if where.endswith('.') else '.'}{alias.name}" for alias in node.names)


def _changing(source: Source) -> set[tuple[ast.AST | None, str]]:
    """Names that a function sets more than once; those that it shares with another, by None."""
    found: set[tuple[ast.AST | None, str]] = set()
    seen: set[tuple[ast.AST | None, str]] = set()
    for node in source.all(ast.Name):
        if isinstance(node.ctx, ast.Store):
            place = (source.function(node), node.id)
            (found if place in seen else seen).add(place)
    shared: list[ast.Global | ast.Nonlocal] = [*source.all(ast.Global), *source.all(ast.Nonlocal)]
    found.update((None, name) for statement in shared for name in statement.names)
    return found


def _before_moving(call: ast.Call) -> ast.expr | None:
    """`Net()` of `Net().to(device)`, of `DistributedDataParallel(Net())`."""
    if last_word(call.func) in _AROUND_MODELS and call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda") else None


def _fits(function: Function, call: ast.Call) -> bool:
    """Whether a call gives a method what it takes."""
    given = function.node.args
    if has_stars(call) or any(dotted(d) not in ("staticmethod", "classmethod") for d in function.decorators):
        return True
    names = function.parameters
    keywords = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    by_position = names[: len(call.args)]
    needed = {*names[: len(names) - len(given.defaults)]} - {*by_position}
    needed |= {one.arg for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None}
    known = {*names, *(one.arg for one in given.kwonlyargs)}
    return (
        (len(call.args) <= len(names) or given.vararg is not None)
        and (keywords <= known or given.kwarg is not None)
        and needed <= keywords
    )


def _is_empty(function: Function) -> bool:
    """Whether it is there for others to be put in its place: `raise NotImplementedError`, `pass`, a docstring."""
    body = [function.node.body] if isinstance(function.node, ast.Lambda) else function.node.body
    return all(
        isinstance(statement, (ast.Pass, ast.Raise))
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in body
    )


def is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """`self.name`"""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _words(path: Path) -> list[str]:
    """The module's name, with every folder above it."""
    parts = list(path.with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def _is_at(path: Path, target: Path) -> bool:
    return path in (target.with_suffix(".py"), target / "__init__.py")


def _nearness(module: Source, seen_from: Path, is_outermost: bool) -> tuple[int, bool, int]:
    """Of several files that a name may stand for, the one with the most is meant."""
    return _shared(module.path, seen_from), is_outermost, -len(module.path.parts)


def _shared(one: Path, other: Path) -> int:
    """How many folders two files have in common."""
    count = 0
    for a, b in zip(one.parts, other.parts, strict=False):
        if a != b:
            break
        count += 1
    return count
