"""What a planted program's .toml says must be found, beside what a report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def differences(truth: dict[str, Any], drawn: dict[str, Any], script: Path) -> list[str]:
    """What is not as it was planted, in words."""
    said = []
    codes = [finding["code"] for finding in drawn["findings"]]
    if codes[:1] != [truth["finding"]]:
        said.append(f"{truth['finding']} was planted")
    if not set(truth.get("also", [])) <= set(codes):
        said.append(f"further down should stand {', '.join(truth['also'])}")
    named = next((f for f in drawn["findings"] if f["code"] == truth["finding"]), None)
    if named is None:
        return said
    place = named["where"][0] if named["where"] else None
    lines = script.read_text().splitlines()
    if "line" in truth and (place is None or lines[place["line"] - 1].strip() != truth["line"]):
        said.append(f"its line is {truth['line']}")
    if "where" in truth and (place is None or place["function"].partition(".<locals>")[0] not in truth["where"]):
        said.append(f"it is in {' or '.join(truth['where'])}")
    if "fix" in truth and truth["fix"] not in {fix["code"] for fix in named["fixes"]}:
        said.append(f"it should be answered by {truth['fix']}")
    promised = [fix for f in drawn["findings"] for fix in f["fixes"] if fix["speedup"]]
    too_much = [f for f in promised if f["speedup"]["value"] > truth.get("promises_at_most", float("inf"))]
    return said + [f"{fix['code']} promises {fix['speedup']['value']:.2f}x" for fix in too_much]
