"""floorit.toml: fixes that were proven for a program, to train with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.fixes.values import Value, spelled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "floorit.toml"


def write(path: Path, fixes: dict[str, Value], comments: list[str]) -> None:
    """The fixes, under what is to be said of them."""
    lines = [*(f"# {line}" for comment in comments for line in comment.splitlines()), "", "[fixes]"]
    path.write_text("\n".join([*lines, *(f"{code} = {json.dumps(value)}" for code, value in fixes.items()), ""]))


def read(path: Path) -> dict[str, Value]:
    """The fixes in a file; UsageError where it cannot be read or names one that there is not."""
    try:
        whole = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}") from None
    fixes = whole.get("fixes")
    if not isinstance(fixes, dict):
        raise UsageError(f"{path} has no table [fixes]")
    return asked.parse(f"{code}={spelled(value)}" for code, value in fixes.items())
