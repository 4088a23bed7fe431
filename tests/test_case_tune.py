"""cases/tune.py: what is compared, and what is said of a search that came to nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from floorit import demo, truth
from floorit.stats import Estimate
from floorit.tune.result import Left, Result

CASES = Path(__file__).resolve().parents[1] / "cases"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(CASES))  # as for a script: it takes its tables from overrides.py
    spec = importlib.util.spec_from_file_location("case_tune", CASES / "tune.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["case_tune"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(CASES))
    return module


def nothing_found(**more: object) -> Result:
    left = Left(gap=1.8, gap_before=1.8, finding="input-bound", with_all=True)
    empty = {"stages": [], "stack": [], "proof": None, "job": None, "in_source": [], "interrupted": False}
    told = {"command": ["train.py"], "goal": "speed", "left": left, "stopped": "the budget is spent", **empty, **more}
    return Result(seconds=1.0, folder="there", **told)  # type: ignore[arg-type]


def gain(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.1, high=value + 0.1, n=3)


def test_speeds_are_compared_within_their_round(script):
    """The second round is on a machine that is twice as fast."""
    rounds = [{script.SHIPPED: 10.0, script.TUNED: 15.0}, {script.SHIPPED: 20.0, script.TUNED: 30.0}]
    assert script.compared(rounds, script.TUNED).value == pytest.approx(1.5)


@pytest.mark.parametrize(("patched", "is_told"), [(1.48, False), (1.40, True), (1.60, True)])
def test_a_patch_that_does_something_else_is_told(script, patched, is_told):
    speeds = {script.TUNED: gain(1.5), script.PATCHED: gain(patched)}
    row = script.Row(case="deblur", found=nothing_found(), speeds=speeds)
    assert ("the patch is more than 5% from" in script.markdown([row])) == is_told


def test_a_search_that_came_to_nothing_has_its_row(script):
    row = script.Row(case="service", found=nothing_found(), by_hand=["cache"], speeds={script.BY_HAND: gain(2.0)})
    (said,) = (line for line in script.markdown([row]).splitlines() if line.startswith("| service"))
    assert "| nothing |" in said
    assert "(1.80 times its floor)" in said
    assert "2.00 [1.90, 2.10]" in said
    assert "the program goes on writing its cache" in said
    assert "the budget is spent" in said


@pytest.mark.parametrize(("allow", "switches"), [(None, ["checkpoint"]), ("training", ["checkpoint", "batch"])])
def test_the_switches_are_those_whose_fix_the_search_may_try(script, tmp_path, allow, switches):
    options = script.argparse.Namespace(scale="cpu", regime=None, extra=[], goal="speed", allow=allow)
    case = demo.Case(name="deblur", folder=CASES / "deblur", truth=truth.load(CASES / "deblur"))
    work = script.Work(case, tmp_path, tmp_path, options)
    assert [f.name for f in case.truth.at("cpu", None) if work.is_applied(f)] == switches
