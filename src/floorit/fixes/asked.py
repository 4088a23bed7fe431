"""Fixes as they are asked for on the command line."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from floorit.errors import UsageError
from floorit.fixes import ALL
from floorit.fixes.fix import Value

_WORDS: dict[str, Value] = {"on": True, "true": True, "off": False, "false": False}


def parse(texts: Iterable[str]) -> dict[str, Value]:
    """{code: value} of `CODE` or `CODE=VALUE`; without a value it is None: as the fix has it."""
    asked = dict[str, Value]()
    for code, values in parse_lists(texts).items():
        if len(values) > 1:
            raise UsageError(f"{code} can have one value here, not {len(values)}")
        asked[code] = values[0]
    return asked


def parse_lists(texts: Iterable[str]) -> dict[str, list[Value]]:
    """{code: values}, of `CODE=VALUE,VALUE` too."""
    known = [fix.code for fix in ALL]
    asked = dict[str, list[Value]]()
    for text in texts:
        code, has_value, values = text.partition("=")
        if code not in known:
            raise UsageError(f"there is no fix {code!r}; there are {', '.join(known)}")
        if code in asked:
            raise UsageError(f"{code} is asked for twice; several values are written {code}=A,B")
        asked[code] = [_value(code, word) for word in values.split(",")] if has_value else [None]
    return asked


def combinations(lists: dict[str, list[Value]]) -> list[dict[str, Value]]:
    """One {code: value} for each way to choose a value of every list."""
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def written(fixes: dict[str, Value]) -> list[str]:
    """As they are typed."""
    return [code if value is None else f"{code}={_word(value)}" for code, value in fixes.items()]


def _word(value: Value) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _value(code: str, word: str) -> Value:
    if not word:
        raise UsageError(f"{code}= has no value after it")
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return word
