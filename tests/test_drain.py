"""The loader drained by itself: what it gives with several numbers of workers, in a run that leaves no trace."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import FLOORIT, PYTHON, clean_environment

from floorit import drain
from floorit.events import Process
from floorit.hardware import Environment
from floorit.runfile import Drained

SCRIPT = """
import sys
import time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

kind, workers = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)


def sample(i):
    x = torch.full((256,), float(i % 7))
    for _ in range(60):
        x = (x @ torch.ones(256, 256)).tanh()
    return x


class Mapped(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        if kind == "alone" and get_worker_info() is not None:
            raise RuntimeError("only in the main process")
        return sample(i)


class Streamed(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for i in range(worker.id if worker else 0, 200, worker.num_workers if worker else 1):
            yield sample(i)


class Endless(DataLoader):
    def __iter__(self):
        while True:
            yield from super().__iter__()


def main():
    data = Streamed() if kind == "streamed" else Mapped()
    made = (Endless if kind == "endless" else DataLoader)(data, batch_size=4, num_workers=workers)
    if kind == "by hand":
        return by_hand(data)
    model = torch.nn.Linear(256, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    open("log.csv", "a").write("begun\\n")
    for step, x in enumerate(made):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 40:
            break
    open("log.csv", "a").write("done\\n")


def by_hand(data):
    for workers in (1, 2):
        batches = iter(DataLoader(data, batch_size=4, num_workers=workers))
        for _ in range(workers):
            next(batches)
        begun = time.perf_counter()
        print(workers, 4 * sum(1 for _ in batches) / (time.perf_counter() - begun))


if __name__ == "__main__":
    main()
"""


def run(folder: Path, kind: str, workers: int) -> dict[str, Any]:
    """The report of `floorit run --floor`."""
    (folder / "train.py").write_text(SCRIPT)
    words = [FLOORIT, "run", "--quiet", "--floor", "--no-window", "--out", "run"]
    command = [*words, "--", PYTHON, "train.py", kind, str(workers)]
    subprocess.run(command, cwd=folder, check=True, env=clean_environment(), timeout=240)
    found: dict[str, Any] = json.loads((folder / "run" / "report.json").read_text())
    return found


def drained(report: dict[str, Any]) -> dict[int, float]:
    return {rate["workers"]: rate["samples_per_second"] for rate in report["workers"]["drained"]}


@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        ("mapped", 1),
        pytest.param("mapped", 0, marks=pytest.mark.acceptance),
        pytest.param("streamed", 1, marks=pytest.mark.acceptance),
        pytest.param("endless", 1, marks=pytest.mark.acceptance),
    ],
)
def test_a_loader_is_drained_in_a_run_that_leaves_no_trace(tmp_path: Path, kind: str, workers: int) -> None:
    report = run(tmp_path, kind, workers)
    rates = drained(report)
    assert {workers, 1} <= set(rates)
    assert all(rate > 0 for rate in rates.values())
    assert (tmp_path / "log.csv").read_text() == "begun\ndone\n"
    assert not any(missing["what"] == "workers.drained" for missing in report["missing"])


def test_a_number_of_workers_that_fails_is_said_to(tmp_path: Path) -> None:
    report = run(tmp_path, "alone", 0)
    assert set(drained(report)) == {0}
    reasons = [missing["reason"] for missing in report["missing"] if missing["what"] == "workers.drained"]
    assert any(reason.startswith("with 1 worker: ") and "only in the main process" in reason for reason in reasons)


@pytest.mark.acceptance
def test_it_gives_what_a_timer_of_ones_own_says(tmp_path: Path) -> None:
    """By turns: what else the machine does falls on both alike."""
    (tmp_path / "train.py").write_text(SCRIPT)
    ratios = []
    for _ in range(3):
        said = subprocess.run(
            [PYTHON, "train.py", "by hand", "1"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        timed = {int(line.split()[0]): float(line.split()[1]) for line in said.stdout.splitlines()}
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        rates = drained(run(tmp_path, "mapped", 2))
        ratios += [rates[count] / timed[count] for count in (1, 2)]
    assert sorted(ratios)[len(ratios) // 2] == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(
    ("own", "cores", "numbers"),
    [(2, 16, [1, 2, 8, 16]), (0, 2, [1, 2, 0]), (8, 8, [1, 4, 8]), (1, 1, [1]), (4, 0.5, [1, 4]), (3, None, [1, 3])],
)
def test_which_numbers_of_workers(own: int, cores: float | None, numbers: list[int]) -> None:
    assert drain.numbers(own, cores) == numbers


def test_ranks_that_drain_beside_each_other_add_up() -> None:
    """Each gives what it gives while the other takes its part of the cores."""
    processes = [Process(), Process()]
    for process, batches in zip(processes, (30, 50), strict=True):
        process.drained = [{"note": "drained", "workers": 2, "batches": batches, "seconds": 2.0}]
    processes[1].drained.append({"note": "drained", "workers": 1, "reason": "broken"})
    assert drain._told(processes) == [
        Drained(workers=1, reason="broken"),
        Drained(workers=2, batches=80, seconds=2.0),
    ]


@pytest.mark.parametrize(
    ("environment", "cores"),
    [
        (Environment(cores=16, cores_allowed=8, cores_quota=2.5), 2.5),
        (Environment(cores=16), 16),
        (Environment(), None),
    ],
)
def test_cores_that_a_program_may_use(environment: Environment, cores: float | None) -> None:
    assert environment.usable_cores == cores
