"""cases/best.py: what is tried of a program, and that a refused fix which is faster is named."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_fixes import CPU, STARVED, known

from floorit.fixes import asked

CASES = Path(__file__).resolve().parents[1] / "cases"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(CASES))  # as for a script: it shares code with those beside it
    spec = importlib.util.spec_from_file_location("case_best", CASES / "best.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["case_best"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(CASES))
    return module


def test_what_is_promised_most_is_tried_and_one_popular_fix_that_is_refused(script):
    promised, refused = script.chosen(known(STARVED))
    assert "workers" in asked.parse(list(promised))
    assert len(promised) <= script.MOST
    ((fix, reason),) = refused.items()
    assert fix not in promised
    assert reason


def test_workers_that_are_refused_are_tried_with_twice_as_many(script):
    promised, refused = script.chosen(known(CPU))
    assert not promised
    assert next(iter(refused)).startswith("workers=")


def told(verdict: str) -> dict[str, object]:
    speedup = {"value": 1.2, "low": 1.1, "high": 1.3, "n": 5}
    return {"verdict": verdict, "speedup": speedup, "parity": {"reason": "every loss is the same"}, "reason": "enough"}


@pytest.mark.parametrize(("verdict", "is_named"), [("faster", True), ("not faster", False), ("unclear", False)])
def test_a_refused_fix_that_is_faster_is_named(script, verdict, is_named):
    bev = script.Program(name="bev", folder=CASES / "bev", words=["train.py"])
    rows = [script.row(bev, "workers=4", told(verdict), None, "nothing to win")]
    rows.append(script.row(bev, "fused=on", told("faster"), None, ""))  # not refused
    (said,) = (line for line in script.markdown(rows).splitlines() if line.startswith("Refused"))
    assert ("bev: workers=4" in said) == is_named
    assert "fused=on" not in said
