"""Carry edits out on the text of a file; all else in it stays as it is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TypeAlias

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from floorit.scan.edits import DropArgument, Edit, RemoveStatement, Replace, SetArgument

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_Place: TypeAlias = "tuple[tuple[int, int], tuple[int, int]]"


def rewritten(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made. Columns of an edit count bytes, as Python's own do."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    lines = _lines(text)
    wanted: dict[_Place, list[Edit]] = {}
    for edit in edits:
        wanted.setdefault((_in_characters(lines, edit.start), _in_characters(lines, edit.end)), []).append(edit)
    return wrapper.visit(_Editor(wanted)).code


def difference(before: str, after: str, name: str) -> str:
    """As `git apply` takes it."""
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """With their ends. Other signs that `splitlines` ends a line at, such as a form feed, are within one for Python."""
    return _LINE.findall(text)


def _in_characters(lines: list[str], place: tuple[int, int]) -> tuple[int, int]:
    line, column = place
    return line, len(lines[line - 1].encode()[:column].decode(errors="replace"))


class _Editor(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, wanted: dict[_Place, list[Edit]]) -> None:
        super().__init__()
        self._wanted = wanted

    def _edits(self, node: cst.CSTNode) -> list[Edit]:
        where = self.get_metadata(PositionProvider, node)
        assert isinstance(where, CodeRange)
        start, end = where.start, where.end
        return self._wanted.get(((start.line, start.column), (end.line, end.column)), [])

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        call = updated_node
        for edit in self._edits(original_node):
            if isinstance(edit, SetArgument):
                call = _with_argument(call, edit.name, cst.parse_expression(edit.value))
            elif isinstance(edit, DropArgument):
                call = _without_argument(call, edit.name)
        return self._replaced(original_node, call)

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]
        left = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.BaseExpression) and not isinstance(original_node, cst.Call):
            return self._replaced(original_node, left)  # type: ignore[arg-type]
        return left

    def _replaced(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        for edit in self._edits(original):
            if isinstance(edit, Replace):
                return cst.parse_expression(edit.expression)
        return updated

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        kept = [
            after
            for before, after in zip(original_node.body, updated_node.body, strict=True)
            if not any(isinstance(edit, RemoveStatement) for edit in self._edits(before))
        ]
        if len(kept) == len(updated_node.body):
            return updated_node
        return updated_node.with_changes(body=kept) if kept else cst.RemoveFromParent()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if updated_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])


def _with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    for number, given in enumerate(call.args):
        if given.keyword is not None and given.keyword.value == name:
            return call.with_changes(
                args=[*call.args[:number], given.with_changes(value=value), *call.args[number + 1 :]]
            )
    new = cst.Arg(
        keyword=cst.Name(name),
        value=value,
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not call.args:
        return call.with_changes(args=[new])
    last = call.args[-1]
    comma = last.comma
    if isinstance(comma, cst.Comma):  # a trailing one: the call is spread over lines
        indented = call.args[-2].comma if len(call.args) > 1 else None
        between = indented if isinstance(indented, cst.Comma) else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        return call.with_changes(
            args=[*call.args[:-1], last.with_changes(comma=between), new.with_changes(comma=comma)]
        )
    separated = last.with_changes(comma=_usual_comma(call), whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(
        args=[*call.args[:-1], separated, new.with_changes(whitespace_after_arg=last.whitespace_after_arg)]
    )


def _usual_comma(call: cst.Call) -> cst.Comma:
    """As the arguments of the call are separated now."""
    for given in call.args[-2:-1]:
        if isinstance(given.comma, cst.Comma):
            return given.comma
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _without_argument(call: cst.Call, name: str) -> cst.Call:
    kept = [given for given in call.args if given.keyword is None or given.keyword.value != name]
    if len(kept) == len(call.args) or not kept:
        return call.with_changes(args=kept)
    if not call.args[-1].comma or isinstance(call.args[-1].comma, cst.MaybeSentinel):
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=kept)
