"""What is found in a file, beside what Python's own `ast` says of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from floorit.scan.source import FUNCTIONS, Source, read, walk

# Every statement and expression that the oldest Python has which may read a project.
ALL_THERE_IS = """
import torch.nn as nn, os
from torch import relu as r, tensor
from . import sibling
@decorated(of=1)
def f(a, /, b: int = default(), *rest, key, other=3, **more) -> str:
    global g1, g2
    def inner(): nonlocal a; a = lambda q=outer(): q + a
    x: int = 1; x += 2; y = z = [*rest, {**more, "k": 1, 2: b}, {1, 2}, (3, -4), a if b else None]
    for i, j in y: continue
    else: pass
    while not x and y or z: break
    with open("f") as h, lock: assert x < y <= z, "no"
    try: raise E from e
    except (A, B) as error: del error
    except C: ...
    finally: return f"{x!r:>{width}} {y}"
    if (n := len(a[1:2, ::3])) > 1: yield n
    elif n: yield from n
    return [p for p in a if p for q in p], {p for p in a}, {p: q for p, q in a}, (p @ 2 for p in a)
class K(Base, metaclass=M):
    async def g(self):
        async with a as b: await c
        async for d in e: pass
        return [x async for x in y]
match command:
    case None | True: one()
    case [1, *others, Point(x=0, y=v)] if v: two()
    case {"k": m, **remaining} as whole: three()
    case str() | -1 | A.B: four()
    case _: five()
"""


def _source(text: str) -> Source:
    return Source(Path("all.py"), text, ast.parse(text))


def _places(nodes: list[ast.AST]) -> list[int]:
    return sorted(map(id, nodes))


@pytest.mark.parametrize("text", [ALL_THERE_IS, Path(ast.__file__).read_text(), Path(pytest.__file__).read_text()])
def test_every_node_is_found_and_knows_what_it_stands_in(text: str) -> None:
    source = _source(text)
    uses = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)  # how a node is used
    nodes = [node for node in ast.walk(source.tree) if not isinstance(node, uses)]
    assert list(walk(source.tree)) == nodes
    assert _places(source.all(*{type(node) for node in nodes})) == _places(nodes)
    for node in nodes:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, uses):
                assert source.parents[child] is node


def _function(source: Source, node: ast.AST) -> ast.AST | None:
    """The function that a node runs in, by going up."""
    around = source.parents.get(node)
    while around is not None:
        if isinstance(around, ast.Lambda) or (isinstance(around, FUNCTIONS) and node in around.body):
            return around
        node, around = around, source.parents.get(around)
    return None


def test_the_function_that_a_node_runs_in() -> None:
    source = _source(ALL_THERE_IS)
    for node in source.parents:
        assert source.function(node) is _function(source, node), ast.dump(node)
    by_name = {call.func.id: source.function(call) for call in source.all(ast.Call) if isinstance(call.func, ast.Name)}
    assert by_name["decorated"] is by_name["default"] is None  # they run when the function is made
    assert isinstance(by_name["outer"], ast.Lambda)
    assert source.function(ast.Name(id="not_of_this_file")) is None


def test_calls_are_found_by_what_is_called_here_and_where_it_comes_from() -> None:
    source = _source("from torch import relu as r\nimport torch as t\nr(1)\nt.relu(2)\nx().relu(3)\nrelu\nr.other(4)\n")
    assert [call.lineno for call in source.calling("relu")] == [3, 4, 5]
    assert [call.lineno for call in source.calling("r", "other", "relu")] == [3, 4, 5, 7]
    assert list(source.calling("none")) == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older Python has no such syntax")
def test_what_newer_python_has(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text("type Pair[T: int] = tuple[T, T]\ndef first[T](pair: Pair[T]) -> T: return pair[0]\n")
    assert len(list(read(path).all(ast.Subscript))) == 3
