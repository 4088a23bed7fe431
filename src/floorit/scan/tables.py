"""Classes and functions that no program comes to by default: nothing names them, or only what is not reached itself, or
a table out of which another is taken."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from floorit.scan.entries import path_of
from floorit.scan.guards import trains
from floorit.scan.programs import Programs, has_other_purpose, is_demonstration, is_run
from floorit.scan.project import Class, Function, Project
from floorit.scan.settings import Settings
from floorit.scan.source import Source, dotted, is_constant, last_word, walk

_Mention: TypeAlias = "tuple[Source, ast.Name | ast.Attribute]"
_PARTS = (ast.Tuple, ast.List, ast.Call)  # of an entry
_IMPORTS = frozenset("import_module __import__ instantiate locate".split())
_DESCRIBES = re.compile("docstring|dataclass|total_ordering")  # decorators that only add to a class
_ASKS = ("isinstance", "issubclass", "super")
_OF_SETTINGS = re.compile(r".*(?:config|cfg|settings|options).*", re.IGNORECASE)  # files
_VALUE = re.compile(r"[:=,\[]\s*[\"']?(\w+)")  # of an entry, whatever the language of the file
_LONG = 3  # letters of a name that is no word of every file
_CALLED_BY_NAME = ("Fire",)  # what calls any function of a file that the command line names


class Tables:
    """Of a project."""

    def __init__(self, project: Project, settings: Settings, programs: Programs) -> None:
        self._project, self._settings, self._programs = project, settings, programs
        self._known: dict[Class | Function, bool] = {}
        self._written: dict[str, bool] = {}  # of the last word of a file or package
        self._mentions: dict[str, list[_Mention]] = {}
        self._texts: dict[str, bool] = {}

    def leave_out(self, owner: Class | Function) -> bool:
        """Whether nothing names a class, or one that inherits from it, or a function, but as another entry of a table
        than the one that is taken, or where no program comes by default, or in others of which that is so."""
        if owner not in self._known:
            self._known[owner] = self._is_out(owner, frozenset())
        return self._known[owner]

    def _is_out(self, owner: Class | Function, asked: frozenset[Class | Function]) -> bool:
        if isinstance(owner, Function):
            return self._is_function_out(owner, asked | {owner})
        kin = self._project.descendants(owner)
        if any(_is_registered(one) or self._is_text(one.name) or self._may_be_looked_up(one) for one in kin):
            return False
        mentions = [mention for one in kin for mention in self._live_mentions(one, kin)]
        names = {one.name for one in kin}
        return all(
            self._is_in_vain(*mention, names, asked | {owner}) or self._is_of_another_file(*mention, kin)
            for mention in mentions
        )

    def _is_function_out(self, function: Function, asked: frozenset[Class | Function]) -> bool:
        """Of one that stands in a file by itself."""
        is_text = self._is_text(function.name) and not trains(function.name)  # split="train"
        if function.decorators or function.name == "main" or is_text:
            return False
        called = (call.func for call in function.source.all(ast.Call))
        if self._may_be_looked_up(function) or any(dotted(one).endswith(_CALLED_BY_NAME) for one in called):
            return False
        mentions = (
            (source, node)
            for source, node in self._mentions_of(function.name)
            if function.node not in source.around(node) and self._project.find(source, source.name(node)) is function
        )
        return all(self._is_in_vain(*mention, {function.name}, asked) for mention in mentions)

    def is_replaced(self, function: Function) -> bool:
        """Whether a method never runs, as its class is only there to be inherited from, and each that does has another
        in its place, which does not call it."""
        owner = function.owner
        heirs = [one for one in self._project.descendants(owner) if one is not owner] if owner is not None else []
        if owner is None or not heirs or any(self._project.method(one, function.name) is function for one in heirs):
            return False
        if _is_registered(owner) or self._is_text(owner.name) or self._may_be_looked_up(owner):
            return False
        called = (call.func for one in heirs for method in one.methods.values() for call in method.calls)
        is_called = any(isinstance(one, ast.Attribute) and _is_above(one, owner, function) for one in called)
        return not is_called and not any(self._live_mentions(owner, [owner]))

    def _live_mentions(self, one: Class, kin: list[Class]) -> Iterator[_Mention]:
        """Where a class is named, and not only described, or by itself or its kin."""
        nodes = {other.node for other in kin}
        for source, node in self._mentions_of(one.name):
            found = self._project.find(source, source.name(node))
            is_namesake = isinstance(found, Class) and found not in kin
            if not is_namesake and not _is_described(source, node) and nodes.isdisjoint(source.around(node)):
                yield source, node

    def _is_in_vain(
        self, source: Source, node: ast.Name | ast.Attribute, names: set[str], asked: frozenset[Class | Function]
    ) -> bool:
        table, entry = _table(source, node)
        if table is not None and not _has_no_other(table, names) and not self._is_taken(source, table, entry):
            return True
        if not self._programs.of(source) or not self._settings.is_reached(source, node):
            return True
        if has_other_purpose(source) and is_demonstration(self._project, source, node):
            return True  # an evaluation of which training takes a function or two
        if self._is_kept_in_vain(source, node, asked):
            return True
        return any(one in asked or self._is_out(one, asked) for one in self.definitions(source, node))

    def _is_kept_in_vain(self, source: Source, node: ast.AST, asked: frozenset[Class | Function]) -> bool:
        """`_spectrum = Spectrum()` of a file in which only functions name it that no program comes to."""
        statement = source.statement(node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Name) or source.parents[statement] is not source.tree or is_run(source):
            return False
        others = (one for one in self._project.sources if source in self._project.imported(one))
        if any(target.id in one.words for one in others):
            return False
        named = (name for name in source.all(ast.Name) if name.id == target.id and name is not target)
        return all(
            any(one in asked or self._is_out(one, asked) for one in self.definitions(source, name)) for name in named
        )

    def definitions(self, source: Source, node: ast.AST) -> list[Class | Function]:
        """The classes that a node stands in, and the function that stands in a file by itself."""
        found: list[Class | Function] = []
        for here in source.around(node):
            if isinstance(here, ast.ClassDef):
                found.append(self._project.classes[here])
            elif isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)) and source.parents[here] is source.tree:
                found.append(self._project.functions[here])
        return found

    def _is_of_another_file(self, source: Source, node: ast.Name | ast.Attribute, kin: list[Class]) -> bool:
        """`models[args.model].Model`, of which the default takes another module than that of these classes."""
        lookup = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(lookup, ast.Subscript):
            return False
        key = self._settings.value(source, lookup.slice)
        for table in self._dictionaries.get(last_word(lookup.value), ()):
            for name, module in zip(table[1].keys, table[1].values, strict=True):
                if isinstance(key, str) and is_constant(name, key):
                    return last_word(module) not in {one.source.path.stem for one in kin}
        return False

    @cached_property
    def _dictionaries(self) -> dict[str, list[tuple[Source, ast.Dict]]]:
        """Those that are written out, by the names that they are given."""
        found: dict[str, list[tuple[Source, ast.Dict]]] = defaultdict(list)
        for source in self._project.sources:
            for assignment in source.all(ast.Assign):
                if isinstance(assignment.value, ast.Dict):
                    for target in assignment.targets:
                        found[last_word(target)].append((source, assignment.value))
        return found

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
        return self._is_configured(entry)

    def _is_configured(self, entry: ast.expr | None) -> bool:
        """Whether a file of settings names an entry of a table."""
        name = entry.value if isinstance(entry, ast.Constant) else None
        if not isinstance(name, str) or len(name) < _LONG:
            return False
        return any(re.search(rf"\b{re.escape(name)}\b", config.said) for config in self._project.entries.configs)

    def _may_be_looked_up(self, owner: Class | Function) -> bool:
        """Whether a name that is made while the program runs may be that of a class or function."""
        folders = {*owner.source.path.with_suffix("").parts}
        if not folders.isdisjoint(self._looked_through):
            return True
        if any(map(_is_of_own_names, owner.source.all(ast.Subscript))):
            return True
        asked = folders & self._chosen_from
        return bool(asked) and (self._is_written(owner.name) or not any(map(self._has_written, asked)))

    def _is_written(self, name: str) -> bool:
        """Whether something that comes with the project names it by a text: settings, commands, code."""
        return name in self._configured or self._is_text(name) or self._project.commands.name(name)

    def _has_written(self, word: str) -> bool:
        """Whether a value in files of settings is the name of something that a file or package has: of what is chosen
        there, this is chosen."""
        if word not in self._written:
            files = [source for source in self._project.sources if word in source.path.with_suffix("").parts]
            defined = (one for source in files for one in source.tree.body)
            names = {one.name for one in defined if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
            values = (_VALUE.findall(config.said) for config in self._project.entries.configs)
            self._written[word] = any(not names.isdisjoint(found) for found in values)
        return self._written[word]

    @cached_property
    def _configured(self) -> frozenset[str]:
        """All words of the files of settings."""
        return frozenset(word for config in self._project.entries.configs for word in re.findall(r"\w+", config.said))

    @cached_property
    def _looked_through(self) -> set[str]:
        """Files and packages, by their last word, in which something is looked up by such a name."""
        found: set[str] = set()
        for source in self._project.sources:
            found.update(_imported_by_name(source))
            for module, name in _lookups(source):
                if isinstance(module, ast.Name) and module.id in source.imports and not _is_read(name):
                    found.add(source.imports[module.id].split(".")[-1])
        return found

    @cached_property
    def _chosen_from(self) -> set[str]:
        """Files and packages, by their last word, in which something is looked up by a name as it was read."""
        found: set[str] = set()
        for source in self._project.sources:
            for module, name in _lookups(source):
                if not _is_read(name) or self._named_by(source, name):
                    continue
                if isinstance(module, ast.Name) and module.id in source.imports:
                    found.add(source.imports[module.id].split(".")[-1])
                elif _is_own_module(module):
                    found.add(source.path.stem)
        return found

    def _named_by(self, source: Source, name: ast.expr) -> list[str]:
        """The names that an expression is in all places that give it a value, command lines too; none where that is not
        known."""
        found = [str(one) for one in self._project.entries.values_of(source, name) if isinstance(one, str)]
        is_known = len(found) == len(self._project.entries.values_of(source, name))
        return [*found, *self._project.commands.given(path_of(name)[-1])] if found and is_known else []

    def _is_text(self, name: str) -> bool:
        """Whether a text is the name of a class or function, or may be; not the keys of tables, which are looked at one
        by one, nor what a file lets others import."""
        if name not in self._texts:
            sources = (source for source in self._project.sources if source.may_say(name))
            self._texts[name] = name in self._given or any(_says(source, name) for source in sources)
        return self._texts[name]

    @cached_property
    def _given(self) -> set[str]:
        """The names by which something is looked up."""
        lookups = ((source, name) for source in self._project.sources for _, name in _lookups(source))
        return {text for source, name in lookups for text in self._named_by(source, name)}

    def _mentions_of(self, name: str) -> list[_Mention]:
        """Where the code names a class or function."""
        if name not in self._mentions:
            sources = (source for source in self._project.sources if name in source.words)
            self._mentions[name] = [(source, node) for source in sources for node in _naming(source, name)]
        return self._mentions[name]


def _naming(source: Source, name: str) -> Iterator[ast.Name | ast.Attribute]:
    """The nodes that name something, also as what it was imported as: from .model import DDPM as M"""
    here = {name, *(local for local, full in source.imports.items() if full.rpartition(".")[2] == name)}
    yield from (node for node in source.all(ast.Name) if node.id in here)
    yield from (node for node in source.all(ast.Attribute) if node.attr == name)


def _says(source: Source, name: str) -> bool:
    texts = [constant for constant in source.all(ast.Constant) if constant.value == name]
    if not texts:
        return False
    left_out = {key for table in source.all(ast.Dict) for key in table.keys}.union(_exported(source))
    return not left_out.issuperset(texts)


def _exported(source: Source) -> Iterator[ast.AST]:
    """The texts of `__all__ = [...]`; not of a package, which is there for users of its own."""
    for statement in source.all(ast.Assign) if source.path.name != "__init__.py" else ():
        if any(last_word(target) == "__all__" for target in statement.targets):
            yield from walk(statement.value)


def _is_above(called: ast.Attribute, owner: Class, function: Function) -> bool:
    """`super().step`, `Trainer.step`"""
    value = called.value.func if isinstance(called.value, ast.Call) else called.value
    return called.attr == function.name and last_word(value) in ("super", owner.name)


def _is_of_own_names(subscript: ast.Subscript) -> bool:
    """`globals()[name]`"""
    return isinstance(subscript.value, ast.Call) and last_word(subscript.value.func) in ("globals", "vars", "locals")


def _is_own_module(node: ast.expr) -> bool:
    """`sys.modules[__name__]`"""
    return isinstance(node, ast.Subscript) and dotted(node.value) == "sys.modules" and dotted(node.slice) == "__name__"


def _is_read(name: ast.expr) -> bool:
    """`cfg["loss"]`, `cfg.get("loss")`, `self.kind`: a name that is not put together, or changed, before it is used."""
    return isinstance(name, (ast.Name, ast.Attribute, ast.Subscript)) or bool(path_of(name))


def _lookups(source: Source) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`models` and `name` of `models.__dict__[name]` and `getattr(models, name)`"""
    for subscript in source.all(ast.Subscript):
        value = subscript.value
        if isinstance(value, ast.Attribute) and value.attr == "__dict__":
            yield value.value, subscript.slice
    for call in source.calling("getattr"):
        if len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
            yield call.args[0], call.args[1]


def _imported_by_name(source: Source) -> Iterator[str]:
    """Words of the names by which a file imports modules that are made while it runs, and of its own folder."""
    if not source.words.isdisjoint((*_IMPORTS, "eval")):
        is_for_values = bool(_OF_SETTINGS.fullmatch(source.path.stem))  # it imports files of settings
        if not source.words.isdisjoint(_IMPORTS) and not is_for_values:
            yield source.path.parent.name
        for call in source.all(ast.Call):
            if (last_word(call.func) in _IMPORTS or dotted(call.func) == "eval") and call.args:
                texts = (part.value for part in walk(call.args[0]) if isinstance(part, ast.Constant))
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
    return all(any(last_word(part) in names for part in walk(entry)) for entry in table.values)


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
