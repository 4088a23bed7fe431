"""Where the value of an expression is given: entries of files, options, parameters, constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floorit.declared import Control, Value
from floorit.scan.entries import path_of
from floorit.scan.heat import Heat
from floorit.scan.options import Entry, plain
from floorit.scan.project import Function, Project, is_own
from floorit.scan.settings import parameters
from floorit.scan.source import Source, argument, last_word

_HOPS = 6  # from a name to what it was set to, and so on
_SAME = ("int", "float", "str", "max", "min")  # what comes out of them is what went in


class Origins:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat) -> None:
        self._project, self._heat = project, heat

    def of(self, source: Source, node: ast.AST) -> list[Control]:
        """The places that give an expression its value, each once; none where the text does not tell."""
        return list(dict.fromkeys(self._of(source, node, "", _HOPS)))

    def _of(self, source: Source, node: ast.AST | None, name: str, hops: int) -> Iterator[Control]:
        if node is None or hops == 0:
            return
        path = path_of(node)
        if path:
            entries = self._project.entries.given(source, path)
            yield from map(control, entries) if entries else _default(source, node, path[-1])
        elif isinstance(node, ast.Constant):
            yield Control(name=name, value=plain(node), file=str(source.path), line=node.lineno)
        elif isinstance(node, ast.Name):
            yield from self._of_name(source, node, hops - 1)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(source, node, hops - 1)
        elif isinstance(node, ast.Call) and last_word(node.func) in _SAME:
            for given in node.args:
                if not isinstance(given, ast.Constant):
                    yield from self._of(source, given, name, hops - 1)

    def _of_name(self, source: Source, node: ast.Name, hops: int) -> Iterator[Control]:
        made = self._project.set_once(source, node, node.id)
        inside = source.function(node)
        function = self._project.functions[inside] if inside is not None else None
        if made is not None:
            yield from self._of(source, made, node.id, hops)
        elif function is not None and node.id in parameters(function):
            yield from self._of_parameter(function, node.id, hops)
        elif (elsewhere := self._project.set_elsewhere(source, node)) is not None:
            yield from self._of(*elsewhere, node.id, hops)

    def _of_parameter(self, function: Function, name: str, hops: int) -> Iterator[Control]:
        """What callers give, and the default where one of them gives nothing."""
        position = function.parameters.index(name) if name in function.parameters else None
        callers = self._heat.callers.get(function, [])
        given = [(source, argument(call, name, position)) for source, call in callers]
        for source, node in given:
            yield from self._of(source, node, name, hops)
        if not given or any(node is None for _, node in given):
            yield from self._of(function.source, parameters(function)[name], name, hops)

    def _of_attribute(self, source: Source, node: ast.Attribute, hops: int) -> Iterator[Control]:
        owner = self._project.class_of(source, node.value) if is_own(node) else None
        family = self._project.family(owner) if owner is not None else ()
        made = next((one for one in family if node.attr in one.attributes), None)
        if made is not None:
            yield from self._of(made.source, made.attributes[node.attr], node.attr, hops)
        elif (elsewhere := self._project.set_elsewhere(source, node)) is not None:
            yield from self._of(*elsewhere, node.attr, hops)


def _default(source: Source, node: ast.AST, name: str) -> Iterator[Control]:
    """What `cfg.get("x", 2)` comes to where nothing gives it."""
    if isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[-1], ast.Constant):
        yield Control(name=name, value=plain(node.args[-1]), file=str(source.path), line=node.lineno)


def control(entry: Entry) -> Control:
    """An entry as the setting that it gives a value to."""
    value: Value = entry.value if entry.is_known else None
    *above, last = entry.key.split(".")
    name = last if "_" in last else ".".join([*above[-1:], last])  # `interval` says nothing by itself
    option = f"--{entry.name.replace('_', '-')}" if entry.by == "option" else ""
    return Control(name=name, value=value, file=str(entry.path), line=entry.line, option=option)
