"""On an NVIDIA GPU: the program behaves as before, the ledger closes, and blocked time is where it was planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "gpu"


def _has_gpu() -> bool:
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).stdout.startswith(b"GPU")
    except OSError:
        return False


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _has_gpu(), reason="no NVIDIA GPU here; run on one with: pytest -m gpu"),
]


def _run(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **environ}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)


def _recorded(tmp_path: Path, script: str, **environ: str) -> tuple[dict[str, Any], str, Any]:
    times = tmp_path / "times.json"
    command = [sys.executable, "-m", "floorit", "run", "--quiet", "--out", str(tmp_path / "out"), "--"]
    ran = _run([*command, sys.executable, str(SCRIPTS / script)], TIMES=str(times), **environ)
    assert ran.returncode == 0, ran.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    return report, ran.stdout, json.loads(times.read_text()) if times.exists() else None


def _phase(report: dict[str, Any], name: str) -> float:
    return sum(entry["seconds"] for entry in report["ledger"] if entry["phase"] == name)


@pytest.mark.parametrize(
    ("script", "environ"),
    [
        ("amp_scaler.py", {}),
        ("cuda_graph.py", {}),
        ("recompute.py", {"REENTRANT": "0"}),
        ("recompute.py", {"REENTRANT": "1"}),
        ("compiled.py", {}),
        ("syncs.py", {}),
    ],
)
def test_same_output_and_memory(tmp_path: Path, script: str, environ: dict[str, str]) -> None:
    """Losses, memory peaks, graphs and graph breaks are printed by the script itself."""
    bare = _run([sys.executable, str(SCRIPTS / script)], **environ)
    report, stdout, _ = _recorded(tmp_path, script, **environ)
    assert stdout == bare.stdout
    assert not [m for m in report["missing"] if "probe" in m["reason"]]


@pytest.mark.parametrize("script", ["amp_scaler.py", "recompute.py", "syncs.py"])
def test_closes(tmp_path: Path, script: str) -> None:
    """The ledger adds up to the step that the script's own clock saw, on the host and on the device."""
    report, _, times = _recorded(tmp_path, script)
    own = times["total"] if isinstance(times, dict) else times
    assert report["run"]["steps"] == len(own)
    after = own[report["run"]["warmup_steps"] :]
    if script != "amp_scaler.py":  # between its epochs lies more than the script's clock saw in a step
        assert report["step"]["mean"] == pytest.approx(sum(after) / len(after), rel=0.02)
    assert sum(entry["seconds"] for entry in report["ledger"]) == pytest.approx(report["step"]["mean"], rel=0.02)
    device = sum(entry["gpu_seconds"] or 0 for entry in report["ledger"])
    assert device == pytest.approx(report["step"]["seconds"]["value"], rel=0.1)


def test_planted_sync_and_copy(tmp_path: Path) -> None:
    """Blocked and copying time are what the script measured around those calls, at that line."""
    report, _, times = _recorded(tmp_path, "syncs.py")
    skip = report["run"]["warmup_steps"]
    for phase, own in (("sync", times["sync"]), ("h2d", times["h2d"])):
        expected = sum(own[skip:]) / len(own[skip:])
        assert _phase(report, phase) == pytest.approx(expected, rel=0.05), phase
    first = report["syncs"][0]
    line = next(n for n, text in enumerate((SCRIPTS / "syncs.py").read_text().splitlines(), 1) if "loss.item()" in text)
    assert (Path(first["file"]).name, first["line"], first["op"]) == ("syncs.py", line, "item")
    assert first["per_step"] == pytest.approx(1, rel=0.02)


def test_recompute_is_its_own_phase(tmp_path: Path) -> None:
    """The engine's thread recomputes: that time is not in backward."""
    for reentrant in ("0", "1"):
        folder = tmp_path / reentrant
        folder.mkdir()
        report, _, _ = _recorded(folder, "recompute.py", REENTRANT=reentrant)
        assert _phase(report, "recompute") > 0.3 * _phase(report, "forward")
