"""Command line options and the fields of dataclasses of settings that a Python file defines, with their defaults."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from floorit.declared import Value
from floorit.scan.source import Source, argument, dotted, is_constant, last_word

# Options that whoever trains gives, whatever their default is.
_TRAINS = re.compile(r"(?:do_|is_|run_)?(?:train|training)")
By = Literal["file", "option", "field", "assignment"]
_ADDS = ("add_argument", "add_arg")
_OF_SETTINGS = re.compile(r".*(?:Args|Arguments|Config|Configuration|Cfg|Options|Opts?|Settings|Params|HParams|Flags)")
_NAMESPACES = ("HParams", "SimpleNamespace", "EasyDict", "edict", "AttrDict", "ConfigDict", "Munch")
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.ExceptHandler)
_FLAGS = ("DEFINE_integer", "DEFINE_float", "DEFINE_bool", "DEFINE_boolean", "DEFINE_string", "DEFINE_enum")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One place that gives a setting a value."""

    key: str  # with its parents, joined by dots
    value: Value
    is_known: bool = True  # else it is computed, or not given at all
    path: Path
    line: int
    by: By
    default: ast.expr | None = None  # the expression, where it is Python
    is_fixed: bool = False  # an option that gives what is its default: `action="store_true", default=True`

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition(".")[2]


def of(source: Source) -> Iterator[Entry]:
    """The options and fields that a file defines."""
    for call in source.calling(*_ADDS, "set_defaults", *_NAMESPACES, *_FLAGS):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS:
            name = _destination(call)
            if name:
                yield _entry(source, name, _default(call, name), call, "option")
        elif (isinstance(call.func, ast.Attribute) and call.func.attr == "set_defaults") or last_word(
            call.func
        ) in _NAMESPACES:
            for keyword in call.keywords:
                if keyword.arg is not None:
                    yield _entry(source, keyword.arg, keyword.value, call, "option")
        elif last_word(call.func) in _FLAGS and len(call.args) > 1 and (name := _text(call.args[0])):
            yield _entry(source, name, call.args[1], call, "option")
    for owner in source.all(ast.ClassDef):
        if _OF_SETTINGS.fullmatch(owner.name) and any(
            last_word(d.func if isinstance(d, ast.Call) else d) == "dataclass" for d in owner.decorator_list
        ):
            for field in owner.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield _entry(source, field.target.id, _field(field.value), field, "field")


def assigned(source: Source) -> Iterator[Entry]:
    """What is set without being declared: `_C.WORKERS = 4`, attributes of a class."""
    for assignment in source.all(ast.Assign):
        if not is_certain(source, assignment):
            continue
        target = assignment.targets[0]
        first = dotted(target).partition(".")[0]
        if isinstance(target, ast.Attribute) and first not in ("", "self") and first not in source.imports:
            yield _entry(source, target.attr, assignment.value, assignment, "assignment")
        elif isinstance(target, ast.Name) and isinstance(source.parents.get(assignment), ast.ClassDef):
            yield _entry(source, target.id, assignment.value, assignment, "assignment")
    for field in source.all(ast.AnnAssign):
        if isinstance(field.target, ast.Name) and isinstance(source.parents.get(field), ast.ClassDef):
            default = _field(field.value)
            if default is not None:
                yield _entry(source, field.target.id, default, field, "assignment")


def is_certain(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement runs whenever its function does."""
    inside = source.function(statement)
    for here in source.around(statement):
        if here is inside:
            break
        if isinstance(here, _BRANCHES):
            return False
    return True


def plain(node: ast.expr | None) -> Value:
    """The constant that an expression is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = plain(node.operand)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
        return node.value
    return None


def _entry(source: Source, name: str, default: ast.expr | None, node: ast.expr | ast.stmt, by: By) -> Entry:
    value = plain(default)
    is_none = default is None or (isinstance(default, ast.Constant) and default.value is None)
    is_known = value is not None or (is_none and not _is_required(node))
    path, line = source.path, node.lineno
    is_fixed = isinstance(node, ast.Call) and _gives_its_default(node)
    return Entry(
        key=name, value=value, is_known=is_known, path=path, line=line, by=by, default=default, is_fixed=is_fixed
    )


def _gives_its_default(call: ast.Call) -> bool:
    action, default = _text(argument(call, "action")), argument(call, "default")
    return (action == "store_true" and is_constant(default, True)) or (
        action == "store_false" and is_constant(default, False)
    )


def _is_required(node: ast.AST) -> bool:
    """Whether it is an option that must be given."""
    if not isinstance(node, ast.Call):
        return False
    required = argument(node, "required")
    return isinstance(required, ast.Constant) and required.value is True


def _destination(call: ast.Call) -> str:
    """The name under which an option's value is found."""
    given = _text(argument(call, "dest"))
    if given:
        return given
    words = [word for word in map(_text, call.args) if word]
    long = [word for word in words if word.startswith("--")]
    return (long or words or [""])[0].lstrip("-").replace("-", "_")


def _default(call: ast.Call, name: str) -> ast.expr | None:
    default = argument(call, "default")
    action = _text(argument(call, "action"))
    if default is None and action in ("store_true", "store_false"):
        default = ast.Constant(value=action == "store_false")
    if is_constant(default, False) and _TRAINS.fullmatch(name):
        return ast.Constant(value=True)
    return _converted(default, last_word(argument(call, "type") or call.func))


def _converted(default: ast.expr | None, kind: str) -> ast.expr | None:
    """argparse gives a default that is text to the option's type, as if it had been written on the command line."""
    text = _text(default)
    if not text or kind not in ("int", "float"):
        return default
    try:
        return ast.Constant(value=int(text) if kind == "int" else float(text))
    except ValueError:
        return default


def _field(value: ast.expr | None) -> ast.expr | None:
    """`x: int = 1`, `x: int = field(default=1)`."""
    if isinstance(value, ast.Call) and last_word(value.func) == "field":
        return argument(value, "default")
    return value


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
