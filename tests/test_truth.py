"""truth.toml is read strictly, and what was measured is found again by the device it was measured on."""

from __future__ import annotations

from pathlib import Path

import pytest

from floorit import truth
from floorit.errors import TruthError

ABOVE = """
case = "toy"
seed = "000"
complaint = "it crawls"
verdict = { cpu = "input-bound", gpu = "sync-bound" }

[[fault]]
name = "draw"
file = "data/targets.py"
line = 3
text = "for y in"
summary = "targets are drawn pixel by pixel"
finding = "input-bound"
phases = ["data_wait"]
results = "same"

[[fault]]
name = "item"
file = "train.py"
line = 9
text = ".item()"
summary = "the loss is read each step"
finding = "sync-bound"
phases = ["sync"]
results = "same"
scales = ["gpu"]
"""
BELOW = """
[measured.{key}]
date = "2026-11-15 07:00 UTC"
command = "python cases/measure.py toy"
machine = "a machine, 2 cores"
torch = "2.13.0"
scale = "{scale}"
rounds = 5
step_seconds = {{ value = 0.2, low = 0.19, high = 0.21, n = 5 }}
ledger_seconds = {{ value = 0.2, low = 0.19, high = 0.21, n = 5 }}
verdicts = {{ input-bound = 5 }}

[measured.{key}.faults.draw]
speedup = {{ value = 2.0, low = 1.9, high = 2.1, n = 5 }}
saved = {{ value = 0.1, low = 0.09, high = 0.11, n = 5 }}
ledger_saved = {{ value = 0.1, low = 0.09, high = 0.11, n = 5 }}
agrees = true
on_named = 0.98
phases = {{ data_wait = 0.098 }}
"""


def written(folder: Path, text: str) -> Path:
    """A case's folder with this truth."""
    folder.mkdir(exist_ok=True)
    (folder / truth.NAME).write_text(text)
    return folder


def test_all_of_it_is_read(tmp_path: Path) -> None:
    known = truth.load(written(tmp_path, ABOVE + BELOW.format(key="cpu", scale="cpu")))
    assert [fault.name for fault in known.faults] == ["draw", "item"]
    assert [fault.name for fault in known.at("cpu")] == ["draw"]
    assert [fault.name for fault in known.at("gpu")] == ["draw", "item"]
    assert known.measured["cpu"].faults["draw"].speedup.value == 2.0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('results = "same"', 'results = "sane"'),
        ("seed =", "sed ="),
        ("line = 3", 'line = "3"'),
        ('scales = ["gpu"]', 'scales = ["tpu"]'),
        ('summary = "the loss', 'sumary = "the loss'),
        ("[[fault]]", "[[fault"),
    ],
)
def test_what_is_misspelt_is_an_error_that_names_the_file(tmp_path: Path, before: str, after: str) -> None:
    with pytest.raises(TruthError, match=r"truth\.toml cannot be read: "):
        truth.load(written(tmp_path, ABOVE.replace(before, after)))


def test_a_folder_without_one_is_no_case(tmp_path: Path) -> None:
    with pytest.raises(TruthError, match="is no case"):
        truth.load(tmp_path)


@pytest.mark.parametrize(
    ("gpu", "scale", "key"),
    [
        (None, "cpu", "cpu"),
        (None, "gpu", "cpu-gpu-scale"),
        ("NVIDIA H200", "gpu", "h200"),
        ("NVIDIA H200", "cpu", "h200-cpu-scale"),
        ("NVIDIA A100-SXM4-80GB", "gpu", "a100-sxm4-80gb"),
        ("NVIDIA GeForce RTX 4090", "gpu", "geforce-rtx-4090"),
    ],
)
def test_devices_have_short_names(gpu: str | None, scale: truth.Scale, key: str) -> None:
    assert truth.device_key(gpu, scale) == key


def test_another_device_at_the_same_scale_stands_in(tmp_path: Path) -> None:
    text = ABOVE + BELOW.format(key="cpu", scale="cpu") + BELOW.format(key="h200", scale="gpu")
    known = truth.load(written(tmp_path, text))
    assert known.measured_on("h200", "gpu") == ("h200", known.measured["h200"])
    assert known.measured_on("geforce-rtx-4090", "gpu") == ("h200", known.measured["h200"])
    assert known.measured_on("cpu", "cpu") == ("cpu", known.measured["cpu"])


def test_what_was_never_measured_is_not_made_up(tmp_path: Path) -> None:
    assert truth.load(written(tmp_path, ABOVE)).measured_on("cpu", "cpu") is None
