"""Paths in the terminal: as short as a person knows them; in report.json: whole."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec
import pytest
from test_beside import at, finding, report

from floorit.analyse.gpu import Gpu, Idle
from floorit.analyse.ledger import Line
from floorit.analyse.settings import Setting
from floorit.report import paths
from floorit.report.model import Program

FOLDERS = [PurePosixPath("/home/me"), PurePosixPath("/work/project")]
DEEP = "/mnt/shared/teams/perception/experiments/2026-11/detector/utils/loss.py"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me/train.py", "train.py"),
        ("/work/project/utils/loss.py", "utils/loss.py"),
        ("/work/projects/loss.py", "/work/projects/loss.py"),
        ("/home/me/.venv/lib/python3.11/site-packages/torch/nn/functional.py", "torch/nn/functional.py"),
        (DEEP, "/mnt/.../2026-11/detector/utils/loss.py"),
        ("/" + "x" * 80 + "/y.py", "/" + "x" * 80 + "/y.py"),
        ("/home/me/" + "x/" * 30 + "y.py", "x/.../" + "x/" * 15 + "y.py"),
        ("train.py", "train.py"),
        ("<string>", "<string>"),
    ],
)
def test_a_path_is_shown_as_it_is_known(path: str, shown: str) -> None:
    assert paths.short(path, FOLDERS) == shown


def test_what_is_everywhere_is_no_folder_to_start_from() -> None:
    assert paths.short("/a/b.py", [PurePosixPath("/")]) == "/a/b.py"


def test_the_script_s_folder_is_known_from_the_command() -> None:
    drawn = report([finding("loss-bound", at(7, "/work/project/utils/loss.py"))])
    program = Program(command=["python", "/work/project/train.py", "x.py"], exit_code=0, seconds=1.0, cwd="/home/me")
    shown = paths.with_short_paths(msgspec.structs.replace(drawn, program=program))
    assert shown.findings[0].where[0].file == "utils/loss.py"
    assert drawn.findings[0].where[0].file == "/work/project/utils/loss.py"


def test_every_place_is_short_wherever_it_stands() -> None:
    line = Line(file="/home/me/proj/train.py", line=3, function="main", share=1.0)
    idle = Idle(cause="launch", share=0.5, seconds=0.1, host="forward", where=[line])
    declared = Setting(name="num_workers", declared=4, declared_at="/home/me/proj/conf/a.yaml:8")
    argued = Setting(name="amp", declared=True, declared_at="--amp on the command line")
    whole = msgspec.structs.replace(
        report([finding("input-bound", line)]),
        program=Program(command=["train.py"], exit_code=0, seconds=1.0, cwd="/home/me/proj"),
        gpu=Gpu(idle=[idle]),
        settings=[declared, argued],
    )
    shown = paths.with_short_paths(whole)
    assert shown.gpu is not None
    assert shown.gpu.idle[0].where[0].file == shown.findings[0].where[0].file == "train.py"
    assert [s.declared_at for s in shown.settings] == ["conf/a.yaml:8", "--amp on the command line"]
    assert whole.findings[0].where[0].file == "/home/me/proj/train.py"
