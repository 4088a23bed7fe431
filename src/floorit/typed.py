"""The words of a command: an option of it with another value, another file in place of one that it names."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path

from floorit.declared import Value
from floorit.declared.edit import spelled
from floorit.declared.files import plain

_OPTION = re.compile(r"-+[A-Za-z]")


def retyped(command: list[str], option: str, was: Value, value: Value) -> list[str] | None:
    """The command with that value wherever it gives the option; None where it gives it in no way that can be turned, or
    not what it `was`.

    The last that is given is in force: the others are changed with it, as they are no longer meant either.
    """
    made, found = list[str](), list[Value]()
    words = iter(command)
    for word in words:
        key, has_value, text = word.partition("=")
        if key.lstrip("+") != option:
            made.append(word)
        elif has_value:
            found.append(plain(text))
            made.append(f"{key}={spelled(value, text)}")
        elif isinstance(was, bool) and (switched := _switched(option, was)) is not None:
            following = next(words, None)
            found.append(was)
            if following is not None and plain(following) is was:
                made += [word, spelled(value, following)]
            else:
                made += [switched, *([following] if following is not None else [])]
        else:
            following = next(words, "")
            found.append(plain(following))
            made += [word, spelled(value, following)]
    is_that = bool(found) and _is(found[-1], was)
    return made if is_that and made != command else None


def _switched(option: str, was: bool) -> str | None:
    """What stands for it the other way, without a value: of a switch that is on, nothing but itself is known."""
    return option if was else _without_no(option)


def _without_no(option: str) -> str | None:
    return f"--{option[5:]}" if option.startswith(("--no-", "--no_")) else None


def is_given(flags: Collection[str], command: list[str], others: Collection[str] = ()) -> bool:
    """Whether a command gives an option, by one of its flags or the beginning of one that is none of the others."""
    given = [word.partition("=")[0] for word in command]
    starts = [word for word in given if word.startswith("--") and len(word) > len("--") and word not in others]
    return any(flag in given or any(flag.startswith(start) for start in starts) for flag in flags)


def gives(command: list[str], option: str, value: Value) -> bool:
    """Whether a command gives an option that value."""
    switch = (_without_no(option) or option) if value is True else None
    for word, following in pairwise([*command, ""]):
        key, has_value, text = word.partition("=")
        given = plain(text if has_value else following)
        if (word == switch and given is not False) or (key.lstrip("+") == option and _is(given, value)):
            return True
    return False


def _is(one: Value, other: Value) -> bool:
    return one == other and type(one) is type(other)


def has(command: list[str], words: list[str]) -> bool:
    """Whether these words stand in it, one after the other."""
    return any(command[at : at + len(words)] == words for at in range(len(command)))


# -- words of one's own ------------------------------------------------------------------------------------------------


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


# -- files -------------------------------------------------------------------------------------------------------------


def with_copies(command: list[str], copies: Mapping[str, Path]) -> list[str]:
    """The command with the copies in place of the files that it names."""
    return [_with_copy(word, copies) for word in command]


def names(command: list[str], file: str) -> bool:
    """Whether the command can be given a copy of a file: where it names it, and it is no source, which has others
    beside it."""
    return not file.endswith(".py") and with_copies(command, {file: Path("copy")}) != command


def _with_copy(word: str, copies: Mapping[str, Path]) -> str:
    option, is_assignment, value = word.rpartition("=")
    for file, copy in copies.items():
        if value and os.path.realpath(value) == os.path.realpath(file):
            return f"{option}{is_assignment}{copy}"
    return word
