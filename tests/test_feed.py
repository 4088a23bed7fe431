"""The data path by itself: what it could give, what its time goes into, and datasets that do not fit their workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import recorded, report_of

from floorit import usage
from floorit.analyse import fetching, supply
from floorit.events import Place, Process, Sample, Usage
from floorit.record import wire
from floorit.record.sampler import _names

PROGRAM = """
import sys, time
import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

what, workers, samples, epochs = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(1)
cv2.setNumThreads(0)
SIZE = 512


class Data(Dataset):
    def __len__(self):
        return samples

    def __getitem__(self, index):
        if what == "compute":
            made = self.blur(np.full((96, 96), index, np.float32))
        elif what == "array":
            made = np.load(f"{index % 20}.npy")[:96, :96]
        elif what == "picture":
            made = cv2.imread(f"{index % 20}.png")[:96, :96, 0]
        else:
            made = np.zeros((96, 96 + index // 4), np.float32)
        return torch.as_tensor(made, dtype=torch.float32).mean(0)

    def blur(self, picture):
        for _ in range(150):
            picture = 0.5 * picture + 0.5 * np.roll(picture, 1)
        return picture


noise = np.random.default_rng(0)
for number in range(20):
    if what == "array":
        np.save(f"{number}.npy", noise.random((1500, 1500), dtype=np.float32))
    if what == "picture":
        cv2.imwrite(f"{number}.png", noise.integers(0, 255, (SIZE, SIZE, 3), dtype=np.uint8))
if what == "compute":
    began = time.process_time()
    for index in range(100):
        Data()[index]
    print((time.process_time() - began) / 100)
model = torch.nn.LazyLinear(1)
optimizer = None
for epoch in range(epochs):
    for inputs in DataLoader(Data(), batch_size=4, num_workers=workers):
        loss = model(inputs[:, :96]).square().mean()
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3)
        loss.backward()
        optimizer.step()
"""


def run(folder: Path, *words: object) -> tuple[dict[str, Any], bytes]:
    """What the report says of the loader, and what the program printed."""
    (folder / "train.py").write_text(PROGRAM)
    ended = recorded(["train.py", *map(str, words)], folder / "out", folder)
    assert ended.returncode == 0, ended.stderr.decode()
    report = report_of(folder / "out")
    assert report is not None
    assert not [m for m in report["missing"] if "probe" in m["reason"] or m["what"] == "stack samples"]
    found: dict[str, Any] = report["workers"]
    return found, ended.stdout


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        pytest.param("compute", fetching.REST, marks=pytest.mark.acceptance),
        pytest.param("array", fetching.READING, marks=pytest.mark.acceptance),
        ("picture", fetching.DECODING),
    ],
)
def test_what_the_dataset_does_is_told_apart(tmp_path: Path, what: str, kind: str) -> None:
    pytest.importorskip("cv2")
    found, _ = run(tmp_path, what, 1, 600, 1)
    first = found["time_in"][0]
    assert first["what"] == kind, found["time_in"]
    assert first["share"] > 0.6
    assert sum(each["share"] for each in found["time_in"]) == pytest.approx(1)
    assert found["supply"]["now"] > 0
    assert found["shapes_vary"] is False


def test_without_workers_it_is_not_told_what_the_dataset_does(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    found, _ = run(tmp_path, "picture", 0, 200, 1)
    assert found["time_in"] == []
    assert found["supply"]["now"] > 0


@pytest.mark.acceptance
def test_what_one_worker_gives_is_what_a_sample_takes_on_a_core(tmp_path: Path) -> None:
    """By the program's own clock of its time on a core: who else is on the machine does not count."""
    pytest.importorskip("cv2")
    found, printed = run(tmp_path, "compute", 1, 1200, 1)
    [one] = [rate for rate in found["supply"]["rates"] if rate["workers"] == 1]
    alone = 1 / float(printed)
    assert found["supply"]["cpu_known"]
    assert 0.5 * alone < one["samples_per_second"] < 1.3 * alone


def test_shapes_that_vary_and_epochs_too_short_for_their_workers(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    found, _ = run(tmp_path, "shapes", 3, 8, 12)
    assert found["shapes_vary"] is True
    assert found["shapes"][:2] == ["4 x 96", "4 x 97"]
    assert (found["batches_per_epoch"], found["idle_workers"], found["short_epochs"]) == (2, 1, True)


# -- made up --------------------------------------------------------------------------------------------------------

COSTS = supply.Costs(samples=8, making=0.1, computing=0.1, training=0.0, receiving=0.0)


def predicted(workers: int = 2, cores: float = 8, **more: float) -> supply.Supply:
    costs = supply.Costs(**{**{name: getattr(COSTS, name) for name in COSTS.__struct_fields__}, **more})
    found = supply.predict(costs, workers, cores, True)
    assert found is not None
    return found


def test_workers_add_up_until_the_cores_are_full() -> None:
    found = predicted()
    assert found.now == pytest.approx(160)
    assert {r.workers: r.samples_per_second for r in found.rates} == pytest.approx({1: 80, 2: 160, 4: 320, 8: 640})
    assert found.saturates_at == 8


def test_training_takes_cores_too() -> None:
    found = predicted(training=0.1)
    assert max(r.samples_per_second for r in found.rates) == pytest.approx(320)
    assert (found.saturates_at, found.limit) == (4, "cores")


def test_a_share_of_a_core_is_one_worker_s() -> None:
    """As each of three ranks has on two cores, or a container."""
    costs = supply.Costs(samples=8, making=0.1, computing=0.1, training=0.1, receiving=0.0)
    found = supply.predict(costs, 0, 0.5, True)
    assert found is not None
    assert [rate.workers for rate in found.rates] == [1]


def test_workers_that_wait_for_the_disk_need_no_core_meanwhile() -> None:
    found = predicted(workers=64, computing=0.01)
    assert {r.workers: r.samples_per_second for r in found.rates}[64] == pytest.approx(64 * 80)


def test_there_are_cores_for_as_many_batches_as_were_made() -> None:
    """Threads that wait for each other look busy: by their time on a core, two would not have been enough."""
    assert predicted(cores=2, training=0.4).now == pytest.approx(8 * 2 / 0.5)
    assert predicted(cores=2, training=0.4).alone == pytest.approx(8 * 2 / 0.1)
    assert predicted(cores=2, training=0.4, made=6.0).now == pytest.approx(8 * 6.0)


def test_receiving_is_a_limit_of_its_own() -> None:
    found = predicted(receiving=0.05)
    assert (found.saturates_at, found.limit) == (2, "receiving")


def test_without_workers_it_is_what_the_training_process_makes_while_it_does_nothing_else() -> None:
    assert predicted(workers=0, training=0.1).now == pytest.approx(8 / 0.1)


def test_what_training_takes_of_a_core_is_not_what_an_evaluation_or_a_window_takes() -> None:
    process = Process()
    process.readings = [{"cpu_seconds": cpu, "backwards": steps} for cpu, steps in ((0, 0), (1, 10), (9, 11), (10, 21))]
    assert supply._training(process) == pytest.approx(0.1)


def look(leaf: Place) -> Sample:
    return Sample(0.0, wire.DATA_WAIT, 0, leaf if leaf.is_users else None, leaf)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (Place("data.py", 3, "f", "user", ("cv2", "imread")), fetching.DECODING),
        (Place("data.py", 3, "f", "user", ("open", "read")), fetching.READING),
        (Place("data.py", 3, "f", "user", ("roll",)), fetching.REST),
        (Place("/x/site-packages/numpy/lib/format.py", 3, "read_array", "library"), fetching.READING),
        (Place("/x/site-packages/PIL/ImageFile.py", 3, "load", "library"), fetching.DECODING),
        (Place("/x/site-packages/albumentations/core.py", 3, "apply", "library"), fetching.REST),
    ],
)
def test_a_look_is_of_one_kind(place: Place, kind: str) -> None:
    assert [found.what for found in fetching.kinds([look(place)])] == [kind]


def test_names_of_a_line() -> None:
    def read(path: str) -> bytes:
        first = len(path)
        with open(path, "rb") as file:
            return file.read()[first:]

    line = read.__code__.co_firstlineno
    assert "len" in _names(read.__code__, line + 1)
    assert "open" in _names(read.__code__, line + 2)
    assert _names(read.__code__, line + 3) == ["read"]


def test_use_is_what_lies_between_the_first_look_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = iter([(1.0, 0.5, 100), (3.0, 1.0, 700)])

    def read(pid: int) -> Usage:
        cpu, waited, read = next(seen)
        return Usage(
            pid=pid,
            begin=0.0,
            end=cpu,
            cpu=cpu,
            waited=waited,
            read=read,
            from_disk=read // 2,
            cpu_of_all=2 * cpu,
            threads=5,
        )

    monkeypatch.setattr(usage, "_read", read)
    monkeypatch.setattr(usage, "EVERY", 0.0)
    watch = usage.Watch()
    watch.look(lambda: ([], [7]))
    assert watch.sum_up() == []
    watch.look(lambda: ([], [7]))
    [used] = watch.sum_up()
    assert used == Usage(
        pid=7, begin=1.0, end=3.0, cpu=2.0, waited=0.5, read=600, from_disk=300, cpu_of_all=4.0, threads=5
    )
