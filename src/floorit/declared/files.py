"""Configuration files, read without running anything in them: dotted keys, their plain values, their lines."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
import yaml

from floorit.declared import Value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_ENTRIES = 20_000  # of one file: a YAML of a few lines can stand for billions
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, Value] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NOTHING = ("", "null", "none", "~")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One key. A mapping or a list below it counts as a value of its own: that it is there says something."""

    key: str  # with its parents, joined by dots
    value: Value
    line: int
    holds_more: bool = False


class Unreadable(Exception):
    """The text is not what its name says."""


def entries(text: str, suffix: str) -> list[Entry]:
    """The entries of a configuration file by its suffix."""
    try:
        return list(islice(_READERS[suffix](text), MOST_ENTRIES))
    except (yaml.YAMLError, tomllib.TOMLDecodeError, configparser.Error, SyntaxError, ValueError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None


def plain(word: str) -> Value:
    """A word as the value that it most likely stands for; text stays text."""
    small = word.strip().lower()
    if small in _NOTHING:
        return None
    if small in _WORDS:
        return _WORDS[small]
    for kind in (int, float):
        try:
            return kind(small)
        except ValueError:
            continue
    return word.strip()


def _yaml(text: str) -> Iterator[Entry]:
    for document in yaml.compose_all(text, Loader=_LOADER):
        yield from _nodes(document, ())


def _json(text: str) -> Iterator[Entry]:
    """JSON is YAML, but for tabs between its tokens."""
    return _yaml(text.replace("\t", " "))


def _nodes(node: Any, parents: tuple[str, ...]) -> Iterator[Entry]:
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        if not isinstance(name, yaml.ScalarNode):
            continue
        path = (*parents, name.value)
        line = name.start_mark.line + 1
        if isinstance(value, yaml.ScalarNode):
            yield Entry(key=".".join(path), value=plain(value.value), line=line)
        else:
            yield Entry(key=".".join(path), value=None, line=line, holds_more=bool(value.value))
            yield from _nodes(value, path)


def _toml(text: str) -> Iterator[Entry]:
    return _mapping(tomllib.loads(text), (), _lines(text, "="))


def _ini(text: str) -> Iterator[Entry]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    lines = _lines(text, "=:")
    for section in parser.sections():
        words = {name: plain(value) for name, value in parser.items(section)}
        yield from _mapping(words, (section,), lines)


def _mapping(values: Mapping[str, Any], parents: tuple[str, ...], lines: Mapping[str, int]) -> Iterator[Entry]:
    for name, value in values.items():
        path = (*parents, name)
        line = next((lines[key] for i in range(len(path), 0, -1) if (key := ".".join(path[:i]).lower()) in lines), 1)
        if isinstance(value, Mapping):
            yield Entry(key=".".join(path), value=None, line=line, holds_more=bool(value))
            yield from _mapping(value, path, lines)
        elif value is None or isinstance(value, bool | int | float | str):
            yield Entry(key=".".join(path), value=value, line=line)


_TABLE = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(?:[#;].*)?$")


def _lines(text: str, between: str) -> dict[str, int]:
    """Key with its section -> line, in formats of `[section]` and `key = value`."""
    assigned = re.compile(rf"\s*([\w.\"' -]+?)\s*[{between}]")
    section = ""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        table = _TABLE.match(line)
        if table:
            section = table[1].replace('"', "").lower()
            found.setdefault(section, number)
        elif match := assigned.match(line):
            key = match[1].replace('"', "").replace("'", "").lower()
            found[f"{section}.{key}" if section else key] = number
    return found


def _python(text: str) -> Iterator[Entry]:
    """Names assigned at the top: plain values, `{...}` and `dict(...)` of them."""
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                yield from _expression(statement.value, (target.id,), statement.lineno)


def _expression(node: ast.expr | None, path: tuple[str, ...], line: int) -> Iterator[Entry]:
    pairs: list[tuple[str, ast.expr]] | None = None
    if isinstance(node, ast.Dict):
        keyed = zip(node.keys, node.values, strict=True)
        pairs = [(key.value, value) for key, value in keyed if isinstance(key, ast.Constant) and type(key.value) is str]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        pairs = [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg is not None]
    if pairs is None:
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | int | float | str)):
            yield Entry(key=".".join(path), value=node.value, line=line)
        return
    yield Entry(key=".".join(path), value=None, line=line, holds_more=bool(pairs))
    for name, value in pairs:
        yield from _expression(value, (*path, name), value.lineno)


_READERS = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": _json,
    ".toml": _toml,
    ".ini": _ini,
    ".cfg": _ini,
    ".py": _python,
}
