"""Starting a program by itself: what is left of it when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from floorit import launch

# A child in a session of its own, as torchrun starts its ranks, says who it is and stays.
LEAVES_ONE = "setsid sleep 300 & echo $! > pid.part; mv pid.part pid; wait"


class _Enough(Exception):
    pass


def _is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_process_in_a_session_of_its_own_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    deadline = time.monotonic() + 30

    def watch(child: subprocess.Popen[bytes]) -> None:
        if Path("pid").exists():
            raise _Enough
        assert time.monotonic() < deadline

    launch.make_record(tmp_path / "run")
    with pytest.raises(_Enough):
        launch.run(
            ["bash", "-c", LEAVES_ONE], tmp_path / "run" / "record", watch, output=subprocess.DEVNULL, alone=True
        )
    assert not _is_running(int(Path("pid").read_text()))


TRAINS = """
import sys, torch
model = torch.nn.Linear(4, 1)
for _ in range(4):
    model(torch.randn(2, 4)).mean().backward()
print("trained")
sys.exit(3)
"""
# floorit, of which one thing fails that comes after the program has ended.
FAULTY = """
import sys
from floorit import cli
from floorit.report import build
def fails(*_): raise ValueError("as planted")
build.assemble = fails
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_fault_of_ours_afterwards_is_owned_up_to_and_the_program_ends_as_it_did(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    words = [sys.executable, "-c", FAULTY, "run", "--out", "run", "--", sys.executable, "train.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (3, "trained\n")
    assert "by a fault of ours: ValueError('as planted')" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "as planted" in (tmp_path / "run" / "fault.txt").read_text()
    again = subprocess.run(
        [sys.executable, "-m", "floorit", "report", "run"], cwd=tmp_path, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
