"""One value of a configuration file, changed in its text: every other byte of it stays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import yaml

from floorit.declared import Value
from floorit.declared.files import Entry, Unreadable, entries
from floorit.record.aliases import meaning

# How files spell a switch: as it is written there, its opposite is, too.
_SWITCHES = (("true", "false"), ("yes", "no"), ("on", "off"), ("1", "0"))
# key = value, and what follows: formats of sections and lines.
_LINE = re.compile(r"(?P<key>\s*[\w.\"' -]+?\s*[=:]\s*)(?P<value>\"[^\"]*\"|'[^']*'|[^#;\s]+)")


def with_value(text: str, suffix: str, line: int, setting: str, value: Value, was: Value = None) -> str | None:
    """The text with another value for the entry of a line that means a setting, or is called so; None where that cannot
    be done, or where its value is not what it `was`.

    It is read again afterwards: the entry must be the only one that differs.
    """
    try:
        before = entries(text, suffix)
        [at] = (i for i, one in enumerate(before) if _is_meant(one, line, setting))
        [(start, end)] = set(_places(text, suffix, line, before[at].key))
        made = text[:start] + spelled(value, text[start:end], suffix) + text[end:]
        after = entries(made, suffix)
    except (ValueError, Unreadable):  # none of them, or one of several
        return None
    if was is not None and before[at].value != was:
        return None
    others = [one for i, one in enumerate(after) if i != at]
    is_right = len(after) == len(before) and after[at].value == value and after[at].key == before[at].key
    return made if is_right and others == [one for i, one in enumerate(before) if i != at] else None


def _is_meant(entry: Entry, line: int, setting: str) -> bool:
    """Whether it is an entry of that line, and means that setting or is called so."""
    if entry.line != line or entry.holds_more:
        return False
    meant = meaning(entry.key)
    return (meant is not None and meant[0] == setting) or f".{entry.key}".endswith(f".{setting}")


def _places(text: str, suffix: str, line: int, key: str) -> Iterator[tuple[int, int]]:
    """From where to where the value of an entry stands in the text."""
    if suffix in (".yaml", ".yml", ".json"):
        for document in yaml.compose_all(text.replace("\t", " "), Loader=yaml.SafeLoader):
            yield from _of_nodes(document, line, key, ())
    elif suffix == ".py":
        yield from _of_python(text, line, key)
    else:
        found = _LINE.match(text.splitlines(keepends=True)[line - 1])
        if found is not None:
            begin = sum(map(len, text.splitlines(keepends=True)[: line - 1]))
            yield begin + found.start("value"), begin + found.end("value")


def _of_nodes(node: Any, line: int, key: str, parents: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        path = (*parents, str(name.value))
        is_here = name.start_mark.line + 1 == line and ".".join(path) == key
        if is_here and isinstance(value, yaml.ScalarNode):
            yield value.start_mark.index, value.end_mark.index
        yield from _of_nodes(value, line, key, path)


def _of_python(text: str, line: int, key: str) -> Iterator[tuple[int, int]]:
    """A constant on that line which the last part of the key names."""
    name = key.rpartition(".")[2]
    for node in ast.walk(ast.parse(text)):
        named: list[tuple[object, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            named = [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named = [(node.target.id, node.value)]
        elif isinstance(node, ast.keyword):
            named = [(node.arg, node.value)]
        elif isinstance(node, ast.Dict):
            named = [(getattr(k, "value", None), v) for k, v in zip(node.keys, node.values, strict=True)]
        for word, value in named:
            if word == name and isinstance(value, ast.Constant) and value.lineno == line:
                yield _offset(text, line, value.col_offset), _offset(text, line, value.end_col_offset or 0)


def _offset(text: str, line: int, column: int) -> int:
    """In characters; Python counts a column in bytes."""
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode(errors="replace"))


def spelled(value: Value, before: str, suffix: str = "") -> str:
    """As what stood there before: its words for a switch, its quotes."""
    if suffix == ".py":
        return repr(value)
    quote = before[0] if before[:1] in ("'", '"') else ""
    word = str(value)
    if isinstance(value, bool):
        bare = before.strip("'\"")
        pair = next((pair for pair in _SWITCHES if bare.lower() in pair), _SWITCHES[0])
        word = pair[not value]
        word = word.title() if bare.istitle() else word.upper() if bare.isupper() else word
    return f"{quote}{word}{quote}"
