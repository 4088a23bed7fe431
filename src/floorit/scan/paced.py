"""What a program does only every so many times, and what says how many; the switches that make it compute twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.declared import Control
from floorit.scan.finding import Paced
from floorit.scan.guards import modulus
from floorit.scan.origins import control
from floorit.scan.source import Source
from floorit.scan.whole import Whole

# How programs call the switch of activation checkpointing. A checkpoint by itself may be a file.
_RECOMPUTES = re.compile(
    r"(?:use_)?(?:gradient|grad|activation|act)_?(?:checkpoint(?:ing|s)?|ckpt)(?:_\w+)?"
    r"|(?:use|with|enable)_(?:checkpoint(?:ing|s)?|ckpt|cp)(?:_\w+)?|(?:use_)?recompute(?:_\w+)?",
    re.IGNORECASE,
)
_LEAVES = (ast.Return, ast.Continue)


def find(whole: Whole) -> Iterator[Paced]:
    """The bodies of such conditions."""
    for source in whole.project.sources:
        for condition in source.all(ast.If):
            for moduli, lines in ((_moduli, _body(condition)), (_otherwise, _after(source, condition))):
                controls = [c for every in moduli(condition.test) for c in whole.origins.of(source, every)]
                if controls and lines is not None:
                    yield Paced(file=str(source.path), lines=lines, controls=controls)


def recomputing(whole: Whole) -> list[Control]:
    """The settings whose names say that activations are computed again, on or off."""
    entries = whole.project.entries
    named = [one for name, found in entries.options.items() if _RECOMPUTES.fullmatch(name) for one in found]
    in_files = [one for config in entries.configs for one in config.entries if _RECOMPUTES.fullmatch(one.name)]
    return [control(one) for one in (*in_files, *named) if isinstance(one.value, bool)]


def _moduli(test: ast.expr) -> Iterator[ast.expr]:
    """The numbers of times: `n` of `i % n == 0 and is_first`, `not i % n`, `(i + 1) % n == 0 or i == last`."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _moduli(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _of(test.operand)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        for side in (test.left, test.comparators[0]):
            yield from _of(side)


def _otherwise(test: ast.expr) -> Iterator[ast.expr]:
    """The same of what is left out the other times: `i % n`, `i % n != 0`."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq):
        yield from _of(test.left)
    else:
        yield from _of(test)


def _of(node: ast.expr) -> Iterator[ast.expr]:
    every = modulus(node)
    if every is not None:
        yield every


def _body(condition: ast.If) -> tuple[int, int]:
    return condition.body[0].lineno, condition.body[-1].end_lineno or condition.body[-1].lineno


def _after(source: Source, condition: ast.If) -> tuple[int, int] | None:
    """What follows in the same block, where the condition leads past it: `if i % n: continue`."""
    block: list[ast.stmt] = getattr(source.parents.get(condition), "body", [])
    if not isinstance(condition.body[-1], _LEAVES) or condition not in block or condition is block[-1]:
        return None
    return block[block.index(condition) + 1].lineno, block[-1].end_lineno or block[-1].lineno
