"""Functions by their full name, `Loader.__next__`: before Python 3.11 code objects know only the last part of it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMELESS = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


def qualname(file: str, first_line: int, name: str) -> str:
    """The full name of the code called `name` that begins at a line; the name itself where the file tells no more."""
    return _names(file).get((first_line, name), name)


@cache
def _names(file: str) -> dict[tuple[int, str], str]:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[tuple[int, str], str] = {}
    _gather(tree, "", found)
    return found


def _gather(node: ast.AST, inside: str, found: dict[tuple[int, str], str]) -> None:
    """All that is in a node, whose own name begins with `inside`."""
    if isinstance(node, _NAMED):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        found[first, node.name] = inside + node.name
        inside += node.name + ("." if isinstance(node, ast.ClassDef) else ".<locals>.")
    elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        name = _NAMELESS[type(node)]
        found.setdefault((node.lineno, name), inside + name)
        if not isinstance(node, ast.Lambda):
            _gather(node.generators[0].iter, inside, found)  # what it goes through first is made outside of it
        inside += name + ".<locals>."
    for child in ast.iter_child_nodes(node):
        _gather(child, inside, found)
