"""Overrides: in force inside a program that was not edited and asks for the opposite, and told in the report."""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from conftest import FLOORIT, PYTHON, execute, report_of
from torch import nn
from torch.optim import optimizer as optim
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, TensorDataset

from floorit import cli
from floorit.analyse.overrides import find
from floorit.errors import UsageError
from floorit.events import Place, Process
from floorit.fixes import asked
from floorit.record import imports, overrides
from floorit.record.overrides import (
    accumulating,
    ahead,
    batches,
    blocks,
    eightbit,
    frameworks,
    onward,
    rates,
    store,
    streams,
)
from floorit.record.overrides.order import obstacle_to_torchs
from floorit.record.patch import Patches
from floorit.report import overrides as terminal_overrides

FOLDER = Path(__file__).parent / "overridden"
MIB = 2**20
SCRIPT = FOLDER / "train.py"


class Ran:
    """One run of the script: what it says of itself, and what the report says of the overrides."""

    def __init__(self, folder: Path, *fixes: str, arguments: tuple[str, ...] = (), script: Path = SCRIPT) -> None:
        words = [word for fix in fixes for word in ("--fix", fix)]
        command = [FLOORIT, "run", "--out", str(folder / "run"), "--quiet", *words, "--", str(script), *arguments]
        self.ended = execute(command, folder)
        assert self.ended.returncode == 0, self.ended.stderr.decode()
        self.said: dict[str, Any] = json.loads(self.ended.stdout)
        report = report_of(folder / "run")
        assert report is not None
        self.report = report
        self.told = {override["code"]: override for override in report["overrides"]}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script says without floorit."""
    ended = execute([PYTHON, str(SCRIPT)], tmp_path_factory.mktemp("usual"))
    said: dict[str, Any] = json.loads(ended.stdout)
    assert said["made_by"] == [0]
    return said


def make(folder: Path, name: str) -> Path:
    """A folder of its own."""
    (folder / name).mkdir()
    return folder / name


def line_of(text: str) -> int:
    """The script's first line that holds a text."""
    return next(number for number, line in enumerate(SCRIPT.read_text().splitlines(), 1) if text in line)


def test_workers_keep_the_order_of_samples_and_the_stream_of_the_program(tmp_path: Path, usual: dict[str, Any]) -> None:
    ran = Ran(tmp_path, "workers=2", "prefetch=3", "persistent", "worker-threads=2", "anomaly", "set-to-none")
    assert ran.said["made_by"] == [2]
    assert len(ran.said["pids"]) == 2  # kept from one epoch to the next
    assert ran.said["threads"] == [2]
    assert ran.said["evaluated_by"] == [0]
    for name in ("losses", "order", "drawn", "others"):
        assert ran.said[name] == usual[name], name
    assert {code: told["state"] for code, told in ran.told.items()} == dict.fromkeys(ran.told, "in force")
    assert ran.told["workers"]["asked"] == 0
    assert ran.told["workers"]["asked_at"]["line"] == line_of("loader = DataLoader(")
    assert ran.told["prefetch"]["asked"] is None
    assert ran.told["persistent"]["asked"] is False
    assert ran.told["workers"]["acted"] == 5  # passes' iterators: one that is kept, and the others
    assert ran.report["workers"]["count"] == 2


HALVED = (("usual", ()), ("halved", ("amp=fp16",)))
SWITCHES = (
    "tf32",
    "cudnn-benchmark",
    "deterministic",
    "anomaly",
    "fused",
    "set-to-none",
    "launch-blocking",
    "allocator",
    "async-copy",
    "device-prefetch",
    "optimizer-8bit",
    "sync-off",
    "eval-every=3",
)
OF_DATA = ("workers=2", "decode-cache")
OF_RANKS = ("static-graph", "bucket-view", "bucket-mb=7")


def test_what_the_model_and_the_optimizer_compute_with(tmp_path: Path, usual: dict[str, Any]) -> None:
    ran = Ran(tmp_path, "amp=bf16", "channels-last", *SWITCHES, *OF_RANKS, *OF_DATA, arguments=(str(tmp_path),))
    before, after = usual["in force"], ran.said["in force"]
    assert before == {
        "cudnn.benchmark": False,
        "tf32": False,
        "precision": "highest",
        "deterministic": True,
        "anomaly": True,
        "channels_last": False,
        "pictures": [False],
        "computed_in": ["torch.float32"],
        "returned": ["torch.float32"],
        "fused": [None],
        "dropped": False,
        "compiled": False,
    }
    assert after == {
        "cudnn.benchmark": True,
        "tf32": True,
        "precision": "high",
        "deterministic": False,
        "anomaly": False,
        "channels_last": True,
        "pictures": [True],
        "returned": ["torch.float32"],
        "computed_in": ["torch.bfloat16", "torch.float32"],  # as it evaluates, nothing is changed
        "fused": [True],
        "dropped": True,
        "compiled": False,
    }
    assert ran.said["losses"] == pytest.approx(usual["losses"], rel=0.05)
    assert ran.said["losses"] != usual["losses"]
    states = {code: told["state"] for code, told in ran.told.items()}
    met = ("amp", "channels-last", "deterministic", "anomaly", "fused", "set-to-none", "sync-off", "static-graph")
    assert {code: states[code] for code in met} == dict.fromkeys(met, "in force")
    for code in ("tf32", "cudnn-benchmark", "launch-blocking", "allocator", "async-copy", "device-prefetch"):
        assert states[code] == "not met"  # there is no GPU
    assert ran.told["tf32"]["reason"] == ran.told["device-prefetch"]["reason"] == "the program did not use CUDA"
    assert ran.told["anomaly"]["asked"] is True
    assert ran.told["anomaly"]["asked_at"]["line"] == line_of("set_detect_anomaly(True)")
    assert ran.told["cudnn-benchmark"]["asked_at"]["line"] == line_of("cudnn.benchmark = False")
    assert ran.told["set-to-none"]["acted"] == len(ran.said["losses"])
    assert (usual["waited"], ran.said["waited"]) == ("complained", "passed")
    assert ran.told["sync-off"]["acted"] == 2
    assert usual["reduced"] == [False, False, 3 * MIB]
    assert ran.said["reduced"] == [True, True, 7 * MIB]
    assert (ran.told["bucket-mb"]["asked"], ran.told["bucket-mb"]["asked_at"]["line"]) == (
        3,
        line_of("bucket_cap_mb=3"),
    )
    assert states["eval-every"] == "not met"
    assert "floorit try and tune turn its own setting" in ran.told["eval-every"]["reason"]
    assert states["optimizer-8bit"] == "failed"
    assert ran.told["optimizer-8bit"]["reason"].startswith("neither bitsandbytes nor torchao is installed")
    assert states["workers"] == "failed"  # of one of its loaders
    assert "would repeat its samples" in ran.told["workers"]["reason"]
    assert ran.said["others"]["repeated"] == list(range(8))
    assert_decoded_once(ran)


@pytest.mark.acceptance
@pytest.mark.parametrize("place", ["ram", "disk"])
def test_files_are_decoded_once_for_workers_that_are_not_forked(tmp_path: Path, place: str) -> None:
    fixes = (f"decode-cache={place}", "context=spawn")
    assert_decoded_once(Ran(tmp_path, *fixes, script=FOLDER / "decodes.py", arguments=(str(tmp_path),)))


def assert_decoded_once(ran: Ran) -> None:
    """Six samples an epoch, each with nine reads of three files, seven of them of two pictures in the same way each.

    And a picture that is resized as it was read; others are resized each time: those that were changed before, and
    those that are to be of another size.
    """
    first, second, third = (ran.said["seen"][begin : begin + 6] for begin in (0, 6, 12))
    assert len({total for _, total, *_ in first}) == 6
    assert {json.dumps(facts) for *_, facts in first} == {'["JPEG", [7, 9]]'}
    assert second == first
    assert third[:5] == first[:5]  # also what is there now in place of the first file
    assert third[5] != first[5]
    assert ran.told["decode-cache"]["state"] == "in force"
    assert ran.told["decode-cache"]["acted"] == 6 * 5 + 6 * (9 + 1) + (5 * (9 + 1) + 5)


def test_workers_are_not_kept_where_two_passes_go_on_at_the_same_time(tmp_path: Path) -> None:
    script = FOLDER / "twice.py"
    bare = json.loads(execute([PYTHON, str(script)], tmp_path).stdout)
    ran = Ran(tmp_path, "persistent=on", script=script)
    assert ran.said["order"] == bare["order"]
    assert (bare["workers"], ran.said["workers"]) == (3, 1)  # of a loader that was left early they are
    assert ran.told["persistent"]["state"] == "failed"
    assert "at the same time" in ran.told["persistent"]["reason"]


READS_ON = {
    # who decides the order, and from what -> passes that have begun early, of six; the first two are for learning
    **dict.fromkeys(("usual", "numpy", "few"), 4),
    **dict.fromkeys(("dropout", "spread", "subset", "own", "stream", "again", "kept", "drawn"), 4),
    **dict.fromkeys(("counts", "shuffles", "asked again"), 4),
    "left": 2,  # every other pass is left early
    **dict.fromkeys(("seeded", "varies", "reversed", "hidden"), 0),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in ("usual", "numpy") else pytest.mark.acceptance) for kind in READS_ON],
)
def test_workers_go_on_with_just_the_samples_that_come_next(tmp_path: Path, kind: str) -> None:
    script = FOLDER / "reads_on.py"
    bare = execute([PYTHON, str(script), kind], tmp_path)
    ran = Ran(tmp_path, "read-on", script=script, arguments=(kind,))
    assert ran.said == json.loads(bare.stdout)
    told = ran.told["read-on"]
    assert told["acted"] == READS_ON[kind], told["reason"]
    assert told["state"] == ("in force" if READS_ON[kind] else "not met")
    why = {"hidden": "Hidden.drawn", "seeded": "not foreseen"}.get(kind)
    assert why is None or why in told["reason"]


def test_workers_go_on_while_the_program_does_something_else(tmp_path: Path) -> None:
    """Batches of a pass that has not been asked for are there when it is."""
    data = TensorDataset(torch.arange(64))
    loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    applied = Mock()
    reader = onward.Onward(SimpleNamespace(torch=torch, patches=Patches()), applied)
    passing = iter(loader)
    reader.follow(loader, passing)
    for _ in range(2):
        assert len(list(loader)) == 16
    assert reader.is_between_passes(passing)
    deadline = time.monotonic() + 30
    while passing._data_queue.qsize() < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert passing._data_queue.qsize() == 4
    assert sorted(int(x) for (batch,) in loader for x in batch) == list(range(64))
    applied.act.assert_called_once_with()
    applied.fail.assert_not_called()


@pytest.mark.parametrize("drawn", [0, 2, 255])
def test_how_far_a_stream_was_moved_is_told(drawn: int) -> None:
    numpy = np.random.RandomState(1)
    for source, draw in (
        (torch.Generator().manual_seed(1), lambda own: torch.rand((), generator=own)),
        (random.Random(1), lambda own: own.getrandbits(32)),
        (numpy, lambda own: own.randint(2**32, dtype=np.uint32)),
    ):
        stream = streams.of(torch, source)
        assert stream is not None
        before = stream.now()
        for _ in range(drawn):
            draw(source)
        assert stream.numbers(before, stream.now()) == drawn
        assert stream.same(stream.moved(before, drawn), stream.now())
        draw(source)
        assert drawn < 255 or [draw(source), stream.numbers(before, stream.now())][1] is None


@pytest.mark.acceptance
@pytest.mark.parametrize("fix", ["workers=0", "persistent=off"])
def test_the_stream_is_as_if_workers_were_kept(tmp_path: Path, fix: str) -> None:
    bare = execute([PYTHON, str(FOLDER / "kept.py")], tmp_path)
    ran = Ran(tmp_path, fix, script=FOLDER / "kept.py")
    assert ran.said == json.loads(bare.stdout)
    assert [(told["state"], told["acted"]) for told in ran.told.values()] == [("in force", 3)]


@pytest.mark.acceptance
def test_float16_loses_no_gradients(tmp_path: Path) -> None:
    usual, ran = (Ran(make(tmp_path, name), *fixes, script=FOLDER / "underflows.py") for name, fixes in HALVED)
    assert (usual.said["kinds"], ran.said["kinds"]) == (["torch.float32"], ["torch.float16"])
    for found, true in zip(ran.said["norms"], usual.said["norms"], strict=True):
        assert found == pytest.approx(true, rel=5e-3)  # unscaled, the steps of float16 are 40 % of these gradients


@pytest.mark.acceptance
@pytest.mark.parametrize("mode", ["default", "max-autotune"])
def test_the_model_is_compiled(tmp_path: Path, mode: str) -> None:
    ran = Ran(tmp_path, f"compile={mode}", script=FOLDER / "underflows.py")
    assert ran.said["compiled"]
    assert ran.report["run"]["compiled_steps"]
    assert ran.told["compile"]["state"] == "in force"


# -- how many samples a step ---------------------------------------------------------------------------------------


def bare(name: str, *arguments: float) -> dict[str, Any]:
    """What the main function of a script says without floorit."""
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(str(FOLDER))
        said: dict[str, Any] = importlib.import_module(name).main(*arguments)
    return said


def test_larger_batches_train_as_the_program_would_with_its_rates_by_the_rule(tmp_path: Path) -> None:
    larger = bare("sizes", 8, 0.2, 0.01 * 2**0.5)
    ran = Ran(tmp_path, "batch=x2", script=FOLDER / "sizes.py")
    assert ran.said["sizes"] == [8] * 8
    assert ran.said["evaluated"] == [8] * 8  # as it was
    assert ran.said["rates"][:2] == pytest.approx([0.2, 0.2 * (1 - 1 / 8)])
    assert ran.said["other_rates"] == pytest.approx([0.01 * 2**0.5] * 8)
    for name in ("planned", "order", "rates", "losses", "steps"):
        assert ran.said[name] == pytest.approx(larger[name], rel=1e-5), name
    assert ran.report["run"]["samples_per_step"] == 8
    told = ran.told["batch"]
    assert (told["state"], told["asked"], told["acted"], told["reason"]) == ("in force", 4, 2, None)


def test_batches_that_are_accumulated_train_as_larger_ones_do(tmp_path: Path) -> None:
    larger = bare("sizes", 8, 0.1, 0.01, 0.0)
    ran = Ran(tmp_path, "accumulate=2", script=FOLDER / "sizes.py", arguments=("4", "0.1", "0.01", "0"))
    assert ran.said["sizes"] == [4] * 16
    assert ran.said["order"] == larger["order"]
    assert ran.said["steps"] == larger["steps"] == 8
    pairs = zip(ran.said["losses"][::2], ran.said["losses"][1::2], strict=True)
    assert [(first + second) / 2 for first, second in pairs] == pytest.approx(larger["losses"], rel=1e-4)
    assert ran.report["run"]["accumulation"] == 2
    assert (ran.told["accumulate"]["state"], ran.told["accumulate"]["acted"]) == ("in force", 2 * 8)  # two optimizers


@pytest.mark.acceptance
def test_steps_are_accumulated_however_they_are_taken(tmp_path: Path) -> None:
    larger = json.loads(execute([PYTHON, str(FOLDER / "accumulated.py"), "8"], make(tmp_path, "bare")).stdout)
    ran = Ran(make(tmp_path, "ran"), "accumulate", script=FOLDER / "accumulated.py", arguments=("4",))
    assert larger["with_scaler"]["scale"] == 512
    assert larger["with_scaler"]["steps"] == 3  # one was skipped
    for way, expected in larger.items():
        assert ran.said[way].pop("weights") == pytest.approx(expected.pop("weights"), abs=1e-4), way
        assert ran.said[way] == expected, way
    assert ran.told["accumulate"]["reason"] is None


def test_gradients_that_the_program_clears_by_itself_end_the_accumulation() -> None:
    weight, told, done = nn.Parameter(torch.zeros(1)), Mock(value=3), Mock()
    optimizer = torch.optim.SGD([weight])
    steps = accumulating._Steps(SimpleNamespace(torch=torch, patches=Patches()), told)
    for clears in (False, True, True):
        if clears:
            weight.grad = None
        (2 * weight).sum().backward()
        steps._step(done, (optimizer,), {})
    told.fail.assert_called_once_with(accumulating._CLEARED)
    assert (told.act.call_count, done.call_count) == (1, 2)


@pytest.mark.parametrize("schedules", [False, True])
def test_a_program_that_sets_its_rate_itself_is_told_of(schedules: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optim, "_global_optimizer_pre_hooks", OrderedDict())
    told = Mock()
    scaled = rates.Rates(SimpleNamespace(torch=torch, patches=Patches(), hook=Mock()), told)
    scaled.times = 4
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    if schedules:
        scaled._schedulers.learn(schedule, optimizer)
    optimizer.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.4)
    assert not told.remark.called
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()
    assert told.remark.called != schedules


def test_batches_that_cannot_be_larger_are_left_alone() -> None:
    class Own(BatchSampler):
        pass

    in_turn = SequentialSampler(range(6))
    assert batches._obstacle(BatchSampler(in_turn, 4, False), 8) is None
    assert "fewer samples" in str(batches._obstacle(BatchSampler(in_turn, 4, True), 8))
    assert "own Own" in str(batches._obstacle(Own(in_turn, 4, False), 8))


@pytest.mark.parametrize(("kind", "power"), [("SGD", 1.0), ("AdamW", 0.5), ("RMSprop", 0.5), ("Rprop", None)])
def test_the_rule_of_the_learning_rate(kind: str, power: float | None) -> None:
    class Derived(getattr(torch.optim, kind)):  # type: ignore[misc]
        pass

    assert rates._power(Derived([torch.zeros(1, requires_grad=True)], lr=0.1)) == power


# -- batches that are copied ahead ---------------------------------------------------------------------------------


class Broken(Dataset[torch.Tensor]):
    """Its last sample cannot be made."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 9:
            raise KeyError(index)
        return torch.tensor([index])


class Beside:
    """Stands for a stream of its own: copies at once, to where no values are."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    def begin(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        self.begun.append(int(tensor[0]))
        return torch.empty_like(tensor, device=device)

    def end(self, begun: torch.Tensor) -> torch.Tensor:
        return begun


def all_ready(iterator: Any) -> bool:
    """Whether workers have made all that they were asked for."""
    tasks = iterator._task_info.values()
    return iterator._data_queue.qsize() + sum(len(task) == 2 for task in tasks) == len(tasks)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # on one core
def test_a_batch_that_is_ready_is_copied_a_step_early_and_what_it_raises_comes_when_it_would() -> None:
    told, side = Mock(), Beside()
    session = SimpleNamespace(torch=torch, patches=Patches(), trained_models=list)
    early = ahead.Ahead(session, told, side, "meta")
    move = early.moving("to", torch.Tensor.to)
    loader = DataLoader(Broken(), batch_size=1, num_workers=2, persistent_workers=True)
    early._follow(loader)
    assert loader.pin_memory
    loader.pin_memory = False  # torch would look for a GPU
    iterator: Any = iter(loader)
    early.made(iterator, loader)

    def following() -> torch.Tensor:
        until = time.monotonic() + 30
        while not all_ready(iterator) and time.monotonic() < until:
            time.sleep(0.001)
        batch: torch.Tensor = early.hand_out(early.is_followed(iterator), iterator)
        return batch

    for _ in range(2):
        for number in range(9):
            batch = following()
            assert int(batch[0]) == number
            if number == 4:
                batch.add_(0)  # changed since it was copied
            assert move(batch, "meta").device.type == "meta"
        with pytest.raises(KeyError):
            following()
        with pytest.raises(StopIteration):
            following()
        iterator._reset(loader)
        early.forget(iterator)
    assert side.begun == [*range(2, 9), *range(1, 9)]  # which tensors are moved is known from the first batch on
    assert told.act.call_count == len(side.begun) - 2


@pytest.mark.parametrize(
    ("args", "kwargs", "is_aimed"),
    [
        ((torch.float64,), {}, False),
        ((), {"memory_format": torch.channels_last}, False),
        (("cpu",), {}, False),
        (("cuda:1", torch.float16), {}, True),
        ((0,), {}, True),
        ((), {"device": torch.device("cuda")}, True),
        ((torch.zeros(1),), {}, False),
    ],
)
def test_only_moves_to_a_gpu_are_made_ahead(args: tuple[Any, ...], kwargs: dict[str, Any], is_aimed: bool) -> None:
    session = SimpleNamespace(torch=torch)
    assert ahead.Ahead(session, Mock(), None, "cuda")._is_aimed(args, kwargs) == is_aimed


def test_batches_that_cannot_be_taken_early_without_another_order_are_not() -> None:
    data = Broken()

    class Own(SequentialSampler):
        pass

    assert obstacle_to_torchs(DataLoader(data, num_workers=1, shuffle=True)) is None
    for loader in (DataLoader(data), DataLoader(data, num_workers=1, sampler=Own(data))):
        assert "random numbers" in str(obstacle_to_torchs(loader))


# -- what a framework does too often -------------------------------------------------------------------------------


class Trainer:
    """As Lightning's: only by name, and with defaults of its own."""

    def __init__(
        self,
        *,
        log_every_n_steps: int | None = None,
        val_check_interval: float | None = None,
        check_val_every_n_epoch: int | None = 1,
    ) -> None:
        self.given = (log_every_n_steps, val_check_interval, check_val_every_n_epoch)


class ModelCheckpoint:
    """As Lightning's."""

    def __init__(
        self,
        dirpath: str | None = None,
        every_n_train_steps: int | None = None,
        train_time_interval: timedelta | None = None,
        every_n_epochs: int | None = None,
    ) -> None:
        self.given = (every_n_train_steps, train_time_interval, every_n_epochs)


@dataclass
class TrainingArguments:
    """As those of transformers."""

    logging_strategy: str = "steps"
    logging_steps: float = 500
    eval_strategy: str = "no"
    eval_steps: float | None = None
    save_strategy: str = "steps"
    save_steps: float = 500

    def __post_init__(self) -> None:
        if self.eval_strategy == "steps" and self.eval_steps is None:
            self.eval_steps = self.logging_steps


@dataclass
class DerivedArguments(TrainingArguments):
    """As programs and libraries derive them."""

    more: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Mock]]:
    """What is told of each override, four times as rarely, while the frameworks stand in for the true ones."""
    for name, kind in (
        ("lightning.pytorch.trainer.trainer", Trainer),
        ("pytorch_lightning.callbacks.model_checkpoint", ModelCheckpoint),
        ("transformers.training_args", TrainingArguments),
    ):
        module = ModuleType(name)
        setattr(module, kind.__name__, kind)
        monkeypatch.setitem(sys.modules, name, module)
    session, told = SimpleNamespace(patches=Patches()), {code: Mock(value=4) for code in frameworks.CODES}
    monkeypatch.setattr(imports, "_waiting", {})
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    frameworks.install(session, told)
    yield told
    session.patches.undo()


def test_lightning_logs_evaluates_and_saves_less_often(framework: dict[str, Mock]) -> None:
    assert Trainer().given == (200, None, 4)
    assert Trainer(log_every_n_steps=1, val_check_interval=0.125).given == (4, 0.5, 1)
    assert Trainer(val_check_interval=0.5, check_val_every_n_epoch=2).given == (200, 0.5, 8)
    assert Trainer(val_check_interval=100, check_val_every_n_epoch=None).given == (200, 400, None)
    assert ModelCheckpoint("here").given == (None, None, 4)
    assert ModelCheckpoint("here", 10).given == (40, None, None)
    assert ModelCheckpoint(train_time_interval=timedelta(minutes=1)).given == (None, timedelta(minutes=4), None)
    assert ModelCheckpoint(every_n_epochs=0).given == (None, None, 0)  # never
    counted = {code: told.overrule.call_count for code, told in framework.items()}
    assert counted == {"log-every": 4, "eval-every": 4, "checkpoint-every": 3, "from-batch": 0}  # which only a loop has
    assert not any(told.fail.called for told in framework.values())


@pytest.mark.parametrize("kind", [TrainingArguments, DerivedArguments])
def test_transformers_logs_evaluates_and_saves_less_often(framework: dict[str, Mock], kind: Any) -> None:
    made = kind(logging_steps=10, eval_strategy="steps", save_steps=0.125)
    assert (made.logging_steps, made.eval_steps, made.save_steps) == (40, 40, 0.5)
    assert kind(save_steps=0.5).save_steps == pytest.approx(1)
    assert kind(save_steps=0.5).save_steps < 1  # 1 would be each step
    framework["eval-every"].unmet.assert_called_with(frameworks._EACH_EPOCH)
    framework["eval-every"].overrule.assert_called_once_with("eval_steps=10")


# -- an optimizer of 8 bits ----------------------------------------------------------------------------------------


class AdamW8bit(torch.optim.Optimizer):
    """Stands for that of a package: what it was made with is all that is asked of it."""

    def __init__(self, params: Any, **defaults: Any) -> None:
        if defaults["lr"] > 1:
            raise ValueError("of all that it can be given")
        super().__init__(params, defaults)


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    """What is told of optimizers that are made while a package is installed, and parameters are on a GPU."""
    package, inner = ModuleType("bitsandbytes"), ModuleType("bitsandbytes.optim")
    package.__spec__ = ModuleSpec("bitsandbytes", None)
    inner.AdamW8bit = AdamW8bit  # type: ignore[attr-defined]
    for module in (package, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(eightbit, "_are_on_gpu", lambda *_: True)
    told, session = Mock(), SimpleNamespace(torch=torch, patches=Patches())
    told.fail.return_value = None
    eightbit.install(session, {"optimizer-8bit": told})
    yield told
    session.patches.undo()


def test_adam_is_made_with_a_state_of_8_bits(making: Mock) -> None:
    layer = nn.Linear(2, 2)
    made = torch.optim.AdamW((p for p in layer.parameters()), 0.5, weight_decay=0.25)
    assert type(made) is AdamW8bit
    (group,) = made.param_groups
    assert group["params"] == list(layer.parameters())
    assert (group["lr"], group["betas"], group["weight_decay"]) == (0.5, (0.9, 0.999), 0.25)
    making.overrule.assert_called_once_with("AdamW")
    making.fail.assert_not_called()


@pytest.mark.parametrize(("more", "reason"), [({"amsgrad": True}, "with amsgrad"), ({"lr": 2.0}, "of all that it can")])
def test_adam_that_cannot_have_8_bits_is_made_as_the_program_says(
    making: Mock, more: dict[str, Any], reason: str
) -> None:
    layer = nn.Linear(2, 2)
    made = torch.optim.AdamW([{"params": (p for p in layer.parameters())}], **more)
    assert type(made) is torch.optim.AdamW
    assert made.param_groups[0]["params"] == list(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    made.step()
    assert reason in making.fail.call_args.args[0]


def test_classes_of_the_programs_own_keep_their_state(making: Mock) -> None:
    class Own(torch.optim.AdamW):
        pass

    assert type(Own([torch.zeros(1, requires_grad=True)])) is Own
    making.overrule.assert_not_called()


# -- what is computed twice ----------------------------------------------------------------------------------------


def test_blocks_are_recomputed_with_the_same_numbers(tmp_path: Path) -> None:
    usual = bare("repeats")
    ran = Ran(tmp_path, "recompute=on", script=FOLDER / "repeats.py")
    assert usual["calls"] == [3] * 7
    assert ran.said["calls"] == [6] * 4 + [3] * 3  # not those that count batches
    for name in ("losses", "counted", "drawn"):
        assert ran.said[name] == usual[name], name
    assert (ran.told["recompute"]["state"], ran.told["recompute"]["acted"]) == ("in force", 3)
    assert next(row["seconds"] for row in ran.report["ledger"] if row["phase"] == "recompute") > 0


@pytest.mark.acceptance
def test_what_the_program_recomputes_is_kept(tmp_path: Path) -> None:
    usual = bare("repeats", True)
    ran = Ran(tmp_path, "recompute=off", script=FOLDER / "repeats.py", arguments=("own",))
    assert usual["calls"] == [9, 0, 6, 6, 3, 3, 3]  # of a sequence torch recomputes all but the last
    assert ran.said["calls"] == [6, 0, 3, 3, 3, 3, 3]
    for name in ("losses", "drawn"):
        assert ran.said[name] == usual[name], name
    assert (ran.told["recompute"]["state"], ran.told["recompute"]["acted"]) == ("in force", 3 * 3)
    assert ran.told["recompute"]["asked_at"]["function"] == "forward"


@pytest.mark.acceptance
def test_each_block_is_compiled_by_itself(tmp_path: Path) -> None:
    ran = Ran(tmp_path, "compile=regional", script=FOLDER / "repeats.py")
    assert ran.said["compiled"] == [False, True, True, True, True, False]
    assert ran.report["run"]["compiled_steps"]
    assert (ran.told["compile"]["state"], ran.told["compile"]["acted"]) == ("in force", 7)


def test_repeated_blocks_are_the_outermost_that_are_alike() -> None:
    def block() -> nn.Module:
        return nn.Sequential(nn.ModuleList(nn.Sequential(nn.Linear(2, 2)) for _ in range(3)))

    model = nn.ModuleDict(
        {
            "thrice": nn.ModuleList(block() for _ in range(3)),
            "twice": nn.ModuleList(nn.Sequential(nn.Linear(2, 2)) for _ in range(2)),
            "layers": nn.Sequential(*(nn.Linear(2, 2) for _ in range(5))),
        }
    )
    assert blocks.repeated(nn, model) == list(model["thrice"])


# -- asking for them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["workers=8", "pin", "in-order"], {"workers": 8, "pin": True, "in-order": False}),
        (["pin=off", "persistent=TRUE"], {"pin": False, "persistent": True}),
        (["prefetch", "context=spawn"], {"prefetch": 4, "context": "spawn"}),
        (["batch"], {"batch": "x2"}),
        (["batch=x4"], {"batch": "x4"}),
        (["batch=24"], {"batch": 24}),
    ],
)
def test_what_is_typed_becomes_values(words: list[str], meant: dict[str, Any]) -> None:
    found = asked.parse(words)
    assert found == meant
    assert {code: type(value) for code, value in found.items()} == {code: type(v) for code, v in meant.items()}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("wrokers=8", "there is no fix 'wrokers'; those that can be applied are"),
        ("log-every", "--fix log-every needs a value: a whole number from 2 to"),
        ("workers", "--fix workers needs a value: a whole number from 0 to 1024"),
        ("workers=many", "--fix workers takes a whole number from 0 to 1024, not 'many'"),
        ("workers=-1", "not '-1'"),
        ("batch=x1", "--fix batch takes a whole number from 1 to 1048576, or a factor as in x2, not 'x1'"),
        ("pin=1", "--fix pin takes on or off, not '1'"),
        ("context=thread", "--fix context takes fork or spawn or forkserver, not 'thread'"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_starts(
    word: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--out", str(tmp_path / "run"), "--fix", word, "--", str(SCRIPT)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_what_can_only_be_advised_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(asked.APPLICABLE, "batch")
    with pytest.raises(UsageError, match="batch can be advised, but not applied from outside"):
        asked.parse(["batch=8"])


def test_the_same_fix_twice_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--fix", "pin", "--fix", "pin=off", str(SCRIPT)]) == 2
    assert "--fix pin is given twice" in capsys.readouterr().err


def test_help_names_each_with_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    told = capsys.readouterr().out
    for code, fix in asked.APPLICABLE.items():
        assert f"{code}=" in told
        assert str(fix.takes) in told


def test_each_fix_that_takes_a_value_has_an_override() -> None:
    known = [code for group in overrides.GROUPS for code in group.CODES]
    assert sorted(known) == sorted([*asked.APPLICABLE, "memory-cap"])  # which is no fix


# -- what is told of them -----------------------------------------------------------------------------------------


def note(code: str, state: str, acted: int = 0, pid: int = 1, **more: Any) -> dict[str, Any]:
    """As a process writes it."""
    usual = {"value": 8, "reason": None, "opposed": False, "asked": None, "place": None}
    return {**usual, "code": code, "state": state, "acted": acted, "pid": pid, **more}


def process(*notes: dict[str, Any]) -> Process:
    """One that has written these."""
    made = Process()
    made.overrides += notes
    return made


def test_of_a_process_the_last_note_counts_and_of_workers_each_ones() -> None:
    rank = process(note("workers", "not met"), note("workers", "in force", 1), note("workers", "in force", 3))
    other = process(note("workers", "not met", opposed=True, asked=2, place=["train.py", 7, "main"]))
    shared = process(
        note("decode-cache", "in force", 1, pid=4),
        note("decode-cache", "in force", 5, pid=5),
        note("decode-cache", "in force", 9, pid=4),
    )
    found = find({"workers": 8, "decode-cache": "ram", "pin": True}, [rank, other], [shared])
    assert [(o.code, o.state, o.acted) for o in found] == [
        ("workers", "in force", 3),
        ("decode-cache", "in force", 14),
        ("pin", "not met", 0),  # no process has told of it
    ]
    assert (found[0].asked, found[0].asked_at) == (2, Place("train.py", 7, "main", "user"))


def test_one_process_in_which_it_failed_is_enough() -> None:
    failed = process(note("pin", "failed", reason="torch finds no accelerator"))
    (found,) = find({"pin": True}, [process(note("pin", "in force", 2)), failed], [])
    assert (found.state, found.reason) == ("failed", "torch finds no accelerator")


def test_each_is_one_line_on_the_terminal() -> None:
    told = process(
        note("workers", "in force", 1, opposed=True, asked=0, place=["train.py", 7, "main"]),
        note("fused", "not met"),
        note("pin", "failed", reason="torch finds no accelerator"),
    )
    lines = terminal_overrides.render(find({"workers": 8, "fused": True, "pin": True}, [told], []))
    assert [str(line) for line in lines] == [
        "fix workers=8 in force; the program asks for 0 at train.py:7",
        "fix fused=on not met: the program never did what it would change",
        "fix pin=on failed (torch finds no accelerator)",
    ]


# -- what is kept in memory, or on disk ----------------------------------------------------------------------------

PLACES = pytest.mark.parametrize("place", [store.InMemory(), store.OnDisk()], ids=["memory", "disk"])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a store on disk is made in, by a process that nobody has given one."""
    monkeypatch.delenv(store.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_file_on_disk_has_no_name_there(cache: Path) -> None:
    kept = store.Store(store.OnDisk())
    assert os.readlink(f"/proc/self/fd/{kept._file}").startswith(str(cache))
    assert list(cache.iterdir()) == []


@PLACES
def test_what_one_process_keeps_another_finds(place: Any, cache: Path) -> None:
    own = store.Store(place)
    assert own.get("picture") is None
    assert own.put("picture", b"four", b" legs")
    child = os.fork()
    if not child:
        os._exit(0 if bytes(own.get("picture")) == b"four legs" and own.put("other", b"child's") else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert bytes(own.get("other")) == b"child's"
    found = store.Store(place)  # by the variable, as a process that is not forked
    assert bytes(found.get("picture")) == b"four legs"
    assert found.put("picture", b"again")
    assert bytes(own.get("picture")) == b"four legs"


@PLACES
def test_nothing_is_kept_where_there_is_no_room(place: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(place), "free", lambda *_: 1000)
    small = store.Store(place)
    assert small.put("half", b"h" * 400)
    assert not small.put("more than half", b"m" * 200)
    assert small.get("more than half") is None
    monkeypatch.setattr(type(place), "free", lambda *_: 120)  # the program has taken the rest
    assert not small.put("little", b"l" * 30)
    assert small.put("less", b"l" * 10)
