"""The floor: its ladder, the run without a data path, and that this run leaves no trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import FLOORIT, PYTHON, clean_environment

from floorit.analyse import floor, iterations
from floorit.analyse.gpu import Gpu
from floorit.analyse.ledger import Entry, Ledger
from floorit.analyse.needs import Loader, Needs, Range
from floorit.events import read_record

SCRIPT = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

kind, workers = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(0)


def sample(i):
    x = torch.full((256,), float(i % 7))
    for _ in range(30):
        x = (x @ torch.ones(256, 256)).tanh()
    return {"x": x, "y": torch.tensor([float(i % 2)])}


class Mapped(Dataset):
    def __len__(self):
        return 101

    def __getitem__(self, i):
        return sample(i)


class Streamed(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for i in range(worker.id if worker else 0, 100, worker.num_workers if worker else 1):
            yield sample(i)


data = Streamed() if kind == "streamed" else Mapped()
persistent = {"persistent_workers": True} if kind == "persistent" else {}
loader = DataLoader(data, batch_size=5, num_workers=workers, shuffle=kind == "shuffled", **persistent)
if kind == "resident":
    loader = [next(iter(loader))] * 21
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
log = open("log.csv", "a")
for epoch in range(4):
    batches = samples = 0
    for batch in loader:
        x = batch["x"] if kind == "resident" else batch.pop("x")
        loss = (model(x) - batch["y"]).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        batches += 1
        samples += len(batch["y"])
        log.write("%r\\n" % loss.item())
    torch.save(model.state_dict(), "last.pt")
    print(epoch, batches, samples, flush=True)
"""


def run(folder: Path, *words: str, script: str = SCRIPT) -> dict[str, Any]:
    """The report of `floorit run --floor`, with what the program said as "said"."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(script)
    command = [FLOORIT, "run", "--quiet", "--floor", "--out", "run", "--", PYTHON, "train.py", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=clean_environment(), timeout=240)
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads((folder / "run" / "report.json").read_text())
    return {**report, "said": ended.stdout}


def reason(report: dict[str, Any]) -> str | None:
    return next((m["reason"] for m in report["missing"] if m["what"] == "the floor run"), None)


def skip_if_refused(report: dict[str, Any]) -> None:
    why = reason(report)
    if why is not None:
        pytest.skip(f"no floor run here: {why}")


LONG = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        pytest.param("shuffled", 2, marks=LONG),
        pytest.param("streamed", 2, marks=LONG),
        pytest.param("persistent", 2, marks=LONG),
        pytest.param("streamed", 0, marks=LONG),
    ],
)
def test_a_program_that_counts_cannot_tell(tmp_path: Path, kind: str, workers: int) -> None:
    report = run(tmp_path / "p", kind, str(workers))
    skip_if_refused(report)
    output = (tmp_path / "p" / "run" / "floor" / "output.txt").read_text()
    assert [line for line in output.splitlines() if line[0].isdigit()] == report["said"].splitlines()
    step, without = report["floor"]["rungs"]
    assert without["estimate"] is False
    assert without["seconds"] < 0.6 * step["seconds"]
    assert report["floor"]["gap"] == pytest.approx(step["seconds"] / without["seconds"])


@LONG
def test_its_speed_is_that_of_data_in_memory(tmp_path: Path) -> None:
    report = run(tmp_path / "p", "plain", "0")
    skip_if_refused(report)
    resident = run(tmp_path / "r", "resident", "0")
    without = report["floor"]["rungs"][1]["seconds"]
    assert without == pytest.approx(resident["step"]["mean"], rel=0.5)  # the step itself is five times as long
    assert without < 0.4 * report["step"]["mean"]


def test_it_leaves_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    run(folder, "plain", "0")
    left = {path.name for path in folder.iterdir()}
    assert left == {"train.py", "log.csv", "last.pt", "run"}
    assert len((folder / "log.csv").read_text().splitlines()) == 4 * 21
    (folder / "run").rename(tmp_path / "first")
    bare = tmp_path / "b"
    bare.mkdir()
    (bare / "train.py").write_text(SCRIPT)
    subprocess.run([PYTHON, "train.py", "plain", "0"], cwd=bare, check=True, env=clean_environment(), timeout=120)
    for name in ("log.csv", "last.pt"):
        assert (folder / name).read_bytes() == (bare / name).read_bytes()


def test_one_that_fails_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    fails = 'import os, sys\nif "FLOORIT_REPLAY" in os.environ:\n    sys.exit("no replays here")\n' + SCRIPT
    report = run(tmp_path / "p", "plain", "0", script=fails)
    assert "exit code 1" in (reason(report) or "")
    assert (tmp_path / "p" / "run" / "floor" / "output.txt").read_text() == "no replays here\n"
    assert report["program"]["exit_code"] == 0
    assert report["floor"]["rungs"][1]["estimate"] is True


STEADY = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
data = TensorDataset(torch.randn(256 * 50, 512))
for epoch in range(6):
    for (x,) in DataLoader(data, batch_size=256):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@LONG
def test_the_rungs_are_the_same_the_next_time(tmp_path: Path) -> None:
    """Within 2 %, on a machine on which the program itself takes the same time twice."""
    runs = [run(tmp_path / name, script=STEADY) for name in ("first", "second")]
    skip_if_refused(runs[0])
    steps, floors = ([r["floor"]["rungs"][at]["seconds"] for r in runs] for at in (0, 1))
    drift = abs(steps[0] / steps[1] - 1)
    if drift > 0.01:
        pytest.skip(f"this machine is not quiet: the program's own step differs by {drift:.0%} from run to run")
    assert floors[0] == pytest.approx(floors[1], rel=0.02)


@LONG
def test_loaders_made_anew_go_on_with_what_was_kept(tmp_path: Path) -> None:
    """Else only the last pass would count."""
    run(tmp_path / "p", script=STEADY)
    (process,) = read_record(tmp_path / "p" / "run" / "floor" / "record").run()
    found = iterations.find(process)
    assert found is not None
    assert found.warmup < 20
    assert len(found.after_warmup) > 150


# -- the ladder ----------------------------------------------------------------------------------------------------


def ledger(**phases: float) -> Ledger:
    mean = sum(phases.values())
    entries = [
        Entry(phase=phase, seconds=seconds, share=seconds / mean, gpu_seconds=None, where=[])
        for phase, seconds in phases.items()
    ]
    return Ledger(mean=mean, entries=entries, looks={})


FIRST = ledger(data_wait=0.6, forward=0.1, backward=0.2, epoch_gap=0.05, eval=0.04, checkpoint=0.01)


def test_without_a_second_run_the_rung_is_an_estimate() -> None:
    found = floor.ladder(FIRST, None, None, None)
    assert [(r.name, round(r.seconds, 9), r.estimate) for r in found.rungs] == [
        ("step", 1.0, False),
        ("without data", 0.35, True),
    ]
    assert found.gap == pytest.approx(1 / 0.35)


def needs(of: Ledger, **more: Any) -> Needs:
    host = {entry.phase: entry.seconds for entry in of.entries}
    loader = Loader(workers=1, work=Range(0.9, 0.9, 0.9), receive=0.0, ahead=1.5)
    facts = {"cores": 2.0, "threads": Range(1.0, 1.0, 1.0), "loader": loader, "eval_waits": 0.5, **more}
    step = {"step": of.mean, "n": 40, "spread": 0.0, "host": host, "device": {}, "gpu": None, "idle": None}
    return Needs(**{**step, "copies_alone": 0.0, "passes": 0.1, "evals": 0.1, **facts})


def test_the_estimate_may_be_shorter_by_what_an_evaluation_waits_for_data_and_by_the_workers_cores() -> None:
    found = floor.ladder(FIRST, None, None, None, needs=needs(FIRST))
    assert found.rungs[1].seconds == pytest.approx(0.35)
    assert found.least_without_data == pytest.approx(0.35 - 0.5 * 0.04)
    assert (found.gap, found.most) == pytest.approx((1 / 0.35, 1 / 0.33))
    crowded = floor.ladder(FIRST, None, None, None, needs=needs(FIRST, threads=Range(1.0, 1.4, 2.0)))
    taken = (0.9 + 2.0) / 2  # cores, of two
    assert crowded.least_without_data == pytest.approx(0.3 / taken + 0.02 + 0.01)


def test_what_a_second_run_has_measured_is_no_range() -> None:
    found = floor.ladder(FIRST, None, ledger(forward=0.11, backward=0.19), None, needs=needs(FIRST))
    assert found.least_without_data == found.rungs[1].seconds == pytest.approx(0.35)
    assert found.most == found.gap


def test_of_several_ranks_how_much_shorter_it_may_be_is_not_known() -> None:
    found = floor.ladder(FIRST, None, None, None, of_ranks=0.2, needs=needs(FIRST))
    assert found.least_without_data is None
    assert found.most == found.gap == pytest.approx(1 / 0.8)


def test_of_a_second_run_evaluation_and_checkpoints_are_the_first_ones() -> None:
    second = ledger(data_wait=0.001, forward=0.11, backward=0.19, epoch_gap=0.2, eval=0.5)
    found = floor.ladder(FIRST, None, second, None)
    assert found.rungs[1].seconds == pytest.approx(0.3 + 0.05)
    assert not found.rungs[1].estimate


def test_copies_from_the_host_that_nothing_runs_beside_are_a_cost_of_data() -> None:
    second = ledger(h2d=0.1, forward=0.11, backward=0.19, eval=0.5)
    watched = Gpu(busy_share=0.9, uploads_alone_share=0.2, step_seconds=0.4)
    found = floor.ladder(FIRST, None, second, watched)
    assert [r.seconds for r in found.rungs] == pytest.approx([1.0, 0.4 + 0.05 - 0.08, 0.36 - 0.08])
    idler = Gpu(busy_share=0.5, uploads_alone_share=0.2, step_seconds=0.4)
    assert floor.ladder(FIRST, idler, None, None).rungs[1].seconds == pytest.approx(0.35 - 0.08)


def test_no_rung_is_higher_than_the_one_above() -> None:
    second = ledger(forward=0.5, backward=0.47, eval=0.5)
    found = floor.ladder(FIRST, None, second, Gpu(busy_share=1.0, step_seconds=1.05))
    assert [r.seconds for r in found.rungs] == pytest.approx([1.0, 1.0, 1.0])
    assert found.gap == pytest.approx(1.0)


def test_the_gpu_s_busy_time_is_the_lowest_rung() -> None:
    found = floor.ladder(FIRST, Gpu(busy_share=0.2, step_seconds=1.1), None, Gpu(busy_share=0.5, step_seconds=0.5))
    assert [r.name for r in found.rungs] == ["step", "without data", "without waiting"]
    assert found.rungs[2].seconds == pytest.approx(0.25)
    assert found.gap == pytest.approx(4.0)
    assert floor.ladder(FIRST, Gpu(busy_share=0.2, step_seconds=1.1), None, None).gap == pytest.approx(1 / 0.22)


def test_the_rungs_go_down_also_where_the_gpu_works_while_the_host_waits_for_data() -> None:
    found = floor.ladder(FIRST, Gpu(busy_share=0.9, step_seconds=1.0), None, None)
    assert [rung.seconds for rung in found.rungs] == sorted((rung.seconds for rung in found.rungs), reverse=True)
    assert found.gap == pytest.approx(1 / 0.9)
