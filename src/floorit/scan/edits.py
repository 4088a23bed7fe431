"""Changes to a source file, each by the place of the node that it changes."""

from __future__ import annotations

import ast

import msgspec


class Edit(msgspec.Struct, frozen=True, tag=True):
    """One change to the node that begins and ends there."""

    start: tuple[int, int]  # line from 1, column from 0
    end: tuple[int, int]


class SetArgument(Edit, frozen=True):
    """Give a call a keyword argument, or another value for one it has."""

    name: str
    value: str  # as source


class DropArgument(Edit, frozen=True):
    """Take a keyword argument from a call."""

    name: str


class Replace(Edit, frozen=True):
    """Put another expression in the place of one."""

    expression: str  # as source


class RemoveStatement(Edit, frozen=True):
    """Take a whole statement out."""


def span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a node begins and ends."""
    assert isinstance(node, (ast.expr, ast.stmt))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def set_argument(call: ast.Call, name: str, value: str) -> SetArgument:
    return SetArgument(*span(call), name, value)


def drop_argument(call: ast.Call, name: str) -> DropArgument:
    return DropArgument(*span(call), name)


def replace(node: ast.expr, expression: str) -> Replace:
    return Replace(*span(node), expression)


def remove(statement: ast.stmt) -> RemoveStatement:
    return RemoveStatement(*span(statement))
