"""Starting a program by itself: what is left of it when it ends."""

from __future__ import annotations

import subprocess
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
