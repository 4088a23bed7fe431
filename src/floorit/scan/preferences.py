"""What is looked for: from the command line, else from `[tool.floorit.scan]` of the nearest pyproject.toml."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from floorit.errors import UsageError
from floorit.scan.rule import Rule
from floorit.scan.rules import ALL

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = "pyproject.toml"


class Preferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Codes of rules, and patterns of files."""

    select: tuple[str, ...] | None = None  # only these
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_by_name(self) -> bool:
        """Whether rules are asked for by their names."""
        return self.select is not None

    def rules(self) -> tuple[Rule, ...]:
        """Those that are wanted; tentative ones only by their names."""
        known = [rule.code for rule in ALL]
        for code in (*(self.select or ()), *self.ignore):
            if code not in known:
                near = difflib.get_close_matches(code, known, 1)
                hint = f"did you mean {near[0]}?" if near else "floorit scan --rules lists them"
                raise UsageError(f"there is no rule {code!r}; {hint}")
        wanted = [r for r in ALL if (not r.is_tentative if self.select is None else r.code in self.select)]
        return tuple(rule for rule in wanted if rule.code not in self.ignore)


def settled(
    paths: Iterable[Path],
    select: tuple[str, ...] | None = None,
    ignore: tuple[str, ...] | None = None,
    exclude: tuple[str, ...] | None = None,
) -> Preferences:
    """What was typed, and for the rest what the project's file says."""
    written = _written(next(iter(paths), Path()))
    return Preferences(
        select=written.select if select is None else select,
        ignore=written.ignore if ignore is None else ignore,
        exclude=written.exclude if exclude is None else exclude,
    )


def _written(path: Path) -> Preferences:
    path = path.absolute()
    for folder in (path, *path.parents):
        file = folder / _FILE
        if file.is_file():
            return _read(file)
    return Preferences()


def _read(file: Path) -> Preferences:
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    for word in ("tool", "floorit", "scan"):
        table = table.get(word, {}) if isinstance(table, dict) else {}
    try:
        return msgspec.convert(table, Preferences)
    except msgspec.ValidationError as error:
        raise UsageError(f"[tool.floorit.scan] in {file}: {error}") from None
