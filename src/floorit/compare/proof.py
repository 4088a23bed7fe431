"""The `floorit try` that measures what the settings of one run would do to the program of another."""

from __future__ import annotations

import shlex

from floorit.compare.comparison import Change, Comparison, Side
from floorit.errors import UsageError
from floorit.fixes import asked
from floorit.fixes.values import Value, spelled

_TYPED = {"bfloat16": "bf16", "float16": "fp16"}
_BY_SETTING = {fix.setting: fix.code for fix in asked.APPLICABLE.values() if fix.setting is not None}


def command(comparison: Comparison, a: Side) -> str | None:
    """With all that can be set from outside; None where nothing of it can, or where A had fixes of its own."""
    fixes = {**_of_settings(comparison.settings), **_of_fixes(comparison.fixes)}
    if a.fixes or not fixes:
        return None
    options = [word for fix in asked.written(fixes) for word in ("--fix", fix)]
    return shlex.join(["floorit", "try", *options, "--", *a.report.program.command])


def _of_settings(changes: list[Change]) -> dict[str, Value]:
    """Values that B has and that a fix can give to A."""
    found = {}
    for change in changes:
        code, text = _BY_SETTING.get(change.name), spelled(change.b)
        if code is None or change.b is None:
            continue
        try:
            found[code] = asked.value_of(code, _TYPED.get(text, text))
        except UsageError:
            continue
    return found


def _of_fixes(changes: list[Change]) -> dict[str, Value]:
    return {change.name: change.b for change in changes if change.b is not None}
