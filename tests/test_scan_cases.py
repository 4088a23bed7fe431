"""The five cases: every fault that can be seen by reading is found at its line."""

from pathlib import Path

import pytest

from floorit.scan.finding import Finding
from floorit.scan.rules import again
from floorit.scan.scan import scan
from floorit.truth import load

CASES = Path(__file__).parents[1] / "cases"
# Of a case, a fault's name -> the rule that finds it.
SEEN = {
    "detector": {
        "anomaly": "anomaly",
        "assignment": "python-loop-in-step",
        "plots": "plot-per-step",
        "logging": "log-per-step",
        "items": "item",
        "cache": "decodes-again",
    },
    "deblur": {"timing-log": "synchronize"},
    "heatmap": {
        "targets": "python-loop-in-step",
        "workers": "overridden-entry",
        "cudnn": "overridden-entry",
        "tf32": "no-tf32",
        "async-copy": "blocking-copy",
    },
    "service": {"cache": "cache-never-read"},
}
# The same fault, found where the loader is made instead of where its setting comes from.
ELSEWHERE = {
    "detector": {"pin": ("no-pin", "utils/datasets.py", 21)},
    "service": {"workers": ("no-persistent", "yolo/train_script.py", 100)},
}
# What only a run, or knowing the data and the machine, can tell.
UNSEEN = {
    "bev": {
        "images": "how much larger the files are than the input is not in the code",
        "workers": "how many are too few depends on the machine and on what a sample costs",
        "geometry": "that the calibration never changes is a fact of the data",
        "eval": "every 15 iterations may be meant",
        "fp16": "the setting is read; that it does not reach all modules shows only in a run",
    },
    "deblur": {
        "checkpoint": "recomputing may be what makes it fit",
        "batch": "what fits depends on the GPU",
        "optimizer-state": "what fits depends on the GPU",
        "perceptual": "which of three calls compute the same is a matter of their values",
    },
    "detector": {
        "mosaic": "augmentation is meant",
        "workers": "how many are too few depends on the machine and on what a sample costs",
    },
    "heatmap": {
        "launch": "how long kernels take is not in the code",
    },
    "service": {
        "val": "an evaluation after each epoch may be meant",
        "checkpoint-every": "every few steps may be meant",
        "table": "what fits depends on the GPU",
    },
}
NAMES = sorted(path.parent.name for path in CASES.glob("*/truth.toml"))


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[str, list[Finding]]:
    return request.param, scan([CASES / request.param]).findings


def test_each_fault_is_said_to_be_seen_or_not(case: tuple[str, list[Finding]]) -> None:
    name, _ = case
    faults = {fault.name for fault in load(CASES / name).faults}
    told = [*SEEN.get(name, {}), *ELSEWHERE.get(name, {}), *UNSEEN.get(name, {})]
    assert sorted(told) == sorted(faults)


def test_what_can_be_seen_is_found_at_its_line(case: tuple[str, list[Finding]]) -> None:
    name, findings = case
    wanted = [
        (SEEN[name][fault.name], fault.file, fault.line)
        for fault in load(CASES / name).faults
        if fault.name in SEEN.get(name, {})
    ]
    for code, file, line in [*wanted, *ELSEWHERE.get(name, {}).values()]:
        at = [f for f in findings if f.code == code and Path(f.file).absolute() == CASES / name / file]
        assert any(f.lines[0] <= line <= f.lines[1] for f in at), (code, file, line, [f.line for f in at])


def test_what_the_batch_has_comes_with_the_setting_that_chooses_it() -> None:
    """heatmap's targets: no file sets the entry that is asked for, so its default stands where it is read."""
    (found,) = scan([CASES / "heatmap"], again.RULES, asked=True).findings
    (control,) = found.controls
    assert (Path(found.file).name, found.line) == ("training_engine.py", 81)
    assert (control.name, control.value, Path(control.file).name, control.line) == (
        "use_precomputed_targets",
        False,
        "training_engine.py",
        78,
    )
