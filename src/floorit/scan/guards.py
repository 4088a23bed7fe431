"""Conditions: which branch of an `if` is taken only now and then, and which only in evaluation."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeAlias, TypeGuard

from floorit.declared import Value
from floorit.scan.source import Source, last_word

_SELDOM = re.compile(
    r"debug|verbose|every|interval|freq|frequency|first|last|nan|inf|finite|isnan|isinf|isfinite|plots?|plotting|vis"
    r"|visual\w*|profil\w*|dump|saves?|saving|prints?|display|log|logs|logging|dry|sanity|check\w*|report|resume|error\w*|warn\w*"
)
_COUNTS = re.compile(r"i|ii|j|k|n|ni|it|idx|index|step|steps|iter|iters|iteration|batch|epoch|count|counter|t")
_EVALUATES = re.compile(
    r"val|valid|validate|validation|eval|evaluate|evaluation|evaluating|test|testing|infer\w*|predict\w*"
)
_TRAINS = re.compile(r"train|training|trains")
# Options that whoever trains gives, whatever their default is.
_OF_THE_MACHINE = re.compile(r"cuda|gpus?|device|ddp|dist|distributed|parallel|multi\w*|rank|world|master|main")
_ENDS = (ast.Continue, ast.Return, ast.Break, ast.Raise)


# What an expression is by default; None where that is not known.
Values: TypeAlias = "Callable[[ast.expr], Value]"


class When(Enum):
    """When a branch is taken, of those times at which the `if` is reached."""

    ALWAYS = 0
    SELDOM = 1
    EVALUATING = 2


def conditions(source: Source, node: ast.AST, until: ast.AST, values: Values) -> Iterator[When]:
    """What stands between a node and something around it, as far as it says when the node is reached."""
    before = node
    for here in source.around(node):
        if isinstance(here, (ast.If, ast.IfExp)) and before is not here.test:
            is_body = before is here.body or (isinstance(here.body, list) and before in here.body)
            taken, other = branches(here.test, values)
            yield taken if is_body else other
        elif isinstance(here, ast.ExceptHandler):
            yield When.SELDOM
        elif isinstance(here, ast.With) and _spares_gradients(source, here):
            yield When.EVALUATING
        if isinstance(before, ast.stmt):
            yield from _passed_by(here, before, values)
        if here is until:
            return
        before = here


def branches(test: ast.expr, values: Values) -> tuple[When, When]:
    """When the body is taken, and when the else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        taken, other = branches(test.operand, values)
        return other, taken
    if isinstance(test, ast.BoolOp):
        parts = [branches(value, values) for value in test.values]
        if isinstance(test.op, ast.And):
            return _most(taken for taken, _ in parts), When.ALWAYS
        return (parts[0][0] if all(taken is not When.ALWAYS for taken, _ in parts) else When.ALWAYS), _most(
            other for _, other in parts
        )
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, values)
    if _is_modulo(test):  # if step % 10:
        return (When.SELDOM, When.ALWAYS) if _is_every(test, values) else (When.ALWAYS, When.SELDOM)
    return _by_default(test, values) or _named(test)


def _is_modulo(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _is_every(modulo: ast.BinOp, values: Values) -> bool:
    """Whether `step % args.log_every` is 0 in every step."""
    return values(modulo.right) == 1


def _by_default(test: ast.expr, values: Values) -> tuple[When, When] | None:
    """As its setting says, where that is known and is the program's own affair."""
    value = values(test)
    words = _words_of(last_word(test))
    if value is None or any(_OF_THE_MACHINE.fullmatch(word) or _TRAINS.fullmatch(word) for word in words):
        return None
    return (When.ALWAYS, When.SELDOM) if value else (When.SELDOM, When.ALWAYS)


def _compared(test: ast.Compare, values: Values) -> tuple[When, When]:
    equal = isinstance(test.ops[0], (ast.Eq, ast.In, ast.Is))
    unequal = isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot))
    modulo = next((part for part in ast.walk(test) if _is_modulo(part)), None)
    if modulo is not None:
        return (When.ALWAYS, When.SELDOM) if unequal is not _is_every(modulo, values) else (When.SELDOM, When.ALWAYS)
    if _is_text(test.comparators[0]):  # phase == "train"
        evaluates = _EVALUATES.fullmatch(_text(test.comparators[0]))
        if evaluates or _TRAINS.fullmatch(_text(test.comparators[0])):
            taken, other = (When.EVALUATING, When.ALWAYS) if evaluates else (When.ALWAYS, When.EVALUATING)
            return (taken, other) if equal else (other, taken)
    if any(isinstance(side, ast.Constant) and side.value is None for side in (test.left, *test.comparators)):
        return When.ALWAYS, When.ALWAYS
    words = _words_of(last_word(test.left))
    if words and _COUNTS.fullmatch(words[-1]):
        if equal or isinstance(test.ops[0], (ast.Lt, ast.LtE)):
            return When.SELDOM, When.ALWAYS
        return When.ALWAYS, (When.SELDOM if unequal else When.ALWAYS)
    return _named(test)


def _named(test: ast.expr) -> tuple[When, When]:
    """By the words in its names."""
    words = [
        word
        for part in ast.walk(test)
        if isinstance(part, (ast.Name, ast.Attribute))
        for word in _words_of(last_word(part))
    ]
    if any(_TRAINS.fullmatch(word) for word in words):
        return When.ALWAYS, When.EVALUATING
    if any(_EVALUATES.fullmatch(word) for word in words):
        return When.EVALUATING, When.ALWAYS
    if any(_SELDOM.fullmatch(word) for word in words):
        return When.SELDOM, When.ALWAYS
    return When.ALWAYS, When.ALWAYS


def _passed_by(block: ast.AST, statement: ast.stmt, values: Values) -> Iterator[When]:
    """What an `if …: continue` before a statement of the same block says of it."""
    for body in (getattr(block, "body", None), getattr(block, "orelse", None)):
        if not isinstance(body, list) or statement not in body:
            continue
        for earlier in body[: body.index(statement)]:
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], _ENDS) and not earlier.orelse:
                yield branches(earlier.test, values)[1]


def _spares_gradients(source: Source, block: ast.With) -> bool:
    return any(spares_gradients(source, item.context_expr) for item in block.items)


def spares_gradients(source: Source, node: ast.expr) -> bool:
    """`torch.no_grad()`, `torch.inference_mode`, with or without its parentheses."""
    name = source.name(node.func if isinstance(node, ast.Call) else node)
    return name.split(".")[-1] in ("no_grad", "inference_mode")


def evaluates(name: str) -> bool:
    """Whether a function of this name is there to evaluate."""
    return any(_EVALUATES.fullmatch(word) for word in _words_of(name)) and not trains(name)


def trains(name: str) -> bool:
    """Whether something of this name is there to train."""
    return any(_TRAINS.fullmatch(word) for word in _words_of(name))


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _most(times: Iterator[When]) -> When:
    return max(times, key=lambda when: when.value, default=When.ALWAYS)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(node: ast.AST) -> str:
    assert isinstance(node, ast.Constant)
    return str(node.value).lower()
