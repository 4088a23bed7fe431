"""Each rule on files that it must find something in and on files in which it must not."""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from floorit.cli import main
from floorit.scan.mend import changes
from floorit.scan.preferences import Preferences
from floorit.scan.rules import ALL
from floorit.scan.scan import scan

DOCS = Path(__file__).parents[1] / "docs" / "scan.md"
FIXTURES = Path(__file__).with_name("scan")
FIRES, QUIET = (
    sorted(
        path for path in (FIXTURES / name).iterdir() if path.suffix == ".py" or (path.is_dir() and path.name[0] != "_")
    )
    for name in ("fires", "quiet")
)
_MARK = re.compile(r"#\s*finds:\s*([\w, -]+)")
RULES = {rule.code: rule for rule in ALL}


def code_of(path: Path) -> str:
    """A file or folder is called like the rule that it is for, and may add a word: item__closure.py."""
    return path.stem.partition("__")[0].replace("_", "-")


def found(path: Path, folder: Path) -> list[tuple[str, int, str]]:
    """What the rule says of a file, which is called like a program that trains, or of a folder."""
    if path.is_file():
        (folder / "train.py").write_text(path.read_text())
    findings = scan([path if path.is_dir() else folder]).findings
    return sorted((Path(f.file).name, f.line, f.code) for f in findings if f.code == code_of(path))


def planted(path: Path) -> list[tuple[str, int, str]]:
    """The marks of a file, or of every file of a folder."""
    files = sorted(file for file in path.rglob("*.*") if file.is_file()) if path.is_dir() else [path]
    names = [(file.name if path.is_dir() else "train.py", file) for file in files]
    lines = [(name, number, line) for name, file in names for number, line in enumerate(_lines(file), 1)]
    marks = [(name, number, mark[1]) for name, number, line in lines if (mark := _MARK.search(line)) is not None]
    return sorted((name, number, code.strip()) for name, number, codes in marks for code in codes.split(","))


def _lines(file: Path) -> list[str]:
    return [] if file.suffix == ".pyc" else file.read_text().splitlines()


@pytest.mark.parametrize("path", FIRES, ids=lambda path: path.stem)
def test_what_slows_training_is_found_at_its_line_and_nowhere_else(path: Path, tmp_path: Path) -> None:
    assert planted(path)
    assert found(path, tmp_path) == planted(path)


@pytest.mark.parametrize("path", QUIET, ids=lambda path: path.stem)
def test_what_only_looks_like_it_is_not(path: Path, tmp_path: Path) -> None:
    assert found(path, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("item__text", 14),
        ("item__imported", 16),
        ("find_unused__needed.py", 20),
        ("no_workers__labelled.py", 8),
        ("not_fused__complex.py", 17),
        ("not_fused__loss_device.py", 26),
        ("sleeps__slow.py", 18),
    ],
)
def test_what_reading_leaves_in_doubt_is_said_where_its_rule_is_asked_for(
    name: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = FIXTURES / ("fires" if name.startswith("no_workers") else "quiet") / name
    if path.is_file():
        path = Path(shutil.copy(path, tmp_path / "train.py")).parent
    main(["scan", "--json", "--exit-zero", str(path)])
    said = {(f["code"], f["line"]) for f in json.loads(capsys.readouterr().out)["findings"]}
    code = code_of(FIXTURES / name)
    main(["scan", "--json", "--exit-zero", "--select", code, str(path)])
    asked = {(f["code"], f["line"]) for f in json.loads(capsys.readouterr().out)["findings"]}
    assert (code, line) in asked - said


@pytest.mark.parametrize("kind", [FIRES, QUIET], ids=["fires", "quiet"])
def test_every_rule_has_both(kind: list[Path]) -> None:
    assert {code_of(path) for path in kind} == set(RULES)


def test_every_rule_is_in_the_docs_with_its_risk() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\| (\w+)[^|]*\|$", DOCS.read_text(), re.MULTILINE)
    assert {(code, risk) for code, risk in rows if code in RULES} == {(rule.code, rule.risk) for rule in ALL}


def printed(path: Path) -> str:
    """What a program prints, its losses among it."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), mock.patch.dict(os.environ):
        runpy.run_path(str(path), run_name="__main__")
    return stream.getvalue()


def fixable() -> list[Path]:
    return [
        path
        for path in FIRES
        if path.is_file() and any(f.fixable and f.code == code_of(path) for f in scan([path]).findings)
    ]


@pytest.mark.parametrize("path", fixable(), ids=lambda path: path.stem)
def test_a_fixed_program_trains_to_the_same_losses_and_has_nothing_left_to_fix(path: Path, tmp_path: Path) -> None:
    changed = tmp_path / "train.py"
    changed.write_text(path.read_text())
    (change,) = changes([changed])
    change.write()
    assert changed.read_text() != path.read_text()
    assert changes([changed]) == []
    before = printed(path)
    assert "loss" in before, "the fixture prints its losses"
    assert printed(changed) == before


CIRCLES = """\
import argparse
import torch
import yaml

args = argparse.ArgumentParser().parse_args()
args = vars(args)
params = dict(params)
library.use(args, params)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=args["lr"])
for step in range(9):
    out = model(torch.randn(8, 4).cuda())
    mask = ~mask & other
    other = mask | (out > 0)
    loss = out[mask].mean() + tensor([1.0, 2.0]).mean()
    loss.backward()
    try:
        optimizer.step()
    finally:
        torch.save(loss, "loss.pt")
"""


def test_names_that_go_in_circles_and_other_odd_code_make_no_rule_fail(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CIRCLES)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "base.yaml").write_text("lr: 0.1\nnum_workers: 3\n")
    assert scan([tmp_path]).problems == []


# -- the command ------------------------------------------------------------------------------------------------------

TRAINS = """\
import torch
from torch import nn

model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(20):
    loss = model(torch.randn(8, 4).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    total += loss.item()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINS)
    return tmp_path


def run_scan(*words: str) -> int:
    return main(["scan", *words])


def test_a_finding_is_shown_with_its_line_and_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_scan("--select", "item") == 1
    shown = capsys.readouterr().out
    assert "train.py:11:14 item" in shown
    assert "total += loss.item()" in shown
    assert RULES["item"].instead in shown
    assert "1 finding in 1 file" in shown


@pytest.mark.parametrize(
    "comment", ["# floorit: ignore", "# floorit: ignore[item]", "# floorit: ignore[cpu-copy, item]"]
)
def test_a_comment_keeps_a_line_as_it_is(project: Path, comment: str) -> None:
    (project / "train.py").write_text(TRAINS.rstrip("\n") + f"  {comment}\n")
    assert run_scan("--select", "item") == 0


def test_a_comment_for_another_code_does_not(project: Path) -> None:
    (project / "train.py").write_text(TRAINS.rstrip("\n") + "  # floorit: ignore[cpu-copy]\n")
    assert run_scan("--select", "item") == 1


def test_the_projects_own_settings_hold_and_the_command_line_is_above_them(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.floorit.scan]\nselect = ["item"]\nexclude = ["train*"]\n')
    assert run_scan() == 0
    assert run_scan("--exclude", "nothing") == 1
    assert run_scan("train.py", "--exclude", "nothing", "--select", "cpu-copy") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('select = ["itm"]', "did you mean item?"),
        ("selects = []", "unknown field `selects`"),
        ("select = 3", "Expected `array | null`, got `int`"),
        ("select = [", "cannot be read"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (project / "pyproject.toml").write_text(f"[tool.floorit.scan]\n{text}\n")
    assert run_scan() == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1 or "TOML" in error or "Invalid" in error


def test_files_that_are_no_python_are_named_and_the_rest_is_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "broken.py").write_text("for step in\n")
    (project / "binary.py").write_bytes(b"\x00\x01\xff\xfe" * 9)
    (project / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    (project / "wrong.py").write_bytes("name = 'é'\n".encode("latin-1"))
    (project / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000)
    (project / "empty.py").write_text("")
    assert run_scan("--select", "item") == 1
    shown = capsys.readouterr().out
    for name in ("broken.py:1", "binary.py:1", "wrong.py:1", "deep.py:1"):
        assert f"{name} not read: " in shown
    assert "latin.py" not in shown
    assert "train.py:11:14 item" in shown


def test_json_has_what_the_terminal_says(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_scan("--json", "--select", "item", "--exit-zero") == 0
    written = json.loads(capsys.readouterr().out)
    assert written["trains"] is True
    assert [(f["code"], f["file"], f["line"]) for f in written["findings"]] == [("item", "train.py", 11)]
    assert "edits" not in written["findings"][0]


def test_what_is_tentative_is_said_only_where_it_is_asked_for() -> None:
    tentative = {rule.code for rule in ALL if rule.is_tentative}
    assert tentative
    assert tentative.isdisjoint(rule.code for rule in Preferences().rules())
    assert {rule.code for rule in Preferences(select=tuple(tentative)).rules()} == tentative


def test_where_nothing_trains_that_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_text("print('hello')\n")
    assert run_scan() == 0
    assert "no loop that trains was found" in capsys.readouterr().out


# -- mending ----------------------------------------------------------------------------------------------------------

BLOCKING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

# Größe: 8 ≈ klein
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(
    list(torch.randn(64, 4)),  # µ
    batch_size=8,
    num_workers=2,
    shuffle=True,
)
for x in loader:
    'ä'; loss = model(x.to("cuda")).square().mean()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def blocking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(BLOCKING)
    return file


def test_a_diff_is_what_git_takes_and_nothing_is_touched(blocking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_scan("--diff")
    patch = capsys.readouterr().out
    assert blocking.read_text() == BLOCKING
    (blocking.parent / "p.patch").write_text(patch)
    subprocess.run(["git", "apply", "p.patch"], cwd=blocking.parent, check=True)
    assert blocking.read_text() == BLOCKING.replace(
        "    shuffle=True,\n", "    shuffle=True,\n    pin_memory=True,\n"
    ).replace('.to("cuda")', '.to("cuda", non_blocking=True)')


def test_what_is_mended_is_mended_once(blocking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocking.chmod(0o640)
    run_scan("--fix")
    assert "2 places changed in train.py" in capsys.readouterr().err
    once = blocking.read_text()
    assert "pin_memory=True" in once
    run_scan("--fix")
    assert blocking.read_text() == once
    assert blocking.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in blocking.parent.iterdir()] == ["train.py"]


def test_it_does_not_matter_from_where_a_file_is_named(blocking: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = blocking.parent / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    run_scan("--fix", "../..")
    once = blocking.read_text()
    assert "pin_memory=True" in once
    assert "non_blocking=True" in once
    run_scan("--fix", "../..")
    assert blocking.read_text() == once


def test_line_endings_and_encodings_stay_as_they_are(blocking: Path) -> None:
    text = "# -*- coding: latin-1 -*-\n" + BLOCKING.replace("≈", "=").replace("µ", "u")
    blocking.write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    run_scan("--fix")
    changed = blocking.read_bytes()
    assert b"pin_memory=True" in changed
    assert changed.count(b"\r\n") == changed.count(b"\n")
    assert "Größe".encode("latin-1") in changed
