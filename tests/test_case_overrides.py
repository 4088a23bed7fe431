"""cases/overrides.py: every fault is in one of its tables, what it applies can be applied, and shortfalls are named."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from floorit import demo, truth
from floorit.fixes import asked
from floorit.stats import Estimate

CASES = Path(__file__).resolve().parents[1] / "cases"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("case_overrides", CASES / "overrides.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["case_overrides"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_fault_is_applied_or_has_a_reason_why_not(script):
    faults = {(name, fault.name): fault for name in demo.NAMES for fault in truth.load(CASES / name).faults}
    assert faults.keys() == script.APPLIED.keys() | script.CANNOT.keys()
    assert not script.APPLIED.keys() & script.CANNOT.keys()
    for key, by_scale in script.APPLIED.items():
        assert by_scale.keys() == set(faults[key].scales), key
        for fixes in by_scale.values():
            assert asked.written(asked.parse(fixes)) == fixes
            assert faults[key].fix in {None, *asked.parse(fixes)}, key


def gain(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=5)


@pytest.mark.parametrize(("override", "is_named"), [(1.95, False), (1.7, True), (2.5, False), (None, False)])
def test_an_override_that_does_not_reach_the_switch_is_named(script, override, is_named):
    row = script.Row(
        case="service",
        fault="cache",
        known=gain(3.0),  # of another day, which is not compared with
        switch=gain(2.0),
        fixes=["decode-cache=ram"],
        verdict="faster",
        override=None if override is None else gain(override),
    )
    said = script.markdown([row])
    assert ("service/cache" in said) == is_named
    assert "2.00 [1.90, 2.10]" in said
