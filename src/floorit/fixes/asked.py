"""Fixes that a person asks for on the command line: CODE or CODE=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

from floorit.errors import UsageError
from floorit.fixes import ALL
from floorit.fixes.fix import Fix
from floorit.fixes.values import Value

APPLICABLE: dict[str, Fix] = {fix.code: fix for fix in ALL if fix.takes is not None}


def parse(words: Iterable[str]) -> dict[str, Value]:
    """The codes and values; UsageError where one is not known, cannot be applied, or takes no such value."""
    asked: dict[str, Value] = {}
    for word in words:
        code, _, text = word.partition("=")
        if code in asked:
            raise UsageError(f"--fix {code} is given twice")
        asked[code] = value_of(code, text if "=" in word else None)
    return asked


def value_of(code: str, text: str | None) -> Value:
    """The value of one fix; None: its default."""
    fix = APPLICABLE.get(code)
    if fix is None:
        raise UsageError(_unknown(code))
    assert fix.takes is not None
    try:
        value = fix.takes.default if text is None else fix.takes.parse(text)
    except ValueError:
        raise UsageError(f"--fix {code} takes {fix.takes}, not {text!r}") from None
    if value is None:
        raise UsageError(f"--fix {code} needs a value: {fix.takes}")
    return value


def _unknown(code: str) -> str:
    if code in {fix.code for fix in ALL}:
        return f"{code} can be advised, but not applied from outside: change the program (docs/fixes.md)"
    return f"there is no fix {code!r}; those that can be applied are {', '.join(sorted(APPLICABLE))}"
