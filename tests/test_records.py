"""Records made on an NVIDIA H200, read again here: what holds the GPU up is told apart, to the line.

Some are of tests/gpu/bound.py, limited by one thing; the others of the programs in tests/gpu/planted, whose .toml says
what must be found. Each has the script in it as it was then; docs/measurements says how they were made.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from gpu.expected import assert_parts_cost, differences

from floorit.report.build import build
from floorit.report.model import Report

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDS = Path(__file__).parent / "records"
PLANTED = Path(__file__).parent / "gpu" / "planted"
# kind of tests/gpu/bound.py -> what must be found
BOUND: dict[str, dict[str, Any]] = {
    "data": {"finding": "input-bound", "line": "time.sleep(0.03)"},
    "sync": {"finding": "sync-bound", "line": "if x.sum().item() > 1e30:"},
    "launch": {"finding": "launch-bound", "line": "loss.backward()"},
    "copy": {"finding": "transfer-bound", "line": 'batch = pageable.to("cuda")'},
    "compute": {"finding": "compute-bound", "line": "loss = model(x).square().mean()"},
}
PARTS = "parts"  # of tests/gpu/parts.py, with what it measured itself
RECORDED = sorted({path.name.partition(".")[0] for path in RECORDS.glob("*.tar.xz")} - {PARTS})


class Found(NamedTuple):
    """What a record's report says, and what it should."""

    kind: str
    truth: dict[str, Any]
    report: Report
    script: Path


def _unpacked(kind: str, folder: Path) -> Path:
    with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module", params=RECORDED)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    kind = request.param
    folder = _unpacked(kind, tmp_path_factory.mktemp(kind))
    truth = BOUND.get(kind) or tomllib.loads((PLANTED / f"{kind}.toml").read_text())
    return Found(kind, truth, build(folder), folder / "script.py")


@pytest.fixture
def watched(found: Found) -> Found:
    """Those with a kernel window."""
    gpu = found.report.gpu
    if found.kind not in BOUND and (gpu is None or gpu.busy_share is None):
        pytest.skip("no kernel window: the program ended, or its steps were too few")
    return found


def test_what_is_found_is_what_was_planted(found: Found) -> None:
    assert differences(found.truth, msgspec.to_builtins(found.report), found.script) == []


def test_the_devices_clock_closes_as_the_hosts_does(found: Found) -> None:
    """What lies between epochs included: `steady_convolutions` catches up there, `short_epochs` waits there."""
    device = [entry.gpu_seconds for entry in found.report.ledger if entry.gpu_seconds]
    if not device:
        pytest.skip("no step was marked on the device's clock")
    evaluation = sum(entry.seconds for entry in found.report.ledger if entry.phase == "eval")
    assert found.report.step is not None
    assert sum(device) + evaluation == pytest.approx(found.report.step.mean, rel=0.02)


def test_busy_and_idle_are_the_whole_step(watched: Found) -> None:
    report = watched.report
    assert report.gpu is not None
    assert report.gpu.busy_share is not None
    assert report.step is not None
    assert report.gpu.busy_share + sum(idle.share for idle in report.gpu.idle) == pytest.approx(1, abs=1e-6)
    if watched.kind in BOUND:  # the others have what comes between steps
        assert report.gpu.step_seconds == pytest.approx(report.step.mean, rel=0.001)


def test_the_gpu_is_busy_as_its_own_counters_say(watched: Found) -> None:
    """NVML's GPM counts no copies, and of each kernel a little more than its own time: 600 short ones make 4 points."""
    if watched.kind not in BOUND:
        pytest.skip("the counters also see what comes between steps")
    report = watched.report
    assert report.gpu is not None
    assert report.gpu.busy_share is not None
    assert report.machine is not None
    assert report.machine.gpu is not None
    counted = report.machine.gpu.active_share
    assert counted is not None
    computing = report.gpu.busy_share - (report.gpu.copies_alone_share or 0.0)
    assert computing == pytest.approx(counted.value, abs=0.05 if watched.kind == "launch" else 0.03)


def test_no_fix_promises_more_than_its_finding_bounds(found: Found) -> None:
    """A copy beside the work still has to be made: 131x was once promised for that."""
    for finding in found.report.findings:
        for fix in finding.fixes:
            if finding.bound is not None and finding.code in ("transfer-bound", "input-bound") and fix.speedup:
                assert fix.speedup.value <= 1.02 * finding.bound


def test_parts_cost_what_cuda_events_said(tmp_path: Path) -> None:
    folder = _unpacked(PARTS, tmp_path)
    assert_parts_cost(msgspec.to_builtins(build(folder)), json.loads((folder / "times.json").read_text()))
