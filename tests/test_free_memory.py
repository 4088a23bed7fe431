"""Free memory in a container: files that were read are in its count, and go when a program needs the room."""

from __future__ import annotations

from pathlib import Path

import pytest

from floorit.record import memory
from floorit.trial import peaks

GIB = 2**30


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of 1 GiB, all but a tenth of it used, half of it by files."""
    (tmp_path / "memory.max").write_text(f"{GIB}\n")
    (tmp_path / "memory.current").write_text(f"{GIB * 9 // 10}\n")
    (tmp_path / "memory.stat").write_text(f"anon {GIB * 4 // 10}\ninactive_file {GIB // 2}\nactive_file 0\n")
    monkeypatch.setattr(memory, "CGROUP", str(tmp_path))
    monkeypatch.setattr(peaks, "_CGROUP", tmp_path)
    return tmp_path


@pytest.mark.parametrize("module", [memory, peaks])
def test_files_that_were_read_are_no_lack_of_memory(container, module):
    assert module.free_memory() == pytest.approx(0.6 * GIB, abs=8)


@pytest.mark.parametrize("module", [memory, peaks])
def test_a_container_without_a_limit_has_the_machine_s(container, module):
    (container / "memory.max").write_text("max\n")
    assert module.free_memory() > GIB
