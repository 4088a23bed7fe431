"""Whether a device is surely the CPU, whatever options a program is started with."""

from __future__ import annotations

import ast

from floorit.scan.entries import path_of
from floorit.scan.heat import Heat
from floorit.scan.project import Function, Project, is_own
from floorit.scan.settings import UNKNOWN, Unknown, parameters, same, tests_around
from floorit.scan.source import Source, argument, dotted, has_stars, last_word

_HOPS = 8  # from a name to what it was set to, and so on


class Devices:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat) -> None:
        self._project, self._heat = project, heat
        self._known: dict[tuple[Source, ast.AST], object] = {}

    def is_cpu(self, source: Source, node: ast.expr | None) -> bool:
        """Whether an expression is a device that no option makes another than the CPU."""
        return self._value(source, node) == "cpu"

    def is_shut_off(self, source: Source, node: ast.AST) -> bool:
        """Whether a node stands under a condition that no option makes true."""
        tests = ((self._value(source, test), taken) for test, taken in tests_around(source, node))
        return any(not isinstance(value, Unknown) and bool(value) is not taken for value, taken in tests)

    def _value(self, source: Source, node: ast.expr | None, hops: int = _HOPS) -> object:
        """What an expression is in every run; UNKNOWN where an option, or the machine, may say otherwise."""
        if node is None or hops == 0:
            return UNKNOWN
        key = (source, node)
        if key not in self._known:
            self._known[key] = UNKNOWN  # for what is set to itself
            self._known[key] = self._find(source, node, hops - 1)
        return self._known[key]

    def _find(self, source: Source, node: ast.expr, hops: int) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Call):
            is_device = source.name(node.func) == "torch.device" and len(node.args) == 1
            return self._value(source, node.args[0], hops) if is_device else UNKNOWN
        if isinstance(node, ast.IfExp):
            test = self._value(source, node.test, hops)
            taken = node.body if test else node.orelse
            return UNKNOWN if isinstance(test, Unknown) else self._value(source, taken, hops)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._value(source, node.operand, hops)
            return UNKNOWN if isinstance(value, Unknown) else not value
        if isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            values = (self._value(source, part, hops) for part in node.values)
            is_decided = any(not isinstance(one, Unknown) and bool(one) is decides for one in values)
            return decides if is_decided else UNKNOWN
        if isinstance(node, ast.Name):
            return self._named(source, node, hops)
        return self._attribute(source, node, hops) if isinstance(node, (ast.Attribute, ast.Subscript)) else UNKNOWN

    def _named(self, source: Source, node: ast.Name, hops: int) -> object:
        inside = source.function(node)
        function = self._project.functions[inside] if inside is not None else None
        if function is not None and node.id in parameters(function):
            return self._given(function, node.id, hops)
        made = self._project.set_once(source, node, node.id)
        if made is not None:
            return self._value(source, made, hops)
        found = self._project.set_elsewhere(source, node)
        return self._value(*found, hops) if found is not None else UNKNOWN

    def _given(self, function: Function, name: str, hops: int) -> object:
        """What all callers give a parameter; nobody knows of one that nothing is seen to call."""
        calls = self._heat.callers.get(function, [])
        if name not in function.parameters or any(has_stars(call) for _, call in calls):
            return UNKNOWN
        position, default = function.parameters.index(name), parameters(function)[name]
        given = ((source, argument(call, name, position)) for source, call in calls)
        values = (
            self._value(function.source, default, hops) if one is None else self._value(source, one, hops)
            for source, one in given
        )
        return same(list(values))

    def _attribute(self, source: Source, node: ast.Attribute | ast.Subscript, hops: int) -> object:
        if is_own(node):
            return self._own(source, node, hops)
        path, entries = path_of(node), self._project.entries
        if len(path) != 1:
            return UNKNOWN
        written = [one.value for place, one in entries.writes.get(path[0], ()) if place is source]
        if written:
            return same([self._value(source, one, hops) for one in written])
        found = entries.named(path[0])
        near = [one for one in found if one.path == source.path] or found
        return same([one.value if one.is_fixed else UNKNOWN for one in near])

    def _own(self, source: Source, node: ast.Attribute, hops: int) -> object:
        """Of `self.device`, if its class sets it once."""
        owner = self._project.class_of(source, node.value)
        family = [one for one in self._project.family(owner) if node.attr in one.attributes] if owner else []
        if len(family) != 1:
            return UNKNOWN
        where = family[0].source
        set_to = [
            statement.value
            for statement in where.all(ast.Assign)
            if any(dotted(target) == f"self.{node.attr}" for target in statement.targets)
            and family[0].node in where.around(statement)
        ]
        return self._value(where, set_to[0], hops) if len(set_to) == 1 else UNKNOWN


def moves(call: ast.Call) -> ast.expr | None:
    """The device that `x.to(device)` names; None where it gives none, or writes it out."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
        return None
    given = argument(call, "device", 0)
    is_named = isinstance(given, (ast.Name, ast.Attribute)) and "device" in last_word(given).lower()
    return given if is_named else None
