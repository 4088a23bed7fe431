"""One Python file as rules read it: its nodes by kind, what each stands in, what its names mean."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Node = TypeVar("_Node", bound=ast.AST)
_IGNORE = re.compile(r"#\s*floorit:\s*ignore(?:\[([^\]]*)\])?")
_ALL = "*"
# Fields of nodes that hold none, or one that only says how a node is used.
_PLAIN = frozenset(
    "arg asname attr conversion ctx id is_async kind kwd_attrs level module name op ops rest simple str tag"
    " type_comment type_ignores".split()
)
_SHORT = 40  # characters of a text that may be the name of something


class _Holding(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a kind of node in which others may stand."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = fields = tuple(field for field in kind._fields if field not in _PLAIN)
        return fields


_HOLDING = _Holding(dict.fromkeys((ast.Constant, ast.Global, ast.Nonlocal, ast.MatchSingleton), ()))
_WITH_GAPS = (ast.arguments, ast.Dict)  # whose lists may have None in the place of a node


class Unreadable(Exception):
    """A file that is no Python; says why, and where."""

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


class File:
    """A text in which something may be found."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _ignored(self) -> dict[int, set[str]]:
        return _ignored(self.text)

    def is_ignored(self, line: int, code: str) -> bool:
        """Whether a comment at a line says that this finding is not wanted there."""
        codes = self._ignored.get(line, ())
        return _ALL in codes or code in codes


class Source(File):
    """A Python file that could be parsed."""

    def __init__(self, path: Path, text: str, tree: ast.Module) -> None:
        super().__init__(path, text)
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self._names: dict[ast.AST, str] = {}
        self._functions: dict[ast.AST, FunctionNode | None] = {tree: None}
        self._by_kind: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._named: dict[re.Pattern[str], bool] = {}
        self._gather()
        self.imports = _imports(self)

    def _gather(self) -> None:
        parents, functions, by_kind = self.parents, self._functions, self._by_kind
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            kind = node.__class__
            by_kind[kind].append(node)
            if not _HOLDING[kind]:
                continue
            children = _children(node)
            inside = node if isinstance(node, ast.Lambda) else functions[node]
            for child in children:
                parents[child] = node
                functions[child] = inside
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):  # its decorators and defaults run before
                functions.update(dict.fromkeys(node.body, node))
            children.reverse()
            stack += children

    def all(self, *kinds: type[_Node]) -> Sequence[_Node]:
        """Every node of these kinds, in the order of the text within each."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], ())  # type: ignore[return-value]
        return [node for kind in kinds for node in self.all(kind)]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in the code, of variables, attributes, arguments and imports, and every short text."""
        found = {node.id for node in self.all(ast.Name)}
        found.update(node.attr for node in self.all(ast.Attribute))
        found.update(node.arg for node in self.all(ast.arg))
        found.update(node.arg for node in self.all(ast.keyword) if node.arg is not None)
        found.update(word for name in self.imports.values() for word in name.split("."))
        texts = (node.value for node in self.all(ast.Constant) if isinstance(node.value, str))
        found.update(text for text in texts if len(text) <= _SHORT)
        return frozenset(found)

    @cached_property
    def stars(self) -> list[str]:
        """The modules all of whose names it imports."""
        taken = (one for one in self.all(ast.ImportFrom) if one.names[0].name == "*")
        return ["." * one.level + (one.module or "") for one in taken]

    @cached_property
    def methods(self) -> dict[str, list[ast.Call]]:
        """Every call of a method, by its name."""
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self.all(ast.Call):
            if isinstance(call.func, ast.Attribute):
                found[call.func.attr].append(call)
        return found

    def calling(self, *words: str) -> Iterator[ast.Call]:
        """The calls of what has one of these names, here or where it comes from, in the order of the text."""
        calls = self.all(ast.Call)
        for number in sorted({number for word in words for number in self._called.get(word, ())}):
            yield calls[number]

    @cached_property
    def _called(self) -> dict[str, list[int]]:
        """The numbers of the calls, by the last word of what is called."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, call in enumerate(self.all(ast.Call)):
            here = last_word(call.func)
            found[here].append(number)
            if here in self.imports:
                found[self.imports[here].rpartition(".")[2]].append(number)
        return found

    def names(self, pattern: re.Pattern[str]) -> bool:
        """Whether any name in it is all of what a pattern describes."""
        if pattern not in self._named:
            self._named[pattern] = any(map(_fitting(pattern).__getitem__, self.words))
        return self._named[pattern]

    def may_say(self, text: str) -> bool:
        """Whether a text may stand in the code."""
        return text in self.words or len(text) > _SHORT

    def functions(self) -> Iterator[FunctionNode]:
        """Every function, method and lambda."""
        yield from self.all(ast.FunctionDef)
        yield from self.all(ast.AsyncFunctionDef)
        yield from self.all(ast.Lambda)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the inside out."""
        here = self.parents.get(node)
        while here is not None:
            yield here
            here = self.parents.get(here)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function that a node stands in; its decorators and defaults stand outside of it."""
        return self._functions.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def name(self, node: ast.AST) -> str:
        """What an expression refers to by its full name: `F.relu` is torch.nn.functional.relu; "" where it has none."""
        if node not in self._names:
            first, _, rest = dotted(node).partition(".")
            first = self.imports.get(first, first)
            self._names[node] = f"{first}.{rest}" if rest else first
        return self._names[node]


def read(path: Path, text: str | None = None) -> Source:
    """Parse a file, or a text in its place, or say why that can't be done."""
    try:
        if text is None:
            text, _ = decoded(path.read_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other people's escapes
            tree = ast.parse(text, filename=str(path))
    except SyntaxError as error:
        raise Unreadable(error.msg or "no Python", error.lineno or 1) from None
    except (ValueError, LookupError) as error:  # null bytes, wrong encoding
        raise Unreadable(str(error)) from None
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except OSError as error:
        raise Unreadable(error.strerror or "cannot be read") from None
    return Source(path, text, tree)


def decoded(data: bytes) -> tuple[str, str]:
    """The text of a file, and the encoding that it names."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding), encoding


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all inside of it, as `ast.walk` goes through them, in a third of the time: what can hold no node, or
    only says how one is used, is left out."""
    found = [node]
    for one in found:
        yield one
        if _HOLDING[one.__class__]:
            found += _children(one)


def _children(node: ast.AST) -> list[ast.AST]:
    kind = node.__class__
    children: list[ast.AST] = []
    for field in _HOLDING[kind]:
        value = getattr(node, field, None)
        if value.__class__ is list:
            children += value
        elif value is not None:
            children.append(value)
    return [child for child in children if child is not None] if kind in _WITH_GAPS else children


def dotted(node: ast.AST) -> str:
    """`a.b.c` as it is written; "" for anything else."""
    words = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(words)])


def last_word(node: ast.AST) -> str:
    """`c` of `a.b.c`, also where what stands before is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """What a call is given as `name`, or in that place."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args) and not any(map(_is_starred, call.args[: position + 1])):
        return call.args[position]
    return None


def has_stars(call: ast.Call) -> bool:
    """Whether a call is given arguments that can't be seen."""
    return any(map(_is_starred, call.args)) or any(keyword.arg is None for keyword in call.keywords)


def is_constant(node: ast.AST | None, *values: object) -> bool:
    """Whether an expression is one of these constants, `False` not being 0."""
    return isinstance(node, ast.Constant) and any(
        node.value is v or (node.value == v and type(node.value) is type(v)) for v in values
    )


class _Fitting(dict[str, bool]):
    """Whether words are all of what a pattern describes: most of them are in many files."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._pattern = pattern

    def __missing__(self, word: str) -> bool:
        self[word] = found = self._pattern.fullmatch(word) is not None
        return found


_fitting = cache(_Fitting)


def _is_starred(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred)


def _imports(source: Source) -> dict[str, str]:
    """Local name -> what it stands for. Names of a relative import keep their dots."""
    found: dict[str, str] = {}
    for node in source.all(ast.Import):
        for alias in node.names:
            found[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
    for imported in source.all(ast.ImportFrom):
        for alias in imported.names:
            where = "." * imported.level + (imported.module or "")
            found[alias.asname or alias.name] = where + ("" if where.endswith(".") else ".") + alias.name
    return found


def _ignored(text: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    if "floorit" not in text:
        return found
    for number, line in enumerate(text.splitlines(), 1):
        match = _IGNORE.search(line)
        if match is not None:
            found[number] = {code.strip() for code in match[1].split(",")} if match[1] else {_ALL}
    return found
