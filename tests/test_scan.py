"""Each rule on files that it must find something in and on files in which it must not."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

from floorit.scan.rewrite import rewritten
from floorit.scan.rules import ALL
from floorit.scan.scan import Result, scan

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


def found(path: Path, result: Result) -> list[tuple[str, int, str]]:
    return sorted((Path(f.file).name, f.line, f.code) for f in result.findings if f.code == code_of(path))


def planted(path: Path) -> list[tuple[str, int, str]]:
    """The marks of a file, or of every file of a folder."""
    files = sorted(file for file in path.rglob("*.*") if file.is_file()) if path.is_dir() else [path]
    lines = [(file.name, number, line) for file in files for number, line in enumerate(_lines(file), 1)]
    marks = [(name, number, mark[1]) for name, number, line in lines if (mark := _MARK.search(line)) is not None]
    return sorted((name, number, code.strip()) for name, number, codes in marks for code in codes.split(","))


def _lines(file: Path) -> list[str]:
    return [] if file.suffix == ".pyc" else file.read_text().splitlines()


@pytest.mark.parametrize("path", FIRES, ids=lambda path: path.stem)
def test_what_slows_training_is_found_at_its_line_and_nowhere_else(path: Path) -> None:
    assert planted(path)
    assert found(path, scan([path])) == planted(path)


@pytest.mark.parametrize("path", QUIET, ids=lambda path: path.stem)
def test_what_only_looks_like_it_is_not(path: Path) -> None:
    assert found(path, scan([path])) == []


@pytest.mark.parametrize("kind", [FIRES, QUIET], ids=["fires", "quiet"])
def test_every_rule_has_both(kind: list[Path]) -> None:
    assert {code_of(path) for path in kind} == set(RULES)


def fixed(path: Path, text: str) -> str:
    edits = [edit for finding in scan([path]).findings if finding.fixable for edit in finding.edits]
    return rewritten(text, edits)


def printed(path: Path) -> str:
    """What a program prints, its losses among it."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
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
    changed = tmp_path / path.name
    changed.write_text(fixed(path, path.read_text()))
    assert changed.read_text() != path.read_text()
    assert not [f for f in scan([changed]).findings if f.fixable]
    before = printed(path)
    assert "loss" in before, "the fixture prints its losses"
    assert printed(changed) == before
