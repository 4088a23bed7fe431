"""Programs on which a popular fix hurts or does nothing: `floorit try` must not call it faster (tests/traps)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import tried

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRAPS = Path(__file__).parent / "traps"
SURELY = 0.9  # times as fast by hand, at the most: under this it has to be found out, not only not claimed
LOUD = 0.1  # noise of A against A that would hide so much
NAMES = sorted(path.stem for path in TRAPS.glob("*.toml"))


def is_surely_slower(trap: dict[str, Any]) -> bool:
    """Whether the fix costs over a tenth, by the program's own clock (traps/by_hand.py)."""
    return "by_hand" in trap and trap["by_hand"]["high"] < SURELY


@pytest.mark.acceptance
@pytest.mark.parametrize("name", NAMES)
def test_a_trap_is_not_called_faster(tmp_path, name):
    trap = tomllib.loads((TRAPS / f"{name}.toml").read_text())
    found = tried(tmp_path, ["--fix", trap["fix"], "--steps", "100", "--budget", "90s"], TRAPS / f"{name}.py")
    said = f"{found['verdict']}: {found['reason']}"
    assert found["verdict"] != "faster", said
    if found["verdict"] == "unclear" and (found["noise"] or LOUD) >= LOUD and is_surely_slower(trap):
        pytest.skip(f"the machine is too busy to tell: {said}")
    if not is_surely_slower(trap) and found["verdict"] == "unclear":
        return  # nothing to find, and a loud machine may not show that in a minute
    assert found["verdict"] == trap["verdict"], said
    assert "None" not in found["reason"]
    if is_surely_slower(trap) and trap["verdict"] == "not faster" and found["noise"] < LOUD:
        assert "slower" in found["reason"]
        assert found["speedup"]["high"] < 1
