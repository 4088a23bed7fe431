"""A setting of the program's own, turned: by a word of its command, or in the text of the file that gives its value.

Some fixes are the program's own affair: how often its loop evaluates, or which of two branches a step takes. Where it
has a setting for that, and reading its source has found it, the fix is that setting with another value.
"""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from floorit import typed
from floorit.declared import Control, Value, edit
from floorit.events import Process
from floorit.fixes import ALL
from floorit.fixes.fix import Fix, Known
from floorit.scan.edits import replace
from floorit.scan.source import Source, Unreadable, argument, has_stars, is_constant, last_word, read

_PYTHON = ".py"


class Turned(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, and what it is to be."""

    code: str  # of the fix that it is
    control: Control
    value: Value

    @property
    def place(self) -> str:
        """Where its value stands."""
        return f"{self.control.file}:{self.control.line}" if self.control.file else "the command"

    @property
    def now(self) -> str:
        """What it is, as the program has it."""
        return f"{self.control.name or self.control.option}: {_word(self.control.value)}".lstrip(": ")

    @property
    def said(self) -> str:
        """In words, with its place."""
        return f"the program's own setting {self.now} -> {_word(self.value)}, in {self.place}"

    @property
    def words(self) -> list[str]:
        """For the command line; none where the program defines no option that can be typed so."""
        own = self.control
        if own.is_typed:
            return (
                [own.option, _word(self.value)] if own.option.startswith("-") else [f"{own.option}={_word(self.value)}"]
            )
        call = _definition(own)
        if call is None or self.value is None or last_word(argument(call, "type") or call.func) == "bool":
            return []  # whatever word is given to bool(), it is true
        if not isinstance(self.value, bool) or argument(call, "type") is not None:
            return [_flag(call), str(self.value)]
        return _switch(_flag(call), self.value, call)

    def text(self, before: str | None = None) -> str | None:
        """Of its file (`before`, where it has been changed already) with that value; None where it can't be put in."""
        path = Path(self.control.file)
        if path.suffix == _PYTHON:
            return self._source_text(before)
        try:
            before = before or path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None
        own = self.control
        return edit.with_value(before, path.suffix, own.line, own.name, self.value, was=own.value)

    def _source_text(self, before: str | None) -> str | None:
        from floorit.scan.rewrite import rewritten  # LibCST takes 0.2 s to import, which few need

        source = _source(self.control.file, before)
        node = constant(source, self.control) if source is not None else None
        return rewritten(source.text, [replace(node, repr(self.value))]) if source is not None and node else None


def turn(fix: Fix, value: Value, controls: Iterable[Control]) -> list[Turned]:
    """What a fix of that value is: each of the numbers behind it that has a name of its own, or else the first.

    Of a switch only the first is turned: the others may be what it takes besides. A name that is given a value in
    several places, of which reading can't tell the one in force, is turned in all of them.
    """
    named = dict[str, list[Control]]()
    for control in controls:
        if control.turned(value) is not None:
            named.setdefault(control.name, []).append(control)
    turned: list[Control] = []
    for name, places in named.items():
        is_switch = isinstance(places[0].value, bool)
        if is_switch and len({place.value for place in places}) > 1:
            continue  # the other way is not the same in all
        if not turned or (name and not is_switch):
            turned += _in_force(places) if name else places[:1]
    return [Turned(code=fix.code, control=control, value=control.turned(value)) for control in turned]


def _in_force(places: list[Control]) -> list[Control]:
    """As they are turned together: an option that was typed would outdo the files, where its default does not."""
    if all(place.file.endswith(_PYTHON) or place.is_typed for place in places):
        return places
    return [place if place.is_typed else msgspec.structs.replace(place, option="") for place in places]


def made(turned: Turned, command: list[str], texts: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """A command, and the texts that it is to find in place of its files', with one setting turned; None where its value
    cannot be changed where it stands, or is another by now."""
    own, words = turned.control, turned.words
    if own.is_typed:
        changed = typed.retyped(command, own.option, own.value, turned.value)
        return (changed, dict(texts)) if changed is not None else None
    if is_outdone(turned, command):
        return None
    if words:
        is_there = _is_default(own)
        return ([*command, *words], dict(texts)) if is_there else None
    file = os.path.realpath(own.file)
    text = turned.text(texts.get(file))
    return (command, {**texts, file: text}) if text is not None else None


def is_outdone(turned: Turned, command: list[str]) -> bool:
    """Whether the command itself gives an option whose default is to be turned: by a short form of it, say."""
    own = turned.control
    if not own.option or own.is_typed or (call := _definition(own)) is None:
        return False
    source, flags = _source(own.file), _flags(call)
    every = [flag for one in (source.calling("add_argument") if source is not None else ()) for flag in _flags(one)]
    return typed.is_given(flags, command, [flag for flag in every if flag not in flags])


def why_not(turned: Iterable[Turned], processes: Sequence[Process], shown: Mapping[str, Path]) -> str | None:
    """Why settings were not in force in a run's processes, some files shown to them in place of others; None where all
    of them were, as far as that is seen."""
    return next((said for one in turned if (said := _why_not(one, processes, shown)) is not None), None)


def _why_not(turned: Turned, processes: Sequence[Process], shown: Mapping[str, Path]) -> str | None:
    if turned.words:
        if any(_is_told(turned, process.facts.get("argv") or []) for process in processes):
            return None
        return f"the program was not given {shlex.join(turned.words)}"  # a script may pass nothing on
    file = os.path.realpath(turned.control.file)
    if file.endswith(_PYTHON):
        return None  # nobody notes which source is imported
    state = shown[file].stat() if file in shown else None
    met = [note for process in processes for note in process.configs if _is_it_or_its_copy(note, file, shown)]
    if state is None or not met:
        return f"the program was not seen to read {turned.place}"
    if any((note["size"], note["modified"]) != (state.st_size, state.st_mtime_ns) for note in met):
        return f"a process of the program found {turned.control.file} as it is"
    return None


def _is_told(turned: Turned, command: list[str]) -> bool:
    return typed.has(command, turned.words) or typed.gives(command, turned.words[0], turned.value)


def _is_it_or_its_copy(note: Mapping[str, Any], file: str, shown: Mapping[str, Path]) -> bool:
    path = os.path.realpath(str(note["path"]))
    return path == file or (file in shown and path == os.path.realpath(shown[file]))


def settings(known: Known) -> dict[str, list[Control]]:
    """By the code of the fix that is made with them: none where a framework has settings of its own for these."""
    if known.framework:
        return {}
    found = {fix.code: known.controls_of(fix) for fix in ALL if fix.by_setting}
    return {code: controls for code, controls in found.items() if controls}


def constant(source: Source, control: Control) -> ast.Constant | None:
    """What gives a setting its value in a source file; None where that is no constant, or may be one of several."""
    found = list(_constants(source, control))
    return found[0] if len(found) == 1 else None


def _constants(source: Source, control: Control) -> Iterator[ast.Constant]:
    """Of that value: the default of an option, or what stands at the line."""
    calls = [call for call in source.all(ast.Call) if call.lineno == control.line]
    for call in calls if control.option else ():
        default = argument(call, "default")
        if isinstance(default, ast.Constant) and _says(default, control):
            yield default
            return
    for node in source.all(ast.Constant):
        if node.lineno == control.line and _says(node, control):
            yield node


def _says(node: ast.Constant, control: Control) -> bool:
    return type(node.value) is type(control.value) and node.value == control.value


def _word(value: Value) -> str:
    """As files and commands write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _definition(control: Control) -> ast.Call | None:
    """The call that defines the option whose default it is, where a command that ends with the option gives it: not
    where words behind a name of a command belong to that."""
    source = _source(control.file) if control.option and control.file.endswith(_PYTHON) else None
    if source is None or any(source.calling("add_subparsers", "add_parser")):
        return None
    defining = (call for call in source.calling("add_argument") if call.lineno == control.line and not has_stars(call))
    return next((call for call in defining if _flags(call)), None)


def _flags(call: ast.Call) -> list[str]:
    """As the program defines them."""
    words = [one.value for one in call.args if isinstance(one, ast.Constant)]
    return [word for word in words if isinstance(word, str) and word.startswith("-")]


def _flag(call: ast.Call) -> str:
    """The one to type: `--eval_every`, where its name alone may mean `--eval-every`."""
    flags = _flags(call)
    return next((flag for flag in flags if flag.startswith("--")), flags[0])


def _is_default(control: Control) -> bool:
    """Whether the option still has that default."""
    source, call = _source(control.file), _definition(control)
    if control.value is False and call is not None and argument(call, "default") is None:
        return is_constant(argument(call, "action"), "store_true")
    if control.value is True and call is not None and argument(call, "default") is None:
        return is_constant(argument(call, "action"), "store_false")
    return source is not None and constant(source, control) is not None


def _switch(option: str, on: bool, call: ast.Call) -> list[str]:
    """A switch on the command line; no words where it cannot be typed that way."""
    action = argument(call, "action")
    if action is not None and last_word(action) == "BooleanOptionalAction":
        return [option if on else f"--no-{option.removeprefix('--')}"]
    wanted = "store_true" if on else "store_false"
    return [option] if is_constant(action, wanted) else []


def _source(file: str, text: str | None = None) -> Source | None:
    try:
        return read(Path(file), text)
    except Unreadable:
        return None
