"""A setting of the program's own, turned: by a word of its command, or in the text of the file that gives its value.

Some fixes are the program's own affair: how often its loop evaluates, or which of two branches a step takes. Where it
has a setting for that, and reading its source has found it, the fix is that setting with another value.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from floorit.declared import Control, Value, edit
from floorit.fixes import ALL
from floorit.fixes.fix import Fix, Known
from floorit.scan.edits import replace
from floorit.scan.source import Source, Unreadable, argument, has_stars, is_constant, last_word, read

_PYTHON = ".py"
_OPTION = re.compile(r"-+[A-Za-z]")


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
        """For the command line; none where no option gives the value."""
        option, call = _defined(self.control)
        if option and not option.startswith("-"):
            return [f"{option}={_word(self.value)}"]
        if not option or self.value is None:
            return []
        takes_value = not isinstance(self.value, bool) or (call is not None and argument(call, "type") is not None)
        return [option, str(self.value)] if takes_value else _switch(option, self.value is True, call)

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
    cannot be changed where it stands."""
    if turned.words:
        return substitute(command, turned.words), dict(texts)
    file = turned.control.file
    text = turned.text(texts.get(file))
    return (command, {**texts, file: text}) if text is not None else None


def reached(turned: Iterable[Turned], commands: Iterable[list[str]]) -> bool:
    """Whether processes of the program were started with the words: a script may not pass them on."""
    words = [word for one in turned for word in one.words]
    return not words or any(all(word in command for word in words) for command in commands)


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
        if isinstance(default, ast.Constant) and _is_it(default, control):
            yield default
            return
    for node in source.all(ast.Constant):
        if node.lineno == control.line and _is_it(node, control):
            yield node


def _is_it(node: ast.Constant, control: Control) -> bool:
    return type(node.value) is type(control.value) and node.value == control.value


def _word(value: Value) -> str:
    """As files and commands write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _defined(control: Control) -> tuple[str, ast.Call | None]:
    """The option as it is typed, and the call that defines it: `--eval_every`, where its name alone may mean
    `--eval-every`."""
    source = _source(control.file) if control.option and control.file.endswith(_PYTHON) else None
    for call in source.all(ast.Call) if source is not None else ():
        if call.lineno == control.line and last_word(call.func) == "add_argument" and not has_stars(call):
            flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            return next((flag for flag in flags if flag.startswith("--")), control.option), call
    return control.option, None


def _switch(option: str, on: bool, call: ast.Call | None) -> list[str]:
    """A switch on the command line; no words where it cannot be typed that way."""
    action = argument(call, "action") if call is not None else None
    if action is not None and last_word(action) == "BooleanOptionalAction":
        return [option if on else f"--no-{option.removeprefix('--')}"]
    turns_off = is_constant(action, "store_false") if action is not None else False
    return [option] if on is not turns_off else []


def _source(file: str, text: str | None = None) -> Source | None:
    try:
        return read(Path(file), text)
    except Unreadable:
        return None


def unheard(turned: Iterable[Turned]) -> str:
    """Why it was not in force, where the words did not get there."""
    words = shlex.join(word for one in turned for word in one.words)
    return f"the program was not given {words}, which the command ends with"


# -- words of a command -----------------------------------------------------------------------------------------------


def substitute(command: list[str], words: list[str]) -> list[str]:
    """The command with each `--option value` or `key=value` in place of what it says of that; else at its end."""
    groups: list[list[str]] = []
    for word in words:
        if not groups or _is_option(word) or ("=" in word and not groups[-1][0].startswith("-")):
            groups.append([])
        groups[-1].append(word)
    for group in groups:
        command = _with_option(command, group)
    return command


def with_copies(command: list[str], copies: Mapping[str, Path]) -> list[str]:
    """The command with the copies in place of the files that it names."""
    return [_with_copy(word, copies) for word in command]


def names(command: list[str], file: str) -> bool:
    """Whether the command can be given a copy of a file: where it names it, and it is no source, which has others
    beside it."""
    return not file.endswith(_PYTHON) and with_copies(command, {file: Path("copy")}) != command


def _with_copy(word: str, copies: Mapping[str, Path]) -> str:
    option, is_assignment, value = word.rpartition("=")
    for file, copy in copies.items():
        if value and os.path.realpath(value) == os.path.realpath(file):
            return f"{option}{is_assignment}{copy}"
    return word


def _with_option(command: list[str], words: list[str]) -> list[str]:
    first, *values = words
    key, is_assignment, _ = first.partition("=")
    for at, word in enumerate(command):
        if is_assignment and not values and word.startswith(f"{key}="):
            return [*command[:at], first, *command[at + 1 :]]
        if not is_assignment and word == first:
            rest = command[at + 1 :]
            own = next((n for n, other in enumerate(rest) if _is_option(other)), len(rest))
            return [*command[:at], *words, *rest[min(own, len(values)) :]]
        if not is_assignment and len(values) == 1 and word.startswith(f"{first}="):
            return [*command[:at], f"{first}={values[0]}", *command[at + 1 :]]
    return [*command, *words]


def _is_option(word: str) -> bool:
    """And no number that is less than zero."""
    return bool(_OPTION.match(word))
