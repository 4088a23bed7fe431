"""The whole job: counts are exact, and its time is what it takes when it is run to its end."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from conftest import FLOORIT, LONGEST, clean_environment, report_of

from floorit import replay
from floorit.analyse import iterations, job
from floorit.declared import Declaration, Told
from floorit.events import Process
from floorit.record import wire
from floorit.record.aliases import meaning
from floorit.replay import Row

# Steps of 10 ms, 25 an epoch, evaluation of 100 ms and a checkpoint after each: work, not sleep, would be as exact.
PROGRAM = """
import argparse, time
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
epochs = parser.parse_args().epochs
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(100, 8), torch.randn(100, 1))
train, val = DataLoader(data, batch_size=4), DataLoader(data, batch_size=10)
for epoch in range(epochs):
    model.train()
    for inputs, targets in train:
        time.sleep(0.01)
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for inputs, targets in val:
            model(inputs)
            time.sleep(0.01)
    torch.save(model.state_dict(), "last.pt")
"""
EPOCHS, PER_EPOCH = 24, 25
NOISE = 0.2  # of the whole: the machine is shared


def run(folder: Path, out: str, *options: str) -> dict[str, Any]:
    """The report of a run of the program."""
    (folder / "train.py").write_text(PROGRAM)
    command = [FLOORIT, "run", "--quiet", "--out", out, *options, "train.py", "--epochs", str(EPOCHS)]
    ended = subprocess.run(command, cwd=folder, env=clean_environment(), capture_output=True, timeout=LONGEST)
    assert ended.returncode == 0, ended.stderr.decode()
    report = report_of(folder / out)
    assert report is not None
    return report


@pytest.mark.acceptance
def test_a_part_tells_how_long_the_whole_takes(tmp_path: Path) -> None:
    part, whole = run(tmp_path, "part", "--steps", "80"), run(tmp_path, "whole")
    assert part["run"]["steps"] < 0.5 * whole["run"]["steps"]
    for report in (part, whole):
        found = report["job"]
        assert (found["epochs"], found["steps_per_epoch"], found["steps"]) == (EPOCHS, PER_EPOCH, EPOCHS * PER_EPOCH)
        assert sum(share["share"] for share in found["shares"]) == pytest.approx(1)
        assert sum(share["seconds"] for share in found["shares"]) == pytest.approx(found["seconds"]["value"])
    assert whole["job"]["seconds"]["value"] == whole["program"]["seconds"]
    assert part["job"]["seconds"]["value"] == pytest.approx(whole["job"]["seconds"]["value"], rel=NOISE)
    projected, real = (
        {share["what"]: share["seconds"] for share in report["job"]["shares"]} for report in (part, whole)
    )
    for what in ("training", "evaluation"):
        assert projected[what] == pytest.approx(real[what], rel=NOISE), what
    assert "checkpoints" in projected


# -- made up --------------------------------------------------------------------------------------------------------


def trained(epochs: list[int], *, step: int = 10, evaluation: int = 0, save: int = 0, length: int | None = None) -> Any:
    """A process with these steps in its epochs; milliseconds of a step, and of what follows each epoch but the last."""
    process = Process()
    note = {"kind": "process", "pid": 1, "host": "here", "started": 0.0}
    process.add(wire.JSON_TAG, msgspec.json.encode(note))
    process.loaders[1] = {"id": 1, "length": length, "workers": 0}
    now, rows = 0, []

    def add(milliseconds: int, phase: int, **fields: Any) -> None:
        nonlocal now
        now += milliseconds * 10**6
        spent = [0] * len(wire.PHASES)
        spent[phase] = milliseconds * 10**6
        rows.append(Row(end=now, spent=spent, **fields))

    for number, steps in enumerate(epochs, 1):
        process.iterators[number] = {"id": number, "loader": 1, "pids": []}
        for _ in range(steps):
            add(step, wire.FORWARD, opened=replay.BATCH, iterator=number, backwards=1, steps=1, optimizers=1)
        if number < len(epochs):
            add(1, wire.OTHER, opened=replay.EXHAUSTED, iterator=number)
            if evaluation:
                passing = {"opened": replay.BATCH, "iterator": 100 + number, "flags": replay.NO_GRAD_FORWARD}
                add(evaluation, wire.FORWARD, **passing)
            if save:
                add(save, wire.CHECKPOINT, opened=replay.EXHAUSTED, iterator=number)
    process.add_rows(rows)
    return process


def told(**values: Any) -> Told:
    """What arguments declare."""
    made = [
        Declaration(setting=name, scope="train", key=name, value=value, by="argument", at=f"--{name}")
        for name, value in values.items()
    ]
    return Told(declarations=made)


def projected(process: Any, declared: Told | None) -> job.Job:
    found = iterations.find(process)
    assert found is not None
    return job.project(process, found, declared)


def test_what_comes_between_epochs_comes_as_often_as_there_are_epochs() -> None:
    found = projected(trained([20, 20, 20, 5], evaluation=300, save=50), told(epochs=100))
    assert (found.epochs, found.steps_per_epoch, found.steps) == (100, 20, 2000)
    spent = {share.what: share.seconds for share in found.shares}
    assert spent[job.TRAINING] == pytest.approx(2000 * 0.010)
    assert spent[job.EVALUATION] == pytest.approx(100 * 0.300)
    assert spent[job.CHECKPOINTS] == pytest.approx(100 * 0.050)
    assert found.seconds.value == pytest.approx(20 + 30 + 5 + 0.1, rel=1e-3)
    assert found.seconds.low <= found.seconds.value <= found.seconds.high


def test_before_an_epoch_is_over_the_loader_says_how_long_it_is() -> None:
    found = projected(trained([30], length=782), told(epochs=100))
    assert found.steps == 78200
    assert "what comes between epochs is not in it" in found.how


def test_an_epoch_that_is_cut_short_is_as_long_as_it_is_seen_to_be() -> None:
    assert projected(trained([10, 10, 10], length=782), told(epochs=7)).steps == 70


def test_steps_instead_of_epochs() -> None:
    found = projected(trained([20, 20, 5], evaluation=300), told(max_steps=1000))
    assert (found.epochs, found.steps) == (None, 1000)
    assert {s.what: s.seconds for s in found.shares}[job.EVALUATION] == pytest.approx(50 * 0.3)


@pytest.mark.parametrize(
    ("epochs", "declared"),
    [
        ([20, 20, 5], None),
        ([20, 20, 5], told()),
        ([20, 20, 5], told(epochs=10, max_steps=50)),
        ([20, 20, 5], told(epochs=-1)),
        ([20, 20, 5], told(epochs=1)),
        ([20, 30, 5], told(epochs=10)),
        ([20], told(epochs=10)),
    ],
)
def test_what_cannot_be_defended_is_not_said(epochs: list[int], declared: Told | None) -> None:
    with pytest.raises(job.Unknown):
        projected(trained(epochs), declared)


def test_steady_steps_leave_no_doubt_and_others_some() -> None:
    steady = projected(trained([20, 20, 5]), told(epochs=10)).seconds
    process = trained([20, 20, 5])
    lengths = np.random.default_rng(0).uniform(0.5, 1.5, len(process.rows))
    process.rows["seconds"] *= lengths[:, None].astype(np.float32)
    process.rows["end"][:] = process.rows["seconds"].sum(axis=1, dtype=np.float64).cumsum()
    shaky = projected(process, told(epochs=10)).seconds
    assert steady.high - steady.low < 0.01 * steady.value < shaky.high - shaky.low


@pytest.mark.parametrize(
    ("key", "setting"),
    [
        ("epochs", "epochs"),
        ("trainer.max_epochs", "epochs"),
        ("num_train_epochs", "epochs"),
        ("max_train_steps", "max_steps"),
        ("lr_scheduler.total_steps", None),
        ("warmup.epochs", None),
        ("warmup_epochs", None),
        ("save_steps", None),
        ("model.steps", None),
    ],
)
def test_keys_that_say_how_long_the_job_is(key: str, setting: str | None) -> None:
    found = meaning(key)
    assert (found and found[0]) == setting
