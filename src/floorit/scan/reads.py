"""Which settings the code of a project reads, as far as names tell."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

from floorit.declared import Value
from floorit.record.aliases import TRAIN, meaning
from floorit.scan import configs
from floorit.scan.effects import effects
from floorit.scan.entries import path_of
from floorit.scan.handed import ALL, To, handed_on
from floorit.scan.heat import Heat
from floorit.scan.options import Entry
from floorit.scan.project import Project
from floorit.scan.source import Source, last_word, walk

_DEFINES = ("add_argument", "add_arg", "set_defaults")
_PARSES = ("parse_args", "parse_known_args", "cli", "parse", "parse_args_into_dataclasses")
_MAKES_MAPPINGS = ("dict", "Namespace", "SimpleNamespace", "update", "edict", "EasyDict", "replace")
_REFERS = re.compile(r"\$\{\s*([\w.:]+)\s*\}|\{\{\s*_base_\.([\w.]+)")  # to another entry of the file
# Sections with such an entry, or such a name, are arguments of something that is made from them.
_MADE_BY = ("_target_", "type", "target", "class_path", "_partial_", "class_name")
_ARGUMENTS = re.compile(r"(?:.*_)?(?:params|kwargs|args|init_args|cfg|options)")
_SURE = 0.5  # of a file's entries that the code reads by name: else it is read by somebody else, or in another way


class Reads:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat) -> None:
        self.project, self.heat, self.entries = project, heat, project.entries
        self._by_path = {source.path: source for source in project.sources}
        self._words: dict[Source, tuple[frozenset[str], frozenset[str]]] = {}
        self._handed: dict[Source, set[tuple[str, To]]] = {}

    # -- is it read? ----------------------------------------------------------------------------------------------

    def is_unread(self, entry: Entry, live: bool = False) -> bool:
        """Whether nothing reads an entry; with `live`, nothing that the settings do not switch off."""
        scope = self._scope(entry)
        if scope is None or entry.name in self._words_of(scope, live) or entry.name in self._computed:
            return False
        if set(entry.key.split(".")[:-1]) & self._gone_through:
            return False
        if entry.by == "file" and (entry.name in self._referred or _is_argument(entry, self._siblings(entry))):
            return False
        return self._is_handed_to_nobody(entry, scope) and self._is_understood(entry, scope)

    @cached_property
    def _gone_through(self) -> set[str]:
        """Sections of which the code takes whatever is there: `cfg["optimizer"].items()`, `**cfg["loader"]`."""
        calls = [call for source in self._code for call in source.all(ast.Call)]
        taken = (
            call.func.value
            for call in calls
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("items", "values", "keys")
        )
        splatted = (keyword.value for call in calls for keyword in call.keywords if keyword.arg is None)
        return {word for section in taken for word in path_of(section)} | set(map(_section, splatted)) - {""}

    def _scope(self, entry: Entry) -> list[Source] | None:
        """The files that may read an entry; None where that can't be told."""
        if entry.by == "file":
            return self._code
        source = self._by_path[entry.path]
        went = {to for word, to in self._handed_by(source) if word == ALL}
        if To.UNSEEN in went:
            return None
        stays = _parses(source) and To.PROJECT not in went and source not in self._imported
        return [source] if stays else self._code

    def _is_handed_to_nobody(self, entry: Entry, scope: list[Source]) -> bool:
        """Whether no library is given the settings that an entry is among."""
        readers = [s for s in scope if entry.by == "file" or s.path == entry.path or not _parses(s)]
        unseen = {word for source in readers for word, to in self._handed_by(source) if to is To.UNSEEN}
        return not unseen & {ALL, *entry.key.split(".")}

    def _is_understood(self, entry: Entry, scope: list[Source]) -> bool:
        names = {other.name for other in self._siblings(entry)}
        words = self._words_of(scope, live=False)
        return len(names) > 1 and len(names & words) >= _SURE * len(names)

    def _siblings(self, entry: Entry) -> list[Entry]:
        """All entries of the same file."""
        if entry.by == "file":
            return self._of_file[entry.path].entries
        return [
            e for found in self.entries.options.values() for e in found if e.path == entry.path and e.by == entry.by
        ]

    def declared(self, setting: str) -> list[Entry]:
        """The options and entries of files that mean a setting of training."""
        return self._by_setting.get((setting, TRAIN), [])

    @cached_property
    def asked(self) -> dict[str, list[Entry]]:
        """By key, the entries of files that ask for something that is not there without them."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for config in self.entries.configs:
            for entry in config.entries:
                if entry.value not in (None, False, 0, ""):
                    found[entry.key].append(entry)
        return found

    @cached_property
    def fixed(self) -> dict[str, list[Value]]:
        """Settings for which programs that train have a constant."""
        found: dict[str, list[Value]] = defaultdict(list)
        for source in self.training:
            for _, setting, value in effects(self.project, self.heat, source):
                found[setting].append(value)
        return found

    @cached_property
    def _by_setting(self) -> dict[tuple[str, str], list[Entry]]:
        found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        options = (e for entries in self.entries.options.values() for e in entries if e.by == "option")
        for entry in (*options, *(e for config in self.entries.configs for e in config.entries)):
            meant = declares(entry.key)
            if meant is not None:
                found[meant].append(entry)
        return found

    # -- what the code says ---------------------------------------------------------------------------------------

    @cached_property
    def _code(self) -> list[Source]:
        return [source for source in self.project.sources if source.path not in self._of_file]

    @cached_property
    def _of_file(self) -> dict[Path, configs.Config]:
        return {config.path: config for config in self.entries.configs}

    @cached_property
    def _referred(self) -> frozenset[str]:
        """Names that files of settings use themselves."""
        found = {
            node.id
            for source in self.project.sources
            if source.path in self._of_file
            for node in source.all(ast.Name)
            if isinstance(node.ctx, ast.Load)
        }
        for config in self.entries.configs:
            found.update(
                word for groups in _REFERS.findall(config.text) for path in groups for word in re.split("[.:]", path)
            )
        return frozenset(found)

    @cached_property
    def _computed(self) -> frozenset[str]:
        """Names of settings that the code sets itself, to something that it computes."""
        assigned = (statement for source in self._code for statement in source.all(ast.Assign))
        return frozenset(
            path[-1]
            for statement in assigned
            if not isinstance(statement.value, ast.Constant)
            for target in statement.targets
            if (path := path_of(target))
        )

    @cached_property
    def _imported(self) -> set[Source]:
        """Files that another one imports."""
        return {
            other for source in self.project.sources for other in self.project.imported(source) if other is not source
        }

    @cached_property
    def _names(self) -> frozenset[str]:
        functions = {function.name for function in self.project.functions.values()}
        return frozenset(functions | {owner.name for owner in self.project.classes.values()})

    def _handed_by(self, source: Source) -> set[tuple[str, To]]:
        if source not in self._handed:
            self._handed[source] = set(handed_on(self.project, source, self._names))
        return self._handed[source]

    def _words_of(self, scope: Iterable[Source], live: bool) -> frozenset[str]:
        key = tuple(scope)
        if (key, live) not in self._joined:
            self._joined[key, live] = frozenset().union(*(self._words_in(source)[live] for source in key))
        return self._joined[key, live]

    @cached_property
    def _joined(self) -> dict[tuple[tuple[Source, ...], bool], frozenset[str]]:
        return {}

    def _words_in(self, source: Source) -> tuple[frozenset[str], frozenset[str]]:
        """Names that a file may read settings by: all, and those that are not switched off."""
        if source not in self._words:
            dead = {id(node) for node in self._switched_off(source)}
            found = list(_reading(source))
            self._words[source] = (
                frozenset(word for word, _ in found),
                frozenset(word for word, node in found if id(node) not in dead),
            )
        return self._words[source]

    def _switched_off(self, source: Source) -> Iterator[ast.AST]:
        """What stands under an `if` of a setting that is off."""
        for branch in source.all(ast.If):
            value = self.entries.value_of(source, branch.test)
            if value is not None and not value:
                for statement in branch.body:
                    yield from walk(statement)

    # -- where it trains ------------------------------------------------------------------------------------------

    @cached_property
    def training(self) -> set[Source]:
        """Files of programs that train: with a loop that does, those that call them, and all that these import."""
        inner = {loop_source for loop_source in self.project.sources if self._has_loop(loop_source)}
        found, stack = set(inner), list(inner)
        called: dict[Source, set[Source]] = {}
        for function, callers in self.heat.callers.items():
            called.setdefault(function.source, set()).update(source for source, _ in callers)
        while stack:
            for caller in called.get(stack.pop(), set()) - found:
                found.add(caller)
                stack.append(caller)
        stack = list(found)
        while stack:
            for imported in self.project.imported(stack.pop()):
                if imported not in found:
                    found.add(imported)
                    stack.append(imported)
        return found

    def _has_loop(self, source: Source) -> bool:
        return any(loop in self.heat.loops for loop in source.all(ast.For, ast.While))


@cache
def declares(key: str) -> tuple[str, str] | None:
    """The setting that a key declares, and whether that is for training or evaluation."""
    meant: tuple[str, str, str] | None = meaning(key)
    return meant[:2] if meant is not None else None


def _section(node: ast.expr) -> str:
    """`loader` of `cfg["loader"]`; what else is splatted may be all there is."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""


def _parses(source: Source) -> bool:
    """Whether a file has a command line of its own."""
    return any(source.calling(*_PARSES))


def _reading(source: Source) -> Iterator[tuple[str, ast.AST]]:
    """Every name by which a file may read a setting, with its node."""
    for attribute in source.all(ast.Attribute):
        if isinstance(attribute.ctx, ast.Load):
            yield attribute.attr, attribute
    defining: set[int] = set()
    has_splat, merges = False, _merges(source)
    for call in source.all(ast.Call):
        last = last_word(call.func)
        if last in _DEFINES:
            defining.update(id(part) for part in walk(call))
        for keyword in call.keywords:
            if keyword.arg is None:
                has_splat = True
            elif last in _MAKES_MAPPINGS and (merges or not isinstance(keyword.value, ast.Constant)):
                yield keyword.arg, keyword
    for constant in source.all(ast.Constant):
        text = constant.value
        if isinstance(text, str) and id(constant) not in defining and _may_be_key(text):
            yield from ((word, constant) for word in re.findall(r"\w+", text))
            yield text, constant
    if has_splat:
        yield from ((given.arg, given) for given in source.all(ast.arg))
    if _takes_names_from_elsewhere(source):
        yield from ((name.id, name) for name in source.all(ast.Name) if isinstance(name.ctx, ast.Load))
    for imported in source.imports.values():
        yield imported.rpartition(".")[2], source.tree


def _merges(source: Source) -> bool:
    """Whether a file lays one mapping over another, so that what one gives may come out of the other."""
    if any(key is None for mapping in source.all(ast.Dict) for key in mapping.keys):
        return True
    return any(call.args for call in source.calling("update"))


def _may_be_key(text: str) -> bool:
    """A key has no spaces; a text with a place for it may."""
    return len(text) < 200 and ("{" in text or "%(" in text or not re.search(r"\s", text))


def _takes_names_from_elsewhere(source: Source) -> bool:
    if "*" in source.imports:
        return True
    return any(source.calling("exec", "globals", "locals"))


def _is_argument(entry: Entry, siblings: list[Entry]) -> bool:
    """Whether an entry stands in a section that is handed to something by name."""
    *parents, _ = entry.key.split(".")
    if any(_ARGUMENTS.fullmatch(parent) for parent in parents):
        return True
    sections = {".".join(parents[: number + 1]) for number in range(len(parents))}
    return any(s.name in _MADE_BY and s.key.rpartition(".")[0] in sections for s in siblings)
