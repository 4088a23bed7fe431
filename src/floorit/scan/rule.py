"""What a rule is, and what it is told of a project."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from floorit.declared import Control
from floorit.scan.configs import Config
from floorit.scan.edits import Edit, remove
from floorit.scan.finding import Risk
from floorit.scan.heat import Place
from floorit.scan.programs import is_demonstration, is_run
from floorit.scan.reads import Reads
from floorit.scan.source import Source
from floorit.scan.whole import Whole


class Scene:
    """One file, and the project around it."""

    def __init__(self, source: Source, whole: Whole) -> None:
        self.source = source
        self.project, self.heat, self.kinds = whole.project, whole.heat, whole.kinds
        self.settings, self.programs, self.loaders, self.reads = (
            whole.settings,
            whole.programs,
            whole.loaders,
            whole.reads,
        )
        self.tables, self.origins, self.asked = whole.tables, whole.origins, whole.asked
        self.devices = whole.devices

    def calls(self, place: Place | None = None) -> Iterator[ast.Call]:
        """Every call in the file; of those that run then, if a place is given."""
        yield from self.source.all(ast.Call) if place is None else self._calls.get(place, [])

    @cached_property
    def _calls(self) -> dict[Place, list[ast.Call]]:
        found: dict[Place, list[ast.Call]] = {}
        for call in self.source.all(ast.Call):
            found.setdefault(self.heat.of(self.source, call), []).append(call)
        return found

    def methods(self, name: str, place: Place | None = None) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Calls of a method of this name, each with what it is a method of."""
        for call in self.source.methods.get(name, []):
            assert isinstance(call.func, ast.Attribute)
            if place is None or self.heat.of(self.source, call) is place:
                yield call, call.func.value

    def taken_out(self, call: ast.Call) -> tuple[Edit, ...]:
        """The edit that does without a call; none where it is part of something else."""
        statement = self.source.statement(call)
        return (remove(statement),) if isinstance(statement, ast.Expr) and statement.value is call else ()

    def is_reached(self, node: ast.AST) -> bool:
        """Whether a program that trains comes to a node as its defaults have it."""
        if not self.programs.of(self.source) or is_demonstration(self.project, self.source, node):
            return False
        if self._is_unused(node) or self._is_imported_in_vain:
            return False
        inside = self.source.function(node)
        if inside is not None and self.tables.is_replaced(self.project.functions[inside]):
            return False
        return self.settings.is_reached(self.source, node) and not self._is_never_made(node)

    @cached_property
    def _is_imported_in_vain(self) -> bool:
        """Where what a program imports is seen."""
        programs = self.programs.of(self.source)
        is_entry = any(program.entry is self.source for program in programs)
        is_sure = all(program.is_sure for program in programs)
        return is_sure and not is_entry and self.settings.is_imported_in_vain(self.source)

    def _is_never_made(self, node: ast.AST) -> bool:
        """Whether it stands in a class that is made only where no program comes by default."""
        for here in self.source.around(node):
            if isinstance(here, ast.ClassDef):
                kin = self.project.descendants(self.project.classes[here])
                made = [call for owner in kin for call in self.heat.made.get(owner, [])]
                if made and not any(self.programs.of(s) and self.settings.is_reached(s, call) for s, call in made):
                    return True
        return False

    def _is_unused(self, node: ast.AST) -> bool:
        """Whether it stands in a class that nothing names, nor makes by a decorator; in programs that are there to be
        run, also in a function that nothing names, or in one of either that only another choice than the default
        would lead to."""
        if all(is_run(program.entry) for program in self.programs.of(self.source)):
            return any(map(self.tables.leave_out, self.tables.definitions(self.source, node)))
        around = [here for here in self.source.around(node) if isinstance(here, ast.ClassDef)]
        return any(not here.decorator_list and not self.project.is_named(here.name) for here in around)

    def name(self, node: ast.AST) -> str:
        """The full name of what an expression refers to."""
        return self.source.name(node)


class Match:
    """One place at which a rule applies."""

    def __init__(
        self,
        node: ast.AST | int,
        message: str = "",
        instead: str = "",
        edits: tuple[Edit, ...] = (),
        *,
        is_left_out: bool = False,
        controls: Sequence[Control] = (),
    ) -> None:
        self.node = node  # or the line, in a file of settings
        self.message = message  # else the rule's own
        self.instead = instead  # likewise
        self.edits = edits  # that make the change; none: it is for a person to make
        self.is_left_out = is_left_out  # what is wrong with it is that no program comes there by default
        self.controls = controls  # settings of the program that it is due to


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
    spares_function: bool = False  # whether what stands instead spares all that the function around it does
    is_tentative: bool = False  # too often wrong, or too little seen, to be said unasked: a run decides
    match: Callable[[Scene], Iterator[Match]]
    match_config: Callable[[Config, Reads], Iterator[Match]] | None = None  # what it finds in a file of settings
