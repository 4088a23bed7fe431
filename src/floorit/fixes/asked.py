"""Fixes that a person asks for on the command line: CODE, CODE=VALUE, or CODE=VALUE,VALUE."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from floorit.errors import UsageError
from floorit.fixes import ALL
from floorit.fixes.fix import Fix
from floorit.fixes.values import Value, spelled

APPLICABLE: dict[str, Fix] = {fix.code: fix for fix in ALL if fix.takes is not None}


def parse(words: Iterable[str]) -> dict[str, Value]:
    """The codes and values; UsageError where one is not known, cannot be applied, or takes no such value."""
    asked: dict[str, Value] = {}
    for code, values in parse_lists(words).items():
        if len(values) > 1:
            raise UsageError(f"--fix {code} can have one value here, not {len(values)}")
        asked[code] = values[0]
    return asked


def parse_lists(words: Iterable[str]) -> dict[str, list[Value]]:
    """The same with all values of each."""
    asked: dict[str, list[Value]] = {}
    for word in words:
        code, has_value, texts = word.partition("=")
        if code in asked:
            raise UsageError(f"--fix {code} is given twice")
        asked[code] = [value_of(code, text) for text in texts.split(",")] if has_value else [value_of(code, None)]
    return asked


def combinations(lists: dict[str, list[Value]]) -> list[dict[str, Value]]:
    """One {code: value} for each way to choose a value of every list."""
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def written(fixes: dict[str, Value]) -> list[str]:
    """As they are typed."""
    return [f"{code}={spelled(value)}" for code, value in fixes.items()]


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
