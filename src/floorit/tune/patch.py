"""floorit.patch: what was proven, as a change to the source at the lines that decide it.

A change is made where the program says the value itself: in the call that makes the loader or the optimizer, in the
default of the argument that the call is given, in the statement that turns a switch. What cannot be changed so is said
in words, with its place.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from libcst import ParserSyntaxError

from floorit.fixes import ALL
from floorit.fixes.values import Value, spelled
from floorit.report.model import Report
from floorit.scan.edits import Edit, remove, replace, set_argument
from floorit.scan.rewrite import difference, rewritten
from floorit.scan.source import Source, Unreadable, argument, has_stars, is_constant, last_word, read
from floorit.tune.told import Told

# fix -> argument of DataLoader
_OF_LOADER = {
    "workers": "num_workers",
    "prefetch": "prefetch_factor",
    "persistent": "persistent_workers",
    "pin": "pin_memory",
    "in-order": "in_order",
    "context": "multiprocessing_context",
}
_POSITIONS = {"num_workers": 5, "pin_memory": 7}  # of DataLoader's arguments, where people give them without a name
_SWITCHES = {"cudnn-benchmark": "torch.backends.cudnn.benchmark"}  # fix -> what is assigned to
_FUSABLE = ("Adam", "AdamW", "SGD", "Adagrad")
_ANOMALY = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_MADE_AT = "num_workers"  # the setting whose place is that of the loader


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """All fixes of a stack, in the source."""

    diff: str  # as `git apply` takes it, from the root of the repository
    told: list[Told]


class _ByHand(Exception):
    """Why, and what, a person has to do."""

    def __init__(self, words: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(words)
        self.words, self.file, self.line = words, file, line


def make(stack: dict[str, Value], report: Report, files: Iterable[str]) -> Patch:
    """Of a program as it ran untouched, and the files of its own that it was seen in."""
    project = _Project(report, files)
    edits: dict[Path, list[Edit]] = defaultdict(list)
    told = []
    for code, value in stack.items():
        try:
            source, node, edit = project.change(code, value)
        except _ByHand as by_hand:
            told.append(Told(code=code, value=value, file=by_hand.file, line=by_hand.line, words=by_hand.words))
        else:
            edits[source.path].append(edit)
            told.append(Told(code=code, value=value, file=str(source.path), line=getattr(node, "lineno", None)))
    texts = {source.path: source.text for source in project.sources}
    diffs = ""
    for path, own in sorted(edits.items()):
        try:
            diffs += difference(texts[path], rewritten(texts[path], own), _name(path))
        except ParserSyntaxError as error:  # of a Python that LibCST does not know yet
            words = f"the file cannot be changed: {error.message}"
            told = [msgspec.structs.replace(t, words=words) if t.file == str(path) and not t.words else t for t in told]
    return Patch(diff=diffs, told=told)


class _Project:
    def __init__(self, report: Report, files: Iterable[str]) -> None:
        self._command = report.program.command
        self._loader_at = next((s.set_at for s in report.settings if s.name == _MADE_AT), None)
        names = {*files, *([self._loader_at.file] if self._loader_at is not None else [])}
        self.sources = [source for name in sorted(names) if (source := _read(name)) is not None]

    def change(self, code: str, value: Value) -> tuple[Source, ast.AST, Edit]:
        """The edit that a fix is, with its place."""
        if code in _OF_LOADER:
            return self._of_loader(_OF_LOADER[code], value)
        if code == "fused":
            return self._of_optimizer(value)
        if code == "anomaly" and value is False:
            return self._of_anomaly()
        if code in _SWITCHES:
            return self._of_switch(_SWITCHES[code], value)
        raise _ByHand(f"{_summary(code)}: docs/fixes.md says how")

    def _of_loader(self, name: str, value: Value) -> tuple[Source, ast.AST, Edit]:
        at = self._loader_at
        if at is None:
            raise _ByHand(f"give the DataLoader {name}={_literal(value)}")
        source = next((s for s in self.sources if str(s.path) == at.file), None)
        calls = [c for c in source.all(ast.Call) if _is_at(c, at.line)] if source is not None else []
        calls = [call for call in calls if last_word(call.func).endswith("DataLoader")]
        words = f"give the DataLoader {name}={_literal(value)}"
        if source is None or len(calls) != 1 or has_stars(calls[0]):
            raise _ByHand(words, at.file, at.line)
        (call,) = calls
        position = _POSITIONS.get(name)
        if position is not None and position < len(call.args):
            return source, call, replace(call.args[position], _literal(value))
        given = argument(call, name)
        if given is None or isinstance(given, ast.Constant):
            return source, call, set_argument(call, name, _literal(value))
        return self._of_argument(last_word(given), value, _ByHand(words, at.file, call.lineno))

    def _of_argument(self, dest: str, value: Value, otherwise: _ByHand) -> tuple[Source, ast.AST, Edit]:
        """The default of the program's own argument that a call is given."""
        found = [(source, call, flag) for source in self.sources for call, flag in _declared(source, dest)]
        if len(found) != 1:
            raise otherwise
        source, call, flag = found[0]
        if any(word == flag or word.startswith(f"{flag}=") for word in self._command):
            raise _ByHand(f"type {flag} {spelled(value)} in the command", str(source.path), call.lineno)
        return source, call, set_argument(call, "default", _literal(value))

    def _of_optimizer(self, value: Value) -> tuple[Source, ast.AST, Edit]:
        calls = [(source, call) for source in self.sources for call in source.all(ast.Call)]
        found = [(source, call) for source, call in calls if _is_fusable(source.name(call.func))]
        if len(found) != 1 or has_stars(found[0][1]):
            raise _ByHand(f"give the optimizer fused={_literal(value)}")
        source, call = found[0]
        return source, call, set_argument(call, "fused", _literal(value))

    def _of_anomaly(self) -> tuple[Source, ast.AST, Edit]:
        for source in self.sources:
            for call in source.all(ast.Call):
                if source.name(call.func) in _ANOMALY and call.args and is_constant(call.args[0], True):
                    statement = source.statement(call)
                    if isinstance(statement, ast.Expr) and statement.value is call:
                        return source, call, remove(statement)
                    return source, call, replace(call.args[0], "False")
        raise _ByHand("take torch.autograd.set_detect_anomaly(True), or detect_anomaly(), out")

    def _of_switch(self, name: str, value: Value) -> tuple[Source, ast.AST, Edit]:
        for source in self.sources:
            for statement in source.all(ast.Assign):
                if any(source.name(target) == name for target in statement.targets):
                    return source, statement, replace(statement.value, _literal(value))
        raise _ByHand(f"put {name} = {_literal(value)} before the training loop")


def _read(name: str) -> Source | None:
    try:
        return read(Path(name)) if name.endswith(".py") else None
    except Unreadable:
        return None


def _declared(source: Source, dest: str) -> Iterator[tuple[ast.Call, str]]:
    """Calls of `add_argument` that make an attribute of that name, with the flag that is typed."""
    for call in source.all(ast.Call):
        if last_word(call.func) != "add_argument" or has_stars(call):
            continue
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        long = [flag for flag in flags if flag.startswith("--")]
        named = argument(call, "dest")
        made = named.value if isinstance(named, ast.Constant) else long[0][2:].replace("-", "_") if long else None
        if long and made == dest:
            yield call, long[0]


def _is_fusable(name: str) -> bool:
    return name.startswith("torch.optim.") and name.rpartition(".")[2] in _FUSABLE


def _is_at(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _literal(value: Value) -> str:
    return repr(value)


def _summary(code: str) -> str:
    return next(fix.summary for fix in ALL if fix.code == code)


def _name(path: Path) -> str:
    """From the root of its repository, or from where we are."""
    root = next((folder for folder in path.parents if (folder / ".git").exists()), Path.cwd())
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
