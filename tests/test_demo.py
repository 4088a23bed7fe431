"""`floorit demo`: cases are found, what is missing is said in one line, data is made once."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FLOORIT, clean_environment
from test_truth import ABOVE, written

from floorit import demo
from floorit.errors import CaseError, UsageError
from floorit.truth import load

MAKES = """
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True, exist_ok=True)
with (out / "made.txt").open("a") as made:
    made.write(" ".join(sys.argv[1:3]) + "\\n")
"""


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> demo.Case:
    monkeypatch.setenv("FLOORIT_CASES", str(tmp_path / "cache"))
    folder = written(tmp_path / "toy", ABOVE)
    (folder / "make_data.py").write_text(MAKES)
    (folder / "train.py").write_text("")
    return demo.Case(name="toy", folder=folder, truth=load(folder))


def test_an_unknown_case_lists_the_five() -> None:
    with pytest.raises(UsageError, match=r"no case 'yolo'; there are detector, bev, deblur, heatmap, service"):
        demo.find("yolo")


def test_the_command_line_says_so_in_one_line(tmp_path: Path) -> None:
    words = [FLOORIT, "demo", "yolo"]
    ended = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), cwd=tmp_path, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "heatmap" in ended.stderr


def test_what_is_missing_comes_with_the_command_that_gets_it() -> None:
    python = demo.Python(path="/opt/python", missing=["cv2", "yaml"], cuda=False)
    with pytest.raises(CaseError, match=r"/opt/python -m pip install opencv-python-headless pyyaml$"):
        demo.require(python)
    demo.require(demo.Python(path="/opt/python", missing=[], cuda=False))


def test_an_interpreter_is_asked_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(demo._LIBRARIES, "no_such_module", "no-such-package")
    python = demo.examine(sys.executable, ask_cuda=False)
    assert "no_such_module" in python.missing
    assert "numpy" not in python.missing


def test_one_that_cannot_answer_is_an_error_in_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(CaseError, match="broken"):
        demo.examine(str(broken), ask_cuda=False)


def test_data_goes_to_the_cache(case: demo.Case, tmp_path: Path) -> None:
    said = io.StringIO()
    folder = demo.make_data(case, "cpu", sys.executable, said)
    assert folder == tmp_path / "cache" / "toy" / "cpu"
    assert (folder / "made.txt").read_text() == "--scale cpu\n"
    assert "data of toy" in said.getvalue()


def test_data_that_cannot_be_made_is_said_with_the_reason(case: demo.Case) -> None:
    (case.folder / "make_data.py").write_text("raise OSError('disk full')")
    with pytest.raises(CaseError, match="disk full"):
        demo.make_data(case, "cpu", sys.executable, io.StringIO())


def test_a_case_in_site_packages_is_run_from_a_copy(case: demo.Case, tmp_path: Path) -> None:
    """Code among the libraries would not be the user's own, and the report would name none of its lines."""
    assert demo.outside_of_libraries(case) is case
    installed = tmp_path / "site-packages" / "floorit" / "cases" / "toy"
    installed.parent.mkdir(parents=True)
    case.folder.rename(installed)
    for _ in range(2):  # the second time over the first
        copy = demo.outside_of_libraries(demo.Case(name="toy", folder=installed, truth=case.truth))
    assert "site-packages" not in copy.folder.parts
    assert copy.folder.name == "toy"
    assert (copy.folder / "train.py").exists()
