"""floorit.toml: what was proven for a program, to train with: fixes, and settings of the program's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from floorit.declared import Control
from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.fixes.values import Value, spelled
from floorit.turning import Turned

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "floorit.toml"


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is to have."""

    fixes: dict[str, Value] = {}
    settings: list[Turned] = []  # that some of the fixes are

    def but(self, fixes: dict[str, Value]) -> Recipe:
        """With other fixes besides, or of other values."""
        kept = [turned for turned in self.settings if turned.code not in fixes]
        return Recipe(fixes={**self.fixes, **fixes}, settings=kept)

    @property
    def applied(self) -> dict[str, Value]:
        """The fixes that floorit makes in the running program."""
        own = {turned.code for turned in self.settings}
        return {code: value for code, value in self.fixes.items() if code not in own}


class _Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One of the program's own as the file has it. Paths are from where the program is started."""

    fix: str
    was: bool | int | float | str
    value: bool | int | float | str
    name: str = ""
    option: str = ""
    file: str = ""
    line: int = 0


def write(path: Path, recipe: Recipe, comments: list[str]) -> None:
    """It, under what is to be said of it."""
    lines = [f"# {line}" for comment in comments for line in comment.splitlines()]
    lines += ["", "[fixes]", *_entries(recipe.fixes)]
    for turned in recipe.settings:
        own = msgspec.structs.asdict(_written(turned))
        lines += ["", "[[settings]]", *_entries({k: v for k, v in own.items() if v != ""})]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _entries(values: dict[str, Any]) -> Iterable[str]:
    return (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def _written(turned: Turned) -> _Setting:
    own = turned.control
    file = Path(own.file) if own.file else None
    inside = file.relative_to(Path.cwd()) if file is not None and file.is_relative_to(Path.cwd()) else file
    return _Setting(
        fix=turned.code,
        was=own.value,  # type: ignore[arg-type]
        value=turned.value,  # type: ignore[arg-type]
        name=own.name,
        option=own.option,
        file=str(inside or ""),
        line=own.line,
    )


def read(path: Path) -> Recipe:
    """What is in a file; UsageError where it cannot be read or names a fix that there is not."""
    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    fixes = whole.get("fixes")
    if not isinstance(fixes, dict):
        raise UsageError(f"{path} has no table [fixes]")
    try:
        settings = msgspec.convert(whole.get("settings", []), list[_Setting])
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: [[settings]]: {error}") from None
    stray = next((one.fix for one in settings if one.fix not in fixes), None)
    if stray is not None:
        raise UsageError(f"{path}: [[settings]] is of {stray}, which [fixes] does not have")
    return Recipe(
        fixes=asked.parse(f"{code}={spelled(value)}" for code, value in fixes.items()),
        settings=[_turned(one) for one in settings],
    )


def _turned(one: _Setting) -> Turned:
    file = str(Path(one.file).absolute()) if one.file else ""
    own = Control(name=one.name, value=one.was, file=file, line=one.line, option=one.option)
    return Turned(code=one.fix, control=own, value=one.value)
