"""The guard on results in real tries: what a change did that it must not is caught, what it may do passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import tried

GUARDED = Path(__file__).parent / "guarded"
CHANGES = ["--lr-factor 1.05", "--drop-term", "--corrupt-every 50", "--reorder"]
FIXES = {
    "fused=on": "rounding",
    "workers=2": "order",
    "amp=bf16": "rounding",
    "set-to-none=on": "exact",
    "decode-cache=ram": "exact",
}
# What always runs, and no more: these are not about speed. Steps that hold the 50th batch in every trial.
BRIEFLY = ["--each", "--steps", "60", "--budget", "1s"]


def by_name(whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each change and what is said of it."""
    return {outcome["name"]: outcome for outcome in (whole, *whole["others"])}


@pytest.fixture(scope="module", params=["exact", "rounding"])
def changed(request, tmp_path_factory):
    """All changes in one try, called no worse than this."""
    asked = [word for change in CHANGES for word in ("--vary", change)]
    risk = ["--risk", request.param]
    return by_name(tried(tmp_path_factory.mktemp("changed"), [*asked, *risk, *BRIEFLY], GUARDED / "train.py"))


@pytest.mark.acceptance
@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_results_is_caught(changed, change):
    found = changed[change]
    assert found["verdict"] == "changed results", found
    assert found["reason"] == found["parity"]["reason"]


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    """All fixes in one try, each at the risk that it is declared with."""
    asked = [word for fix in FIXES for word in ("--fix", fix)]
    return by_name(tried(tmp_path_factory.mktemp("fixed"), [*asked, *BRIEFLY], GUARDED / "train.py"))


@pytest.mark.acceptance
@pytest.mark.parametrize(("fix", "risk"), FIXES.items())
def test_a_fix_passes_at_its_risk(fixed, fix, risk):
    found = fixed[fix]
    assert found["risk"] == risk
    assert found["overrides"][0]["state"] == "in force", found
    assert found["parity"]["status"] in ("same", "rounding", "alike"), found
    assert found["verdict"] not in ("changed results", "failed")


@pytest.mark.acceptance
def test_another_order_passes_where_it_is_called_that(tmp_path):
    found = tried(tmp_path, ["--vary", "--reorder", "--risk", "order", *BRIEFLY], GUARDED / "train.py")
    assert found["parity"]["status"] == "alike", found


@pytest.mark.acceptance
def test_half_precision_passes_with_scaling(tmp_path):
    found = tried(tmp_path, ["--fix", "amp=fp16", *BRIEFLY], GUARDED / "tiny_gradients.py")
    assert found["overrides"][0]["state"] == "in force", found
    assert found["parity"]["status"] == "rounding", found


@pytest.mark.acceptance
def test_gradients_lost_in_half_precision_are_caught(tmp_path):
    """By the course of the losses, which half precision alone would leave as it is."""
    asked = ["--fix", "amp=fp16", "--vary", "--half", "--risk", "order"]
    found = by_name(tried(tmp_path, [*asked, *BRIEFLY], GUARDED / "tiny_gradients.py"))
    assert found["amp=fp16"]["parity"]["status"] == "alike", found
    assert found["--half"]["verdict"] in ("changed results", "failed"), found
