"""floorit.patch: what was proven, as a change to the source at the lines that decide it.

A change is made where the program says the value itself: in the call that makes the loader or the optimizer, in the
default of the argument that the call is given, in the statement that turns a switch; or where a configuration file
says it, and that is what was in force. What cannot be changed so is said in words, with its place.
"""

from __future__ import annotations

import ast
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from libcst import ParserSyntaxError

from floorit import turning
from floorit.declared import edit as configuration
from floorit.fixes import ALL
from floorit.fixes.fix import Fix
from floorit.fixes.values import Value, spelled
from floorit.report.model import Report
from floorit.scan.edits import Edit, remove, replace, set_argument
from floorit.scan.rewrite import difference, rewritten
from floorit.scan.source import Source, Unreadable, argument, has_stars, is_constant, last_word, read
from floorit.tune.told import Told
from floorit.turning import Turned

# fix -> argument of DataLoader
_OF_LOADER = {
    "workers": "num_workers",
    "prefetch": "prefetch_factor",
    "persistent": "persistent_workers",
    "pin": "pin_memory",
    "in-order": "in_order",
    "context": "multiprocessing_context",
    "batch": "batch_size",
}
_POSITIONS = {
    "batch_size": 1,
    "num_workers": 5,
    "pin_memory": 7,
}  # of DataLoader's arguments, where people give them without a name
_SWITCHES = {"cudnn-benchmark": "torch.backends.cudnn.benchmark"}  # fix -> what is assigned to
_OF_DDP = {
    "static-graph": "static_graph",
    "bucket-view": "gradient_as_bucket_view",
    "bucket-mb": "bucket_cap_mb",
}  # fix -> argument of DistributedDataParallel
_DDP = "torch.nn.parallel.DistributedDataParallel"
_TYPED = " on the command line"  # where a setting is said to be declared by a word that was typed
_FUSABLE = ("Adam", "AdamW", "SGD", "Adagrad")
_ANOMALY = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
# Arguments that are its own, and not for what it calls.
_OF_CHECKPOINT = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop")
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


class _Entry(msgspec.Struct, frozen=True):
    """A value in a configuration file, and what it is to be."""

    path: Path
    lineno: int
    setting: str
    value: Value


_Place: TypeAlias = "tuple[Source, ast.AST, Edit] | _Entry"


def make(
    stack: dict[str, Value],
    report: Report,
    files: Iterable[str],
    typed: str | None = None,
    turned: Sequence[Turned] = (),
) -> Patch:
    """Of a program as it ran untouched, and the files of its own that it was seen in.

    `typed` are the words by which the program itself is told the size of its batches, where it was; `turned` are the
    settings of its own that some of the fixes are.
    """
    project = _Project(report, files, typed, turned)
    edits: dict[Path, list[Edit]] = defaultdict(list)
    configs = dict[Path, tuple[str, str]]()  # as they are, and as they are to be
    told = []
    for code, value in stack.items():
        value = project.settled(code, value)
        for change in project.changes(code, value):
            try:
                place = change()
                if isinstance(place, _Entry):
                    _enter(configs, place)
            except _ByHand as by_hand:
                told.append(Told(code=code, value=value, file=by_hand.file, line=by_hand.line, words=by_hand.words))
                continue
            if isinstance(place, _Entry):
                told.append(Told(code=code, value=value, file=str(place.path), line=place.lineno))
            else:
                source, node, edit = place
                edits[source.path].append(edit)
                told.append(Told(code=code, value=value, file=str(source.path), line=getattr(node, "lineno", None)))
    if "batch" in stack:
        told.append(Told(code="batch", value=stack["batch"], words=project.rate(stack["batch"])))
    texts = {source.path: source.text for source in project.sources}
    diffs = "".join(difference(*texts, _name(path)) for path, texts in sorted(configs.items()))
    for path, own in sorted(edits.items()):
        try:
            changed = rewritten(texts[path], own)
            told = [_checked(one, path, texts[path] != changed) for one in told]
            diffs += difference(texts[path], changed, _name(path))
        except ParserSyntaxError as error:  # of a Python that LibCST does not know yet
            words = f"the file cannot be changed: {error.message}"
            told = [msgspec.structs.replace(t, words=words) if t.file == str(path) and not t.words else t for t in told]
    return Patch(diff=diffs, told=told)


def _checked(told: Told, path: Path, is_changed: bool) -> Told:
    """By hand, where the file came out as it was."""
    if is_changed or told.words or told.file != str(path):
        return told
    return msgspec.structs.replace(told, words=f"{_summary(told.code)}: docs/fixes.md says how")


def _enter(configs: dict[Path, tuple[str, str]], place: _Entry) -> None:
    """Change the text of a configuration file further."""
    words = f"set {place.setting} to {spelled(place.value)} there"
    try:
        own, before = configs.get(place.path) or (place.path.read_bytes().decode(),) * 2
    except (OSError, UnicodeDecodeError):
        raise _ByHand(words, str(place.path), place.lineno) from None
    after = configuration.with_value(before, place.path.suffix, place.lineno, place.setting, place.value)
    if after is None:
        raise _ByHand(words, str(place.path), place.lineno)
    configs[place.path] = own, after


class _Project:
    def __init__(self, report: Report, files: Iterable[str], typed: str | None, turned: Sequence[Turned]) -> None:
        self._of_size, self._own = typed, turned
        self._settings = {setting.name: setting for setting in report.settings}
        self._command, self._findings = report.program.command, report.findings
        self._loader_at = next((s.set_at for s in report.settings if s.name == _MADE_AT), None)
        names = {*files, *([self._loader_at.file] if self._loader_at is not None else [])}
        self.sources = [source for name in sorted(names) if (source := _read(name)) is not None]

    def rate(self, size: Value) -> str:
        """The learning rate that goes with a size of batches."""
        own, optimizer = (self._settings.get(name) for name in ("batch_size", "optimizer"))
        told = "which the trials left as it is" if self._of_size is not None else "as in the trials"
        times = self.settled("batch", size)
        if own is None or not isinstance(own.actual, int) or not isinstance(times, int) or not own.actual:
            rule = "as many times for SGD as the batch, by the square root for Adam"
        else:
            rule = _rule(times / own.actual, str(optimizer.actual) if optimizer is not None else "")
        return f"the learning rate, {told}: {rule}"

    def settled(self, code: str, value: Value) -> Value:
        """A size of batches as a number, where it was so many times the program's own."""
        own = self._settings.get("batch_size")
        if code == "batch" and isinstance(value, str) and own is not None and isinstance(own.actual, int):
            return own.actual * int(value[1:])
        return value

    def changes(self, code: str, value: Value) -> list[Callable[[], _Place]]:
        """What makes each of the edits that a fix is."""
        own = [partial(self._of_own, one) for one in self._own if one.code == code]
        return [*own] or [partial(self._change, code, value)]

    def _change(self, code: str, value: Value) -> _Place:
        """The edit that a fix is, with its place."""
        if code == "batch" and self._of_size is not None:
            raise _ByHand(f"type {self._of_size} in the command")
        if code in _OF_LOADER:
            return self._of_loader(code, _OF_LOADER[code], value)
        if code == "fused":
            return self._of_optimizer(value)
        if code in _OF_DDP:
            return self._of_ddp(code, value)
        if code == "set-to-none" and value is True:
            return self._of_clearing()
        if code == "anomaly" and value is False:
            return self._of_anomaly()
        if code == "recompute" and value is False:
            return self._of_recompute()
        if code in _SWITCHES:
            return self._of_switch(code, _SWITCHES[code], value)
        return self._of_config(code, value, self._in_words(code))

    def _in_words(self, code: str) -> _ByHand:
        """What a fix is, at the line of the cost that it answers."""
        words = f"{_summary(code)}: docs/fixes.md says how"
        lines = [line for found in self._findings if code in {fix.code for fix in found.fixes} for line in found.where]
        return _ByHand(words, lines[0].file, lines[0].line) if lines else _ByHand(words)

    def _of_own(self, turned: Turned) -> _Place:
        """A setting of the program's own, where its value stands."""
        control = turned.control
        if control.is_typed:
            raise _ByHand(f"type {shlex.join(turned.words)} in the command")
        source = self._source(control.file)
        if source is None:
            return _Entry(Path(control.file), control.line, control.name, turned.value)
        constant = turning.constant(source, control)
        if constant is not None:
            return source, constant, replace(constant, _literal(turned.value))
        words = f"set {control.name} to {_literal(turned.value)}"
        raise _ByHand(words, control.file, control.line)

    def _source(self, file: str) -> Source | None:
        """A file of the program's, whether or not it was seen at work; None where it is no Python."""
        found = next((source for source in self.sources if str(source.path) == file), None)
        if found is None and (found := _read(file)) is not None:
            self.sources.append(found)
        return found

    def _of_config(self, code: str, value: Value, otherwise: _ByHand) -> _Entry:
        entry = self._entry(code, value)
        if entry is None:
            raise otherwise
        return entry

    def _entry(self, code: str, value: Value) -> _Entry | None:
        """Where a file says the value that was in force; a word of the command is typed by hand."""
        setting = self._settings.get(_fix(code).setting or "")
        if setting is None or setting.declared_at is None or setting.declared != setting.actual:
            return None
        if type(setting.declared) is not type(value):  # a switch for half precision says no precision
            return None
        if setting.declared_at.endswith(_TYPED):
            raise _typed(setting.declared_at.removesuffix(_TYPED), value)
        file, _, line = setting.declared_at.rpartition(":")
        # else it is an argument's default
        return _Entry(Path(file), int(line), setting.name, value) if line.isdecimal() else None

    def _of_loader(self, code: str, name: str, value: Value) -> _Place:
        at = self._loader_at
        if at is None:
            return self._of_config(code, value, _ByHand(f"give the DataLoader {name}={_literal(value)}"))
        source = next((s for s in self.sources if str(s.path) == at.file), None)
        calls = [c for c in source.all(ast.Call) if _is_at(c, at.line)] if source is not None else []
        calls = [call for call in calls if last_word(call.func).endswith("DataLoader")]
        words = f"give the DataLoader {name}={_literal(value)}"
        if source is None or len(calls) != 1 or has_stars(calls[0]):
            return self._of_config(code, value, _ByHand(words, at.file, at.line))
        (call,) = calls
        position = _POSITIONS.get(name)
        is_placed = position is not None and position < len(call.args)
        given = call.args[position] if is_placed and position is not None else argument(call, name)
        if given is None or isinstance(given, ast.Constant):
            if given is not None and is_placed:
                return source, call, replace(given, _literal(value))
            return source, call, set_argument(call, name, _literal(value))
        by_hand = _ByHand(words, at.file, call.lineno)
        return self._entry(code, value) or self._of_argument(code, last_word(given), value, by_hand)

    def _of_argument(self, code: str, dest: str, value: Value, otherwise: _ByHand) -> tuple[Source, ast.AST, Edit]:
        """The default of the program's own argument that a call is given, where that was in force as it is."""
        found = [(source, call, flags) for source in self.sources for call, flags in _declared(source, dest)]
        if len(found) != 1:
            raise otherwise
        source, call, flags = found[0]
        if any(_says(word, flag) for flag in flags for word in self._command):
            raise _typed(flags[0], value, str(source.path), call.lineno)
        own, default = self._settings.get(_fix(code).setting or ""), argument(call, "default")
        actual = own.actual if own is not None else None
        if actual is not None and isinstance(default, ast.Constant) and default.value != actual:
            raise otherwise  # the program makes something else of it, as it does where ranks share a batch
        return source, call, set_argument(call, "default", _literal(value))

    def _of_only_call(
        self, code: str, calls: list[tuple[Source, ast.Call]], what: str, name: str, value: Value
    ) -> _Place:
        """An argument of a call, where the program has just one such."""
        words = f"give {what} {name}={_literal(value)}"
        if len(calls) != 1 or has_stars(calls[0][1]):
            at = [(str(source.path), call.lineno) for source, call in calls[:1]]
            raise _ByHand(words, *(at[0] if at else (None, None)))
        source, call = calls[0]
        given = argument(call, name)
        if given is not None and not isinstance(given, ast.Constant):
            return self._of_config(code, value, _ByHand(words, str(source.path), call.lineno))
        return source, call, set_argument(call, name, _literal(value))

    def _calls(self, is_meant: Callable[[Source, ast.Call], bool]) -> list[tuple[Source, ast.Call]]:
        return [(source, call) for source in self.sources for call in source.all(ast.Call) if is_meant(source, call)]

    def _of_optimizer(self, value: Value) -> _Place:
        calls = self._calls(lambda source, call: _is_fusable(source.name(call.func)))
        return self._of_only_call("fused", calls, "the optimizer", "fused", value)

    def _of_ddp(self, code: str, value: Value) -> _Place:
        calls = self._calls(lambda source, call: source.name(call.func) == _DDP)
        return self._of_only_call(code, calls, "DistributedDataParallel", _OF_DDP[code], value)

    def _of_clearing(self) -> _Place:
        """`zero_grad(set_to_none=False)`, wherever that is asked for."""
        calls = self._calls(lambda _, call: last_word(call.func) == "zero_grad" and _keeps_zeros(call))
        return self._of_only_call("set-to-none", calls, "zero_grad", "set_to_none", True)

    def _of_anomaly(self) -> _Place:
        calls = [(source, call) for source in self.sources for call in source.all(ast.Call)]
        calls = [(source, call) for source, call in calls if source.name(call.func) in _ANOMALY and call.args]
        found = [(source, call) for source, call in calls if is_constant(call.args[0], True)]
        words = "take torch.autograd.set_detect_anomaly(True), or detect_anomaly(), out"
        if len(found) == 1:
            source, call = found[0]
            statement = source.statement(call)
            if isinstance(statement, ast.Expr) and statement.value is call:
                return source, call, remove(statement)
            return source, call, replace(call.args[0], "False")
        return self._of_config("anomaly", False, _ByHand(words))

    def _of_recompute(self) -> _Place:
        """`checkpoint(part, x, use_reentrant=False)` becomes `part(x)`."""
        calls = [(source, call) for source in self.sources for call in source.all(ast.Call)]
        found = [(source, call) for source, call in calls if source.name(call.func) == _CHECKPOINT and call.args]
        if len(found) != 1 or any(given.arg is None for given in found[0][1].keywords):
            raise self._in_words("recompute")
        source, call = found[0]
        own = [given for given in call.keywords if given.arg not in _OF_CHECKPOINT]
        return source, call, replace(call, ast.unparse(ast.Call(call.args[0], call.args[1:], own)))

    def _of_switch(self, code: str, name: str, value: Value) -> _Place:
        each = [(source, statement) for source in self.sources for statement in source.all(ast.Assign)]
        found = [(source, a) for source, a in each if any(source.name(target) == name for target in a.targets)]
        found = [(source, a) for source, a in found if not is_constant(a.value, value)]  # those say so already
        if len(found) != 1:
            raise _ByHand(f"put {name} = {_literal(value)} before the training loop")
        source, statement = found[0]
        if not isinstance(statement.value, ast.Constant):
            words = f"set {name} = {_literal(value)}"
            return self._of_config(code, value, _ByHand(words, str(source.path), statement.lineno))
        return source, statement, replace(statement.value, _literal(value))


def _read(name: str) -> Source | None:
    try:
        return read(Path(name)) if name.endswith(".py") else None
    except Unreadable:
        return None


def _says(word: str, flag: str) -> bool:
    """Whether a word of the command is that flag, with its value or before it: `-b 8`, `-b8`, `--batch=8`."""
    is_short = not flag.startswith("--")
    return word == flag or word.startswith(f"{flag}=") or (is_short and word.startswith(flag) and word[2:].isdecimal())


def _declared(source: Source, dest: str) -> Iterator[tuple[ast.Call, list[str]]]:
    """Calls of `add_argument` that make an attribute of that name, with the flags that are typed, a long one first."""
    for call in source.all(ast.Call):
        if last_word(call.func) != "add_argument" or has_stars(call):
            continue
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        long = [flag for flag in flags if flag.startswith("--")]
        named = argument(call, "dest")
        made = named.value if isinstance(named, ast.Constant) else long[0][2:].replace("-", "_") if long else None
        if long and made == dest:
            yield call, sorted(flags, key=lambda flag: not flag.startswith("--"))


def _is_fusable(name: str) -> bool:
    return name.startswith("torch.optim.") and name.rpartition(".")[2] in _FUSABLE


def _keeps_zeros(call: ast.Call) -> bool:
    given = argument(call, "set_to_none")
    return given is not None and is_constant(given, False)


def _is_at(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _literal(value: Value) -> str:
    return repr(value)


def _rule(times: float, optimizer: str) -> str:
    """By how many times the learning rate goes with batches so many times as large (record/overrides/rates.py)."""
    if "SGD" in optimizer:
        return f"{times:.3g} times for SGD"
    if "Adam" in optimizer:
        return f"{times**0.5:.3g} times for Adam and its kin"
    return f"{times:.3g} times for SGD, {times**0.5:.3g} times for Adam and its kin"


def _typed(flag: str, value: Value, file: str | None = None, line: int | None = None) -> _ByHand:
    """A word of the command decides it."""
    between = " " if flag.startswith("-") else "="
    return _ByHand(f"type {flag}{between}{spelled(value)} in the command", file, line)


def _summary(code: str) -> str:
    return _fix(code).summary


def _fix(code: str) -> Fix:
    return next(fix for fix in ALL if fix.code == code)


def _name(path: Path) -> str:
    """From the root of its repository, or from where we are."""
    root = next((folder for folder in path.parents if (folder / ".git").exists()), Path.cwd())
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
