"""The words of a command: an option with another value, a file that is another."""

from pathlib import Path
from typing import Any

import pytest

from floorit import typed


@pytest.mark.parametrize(
    ("words", "option", "was", "value", "becomes"),
    [
        (["--every", "5"], "--every", 5, 20, ["--every", "20"]),
        (["--every=5", "x"], "--every", 5, 20, ["--every=20", "x"]),
        (["train.every=5"], "train.every", 5, 20, ["train.every=20"]),
        (["+train.every=5"], "train.every", 5, 20, ["+train.every=20"]),
        (["-e", "5"], "-e", 5, 20, ["-e", "20"]),
        (["--every", "5", "--every", "7"], "--every", 7, 28, ["--every", "28", "--every", "28"]),
        (["--every", "5"], "--every", 7, 28, None),  # it is another by now
        (["--other", "5"], "--every", 5, 20, None),
        (["--held", "True"], "--held", True, False, ["--held", "False"]),
        (["--held", "false"], "--held", False, True, ["--held", "true"]),
        (["--held=no"], "--held", False, True, ["--held=yes"]),
        (["--held", "--quiet"], "--held", True, False, None),  # what is the other way, is not known
        (["--held", "file"], "--held", True, False, None),
        (["--no-held", "--quiet"], "--no-held", False, True, ["--held", "--quiet"]),
        (["--no_held"], "--no_held", False, True, ["--held"]),
        (["data.held=False"], "data.held", False, True, ["data.held=True"]),
        (["--every"], "--every", 5, 20, None),
    ],
)
def test_an_option_is_given_another_value_as_it_was_typed(
    words: list[str], option: str, was: Any, value: Any, becomes: list[str] | None
) -> None:
    made = typed.retyped(["train.py", *words], option, was, value)
    assert made == (["train.py", *becomes] if becomes is not None else None)
    if made is not None:
        assert typed.gives(made, option, value)
    assert not typed.gives(["train.py", *words], option, value)


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("configs/c.yaml", True),
        ("./configs/../configs/c.yaml", True),
        ("--cfg=configs/c.yaml", True),
        ("configs/d.yaml", False),
    ],
)
def test_a_command_is_given_a_copy_of_a_file_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    file, command = str(tmp_path / "configs" / "c.yaml"), ["train.py", "--quiet", word, ""]
    (tmp_path / "configs").mkdir()
    assert typed.names(command, file) is named
    given = f"{word.rpartition('=')[0]}{'=' if '=' in word else ''}/copy.yaml" if named else word
    assert typed.with_copies(command, {file: Path("/copy.yaml")}) == ["train.py", "--quiet", given, ""]


def test_source_has_others_beside_it_and_is_not_copied(tmp_path: Path) -> None:
    assert not typed.names([str(tmp_path / "train.py")], str(tmp_path / "train.py"))
