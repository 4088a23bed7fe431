"""The folder of a try: nothing of the user's is ever taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from floorit import cli


@pytest.mark.parametrize("verb", ["try", "tune"])
@pytest.mark.parametrize("name", ["model.pt", "first/model.pt"])
def test_a_folder_with_files_of_the_user_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, name: str
) -> None:
    (tmp_path / "train.py").write_text("")
    kept = tmp_path / "out" / name
    kept.parent.mkdir(parents=True)
    kept.write_text("theirs")
    fix = ["--fix", "workers=2"] if verb == "try" else []
    assert cli.main([verb, *fix, "--out", str(tmp_path / "out"), str(tmp_path / "train.py")]) != 0
    assert "holds other files" in capsys.readouterr().err
    assert kept.read_text() == "theirs"
