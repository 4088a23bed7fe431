"""What floorit says of each script in tests/scripts/ against what its .toml says is true."""

from __future__ import annotations

import importlib.util
import math
import statistics
from collections import Counter
from typing import Any

import pytest
from conftest import Ran, Runs, Truth

CLOSES = 0.01  # of the mean step by which the ledger may miss it
LEFT_OVER = 0.02  # of the step that may have no name
AGREES = {"step": 0.02}  # how far a phase may be from what the script timed itself
AGREES_ELSE = 0.05
ABSOLUTE = 50e-6  # seconds a step that a border may lie elsewhere than the script's own
COUNTS = ("steps", "optimizer_steps", "accumulation", "samples_per_step", "epochs", "eval_passes", "ranks")


@pytest.fixture
def ran(runs: Runs, truth: Truth) -> Ran:
    """The script's run under floorit."""
    needs = truth.get("needs")
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"needs {needs}")
    return runs.recorded(truth)


def report(ran: Ran, truth: Truth) -> dict[str, Any]:
    """The report of a script that trains."""
    assert ran.report is not None, ran.stderr.decode()
    if not truth.get("trains", True):
        pytest.skip("never trains")
    assert ran.report["run"] is not None, ran.report.get("summary")
    return ran.report


def seconds(drawn: dict[str, Any], phase: str) -> float:
    """A phase's seconds a step; 0 where the ledger has no such line."""
    return sum(entry["seconds"] for entry in drawn["ledger"] if entry["phase"] == phase)


def test_ends_as_expected(ran: Ran, truth: Truth) -> None:
    assert ran.code == truth.get("exit", 0), ran.stderr.decode()[-3000:]
    assert ran.report is not None
    assert ran.report["program"]["exit_code"] == truth.get("exit", 0)


def test_nothing_failed_to_install(ran: Ran, truth: Truth) -> None:
    assert ran.report is not None
    broken = [m for m in ran.report["missing"] if "probe" in m["reason"] or m["what"] == "stack samples"]
    assert not broken


def test_what_never_trains_has_no_step(ran: Ran, truth: Truth) -> None:
    if truth.get("trains", True):
        pytest.skip("trains")
    assert ran.report is not None
    assert ran.report["run"] is None
    assert ran.report["step"] is None
    assert ran.report["ledger"] == ran.report["findings"] == []


def test_counts_are_exact(ran: Ran, truth: Truth) -> None:
    facts = report(ran, truth)["run"]
    expected = {name: truth[name] for name in COUNTS if name in truth.expected}
    assert {name: facts[name] for name in expected} == expected


def test_a_floor_needs_a_loader(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    assert (drawn["floor"] is None) == (drawn["workers"] is None)
    if drawn["floor"] is not None:
        assert drawn["floor"]["gap"] >= 1


def test_workers_are_counted(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    if "workers" in truth.expected:
        assert drawn["workers"]["count"] == truth["workers"]
        assert 0 < drawn["workers"]["busy_share"] <= 1
        assert drawn["workers"]["sample_seconds"]["value"] > 0


def test_ledger_closes(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    each = list(drawn["ranks"]) or [drawn]
    for one in each:
        total = sum(entry["seconds"] for entry in one["ledger"])
        assert total == pytest.approx(one["step"]["mean"], rel=CLOSES)
        assert sum(entry["share"] for entry in one["ledger"]) == pytest.approx(1, rel=CLOSES)
        assert all(entry["seconds"] >= 0 for entry in one["ledger"])


def test_little_is_left_over(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    assert seconds(drawn, "unattributed") < LEFT_OVER * drawn["step"]["mean"]


def test_phases_are_there(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    for phase in truth.get("phases", ["forward", "backward"] if "forward" not in truth.get("absent", []) else []):
        assert seconds(drawn, phase) > 0, phase
    for phase in truth.get("absent", []):
        assert seconds(drawn, phase) == 0, phase


def test_first_finding(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    assert drawn["findings"]
    if "finding" in truth.expected:
        assert drawn["findings"][0]["code"] == truth["finding"], shares(drawn)
    assert not {f["code"] for f in drawn["findings"]} & set(truth.get("never", []))


def test_findings_that_stand_further_down(ran: Ran, truth: Truth) -> None:
    codes = {finding["code"] for finding in report(ran, truth)["findings"]}
    assert set(truth.get("also", [])) <= codes
    assert ("setting-ignored" in codes) == bool(truth.get("ignored"))


def test_settings_are_as_the_script_has_them(ran: Ran, truth: Truth) -> None:
    settings = {setting["name"]: setting for setting in report(ran, truth)["settings"]}
    expected = truth.get("in_force", {})
    assert {name: settings[name]["actual"] for name in expected} == expected
    ignored = {name: [s["declared"], s["actual"]] for name, s in settings.items() if s["ignored"]}
    assert ignored == truth.get("ignored", {})
    for name, place in truth.get("declared", {}).items():
        assert settings[name]["declared_at"].endswith(place), settings[name]


def test_finding_names_the_place(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    if "where" not in truth.expected and "line" not in truth.expected:
        pytest.skip("no place is planted")
    finding = next(f for f in drawn["findings"] if f["code"] == truth["finding"])
    place = finding["where"][0]
    if "where" in truth.expected:
        functions: Counter[str] = Counter()
        for line in finding["where"]:
            functions[line["function"].partition(".<locals>")[0]] += line["share"]
        assert functions.most_common(1)[0][0] == truth["where"], finding["where"]
    if "line" in truth.expected:
        assert place["file"] == str(truth.path)
        assert truth.path.read_text().splitlines()[place["line"] - 1].strip() == truth["line"]


def test_finding_says_what_to_do(ran: Ran, truth: Truth) -> None:
    drawn = report(ran, truth)
    first = drawn["findings"][0]
    if "fix" in truth.expected:
        assert truth["fix"] in {fix["code"] for fix in first["fixes"]}, first
    if "rewrite" in truth.expected:
        assert first["rewrite"]["where"]["function"].partition(".<locals>")[0] == truth["rewrite"]
        assert 1 < first["rewrite"]["halved"]["value"] < first["rewrite"]["gone"]["value"]
    for finding in drawn["findings"]:
        gains = [fix["speedup"] for fix in finding["fixes"] if fix["speedup"] is not None]  # None: not for speed
        values = [gain["value"] for gain in gains]
        assert values == sorted(values, reverse=True)
        assert all(gain["low"] <= gain["value"] <= gain["high"] for gain in gains)
        assert max(values, default=1.0) <= truth.get("promises_at_most", float("inf"))


def test_what_the_source_says_stands_beside_what_its_line_took(ran: Ran, truth: Truth) -> None:
    if "habit" not in truth.expected:
        pytest.skip("nothing is planted for a reader")
    drawn = report(ran, truth)
    first, phase = drawn["habits"][0], truth["planted_at_least"][0]
    assert first["code"] == truth["habit"]
    assert 0.8 * seconds(drawn, phase) < first["seconds"] <= 1.05 * seconds(drawn, phase)


def test_phase_is_as_long_as_the_script_says(runs: Runs, truth: Truth, planted: str) -> None:
    ran = runs.recorded(truth)
    drawn = report(ran, truth)
    assert ran.planted is not None
    facts = drawn["run"]
    assert len(ran.planted[planted]) == facts["steps"]
    left = facts["steps"] - facts["warmup_steps"]
    own = sum(ran.planted[planted][facts["warmup_steps"] :]) / left
    found = drawn["step"]["mean"] if planted == "step" else seconds(drawn, planted)
    allowed = max(AGREES.get(planted, AGREES_ELSE) * own, ABSOLUTE)
    if planted != "step" and facts["counted_steps"]:
        allowed += sampling_error(ran.planted[planted], ran.planted["step"], facts)
    assert found == pytest.approx(own, abs=allowed), shares(drawn)


def sampling_error(phase: list[float], step: list[float], facts: dict[str, Any]) -> float:
    """Three standard errors of a phase that was looked at in some steps only.

    On a quiet machine it is next to nothing; where another program held up single steps, nobody can know which phase
    of a step that was not looked at it held up.
    """
    share = sum(phase) / sum(step)
    spread = statistics.stdev(part - share * whole for part, whole in zip(phase, step, strict=True))
    unseen, seen = facts["counted_steps"], facts["steps"] - facts["counted_steps"]
    return float(3 * spread * unseen / facts["steps"] * math.sqrt(1 / seen + 1 / unseen))


def shares(drawn: dict[str, Any]) -> str:
    """The ledger in one line, for a failed assertion."""
    mean = drawn["step"]["mean"]
    entries = ", ".join(f"{e['phase']} {e['seconds'] * 1e3:.3f}" for e in drawn["ledger"])
    return f"step {mean * 1e3:.3f} ms = {entries}; {drawn['run']}"
