"""What a rule is, what it is told of a project, and what it finds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

import msgspec

from floorit.scan.edits import Edit
from floorit.scan.heat import Heat, Place
from floorit.scan.kinds import Kinds
from floorit.scan.project import Project
from floorit.scan.source import Source

_Expression = TypeVar("_Expression", bound=ast.expr)
Risk = Literal["exact", "rounding", "order", "training"]


class Scene:
    """One file, and the project around it."""

    def __init__(self, source: Source, project: Project, heat: Heat, kinds: Kinds) -> None:
        self.source, self.project, self.heat, self.kinds = source, project, heat, kinds

    def calls(self, place: Place | None = None) -> Iterator[ast.Call]:
        """Every call in the file; of those that run then, if a place is given."""
        for call in self.source.all(ast.Call):
            if place is None or self.heat.of(self.source, call) is place:
                yield call

    def in_step(self, kind: type[_Expression]) -> Iterator[_Expression]:
        """Every expression of a kind that runs in every step."""
        return (node for node in self.source.all(kind) if self.heat.is_in_step(self.source, node))

    def methods(self, name: str, place: Place | None = None) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Calls of a method of this name, each with what it is a method of."""
        for call in self.source.all(ast.Call):
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr != name:
                continue
            if place is None or self.heat.of(self.source, call) is place:
                yield call, function.value

    def name(self, node: ast.AST) -> str:
        """The full name of what an expression refers to."""
        return self.source.name(node)


class Match:
    """One place at which a rule applies."""

    def __init__(self, node: ast.AST, message: str = "", instead: str = "", edits: tuple[Edit, ...] = ()) -> None:
        self.node = node
        self.message = message  # else the rule's own
        self.instead = instead  # likewise
        self.edits = edits  # that make the change; none: it is for a person to make


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One habit that slows training: how it is recognised, and what to write instead."""

    code: str
    message: str  # what is there
    costs: str  # why that is slow
    instead: str  # what to write
    unsafe: str = ""  # when the change would be wrong; none: never
    risk: Risk = "exact"  # what the change may do to results
    fix: str = ""  # the code of the fix that `floorit run` and `try` know it by
    finding: str = ""  # the code of the finding under which a run would show what it costs
    match: Callable[[Scene], Iterator[Match]]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line that slows training."""

    code: str
    file: str
    line: int
    column: int
    message: str
    costs: str
    instead: str
    when: str  # the code runs: every step, every sample, once
    risk: Risk
    unsafe: str
    fixable: bool  # by --fix
    text: str  # of the line
    function: str
    edits: tuple[Edit, ...] = ()


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read."""

    file: str
    line: int
    reason: str
