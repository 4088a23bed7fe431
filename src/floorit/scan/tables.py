"""Classes that no program makes by default: nothing names them, or only a table out of which another is taken."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from floorit.scan.project import Class, Project
from floorit.scan.settings import Settings
from floorit.scan.source import Source, is_constant, last_word

_Mention: TypeAlias = "tuple[Source, ast.Name | ast.Attribute]"
_PARTS = (ast.Tuple, ast.List, ast.Call)  # of an entry
_IMPORTS = frozenset("import_module __import__ instantiate locate".split())
_DESCRIBES = re.compile("docstring|dataclass|total_ordering")  # decorators that only add to a class
_ASKS = ("isinstance", "issubclass", "super")


class Tables:
    """Of a project."""

    def __init__(self, project: Project, settings: Settings) -> None:
        self._project, self._settings = project, settings
        self._known: dict[Class, bool] = {}

    def leave_out(self, owner: Class) -> bool:
        """Whether nothing names a class or one that inherits from it, but as another entry of a table than the one that
        is taken, or in classes of which that is so."""
        if owner not in self._known:
            self._known[owner] = self._is_out(owner, frozenset())
        return self._known[owner]

    def _is_out(self, owner: Class, asked: frozenset[Class]) -> bool:
        kin = self._project.descendants(owner)
        mentions = [mention for one in kin for mention in self._live_mentions(one, kin)]
        if any(_is_registered(one) or one.name in self._texts or self._may_be_looked_up(one) for one in kin):
            return False
        names = {one.name for one in kin}
        return all(self._is_in_vain(*mention, names, asked | {owner}) for mention in mentions)

    def _live_mentions(self, one: Class, kin: list[Class]) -> Iterator[_Mention]:
        """Where a class is named, and not only described, or by itself or its kin."""
        nodes = {other.node for other in kin}
        for source, node in self._mentions.get(one.name, ()):
            if not _is_described(source, node) and nodes.isdisjoint(source.around(node)):
                yield source, node

    def _is_in_vain(
        self, source: Source, node: ast.Name | ast.Attribute, names: set[str], asked: frozenset[Class]
    ) -> bool:
        table, entry = _table(source, node)
        if table is not None and not _has_no_other(table, names) and not self._is_taken(source, table, entry):
            return True
        around = [self._project.classes[here] for here in source.around(node) if isinstance(here, ast.ClassDef)]
        return any(one in asked or self._is_out(one, asked) for one in around)

    def _is_taken(self, source: Source, table: ast.Dict, entry: ast.expr | None) -> bool:
        """Whether the entry is the one that is looked up by default."""
        statement = source.statement(table)
        names = {last_word(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()
        for where in (source, *(one for one in self._project.sources if not names.isdisjoint(one.words))):
            for subscript in where.all(ast.Subscript):
                if subscript.value is table or last_word(subscript.value) in names:
                    key = self._settings.value(where, subscript.slice)
                    if isinstance(key, (str, int)) and is_constant(entry, key):
                        return True
        return False

    def _may_be_looked_up(self, owner: Class) -> bool:
        """Whether a name that is made while the program runs may be that of a class."""
        folders = {*owner.source.path.with_suffix("").parts}
        return any(word in folders for word in self._looked_through) or any(
            map(_is_of_own_names, owner.source.all(ast.Subscript))
        )

    @cached_property
    def _looked_through(self) -> set[str]:
        """Files and packages, by their last word, in which something is looked up by such a name."""
        found: set[str] = set()
        for source in self._project.sources:
            found.update(_imported_by_name(source))
            nodes: list[ast.Subscript | ast.Call] = [*source.all(ast.Subscript), *source.all(ast.Call)]
            for module in map(_asked, nodes):
                if isinstance(module, ast.Name) and module.id in source.imports:
                    found.add(source.imports[module.id].split(".")[-1])
        return found

    @cached_property
    def _texts(self) -> set[str]:
        """Texts that may be a class's name, and names that a package hands on."""
        found: set[str] = set()
        for source in self._project.sources:
            found.update(
                c.value for c in source.all(ast.Constant) if isinstance(c.value, str) and c.value.isidentifier()
            )
            if source.path.name == "__init__.py":
                found.update(alias.name for taken in source.all(ast.ImportFrom) for alias in taken.names)
        return found

    @cached_property
    def _mentions(self) -> dict[str, list[_Mention]]:
        names = {one.name for one in self._project.classes.values()}
        found: dict[str, list[_Mention]] = defaultdict(list)
        for source in self._project.sources:
            if names.isdisjoint(source.words):
                continue
            for name in source.all(ast.Name):
                if name.id in names:
                    found[name.id].append((source, name))
            for attribute in source.all(ast.Attribute):
                if attribute.attr in names:
                    found[attribute.attr].append((source, attribute))
        return found


def _is_of_own_names(subscript: ast.Subscript) -> bool:
    """`globals()[name]`"""
    return isinstance(subscript.value, ast.Call) and last_word(subscript.value.func) in ("globals", "vars", "locals")


def _asked(node: ast.Subscript | ast.Call) -> ast.expr | None:
    """`models` of `models.__dict__[name]` and `getattr(models, name)`"""
    if isinstance(node, ast.Subscript):
        value = node.value
        return value.value if isinstance(value, ast.Attribute) and value.attr == "__dict__" else None
    is_asked = last_word(node.func) == "getattr" and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)
    return node.args[0] if is_asked else None


def _imported_by_name(source: Source) -> Iterator[str]:
    """Words of the names by which a file imports modules that are made while it runs, and of its own folder."""
    if not source.words.isdisjoint(_IMPORTS):
        yield source.path.parent.name
        for call in source.all(ast.Call):
            if last_word(call.func) in _IMPORTS and call.args:
                texts = (part.value for part in ast.walk(call.args[0]) if isinstance(part, ast.Constant))
                yield from (word for text in texts if isinstance(text, str) for word in re.findall(r"\w+", text))


def _is_registered(owner: Class) -> bool:
    """Whether a decorator may make it known to something."""
    return any(
        not _DESCRIBES.search(last_word(d.func if isinstance(d, ast.Call) else d)) for d in owner.node.decorator_list
    )


def _table(source: Source, node: ast.AST) -> tuple[ast.Dict | None, ast.expr | None]:
    """The dictionary of several entries of which a node is one, or a part of one, and its key."""
    around = source.parents.get(node)
    while isinstance(around, _PARTS):
        node, around = around, source.parents.get(around)
    if isinstance(around, ast.Dict) and len(around.keys) > 1 and node in around.values:
        return around, around.keys[around.values.index(node)]
    return None, None


def _has_no_other(table: ast.Dict, names: set[str]) -> bool:
    """Whether each entry is one of these classes, or has it as a part: whichever is taken, it is one of them."""
    return all(any(last_word(part) in names for part in ast.walk(entry)) for entry in table.values)


def _is_described(source: Source, node: ast.AST) -> bool:
    """As what something is annotated, derived from or asked to be."""
    before = node
    for here in source.around(node):
        if isinstance(here, (ast.arg, ast.ClassDef)) or (isinstance(here, ast.AnnAssign) and before is here.annotation):
            return True
        if isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return before is here.returns
        if isinstance(here, ast.Call) and last_word(here.func) in _ASKS:
            return True
        if isinstance(here, ast.stmt):
            return False
        before = here
    return False
