"""Other entries of a configuration file, in a copy that the command names in place of the user's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from floorit.errors import UsageError
from floorit.typed import names

_ENTRY = re.compile(r"(?P<file>[^\s:={}]+\.(?:ya?ml|json)):(?P<key>[\w.-]+)=(?P<value>.*)", re.DOTALL)


class Entry(msgspec.Struct, frozen=True):
    """One entry of a file: `key` is dotted where it lies deeper."""

    file: str
    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.file}:{self.key}={self.value}"


def entry(text: str, command: list[str]) -> Entry | None:
    """The entry that `hyp.yaml:mosaic=0.5` means; None where it is an argument. The command must name the file."""
    found = _ENTRY.fullmatch(text)
    if found is None:
        return None
    made = Entry(found["file"], found["key"], _value(found["value"]))
    if not names(command, made.file):
        raise UsageError(f"--vary {text!r}: the command does not name {made.file}, so it cannot be given a copy")
    _set(_load(Path(made.file)), made)
    return made


def _value(text: str) -> Any:
    """What is typed, as a file would mean it: 1e-3 is a number, though YAML takes it for a word."""
    with suppress(ValueError):
        return json.loads(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def write_copies(entries: list[Entry], folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    """A copy of each file with its entries changed, of another text where it is to have one; where each is."""
    copies = dict[str, Path]()
    for number, file in enumerate(dict.fromkeys(entry.file for entry in entries)):
        whole = _load(Path(file), texts.get(os.path.realpath(file)))
        for one in entries:
            if one.file == file:
                _set(whole, one)
        copy = folder / str(number) / Path(file).name
        copy.parent.mkdir(parents=True, exist_ok=True)
        is_json = copy.suffix == ".json"
        copy.write_text(json.dumps(whole, indent=1) if is_json else yaml.safe_dump(whole, sort_keys=False))
        copies[file] = copy
    return copies


def _load(file: Path, text: str | None = None) -> Any:
    try:
        text = file.read_text() if text is None else text
        return json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _set(whole: Any, entry: Entry) -> None:
    """A key that is not there is more likely misspelt than new."""
    *outer, last = entry.key.split(".")
    for key in outer:
        whole = whole.get(key) if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or last not in whole:
        raise UsageError(f"{entry.file} has no entry {entry.key}")
    whole[last] = entry.value
