"""Options and other settings of a project, and what an expression is worth as its defaults have it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Final, TypeGuard

from floorit.scan.commands import stands_in
from floorit.scan.entries import path_of
from floorit.scan.guards import evaluates
from floorit.scan.heat import Heat
from floorit.scan.options import Entry
from floorit.scan.project import Function, Project, is_own
from floorit.scan.source import Source, argument, dotted, has_stars, is_constant, last_word, walk

_HOPS = 10  # from a name to what it was set to, and so on
_OF_TEXT: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "strip": str.strip}
_ASKS_TEXT: dict[str, Callable[[str, str], object]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "find": str.find,
}
_LISTS = (ast.List, ast.Tuple)
_LEAVES = (ast.Return, ast.Continue)
_CALL_NOTHING = frozenset("object Module ABC Generic Protocol Enum Dataset".split())  # of their own
_SAYS = frozenset("print exit quit error warning warn info".split())
_COUNTS = re.compile(r"(?:.*_)?(?:epoch|step|iter|iteration)(?:_?(?:num|idx|i|id))?", re.IGNORECASE)
_LONG = 3  # letters of a text that is no word of every page
_CALLS = 3  # from a function to those that call it


class Unknown:
    """What can't be told without running the program."""


UNKNOWN: Final = Unknown()


class Settings:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat, asked: bool = False) -> None:
        self._project, self._heat = project, heat
        self._asked = asked  # for what reading alone leaves in doubt
        self._sources = {source.path: source for source in project.sources}
        self._reached: dict[Source, frozenset[Source]] = {}
        self._given_as: dict[tuple[Function, str, int], object] = {}
        self._class_names = {one.name for one in project.classes.values()}
        names = {function.name for function in project.functions.values()}
        self._handed = {name for source in project.sources for name in _handed(source, names)}

    def value(self, source: Source, node: ast.AST | None, hops: int = _HOPS) -> object:
        """What an expression is worth in a run that is given no options; UNKNOWN where the text does not tell."""
        if isinstance(node, ast.Constant):
            return node.value
        if node is None or hops == 0:
            return UNKNOWN
        declared = self._project.entries.value_of(source, node) if isinstance(node, ast.expr) else None
        if declared is not None:
            return declared
        if isinstance(node, ast.Name):
            return self._named(source, node, hops - 1)
        if isinstance(node, ast.Attribute):
            return self._attribute(source, node, hops - 1)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self._option(source, str(node.slice.value), hops - 1)
        if isinstance(node, (ast.UnaryOp, ast.BoolOp, ast.Compare)):
            return self._logic(source, node, hops)
        if isinstance(node, ast.IfExp):
            return self._either(source, node, hops - 1)
        return self._called(source, node, hops - 1) if isinstance(node, ast.Call) else UNKNOWN

    def _either(self, source: Source, node: ast.IfExp, hops: int) -> object:
        """Also `[] if not args.names else args.names.split(",")`: an option that is an empty list by default."""
        test = self.value(source, node.test, hops)
        if isinstance(test, Unknown):
            return UNKNOWN
        taken = node.body if test else node.orelse
        is_empty = isinstance(taken, _LISTS) and not taken.elts
        if is_empty and self._project.entries.value_of(source, node.test) is not None:
            return ()
        return self.value(source, taken, hops)

    def _called(self, source: Source, call: ast.Call, hops: int) -> object:
        """`int(args.n)`, `cfg.get("name", default)`, `getattr(args, "name", default)`, `len(args.names)`."""
        name, given = last_word(call.func), call.args
        if source.name(call.func) == "torch.cuda.is_available":
            return True
        if name in _OF_TEXT and not given and isinstance(call.func, ast.Attribute):
            text = self.value(source, call.func.value, hops)
            return _OF_TEXT[name](text) if isinstance(text, str) else UNKNOWN
        if name in _ASKS_TEXT and len(given) == 1 and isinstance(call.func, ast.Attribute):
            text, part = self.value(source, call.func.value, hops), self.value(source, given[0], hops)
            return _ASKS_TEXT[name](text, part) if isinstance(text, str) and isinstance(part, str) else UNKNOWN
        if name in ("int", "bool") and len(given) == 1:
            return self.value(source, given[0], hops)
        if name == "len" and len(given) == 1:  # a text that is not empty is mostly split before it is counted
            return 0 if self.value(source, given[0], hops) in ((), "") else UNKNOWN
        wanted = given[-2:] if (name, len(given)) in (("get", 1), ("get", 2), ("getattr", 3)) else []
        if not wanted or not isinstance(wanted[0], ast.Constant):
            return UNKNOWN
        if self._given(str(wanted[0].value)):
            return self._option(source, str(wanted[0].value), hops)
        return self.value(source, wanted[1], hops) if len(wanted) > 1 else None

    def is_reached(self, source: Source, node: ast.AST, hops: int = _CALLS) -> bool:
        """Whether a run that is given no options may come to a node: no condition that is false is around it, and
        its function is called from such a place."""
        if not all(self._may_be(source, test, taken) for test, taken in tests_around(source, node)):
            return False
        inside = source.function(node)
        if inside is None or hops == 0:
            return True
        function = self._project.functions[inside]
        callers = self._heat.callers.get(function, [])
        if not callers:
            return self._is_called_from_outside(function)
        return any(self.is_reached(caller, call, hops - 1) for caller, call in chain(callers, self._given_to(function)))

    def is_imported_in_vain(self, source: Source, asked: frozenset[Source] = frozenset()) -> bool:
        """Whether all that import a file do so where no run comes by default, or are imported so themselves."""
        importers = self._project.importers(source)
        return bool(importers) and all(
            where in asked or self._is_taken_in_vain(where, node) or self.is_imported_in_vain(where, asked | {source})
            for where, node in importers
        )

    def _is_taken_in_vain(self, source: Source, node: ast.stmt) -> bool:
        """Whether a condition around it is never met; of `elif x == "b"` it is enough that something gives "b"."""
        tests = ((test, taken) for test, taken in tests_around(source, node) if not self._may_be(source, test, taken))
        return any(not (self._is_said(test) if taken else _texts_of(test)) for test, taken in tests)

    def _is_said(self, test: ast.expr) -> bool:
        """Whether a condition compares with a text that a command or a file of settings gives, if no default does."""
        return any(map(self._is_given, _texts_of(test)))

    def _given_to(self, function: Function) -> Iterator[tuple[Source, ast.Call]]:
        """The calls that a function is handed to: `spawn(work, nprocs=4)`."""
        if function.owner is None:
            for source, name in self._names_handed.get(function.name, ()):
                around = source.parents[name]
                if isinstance(around, ast.Call) and self._project.find(source, source.name(name)) is function:
                    yield source, around

    @cached_property
    def _names_handed(self) -> dict[str, list[tuple[Source, ast.Name]]]:
        """Names that calls are given, of functions that stand in a file by themselves."""
        own = {one.name for one in self._project.functions.values() if one.owner is None} & self._handed
        found: dict[str, list[tuple[Source, ast.Name]]] = defaultdict(list)
        for source in self._project.sources:
            for name in source.all(ast.Name) if not own.isdisjoint(source.words) else ():
                if name.id in own and isinstance(source.parents[name], ast.Call):
                    found[name.id].append((source, name))
        return found

    def choices(self, source: Source, node: ast.AST) -> set[tuple[str, bool]]:
        """The conditions around a node in its function of which the default is not known, and what they must be."""
        tests = (pair for pair in tests_around(source, node) if not _asks_for_class(pair[0]))
        unknown = ((test, taken) for test, taken in tests if self.value(source, test) is UNKNOWN)
        return {(ast.dump(test), taken) for test, taken in unknown if self._leans(source, test) is not taken}

    def _leans(self, source: Source, test: ast.expr) -> bool | None:
        """What a comparison is where callers and files of settings give nothing; None where that is not known, too."""
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            return None
        right = test.comparators[0]
        named = [one.value for one in (right.elts if isinstance(right, _LISTS) else [right]) if _is_constant(one)]
        is_named = None in named or self._unless_given(source, test.left) in named
        is_known = is_named or not isinstance(self._unless_given(source, test.left), Unknown)
        return is_named is isinstance(test.ops[0], (ast.Eq, ast.In)) if is_known and named else None

    def _unless_given(self, source: Source, node: ast.expr) -> object:
        """The default of a parameter; what `kwargs.pop("optim", self.optim)` falls back on; the constant of
        `"sgd" if not hasattr(args, "optim") else args.optim`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TEXT:
            node = node.func.value
        if not isinstance(node, ast.Name):
            return UNKNOWN
        made, inside = self._project.set_once(source, node, node.id), source.function(node)
        if isinstance(made, ast.IfExp):
            return next((arm.value for arm in (made.body, made.orelse) if _is_constant(arm)), UNKNOWN)
        if isinstance(made, ast.Call) and last_word(made.func) in ("pop", "get") and len(made.args) == 2:
            return self.value(source, made.args[1])
        return self._written_out(self._project.functions[inside], node.id) if inside is not None else UNKNOWN

    def _written_out(self, function: Function, name: str) -> object:
        """The default of a parameter, or what all callers give it by its name or place, whatever else they give."""
        default = parameters(function).get(name)
        if default is not None or name not in function.parameters:
            return default.value if default is not None and _is_constant(default) else UNKNOWN
        position = function.parameters.index(name)
        calls = self._heat.callers.get(function, [])
        return same([self.value(source, argument(call, name, position)) for source, call in calls])

    def _is_called_from_outside(self, function: Function) -> bool:
        """Whether a function that nothing here calls may still run: as a method, a hook, a command, handed on."""
        is_hook = function in self._heat.steps or function in self._heat.samples
        trains = any(function.source.function(loop) is function.node for loop in self._heat.loops_of(function.source))
        is_named = bool(function.decorators) or function.name in self._handed or self._is_main(function)
        return self._is_method_in_use(function) if function.owner is not None else is_hook or trains or is_named

    def _is_main(self, function: Function) -> bool:
        return function.name == "main" and not self._heat.is_example(function)

    def _is_method_in_use(self, function: Function) -> bool:
        """Whether something names it, or a class from elsewhere, which its own inherits from, may call it."""
        assert function.owner is not None
        above = {name.split(".")[-1] for name in self._project.ancestors(function.owner)}
        is_inherited = bool(above - self._class_names - _CALL_NOTHING)
        is_special = function.name.startswith("__") or function.name == "forward"
        return is_special or is_inherited or self._project.is_named(function.name)

    def _may_be(self, source: Source, test: ast.expr, taken: bool) -> bool:
        value = self.value(source, test)
        if isinstance(value, Unknown):
            return not taken or self._asked or not self._is_asked_in_vain(source, test)
        return bool(value) is taken or (taken and _asks_to_train(test))

    def _is_asked_in_vain(self, source: Source, test: ast.expr) -> bool:
        """`if args.data == "gtzan": … else: …`, where nothing that comes with the project ever gives that text, and
        something else is done otherwise."""
        block = source.parents.get(test)
        if not isinstance(block, ast.If) or not self._is_of_nobody(test):
            return False
        others = list(_branches(source, block))
        tests = (one.test for one in others if one is not block)
        return not _only_complains(others[-1].orelse) or not all(map(self._is_of_nobody, tests))

    def _is_of_nobody(self, test: ast.expr) -> bool:
        """Whether a condition compares with a text that nothing ever gives."""
        texts = _texts_of(test)
        return bool(texts) and all(len(text) >= _LONG and not self._is_given(text) for text in texts)

    def _is_given(self, text: str) -> bool:
        entries = self._project.entries
        if text in self._texts or self._project.commands.name(text):
            return True
        return any(stands_in(text, config.said.lower()) for config in entries.configs)

    @cached_property
    def _texts(self) -> set[str]:
        """Those that the code has, but to compare with."""
        found: set[str] = set()
        for source in self._project.sources:
            for constant in source.all(ast.Constant):
                if isinstance(constant.value, str) and not _is_compared(source, constant):
                    found.add(constant.value.lower())
        return found

    def _named(self, source: Source, node: ast.Name, hops: int) -> object:
        made = self._project.set_once(source, node, node.id)
        if made is not None:
            return self.value(source, made, hops)
        if self._project.assigned(source, node, node.id) is not None:
            return UNKNOWN
        inside = source.function(node)
        while inside is not None:
            function = self._project.functions[inside]
            if node.id in parameters(function):
                return self.parameter(function, node.id, hops)
            inside = source.function(inside)
        return self._imported(source, node, hops)

    def _imported(self, source: Source, node: ast.Name | ast.Attribute, hops: int) -> object:
        """What another file sets a name to, of which it is the constant."""
        found = self._project.set_elsewhere(source, node)
        return self.value(*found, hops) if found is not None else UNKNOWN

    def parameter(self, function: Function, name: str, hops: int = _HOPS) -> object:
        """What every caller gives, or else the default."""
        key = (function, name, hops)  # callers have callers: without keeping it, their number is raised to the hops
        if key not in self._given_as:
            self._given_as[key] = self._from_callers(function, name, hops)
        return self._given_as[key]

    def _from_callers(self, function: Function, name: str, hops: int) -> object:
        default = self._worth(function, parameters(function)[name])
        callers = self._heat.callers.get(function, [])
        if any(has_stars(call) for _, call in callers):
            return UNKNOWN
        position = next((number for number, one in enumerate(function.parameters) if one == name), None)
        values: list[object] = []
        for source, call in callers:
            given = argument(call, name, position)
            values.append(self.value(source, given, hops) if given is not None else default)
            if isinstance(same(values), Unknown):
                return UNKNOWN
        return same(values or [default])

    def _worth(self, function: Function, default: ast.expr | None) -> object:
        return self.value(function.source, default, 1)

    def _attribute(self, source: Source, node: ast.Attribute, hops: int) -> object:
        if is_own(node):
            owner = self._project.class_of(source, node.value)
            if owner is not None:
                made = [one for one in self._project.family(owner) if node.attr in one.attributes]
                if made:
                    return self.value(made[0].source, made[0].attributes[node.attr], hops)
        constant = self._imported(source, node, hops)
        return constant if not isinstance(constant, Unknown) else self._option(source, node.attr, hops)

    def _option(self, source: Source, name: str, hops: int) -> object:
        """By the file's own option of that name, or by all there are if they agree."""
        found = self._project.entries.near(self._given(name), source)
        own = [entry for entry in found if entry.path == source.path]
        near = own or [entry for entry in found if self._concerns(entry, source)] or found
        return same([self._declared(entry, hops) for entry in near])

    def _concerns(self, entry: Entry, source: Source) -> bool:
        """Whether the file that declares a setting is part of a program that another file is part of as well."""
        where = self._sources.get(entry.path)
        return where is None or source in self._reach(where) or where in self._reach(source)

    def _reach(self, source: Source) -> frozenset[Source]:
        if source not in self._reached:
            found = self._project.reached(source)
            self._reached[source] = frozenset(self._project.sources) if found is None else found
        return self._reached[source]

    def _given(self, name: str) -> list[Entry]:
        """What declares it; what it is only set to counts if nothing does."""
        return self._project.entries.named(name) or self._project.entries.assigned.get(name, [])

    def _declared(self, entry: Entry, hops: int) -> object:
        if entry.is_known:
            return entry.value
        return self.value(self._sources[entry.path], entry.default, hops) if entry.default is not None else UNKNOWN

    def _logic(self, source: Source, node: ast.UnaryOp | ast.BoolOp | ast.Compare, hops: int) -> object:
        if isinstance(node, ast.UnaryOp):
            value = self.value(source, node.operand, hops)
            return not value if isinstance(node.op, ast.Not) and not isinstance(value, Unknown) else UNKNOWN
        if isinstance(node, ast.BoolOp):
            values = [self.value(source, part, hops) for part in node.values]
            decides = isinstance(node.op, ast.Or)  # one true part is enough for `or`, one false part for `and`
            if any(not isinstance(value, Unknown) and bool(value) is decides for value in values):
                return decides
            return UNKNOWN if any(isinstance(value, Unknown) for value in values) else values[-1]
        right = self.value(source, node.comparators[0], hops)
        is_device = _is_kind_of_device(node.left) and is_constant(node.comparators[0], "cuda", "cpu")
        if is_device and not self._is_of_files(source, node.left):
            return _compared("cuda", node.ops[0], right)
        if len(node.ops) > 1 or isinstance(right, Unknown):
            return UNKNOWN
        if self._is_never_below(source, node, right, hops):
            return False
        lefts = self._each(source, node.left, hops)
        return same([UNKNOWN if isinstance(one, Unknown) else _compared(one, node.ops[0], right) for one in lefts])

    def _is_of_files(self, source: Source, node: ast.expr) -> bool:
        """Whether files of settings alone give an expression its value, and all the same."""
        entries = self._project.entries
        given = entries.given(source, path_of(node)) if path_of(node) else []
        is_known = entries.value_of(source, node) is not None
        return is_known and all(entry.by == "file" for entry in given)

    def _each(self, source: Source, node: ast.expr, hops: int) -> list[object]:
        """What an expression is in each of the places that give it a value, command lines too, where these differ."""
        value = self.value(source, node, hops)
        made = self._project.set_once(source, node, node.id) if isinstance(node, ast.Name) else None
        if not isinstance(value, Unknown) or hops == 0:
            return [value]
        if made is not None:
            return self._each(source, made, hops - 1)
        entries, path = self._project.entries, path_of(node)
        given = entries.given(source, path) if path and not isinstance(node, ast.Call) else []
        training = [entry for entry in given if entry.by == "file" or not evaluates(entry.path.stem)]
        if not given:
            return [UNKNOWN]
        known = [entry.value if entry.is_known else UNKNOWN for entry in training or given]
        defaults = (self._declared(entry, hops - 1) for entry in entries.assigned.get(path[-1], ()))
        return [*known, *defaults, *self._project.commands.given(path[-1])]

    def _is_never_below(self, source: Source, test: ast.Compare, bound: object, hops: int) -> bool:
        """`epoch < args.warmup`, of which there are none, also `epoch <= args.warmup` where epochs are counted from
        one."""
        counted = test.left
        if (
            not isinstance(counted, ast.Name)
            or not _COUNTS.fullmatch(counted.id)
            or not isinstance(bound, (int, float))
        ):
            return False
        loop = next((here for here in source.around(test) if _counts(here, counted.id)), None)
        begun = next((call for call in walk(loop.iter) if _is_range(call)), None) if loop is not None else None
        first = self.value(source, begun.args[0], hops - 1) if begun is not None and len(begun.args) > 1 else 0
        if not isinstance(first, (int, float)):
            return False
        return first >= bound if isinstance(test.ops[0], ast.Lt) else isinstance(test.ops[0], ast.LtE) and first > bound


def _counts(node: ast.AST, name: str) -> TypeGuard[ast.For]:
    return isinstance(node, ast.For) and any(last_word(part) == name for part in walk(node.target))


def _is_range(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and last_word(node.func) in ("range", "trange")


def _branches(source: Source, block: ast.If) -> Iterator[ast.If]:
    """All of `if … elif … elif …`, of which a block is one, in their order."""
    around = source.parents.get(block)
    while isinstance(around, ast.If) and around.orelse == [block]:
        block, around = around, source.parents.get(around)
    yield block
    while len(block.orelse) == 1 and isinstance(block.orelse[0], ast.If):
        block = block.orelse[0]
        yield block


def _only_complains(body: list[ast.stmt]) -> bool:
    """Whether nothing is done but to raise, or to say something."""
    return all(isinstance(one, (ast.Raise, ast.Assert, ast.Pass)) or _is_said(one) for one in body)


def _is_said(statement: ast.stmt) -> bool:
    called = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(called, ast.Call) and last_word(called.func) in _SAYS


def _asks_to_train(test: ast.expr) -> bool:
    """`args.mode == "train"`, which whoever trains gives, whatever its default is."""
    is_equal = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)
    return is_equal and isinstance(test, ast.Compare) and is_constant(test.comparators[0], "train", "training")


def _texts_of(test: ast.expr) -> list[str]:
    """Those that a condition asks for: `x == "a"`, `x in ["a", "b"]`; none where it asks for something else as well."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)):
        return []
    right = test.left if _is_constant(test.left) else test.comparators[0]
    parts = right.elts if isinstance(right, _LISTS) else [right]
    texts = [one.value.lower() for one in parts if _is_constant(one) and isinstance(one.value, str)]
    return texts if len(texts) == len(parts) else []


def _is_compared(source: Source, constant: ast.Constant) -> bool:
    """Whether something is asked to be it, or one of a few that it is written beside; or it may be chosen."""
    around = source.parents.get(constant)
    if isinstance(around, (*_LISTS, ast.Set)):
        around = source.parents.get(around)
    return isinstance(around, ast.Compare) or (isinstance(around, ast.keyword) and around.arg == "choices")


def _asks_for_class(test: ast.expr) -> bool:
    """What depends on the model is no choice of whoever starts the program."""
    return isinstance(test, ast.Call) and last_word(test.func) == "isinstance"


def _is_constant(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant)


def _is_kind_of_device(node: ast.expr) -> bool:
    """`device.type`, `device`, `args.device_type`"""
    name = last_word(node)
    return name.endswith(("device", "device_type")) or (name == "type" and "device" in dotted(node))


def _compared(left: object, how: ast.cmpop, right: object) -> object:
    if isinstance(how, (ast.In, ast.NotIn)) and isinstance(left, str) and isinstance(right, (str, tuple)):
        return (left in right) is isinstance(how, ast.In)
    if isinstance(how, (ast.Eq, ast.Is)):
        return left == right
    if isinstance(how, (ast.NotEq, ast.IsNot)):
        return left != right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        if isinstance(how, ast.Gt):
            return left > right
        if isinstance(how, ast.GtE):
            return left >= right
        if isinstance(how, ast.Lt):
            return left < right
        if isinstance(how, ast.LtE):
            return left <= right
    return UNKNOWN


def same(values: list[object]) -> object:
    """The value that all of them are."""
    if not values or any(isinstance(value, Unknown) for value in values):
        return UNKNOWN
    first = values[0]
    return first if all(value == first and type(value) is type(first) for value in values) else UNKNOWN


def tests_around(source: Source, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around a node in its function, and whether each must be true to come to it."""
    before, inside = node, source.function(node)
    for here in source.around(node):
        if isinstance(before, ast.stmt):
            yield from ((earlier.test, False) for earlier in _left_by(here, before))
        if here is inside:
            return
        if isinstance(here, (ast.If, ast.IfExp)) and before is not here.test:
            yield here.test, before is here.body or (isinstance(here.body, list) and before in here.body)
        if isinstance(here, ast.BoolOp) and before in here.values:
            yield from ((one, isinstance(here.op, ast.And)) for one in here.values[: here.values.index(before)])
        if isinstance(here, ast.Dict) and before in here.values:
            yield from _looked_up(source, here, here.keys[here.values.index(before)])
        before = here


def _looked_up(source: Source, table: ast.Dict, key: ast.expr | None) -> Iterator[tuple[ast.expr, bool]]:
    """Of an entry of `{"adam": …, "sgd": …}[args.optimizer]`: that it is the one."""
    lookup = source.parents.get(table)
    if isinstance(lookup, ast.Subscript) and key is not None:
        yield ast.Compare(left=lookup.slice, ops=[ast.Eq()], comparators=[key]), True


def _left_by(block: ast.AST, statement: ast.stmt) -> Iterator[ast.If]:
    """What stands before a statement in its block and may lead past it: `if not self.measures: return`."""
    for body in (getattr(block, "body", None), getattr(block, "orelse", None)):
        if isinstance(body, list) and statement in body:
            for earlier in body[: body.index(statement)]:
                leaves = isinstance(earlier, ast.If) and not earlier.orelse and isinstance(earlier.body[-1], _LEAVES)
                if leaves and isinstance(earlier, ast.If) and _asks_itself(earlier.test):
                    yield earlier


def _asks_itself(test: ast.expr) -> bool:
    """`self.measures`, `not self.measures`: what the object was made for. Other tests may be of how it is used."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return dotted(asked).startswith("self.")


def _handed(source: Source, names: set[str]) -> Iterator[str]:
    """Those of these names that are read and not called: `spawn(run, nprocs=4)`, `{"gat": make_gat}`."""
    parents = source.parents
    nodes: list[ast.AST] = [node for node in source.all(ast.Name) if node.id in names]
    nodes += [node for node in source.all(ast.Attribute) if node.attr in names]
    for node in nodes:
        around = parents[node]
        if not isinstance(around, ast.Attribute) and not (isinstance(around, ast.Call) and around.func is node):
            yield last_word(node)


def parameters(function: Function) -> dict[str, ast.expr | None]:
    """Each with its default."""
    given = function.node.args
    names = [a.arg for a in (*given.posonlyargs, *given.args)]
    defaults: list[ast.expr | None] = [*[None] * (len(names) - len(given.defaults)), *given.defaults]
    return {
        **dict(zip(names, defaults, strict=True)),
        **{a.arg: default for a, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)},
    }
