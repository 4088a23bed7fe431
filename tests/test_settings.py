"""Declared beside in force: which differences count, and which are the program's good right."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from conftest import PYTHON, recorded, report_of
from test_diagnose import needs

from floorit.analyse import settings
from floorit.analyse.input import Workers
from floorit.analyse.iterations import Iterations
from floorit.analyse.ledger import Ledger
from floorit.declared import By, Declaration, Told
from floorit.diagnose import Facts, threads
from floorit.diagnose import settings as findings
from floorit.events import ROW, Process
from floorit.report import build, model

VALUES = {
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
    "matmul.allow_tf32": False,
    "float32_matmul_precision": "highest",
    "deterministic_algorithms": False,
    "threads": 8,
}
LOADER = {"workers": 2, "batch_size": 16, "prefetch": 2, "persistent": False, "pin": False, "asks_cores": False}


def reading(**more: Any) -> dict[str, Any]:
    given = {"at": 1.0, "training": True, "cuda": True, "values": VALUES, "autocast": None, "compiled": False}
    given |= {"casts": [], "places": {}, "environ": {}, "cores": 8, "cpu_seconds": 1.0, "preempted": 0}
    return given | more


def process(*readings: dict[str, Any], **loader: Any) -> Process:
    """One that trained on one loader."""
    made = Process()
    rows = np.zeros(1, ROW)
    rows["iterator"] = rows["backwards"] = 1
    made._parts["rows"].append(rows)
    made.loaders, made.iterators = {1: {**LOADER, **loader}}, {1: {"id": 1, "loader": 1, "pids": []}}
    made.optimizers = {0: {"name": "SGD", "lr": 0.1, "dtypes": ["float32"], "fused": False}}
    made.readings = list(readings) or [reading()]
    return made


def iterations(accumulation: float = 1.0) -> Iterations:
    nothing: Any = np.zeros(0)
    return Iterations(
        border="batches",
        kind=nothing,
        of_row=nothing,
        windowed=nothing,
        slowed=nothing,
        seconds=nothing,
        samples=nothing,
        compiled=nothing,
        optimizer_steps=1,
        accumulation=accumulation,
        epochs=1,
        eval_passes=0,
        warmup=0,
        steady=True,
        eval_iterators=frozenset(),
    )


def declare(setting: str, value: Any, by: By = "file", key: str | None = None, at: str = "c.yaml:1") -> Declaration:
    return Declaration(setting=setting, scope="train", key=key or setting, value=value, by=by, at=at)


def ignored(
    made: Process, *declared: Declaration, ranks: int = 1, accumulation: float = 1.0
) -> dict[str, tuple[Any, Any]]:
    """name -> (declared, actual) of what is ignored."""
    found = settings.compare(made, iterations(accumulation), Told(declarations=list(declared)), ranks)
    return {s.name: (s.declared, s.actual) for s in found if s.ignored}


@pytest.mark.parametrize(
    ("declared", "facts", "ranks", "is_ignored"),
    [
        (24, {}, 1, True),
        (2, {}, 1, False),
        (8, {}, 4, False),  # of all ranks together
        (2, {}, 4, False),  # of each
        (24, {"asks_cores": True}, 1, False),  # no more than there are cores
        (1, {"asks_cores": True}, 1, True),
        (-1, {}, 1, False),
        ("auto", {}, 1, False),
        (True, {}, 1, False),
        (None, {}, 1, False),
    ],
)
def test_workers(declared: Any, facts: dict[str, Any], ranks: int, is_ignored: bool) -> None:
    assert bool(ignored(process(**facts), declare("num_workers", declared), ranks=ranks)) == is_ignored


@pytest.mark.parametrize(
    ("declared", "size", "ranks", "accumulation", "is_ignored"),
    [
        (32, 16, 1, 1.0, True),
        (16, 16, 1, 1.0, False),
        (64, 16, 4, 1.0, False),
        (64, 16, 1, 4.0, False),
        (256, 16, 4, 4.0, False),
        (64, 1, 1, 1.0, False),  # each sample may be a batch
        (64, None, 1, 1.0, False),
        (-1, 16, 1, 1.0, False),
    ],
)
def test_batch_size(declared: int, size: int | None, ranks: int, accumulation: float, is_ignored: bool) -> None:
    made = process(batch_size=size)
    assert bool(ignored(made, declare("batch_size", declared), ranks=ranks, accumulation=accumulation)) == is_ignored


def test_what_needs_workers_is_not_missed_where_there_are_none() -> None:
    declared = declare("prefetch_factor", 4), declare("persistent_workers", True)
    assert set(ignored(process(), *declared)) == {"prefetch_factor", "persistent_workers"}
    assert not ignored(process(workers=0, prefetch=None), *declared)


def test_cudnn_without_cuda_counts_only_where_the_program_sets_it() -> None:
    declared = declare("cudnn.benchmark", True)
    place = {"cudnn.benchmark": ["/x/train.py", 7, "main"]}
    assert ignored(process(reading()), declared)
    assert not ignored(process(reading(cuda=False)), declared)
    assert ignored(process(reading(cuda=False, places=place)), declared)


@pytest.mark.parametrize(
    ("key", "value", "autocast", "is_ignored"),
    [
        ("amp", True, "float16", False),
        ("amp", True, None, True),
        ("amp", False, None, False),
        ("amp", False, "bfloat16", True),
        ("fp16", True, "bfloat16", True),
        ("fp16", False, "bfloat16", False),
        ("bf16", True, "bfloat16", False),
        ("precision", 16, "float16", False),
        ("precision", 32, None, False),
        ("precision", "bf16-mixed", None, True),
        ("precision", "16-true", None, False),
        ("mixed_precision", False, None, False),
        ("half", True, None, True),
        ("amp", "O1", None, False),
    ],
)
def test_half_precision(key: str, value: Any, autocast: str | None, is_ignored: bool) -> None:
    seen = {"device": "cuda", "dtype": autocast} if autocast else None
    declared = declare("autocast", value, key=key)
    assert bool(ignored(process(reading(autocast=seen)), declared)) == is_ignored
    assert not ignored(process(reading(autocast=seen, cuda=False)), declared)
    assert not ignored(process(reading(autocast=seen, casts=["deepspeed"])), declared)


def test_weights_in_half_precision_need_no_autocast() -> None:
    made = process()
    made.optimizers[0]["dtypes"] = ["bfloat16", "float32"]
    assert not ignored(made, declare("autocast", True, key="bf16"))


def test_autocast_seen_at_any_reading_counts() -> None:
    seen = {"device": "cuda", "dtype": "bfloat16"}
    made = process(reading(autocast=seen), reading(), reading(training=False))
    assert not ignored(made, declare("autocast", True, key="amp"))


def test_the_values_while_it_trained_count() -> None:
    after = reading(training=False, values={**VALUES, "cudnn.benchmark": True})
    assert ignored(process(reading(), after), declare("cudnn.benchmark", True)) == {"cudnn.benchmark": (True, False)}


def test_one_of_several_sections_in_force_is_enough() -> None:
    assert not ignored(process(), declare("num_workers", 24), declare("num_workers", 2), declare("num_workers", 0))
    assert ignored(process(), declare("num_workers", 24), declare("num_workers", 8)) == {"num_workers": (8, 2)}


def test_an_argument_outdoes_a_file_and_a_file_a_default() -> None:
    argument, file, default = (
        declare("num_workers", 8, "argument"),
        declare("num_workers", 2),
        declare("num_workers", 8, "default"),
    )
    assert ignored(process(), argument, file)
    assert not ignored(process(), file, default)
    assert ignored(process(), default)


def test_a_learning_rate_is_shown_and_not_judged() -> None:
    found = settings.compare(process(), iterations(), Told(declarations=[declare("optimizer.lr", 0.5)]), 1)
    row = next(s for s in found if s.name == "optimizer.lr")
    assert (row.declared, row.actual, row.ignored) == (0.5, 0.1, False)


def test_without_a_reading_there_are_no_settings() -> None:
    made = process()
    made.readings = []
    assert settings.compare(made, iterations(), None, 1) == []


# -- findings ---------------------------------------------------------------------------------------------------


def facts(made: Process, declared: list[Declaration], ranks: int = 1) -> Facts:
    ledger = Ledger(entries=[], mean=1.0, looks={})
    compared = settings.compare(made, iterations(), Told(declarations=declared), ranks)
    return Facts(process=made, iterations=iterations(), ledger=ledger, workers=None, needs=needs([]), settings=compared)


def test_the_finding_names_both_places() -> None:
    made = process(made_file="/x/data.py", made_line=60, made_function="loaders")
    found = findings.find(facts(made, [declare("num_workers", 24, at="/x/c.yaml:8")]))
    assert [(f.code, f.bound) for f in found] == [("setting-ignored", None)]
    assert [(line.file, line.line) for line in found[0].where] == [("/x/data.py", 60), ("/x/c.yaml", 8)]
    assert found[0].evidence[0] == "num_workers: 24 in /x/c.yaml:8, 2 in force"
    assert findings.find(facts(made, [declare("num_workers", 2)])) == []


@pytest.mark.parametrize(
    ("ranks", "cpu_seconds", "preempted", "is_found"),
    [
        (4, 20.0, 5000, True),  # 4 x 8 threads on 8 cores, each rank has its 2 cores' worth, pushed aside all the time
        (4, 20.0, 50, False),  # nobody is pushed aside
        (4, 5.0, 5000, False),  # the cores are not full
        (4, 5.0, 20000, True),  # other programs fill them, and yet only its own threads push so often
        (1, 80.0, 8000, False),  # as many threads as cores
    ],
)
def test_more_threads_than_cores(ranks: int, cpu_seconds: float, preempted: int, is_found: bool) -> None:
    first, last = reading(at=0.0, cpu_seconds=0.0), reading(at=10.0, cpu_seconds=cpu_seconds, preempted=preempted)
    found = threads.find(facts(process(first, last), [], ranks))
    assert [f.code for f in found] == (["oversubscribed"] if is_found else [])


def crowd(**facts: Any) -> Any:
    """Of workers, what the rule looks at."""
    workers = SimpleNamespace(**facts)
    workers.at_work = Workers.at_work.fget(workers)  # type: ignore[attr-defined]
    return workers


@pytest.mark.parametrize(("busy", "is_found"), [(0.9, True), (0.02, False)])
def test_workers_that_do_nothing_crowd_nobody(busy: float, is_found: bool) -> None:
    """8 threads of torch on 8 cores, and 8 workers: whoever pushes them aside, idle workers do not."""
    first, last = reading(at=0.0, cpu_seconds=0.0), reading(at=10.0, cpu_seconds=80.0, preempted=80_000)
    workers = crowd(count=8, threads=None, helped_share=None, core_wait_share=None, busy_share=busy)
    found = threads.find(msgspec.structs.replace(facts(process(first, last), []), workers=workers))
    assert [f.code for f in found] == (["oversubscribed"] if is_found else [])


@pytest.mark.parametrize(
    ("helped", "waits", "each", "busy", "is_found"),
    [
        (0.3, 0.6, 9, 0.9, True),
        (0.02, 0.6, 9, 0.9, False),
        (0.3, 0.1, 9, 0.9, False),
        (0.3, 0.6, 3, 0.9, False),
        (0.3, 0.6, 9, 0.03, False),
        (None, None, None, 0.9, False),
    ],
)
def test_workers_with_more_threads_than_cores(
    helped: float | None, waits: float | None, each: int | None, busy: float, is_found: bool
) -> None:
    """Of 8 cores: their libraries' threads must do part of the work, they must wait for cores, and be a busy crowd."""
    workers = crowd(count=4, threads=each, helped_share=helped, core_wait_share=waits, busy_share=busy)
    made = msgspec.structs.replace(facts(process(), []), workers=workers)
    found = threads.find(made)
    assert [f.code for f in found] == (["oversubscribed"] if is_found else [])
    assert not threads.comes_first(made)


# -- programs ---------------------------------------------------------------------------------------------------

TRAIN = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(torch.randn(400, 4), batch_size=4):
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
"""
HOSTILE = (
    """
import configparser, json, pathlib, torch, yaml
here = pathlib.Path.cwd()
(here / "huge.json").write_text(json.dumps({"workers": 4, "x": "x" * 2_000_000}))
(here / "binary.yaml").write_bytes(bytes(range(256)))
(here / "broken.yaml").write_text("a: [")
(here / "secret.yaml").write_text("api_key: s3cret\\nworkers: 5\\n")
(here / "text.yaml").write_text("batch_size: 9\\n")
(here / "gone.yaml").write_text("batch_size: 7\\n")
(here / "some.ini").write_text("[train]\\ndrop_last = yes\\n")
json.load(open("huge.json"))
for name in ("binary", "broken"):
    try:
        yaml.safe_load(open(name + ".yaml", "rb"))
    except yaml.YAMLError as error:
        print(type(error).__name__)
yaml.safe_load(open("secret.yaml"))
with open("text.yaml") as file:
    print(yaml.safe_load(file.read()))
yaml.safe_load(pathlib.Path("gone.yaml").read_text())
pathlib.Path("gone.yaml").unlink()
print(configparser.ConfigParser().read(["some.ini", "none.ini"]))
class Odd:
    name = property(lambda self: 1 / 0)
    def read(self, size=-1):
        return "{}"
print(json.load(Odd()))
import pickle
pickle.loads(pickle.dumps(torch.set_num_threads))(1)  # set_num_threads may be sent to spawned workers
"""
    + TRAIN
)


def test_hostile_files_do_no_harm(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HOSTILE)
    ended = recorded([PYTHON, str(script)], tmp_path / "run", tmp_path)
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stdout.decode().splitlines()[-4:-1] == ["{'batch_size': 9}", "['some.ini']", "{}"]
    report = report_of(tmp_path / "run")
    assert report is not None
    found = {s["name"]: s for s in report["settings"]}
    assert found["num_workers"]["declared"] == 5  # not of the file that is too large
    assert found["num_workers"]["declared_at"] == f"{tmp_path}/secret.yaml:2"
    assert found["num_workers"]["set_at"]["line"] == found["batch_size"]["set_at"]["line"]
    assert found["batch_size"]["declared_at"] == f"{tmp_path}/text.yaml:1"
    assert "set_num_threads" in HOSTILE.splitlines()[found["threads"]["set_at"]["line"] - 1]
    assert found["drop_last"]["declared_at"] == f"{tmp_path}/some.ini:2"
    unread = {m["reason"].partition(":")[0] for m in report["missing"] if m["what"] == "declared settings"}
    assert unread == {str(tmp_path / name) for name in ("binary.yaml", "broken.yaml", "gone.yaml")}
    kept = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not any(b"s3cret" in content for content in kept)


BROKEN = (
    """
import torch
del torch.get_num_interop_threads
"""
    + TRAIN
)


def test_a_reading_that_fails_is_named_and_the_program_does_not_notice(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN)
    ended = recorded([PYTHON, str(script)], tmp_path / "run", tmp_path)
    assert ended.returncode == 0
    assert not ended.stderr
    report = report_of(tmp_path / "run")
    assert report is not None
    assert report["run"]["steps"] == 100
    assert "settings in force" in [m["what"] for m in report["missing"]]


OWN_OPTIMIZER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,))), batch_size=16)
model = nn.Linear(16, 4)
class Own:
    param_groups = [{"params": list(model.parameters())}]
    @torch.no_grad()
    def step(self):
        for p in model.parameters():
            p -= 0.01 * p.grad
optimizer, scaler = Own(), torch.amp.GradScaler("cpu", init_scale=64.0)
for x, y in loader:
    model.zero_grad()
    scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_steps_that_cannot_be_seen_are_not_said_to_be_skipped(tmp_path: Path) -> None:
    """An optimizer that is none of torch's tells nobody of its steps."""
    script = tmp_path / "train.py"
    script.write_text(OWN_OPTIMIZER)
    assert recorded([PYTHON, str(script)], tmp_path / "run", tmp_path).returncode == 0
    report = report_of(tmp_path / "run")
    assert report is not None
    found = {s["name"]: s["actual"] for s in report["settings"]}
    assert (found["grad_scaler"], found["grad_scaler.scale"]) == (True, 64.0)
    assert "grad_scaler.skipped" not in found


def test_the_report_is_the_same_on_another_machine(tmp_path: Path) -> None:
    """What was declared is kept with the run: the files may be gone."""
    (tmp_path / "c.yaml").write_text("workers: 3\n")
    script = tmp_path / "train.py"
    script.write_text("import torch, yaml\nyaml.safe_load(open('c.yaml'))\n" + TRAIN)
    recorded([PYTHON, str(script)], tmp_path / "run", tmp_path)
    (tmp_path / "c.yaml").unlink()
    first = report_of(tmp_path / "run")
    again = json.loads(model.to_json(build.build(tmp_path / "run")))
    assert first is not None
    assert again["settings"] == first["settings"]
    assert [s["name"] for s in again["settings"] if s["ignored"]] == ["num_workers"]


@pytest.mark.parametrize(
    ("facts", "fused", "foreach"),
    [
        ({"fused": None, "foreach": None, "devices": ["cuda"]}, False, True),
        ({"fused": None, "foreach": None, "devices": ["cpu"]}, False, False),
        ({"fused": None, "foreach": None, "devices": ["cpu", "cuda"]}, False, False),
        ({"fused": True, "foreach": None, "devices": ["cuda"]}, True, False),
        ({"fused": None, "foreach": False, "devices": ["cuda"]}, False, False),
        ({"fused": None, "foreach": None}, False, None),  # of a record of old
    ],
)
def test_what_torch_chooses_for_an_optimizer_is_in_force(
    facts: dict[str, Any], fused: bool, foreach: bool | None
) -> None:
    made = process()
    made.optimizers = {0: {"name": "AdamW", "lr": 0.1, "dtypes": ["float32"], **facts}}
    actual = {s.name: s.actual for s in settings.compare(made, iterations(), Told(), 1)}
    assert (actual["optimizer.fused"], actual["optimizer.foreach"]) == (fused, foreach)


def test_each_optimizer_that_differs_is_told_of() -> None:
    made = process()
    one = {"name": "AdamW", "lr": 0.1, "dtypes": ["float32"]}
    made.optimizers = dict(enumerate([one, one, {**one, "lr": 0.2}, {**one, "name": "SGD"}]))
    actual = {s.name: s.actual for s in settings.compare(made, iterations(), Told(), 1)}
    assert [actual[name] for name in ("optimizer", "optimizer[1]", "optimizer[2]")] == ["AdamW", "AdamW", "SGD"]
    assert (actual["optimizer.lr"], actual["optimizer[1].lr"]) == (0.1, 0.2)


def test_each_loader_that_differs_is_told_of() -> None:
    made = process()
    made.loaders = {**made.loaders, 2: {**made.loaders[1], "id": 2}, 3: {**made.loaders[1], "id": 3, "workers": 9}}
    made.iterators = {number: {"id": number, "loader": number, "pids": []} for number in (1, 2, 3)}
    rows = np.zeros(2, ROW)
    rows["iterator"], rows["backwards"] = (2, 3), 1
    made._parts["rows"].append(rows)
    actual = {s.name: s.actual for s in settings.compare(made, iterations(), Told(), 1)}
    assert actual["num_workers"] == LOADER["workers"]
    assert actual["loader[1].num_workers"] == 9
    assert "loader[2].num_workers" not in actual
