"""From what a run's processes noted to what was declared: reads the configuration files, keeps only settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from floorit.declared import By, Declaration, Told, Value
from floorit.declared.files import Entry, Unreadable, entries, plain
from floorit.events import Process
from floorit.record.aliases import LARGEST, meaning

# A mapping below one of these says that it is wanted: fp16 = dict(loss_scale=512.0).
_ON_BY_BEING_THERE = ("fp16", "bf16", "amp")
LONGEST = 40  # characters of a value: longer is no setting


def gather(processes: Iterable[Process], shown: Mapping[str, Path] = MappingProxyType({})) -> Told:
    """What the files and arguments of a run declare, as the files are now; it was shown others in place of some."""
    declarations: list[Declaration] = []
    unread: dict[str, str] = {}
    seen: set[str] = set()
    for process in processes:
        for note in [*process.configs, *_named(process)]:
            path = str(note["path"])
            if path not in seen:
                seen.add(path)
                try:
                    declarations += _of_file(Path(path), note, shown.get(os.path.realpath(path), Path(path)))
                except (OSError, Unreadable, UnicodeDecodeError) as error:
                    unread[path] = getattr(error, "strerror", None) or str(error)
        declarations += _of_arguments(process)
    return Told(declarations=list(dict.fromkeys(declarations)), unread=unread)


def _named(process: Process) -> Iterator[dict[str, Any]]:
    """Files of settings in Python that its command names: programs run or import them, which nobody notes."""
    words, began = [str(word) for word in process.facts.get("argv") or []], process.facts.get("wall")
    places = [at for at, word in enumerate(words) if at and word.endswith(".py")]
    if places and "-m" not in words[: places[0]]:
        del places[0]  # the program itself
    for at in places:
        path = Path(str(process.facts.get("cwd") or "")) / words[at].rpartition("=")[2]
        try:
            state = path.stat()
        except OSError:
            continue
        if state.st_size <= LARGEST and (began is None or state.st_mtime <= began):
            yield {"path": str(path), "size": state.st_size, "modified": state.st_mtime_ns}


def _of_file(path: Path, note: dict[str, Any], text: Path) -> list[Declaration]:
    """What the program has read there; it stands in `text`."""
    state = text.stat()
    if state.st_size > LARGEST:
        raise Unreadable("it has grown too large to be a configuration")
    if (state.st_size, state.st_mtime_ns) != (note["size"], note["modified"]):
        raise Unreadable("it was changed after the program had read it")
    found = entries(text.read_text(encoding="utf-8"), path.suffix)
    made = (_declaration(entry, path, found) for entry in found)
    return [declaration for declaration in made if declaration is not None]


def _declaration(entry: Entry, path: Path, all_of_them: list[Entry]) -> Declaration | None:
    value: Value = entry.value
    if entry.holds_more:
        meant = meaning(entry.key)
        below = [other for other in all_of_them if other.key.startswith(f"{entry.key}.")]
        if meant is None or meant[2] not in _ON_BY_BEING_THERE or any(meaning(other.key) == meant for other in below):
            return None
        value = True
    return _declare(entry.key, value, "file", f"{path}:{entry.line}")


def _declare(key: str, value: Value, by: By, at: str) -> Declaration | None:
    """The declaration that a key and its value make, if they mean a setting."""
    meant = meaning(key)
    if meant is None or (isinstance(value, str) and len(value) > LONGEST):
        return None
    setting, scope, name = meant
    return Declaration(setting=setting, scope=scope, key=name, value=value, by=by, at=at)


def _of_arguments(process: Process) -> list[Declaration]:
    if not process.arguments:
        return _of_words([str(word) for word in process.facts.get("argv") or []])
    found = []
    for note in process.arguments:
        value, option = note["value"], note["option"]
        if note["given"]:
            found.append(_declare(str(note["key"]), value, "argument", f"{option} on the command line"))
        elif value:  # a switch that is not given declares nothing
            found.append(_declare(str(note["key"]), value, "default", f"default of {option}"))
    return [declaration for declaration in found if declaration is not None]


def _of_words(words: list[str]) -> list[Declaration]:
    """Arguments of a program that does not use argparse."""
    found = [_declare(name, value, "argument", f"{option} on the command line") for name, option, value in given(words)]
    return [declaration for declaration in found if declaration is not None]


def given(words: list[str]) -> Iterator[tuple[str, str, Value]]:
    """Name, option and value of arguments: `--workers 8`, `--workers=8`, `data.workers=8`, `--no-amp`."""
    for word, following in pairwise([*words, "--"]):
        key, has_value, text = word.lstrip("+").partition("=")
        name, value = key.lstrip("-"), plain(text)
        if not has_value:
            if not key.startswith("--"):
                continue
            is_switch = following.startswith("--")
            negated = is_switch and name.startswith(("no-", "no_"))
            name = name[3:] if negated else name
            value = not negated if is_switch else plain(following)
        if value is not None:
            yield name, key, value
