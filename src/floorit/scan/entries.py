"""The settings of a project: what its options, fields and files give a name, and what an expression is by default."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from floorit.declared import Value
from floorit.scan import configs, options
from floorit.scan.commands import Commands
from floorit.scan.options import Entry, is_certain, plain
from floorit.scan.source import FUNCTIONS, Source, argument, last_word

_Find: TypeAlias = "Callable[[Source, ast.AST, str], ast.expr | None]"
# What a namespace or a mapping of settings is called.
HOLDER = re.compile(
    r"_?(?:.*_)?(?:args?|arguments|opts?|options?|cfgs?|config|configs|configuration|conf|hparams?|hyper_?params?|hps?|hyp"
    r"|params|flags|settings|namespace)|_C",
    re.IGNORECASE,
)
_HOPS = 3  # that a value is followed from name to name


class Entries:
    """Of a project."""

    def __init__(self, sources: list[Source], paths: Iterable[Path], commands: Commands, assigned: _Find) -> None:
        self._sources, self._paths, self._commands, self._assigned = sources, list(paths), commands, assigned
        self._named: dict[str, list[Entry]] = {}

    # -- what there is ------------------------------------------------------------------------------------------

    @cached_property
    def configs(self) -> list[configs.Config]:
        """The files of settings that belong to the code."""
        return list(configs.belonging(self._paths, self._sources, self._commands))

    @cached_property
    def options(self) -> dict[str, list[Entry]]:
        """Options and fields by name."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for source in self._sources:
            for entry in options.of(source):
                found[entry.name].append(entry)
        return found

    @cached_property
    def options_by_file(self) -> dict[Path, list[Entry]]:
        """The same by the file that declares them."""
        found: dict[Path, list[Entry]] = defaultdict(list)
        for entry in (entry for entries in self.options.values() for entry in entries):
            found[entry.path].append(entry)
        return found

    @cached_property
    def assigned(self) -> dict[str, list[Entry]]:
        """What is set without being declared, by name."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for source in self._sources:
            for entry in options.assigned(source):
                found[entry.name].append(entry)
        return found

    def named(self, name: str) -> list[Entry]:
        """All entries of a name."""
        if name not in self._named:
            in_files = [e for c in self.configs if name in c.text for e in c.entries if e.name == name]
            self._named[name] = [*self.options.get(name, ()), *in_files]
        return self._named[name]

    @cached_property
    def writes(self) -> dict[str, list[tuple[Source, ast.Assign]]]:
        """Where the code gives an entry another value, whatever happens before: `args.workers = 0`."""
        found: dict[str, list[tuple[Source, ast.Assign]]] = defaultdict(list)
        for source in self._sources:
            for statement in source.all(ast.Assign):
                for target in statement.targets:
                    path = path_of(target) if not isinstance(target, ast.Name) else ()
                    if len(path) == 1 and is_certain(source, statement):
                        found[path[0]].append((source, statement))
        return found

    # -- what an expression is ----------------------------------------------------------------------------------

    def value_of(self, source: Source, node: ast.AST) -> Value:
        """What `args.x`, `cfg["x"]`, `cfg.a.b` or a name that is set to such is by default.

        None where that is not known, or where the places that give it a value disagree.
        """
        return self._value(source, node, _HOPS)

    def values_of(self, source: Source, node: ast.AST) -> list[Value]:
        """What `cfg["x"]` is in each of the places that give it a value; none where that is not known of all."""
        path = path_of(node)
        given = self.given(source, path) if path else []
        return [entry.value for entry in given] if all(entry.is_known for entry in given) else []

    def _value(self, source: Source, node: ast.AST, hops: int) -> Value:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._value(source, node.operand, hops)
            return None if value is None else not value
        if isinstance(node, ast.expr) and (constant := plain(node)) is not None:
            return constant
        if isinstance(node, ast.Name):
            given = None if not hops or _is_parameter(source, node) else self._assigned(source, node, node.id)
            return None if given is None else self._value(source, given, hops - 1)
        path = path_of(node)
        if not path:
            return None
        if isinstance(node, ast.Call) and not self.named(path[-1]):
            return plain(_otherwise(node))
        return self._declared(source, path)

    def _declared(self, source: Source, path: tuple[str, ...]) -> Value:
        written = [statement for place, statement in self.writes.get(path[-1], ()) if place is source]
        if written:
            return _common((True, plain(statement.value)) for statement in written)
        return _common((entry.is_known, entry.value) for entry in self.given(source, path))

    def given(self, source: Source, path: tuple[str, ...]) -> list[Entry]:
        """The entries that give what is read there its value."""
        fits = [entry for entry in self.named(path[-1]) if tuple(entry.key.split(".")[-len(path) :]) == path]
        fits = self.near(fits, source)
        if any(entry.by != "file" and entry.path == source.path for entry in fits):
            # options of other programs say nothing about this one
            fits = [entry for entry in fits if entry.by == "file" or entry.path == source.path]
        return [e for e in _least_nested(fits) if e.by == "file" or e.value is not None or not e.is_known]

    # -- whose it is --------------------------------------------------------------------------------------------

    def near(self, entries: list[Entry], source: Source) -> list[Entry]:
        """Without those of other folders that are projects of their own, where that of a file has files for it."""
        own = self._part(source.path)
        if own not in self._parts or not any(e.by == "file" and self._part(e.path) == own for e in entries):
            return entries
        others = self._parts.keys() - self._parts[own] - {own}
        return [entry for entry in entries if entry.by != "file" or self._part(entry.path) not in others]

    def _part(self, path: Path) -> str:
        """The folder, of those that the whole is made of, in which something lies; "" for none."""
        return path.parts[self._depth] if len(path.parts) > self._depth + 1 else ""

    @cached_property
    def _depth(self) -> int:
        return configs.depth([*self._paths, *(source.path for source in self._sources)])

    @cached_property
    def _parts(self) -> dict[str, frozenset[str]]:
        """The folders that have a program right in them, with all names that their files speak of."""
        lengths = ((source, len(source.path.parts)) for source in self._sources if "__main__" in source.words)
        parts = {self._part(source.path) for source, length in lengths if length == self._depth + 2}
        return {
            part: frozenset().union(*(source.words for source in self._sources if self._part(source.path) == part))
            for part in parts
        }


def path_of(node: ast.AST) -> tuple[str, ...]:
    """The words below the settings that an expression reads: ("a", "b") of `self.cfg.a["b"]`; () if it reads none."""
    words: list[str] = []
    while not isinstance(node, ast.Name):
        word: object = None
        if isinstance(node, ast.Call):
            word, node = _asked(node)
        elif isinstance(node, ast.Subscript):
            word, node = node.slice.value if isinstance(node.slice, ast.Constant) else None, node.value
        elif isinstance(node, ast.Attribute):
            word, node = node.attr, node.value
        if not isinstance(word, str):
            return ()
        words.append(word)
    words.append(node.id)
    words.reverse()
    holder = next((number for number, word in enumerate(words[:-1]) if HOLDER.fullmatch(word)), None)
    return () if holder is None else tuple(words[holder + 1 :])


def _asked(call: ast.Call) -> tuple[object, ast.AST]:
    """`cfg.get("x")`, `getattr(args, "x")`: what for, and of what."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "get":
        name, owner = argument(call, "key", 0), call.func.value
    elif last_word(call.func) == "getattr" and len(call.args) > 1:
        name, owner = call.args[1], call.args[0]
    else:
        return None, call
    return (name.value if isinstance(name, ast.Constant) else None), owner


def _otherwise(call: ast.Call) -> ast.expr | None:
    """What `cfg.get("x", 1)`, `getattr(args, "x", 1)` are where nothing gives x a value."""
    return call.args[-1] if len(call.args) == (2 if isinstance(call.func, ast.Attribute) else 3) else None


def _common(values: Iterable[tuple[bool, Value]]) -> Value:
    """The one value that all give; None where one is not known."""
    found = {(is_known, type(value), value) for is_known, value in values}
    return found.pop()[2] if len(found) == 1 else None


def _least_nested(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Of each file, those nearest to its top: below are variants of them."""
    by_file: dict[Path, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_file[entry.path].append(entry)
    for found in by_file.values():
        least = min(entry.key.count(".") for entry in found)
        yield from (entry for entry in found if entry.key.count(".") == least)


def _is_parameter(source: Source, name: ast.Name) -> bool:
    for here in source.around(name):
        if isinstance(here, FUNCTIONS):
            given = here.args
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            if any(one is not None and one.arg == name.id for one in arguments):
                return True
    return False
