"""cases/predict.py: every fault that was measured has its row, and the table in docs/ is what the command writes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from floorit import demo, fixes, truth
from floorit.stats import Estimate

ROOT = Path(__file__).parents[1]
TABLE = "2026-11-18-predictions.md"


@pytest.fixture(scope="module")
def predict() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("predict", ROOT / "cases" / "predict.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["predict"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(predict: Any) -> Any:
    records = predict.newest(predict.RECORDS)
    return [row for machine, reports in records.items() for row in predict.predicted(reports, machine)]


def row(predict: Any, rows: Any, predicted: float, measured: float) -> Any:
    def point(value: float) -> Estimate:
        return Estimate(value=value, low=value, high=value, n=1)

    said = {"predicted": point(predicted), "alone": point(predicted), "measured": point(measured)}
    return predict.Row(case="c", machine="m", fault=rows[0].fault, how="", **said)


def test_the_table_in_docs_is_what_the_command_writes(predict: Any, rows: Any) -> None:
    written = (ROOT / "docs" / "measurements" / TABLE).read_text(encoding="utf-8")
    assert predict.markdown(rows, predict.newest(predict.RECORDS)) == written


def test_no_gain_was_predicted_where_a_loss_was_measured(predict: Any, rows: Any) -> None:
    assert not [(r.case, r.fault.name, r.machine) for r in rows if r.sign == predict.WRONG]


def test_what_the_run_without_the_fault_tells_is_not_in_what_the_report_says_alone(rows: Any) -> None:
    of_lines = {r.fault.name: r for r in rows if (r.machine, r.case) == ("cpu", "bev") and r.fault.fix is None}
    images = of_lines["images"]  # its switch decodes pictures at a part of their size
    assert images.alone.value > images.predicted.value
    assert all(r.alone == r.predicted for r in rows if r.fault.fix is not None)


def test_every_measured_fault_has_a_row(rows: Any) -> None:
    known = [truth.load(ROOT / "cases" / name) for name in demo.NAMES]
    measured = {(t.case, machine, name) for t in known for machine, m in t.measured.items() for name in m.faults}
    assert {(r.case, r.machine, r.fault.name) for r in rows} == measured


def test_a_fault_names_a_fix_that_there_is() -> None:
    codes = {fix.code for fix in fixes.ALL}
    for name in demo.NAMES:
        for fault in truth.load(ROOT / "cases" / name).faults:
            assert fault.fix is None or fault.fix in codes, (name, fault.name)


def test_a_direction_that_was_not_measured_is_not_wrong(predict: Any, rows: Any) -> None:
    against = row(predict, rows, 1.3, 0.9)
    assert against.sign == predict.WRONG
    either, slower = (Estimate(value=0.9, low=0.5, high=high, n=2) for high in (1.6, 1.0))
    assert msgspec.structs.replace(against, measured=either).sign == predict.NOT_TOLD
    assert msgspec.structs.replace(against, measured=slower).sign == predict.WRONG


def test_what_a_switch_leaves_of_a_function_is_not_taken_for_gone(predict: Any) -> None:
    """Pictures are decoded at a part of their size without the fault: that still takes a part of the time."""
    reports = predict.newest(predict.RECORDS)["cpu"]
    shipped, without = (predict.read(reports["bev", f"{name}.json"]) for name in ("as-shipped", "without-images"))
    [fault] = [fault for fault in truth.load(ROOT / "cases" / "bev").faults if fault.name == "images"]
    left, _ = predict.prediction(shipped, without, "bev", fault)
    gone, _ = predict.prediction(shipped, msgspec.structs.replace(without, workers=None), "bev", fault)
    assert 1 < left.value < gone.value


@pytest.mark.parametrize(
    ("predicted", "measured", "sign"),
    [
        (1.5, 1.2, "yes"),
        (1.02, 0.97, "yes"),
        (1.0, 1.3, "missed"),
        (1.3, 1.0, "nothing there"),
        (1.3, 0.8, "**wrong**"),
    ],
)
def test_directions(predict: Any, rows: Any, predicted: float, measured: float, sign: str) -> None:
    found = row(predict, rows, predicted, measured)
    assert found.sign == sign
    assert found.error == pytest.approx(predicted / measured - 1)
