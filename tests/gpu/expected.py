"""What a planted program's .toml says must be found, beside what a report says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest import approx


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


def assert_parts_cost(report: dict[str, Any], own: dict[str, Any]) -> None:
    """What a report says of the parts of parts.py, beside the CUDA events that the script recorded itself."""
    parts = {part["name"]: part for part in report["parts"]}
    assert list(parts) == ["stem", "stages.0", "stages.1", "again", "reduced", "head", "rest"], report["missing"]
    for name, part in parts.items():
        if name not in own["forward"]:
            continue
        assert part["forward_seconds"] == approx(own["forward"][name], rel=0.1), name
        backward = part["backward_seconds"] + part["recompute_seconds"]
        assert backward == approx(own["backward"][name], rel=0.1), name
        assert part["activation_bytes"] == approx(own["kept"][name], rel=0.01), name
    again = parts["again"]
    assert again["recompute_seconds"] == approx(again["forward_seconds"], rel=0.15)
    assert not [name for name, part in parts.items() if part["recompute_seconds"] and name != "again"]
    types = {of["dtype"]: of["share"] for of in report["gpu"]["dtype_shares"]}
    half = sum(parts["reduced"][f"{phase}_seconds"] for phase in ("forward", "backward"))
    whole = sum(part[f"{phase}_seconds"] for part in parts.values() for phase in ("forward", "backward", "recompute"))
    assert types["bfloat16"] == approx(half / whole, rel=0.15)  # casts and the optimizer are of either type
    assert types["float32"] + types["bfloat16"] > 0.95
    watched = sum(part["share"] for part in parts.values())
    assert watched <= report["gpu"]["busy_share"] * 1.05  # the optimizer's and the loss's kernels are not among them
