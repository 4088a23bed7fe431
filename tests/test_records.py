"""Records made on an NVIDIA H200, read again here: what holds the GPU up is told apart, to the line.

Each is of tests/gpu/bound.py, limited by one thing, and has the script in it as it was then; docs/measurements says how
they were made.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from floorit.report.build import build
from floorit.report.model import Report

RECORDS = Path(__file__).parent / "records"
# kind -> the first finding, and what stands in the line that it names
PLANTED = {
    "data": ("input-bound", "time.sleep(0.03)"),
    "sync": ("sync-bound", "x.sum().item()"),
    "launch": ("launch-bound", "loss.backward()"),
    "copy": ("transfer-bound", 'pageable.to("cuda")'),
    "compute": ("compute-bound", "model(x)"),
}


@pytest.fixture(scope="module", params=PLANTED)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Report, list[str]]:
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(RECORDS / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return request.param, build(folder), (folder / "script.py").read_text().splitlines()


def test_the_first_finding_is_what_was_planted(found: tuple[str, Report, list[str]]) -> None:
    kind, report, script = found
    first, (code, line) = report.findings[0], PLANTED[kind]
    assert first.code == code
    assert line in script[first.where[0].line - 1]


def test_busy_and_idle_are_the_whole_step(found: tuple[str, Report, list[str]]) -> None:
    _, report, _ = found
    assert report.gpu is not None
    assert report.gpu.busy_share is not None
    assert report.step is not None
    assert report.gpu.busy_share + sum(idle.share for idle in report.gpu.idle) == pytest.approx(1, abs=1e-6)
    assert report.gpu.step_seconds == pytest.approx(report.step.mean, rel=0.001)


def test_the_gpu_is_busy_as_its_own_counters_say(found: tuple[str, Report, list[str]]) -> None:
    """NVML's GPM counts no copies, and of each kernel a little more than its own time: 600 short ones make 4 points."""
    kind, report, _ = found
    assert report.gpu is not None
    assert report.gpu.busy_share is not None
    assert report.machine is not None
    assert report.machine.gpu is not None
    counted = report.machine.gpu.active_share
    assert counted is not None
    computing = report.gpu.busy_share - (report.gpu.copies_alone_share or 0.0)
    assert computing == pytest.approx(counted.value, abs=0.05 if kind == "launch" else 0.03)


def test_no_fix_promises_more_than_its_finding_bounds(found: tuple[str, Report, list[str]]) -> None:
    """A copy beside the work still has to be made: 131x was once promised for that."""
    _, report, _ = found
    for finding in report.findings:
        for fix in finding.fixes:
            if finding.bound is not None and finding.code in ("transfer-bound", "input-bound") and fix.speedup:
                assert fix.speedup.value <= 1.02 * finding.bound
