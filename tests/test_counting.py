"""What a step computes and moves, against formulas written out by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import PYTHON, SCRIPTS, clean_environment

from floorit import launch
from floorit.analyse import iterations, limit
from floorit.events import Process, read_record
from floorit.record import wire

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from floorit.record.counting import _Watch  # noqa: E402
from floorit.record.log import Log  # noqa: E402

BATCH, WIDE, HIDDEN, OUT = 8, 12, 20, 5


def counted(step: Callable[[], Any], optimizer: Any = None) -> dict[str, Any]:
    """What is noted of one forward and backward pass, and of a step of the optimizer."""
    session = SimpleNamespace(torch=torch, log=Log(), recomputing=0)
    watch = _Watch(session)
    try:
        loss = step()
        session.log.backward = 1
        loss.backward()
        session.log.backward = 0
        if optimizer is not None:
            optimizer.step()
            watch.stepped(optimizer)
    finally:
        watch.close()
    assert watch.failure is None
    return watch.sum_up()


def mlp() -> Any:
    return nn.Sequential(nn.Linear(WIDE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))


# Forward, and backward for each weight; backward for the input of the second layer alone.
MLP_FLOPS = 2 * BATCH * (2 * WIDE * HIDDEN + 3 * HIDDEN * OUT)


def test_a_perceptron() -> None:
    model = mlp()
    found = counted(lambda: model(torch.randn(BATCH, WIDE)).sum())
    assert found["total"] == MLP_FLOPS
    assert found["by_dtype"] == {"float32": MLP_FLOPS}
    assert found["by_module"] == {
        "Sequential.0": {"forward": 2 * BATCH * WIDE * HIDDEN, "backward": 2 * BATCH * WIDE * HIDDEN},
        "Sequential.2": {"forward": 2 * BATCH * HIDDEN * OUT, "backward": 4 * BATCH * HIDDEN * OUT},
    }
    assert (found["recomputed"], found["unseen"], found["device"]) == (0, [], "cpu")


def test_under_autocast_the_precision_is_that_of_the_products() -> None:
    model = mlp()

    def step() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model[1](model[0](torch.randn(BATCH, WIDE)))
        return model[2](hidden.float()).sum()

    found = counted(step)
    assert found["by_dtype"] == {"bfloat16": 4 * BATCH * WIDE * HIDDEN, "float32": 6 * BATCH * HIDDEN * OUT}


def test_a_convolutional_net() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.Conv2d(6, 4, 5, stride=2, padding=2, groups=2),
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.ConvTranspose2d(4, 2, 2, stride=2, groups=2),
    )
    found = counted(lambda: model(torch.randn(2, 3, 16, 16)).sum())
    first = 2 * 2 * 16 * 16 * 6 * 3 * 3 * 3
    others = [
        2 * 2 * 8 * 8 * 4 * (6 // 2) * 5 * 5,
        2 * 2 * 8 * 8 * 4 * 1 * 3 * 3,
        2 * 2 * 8 * 8 * 4 * (2 // 2) * 2 * 2,  # each of its inputs reaches so many outputs
    ]
    assert found["by_module"].pop("Sequential.0") == {"forward": first, "backward": first}
    assert list(found["by_module"].values()) == [{"forward": flops, "backward": 2 * flops} for flops in others]


class Attention(nn.Module):
    """One head; the scores are written out, or left to torch."""

    def __init__(self, written_out: bool) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)
        self.written_out = written_out

    def forward(self, x: Any) -> Any:
        q, k, v = self.project(x).chunk(3, dim=-1)
        if self.written_out:
            return self.out((q @ k.transpose(1, 2)).softmax(-1) @ v)
        q, k, v = (each.unsqueeze(1) for each in (q, k, v))
        return self.out(functional.scaled_dot_product_attention(q, k, v).squeeze(1))


@pytest.mark.parametrize("written_out", [True, False])
def test_a_transformer(written_out: bool) -> None:
    length, tokens = 10, 30
    embed, attention, head = nn.Embedding(tokens, WIDE), Attention(written_out), nn.Linear(WIDE, tokens)
    model = nn.Sequential(embed, attention, head)
    words = torch.randint(0, tokens, (BATCH, length))
    found = counted(lambda: functional.cross_entropy(model(words).flatten(0, 1), words.flatten()))
    scores = 2 * BATCH * length * length * WIDE  # and as much for the values
    of = found["by_module"]
    assert of["Sequential.1.project"] == {
        "forward": (projecting := 2 * BATCH * length * WIDE * 3 * WIDE),
        "backward": 2 * projecting,
    }
    # Torch's kernel does not keep the scores: its backward pass has five products, one of them done before.
    assert of["Sequential.1"] == {"forward": 2 * scores, "backward": (4 if written_out else 5) * scores}
    assert of["Sequential.2"]["backward"] == 2 * (2 * BATCH * length * WIDE * tokens)
    # Of the embedding a few rows are read; all of it has a gradient.
    assert found["bytes"]["forward_parameters"] == sum(p.nbytes for m in (attention, head) for p in m.parameters())


def test_in_inference_mode_too() -> None:
    teacher, model, x = mlp(), mlp(), torch.randn(BATCH, WIDE)

    def step() -> Any:
        with torch.inference_mode():
            wanted = teacher(x)
        return (model(x) - wanted.clone()).pow(2).sum()

    assert counted(step)["total"] == MLP_FLOPS + 2 * BATCH * (WIDE * HIDDEN + HIDDEN * OUT)


class Wrapped(torch.Tensor):  # type: ignore[misc]
    """A tensor that is made of another."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        bare = [value.inner if isinstance(value, Wrapped) else value for value in args]
        return function(*bare, **(kwargs or {}))


def test_a_product_of_tensors_that_are_made_of_others_counts_once() -> None:
    model = mlp()
    assert counted(lambda: model(Wrapped(torch.randn(BATCH, WIDE))).sum())["total"] == MLP_FLOPS


def test_what_cannot_be_counted_is_named() -> None:
    with torch.library._scoped_library("floorit_test", "DEF") as library:
        library.define("triple(Tensor x) -> Tensor")
        library.impl("triple", lambda x: 3 * x, "CompositeExplicitAutograd")
        model = mlp()
        found = counted(lambda: model(torch.ops.floorit_test.triple(torch.randn(BATCH, WIDE))).sum())
    assert found["unseen"] == ["floorit_test.triple"]
    assert found["total"] == MLP_FLOPS


def test_bytes_of_a_perceptron_with_adam() -> None:
    model, x, y = mlp(), torch.randn(BATCH, WIDE), torch.randn(BATCH, OUT)
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()  # its state exists from here on
    optimizer.zero_grad()
    found = counted(lambda: (model(x) - y).pow(2).mean(), optimizer)
    everything = 4 * (WIDE * HIDDEN + HIDDEN + HIDDEN * OUT + OUT)
    assert found["bytes"] == {
        "forward_parameters": everything,
        "backward_parameters": 4 * HIDDEN * OUT,  # the first layer's input needs no gradient
        "activations": 4 * BATCH * (WIDE + HIDDEN + OUT),  # the input, what ReLU lets through, the difference
        "copied": 0,
    }
    ((_, touched),) = found["step_bytes"]
    assert touched == {"parameters": everything, "gradients": everything, "state": 2 * everything}


# -- in a program --------------------------------------------------------------------------------------------------

PROGRAM = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
first, block, last = nn.Linear(12, 20), nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20)), nn.Linear(20, 1)
parameters = [p for module in (first, block, last) for p in module.parameters()]
optimizer = torch.optim.Adam(parameters)
data = TensorDataset(torch.randn(8 * 30, 12))
for epoch in range(2):
    for number, (x,) in enumerate(DataLoader(data, batch_size=8)):
        x = checkpoint(block, first(x), use_reentrant=USE_REENTRANT)
        last(x).pow(2).mean().backward()
        if number % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
"""


def run_counted(folder: Path, *words: str) -> tuple[list[Process], subprocess.CompletedProcess[str]]:
    """A program run as a floor run is."""
    launch.make_record(folder)
    more = {wire.REPLAY: json.dumps({"spared": [], "lengths": {}})}
    environ = {**clean_environment(), **launch.environment(folder / "record", more), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([PYTHON, *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=240)
    return read_record(folder / "record").run(), ended


def work_of(process: Process) -> limit.Work:
    found = iterations.find(process)
    assert found is not None
    work = limit.count(process, found)
    assert work is not None, process.missing
    return work


@pytest.mark.parametrize("reentrant", [pytest.param(True, marks=pytest.mark.acceptance), False])
def test_recompute_and_accumulation_in_a_program(tmp_path: Path, reentrant: bool) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("USE_REENTRANT", str(reentrant)))
    (process,), ended = run_counted(tmp_path, "train.py")
    assert ended.returncode == 0, ended.stderr
    work = work_of(process)
    assert work.steps == 4
    layer = 2 * 8 * 20 * 20
    # Computing again ends with the last tensor that is wanted: the second layer's output is not, except to the older
    # kind of checkpoint.
    again = (2 if reentrant else 1) * layer
    assert work.recomputed == {"float32": again}
    assert work.flops == {"float32": 2 * (2 * 8 * 12 * 20) + 2 * 3 * layer + 3 * (2 * 8 * 20) + again}
    everything = 4 * (12 * 20 + 20 + 2 * (20 * 20 + 20) + 20 + 1)
    assert work.bytes["gradients"] == pytest.approx(everything * (1 + 1 / 3))
    assert work.bytes["optimizer"] == pytest.approx(2 * 3 * everything / 3)
    found = iterations.find(process)
    assert found is not None
    assert found.slowed.sum() >= 4
    assert not process.missing


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "script",
    [
        *("recomputes", "lbfgs", "gan", "gan_no_loader", "mixed_precision"),
        *("autograd_grad", "accumulate", "validate_midway", "twice_a_batch", "restarts"),
    ],
)
def test_programs_go_on_and_are_counted(tmp_path: Path, script: str) -> None:
    (process,), ended = run_counted(tmp_path, str(SCRIPTS / f"{script}.py"))
    assert ended.returncode == 0, ended.stderr
    assert sum(work_of(process).flops.values()) > 0
    assert not [m for m in process.missing if m["what"] == wire.FLOPS]


PER_SAMPLE = """
import torch
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(12, 20)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def loss(parameters, x):
    return functional_call(model, parameters, (x,)).square().sum()


for (x,) in DataLoader(TensorDataset(torch.randn(8 * 20, 12)), batch_size=8):
    model(x).square().sum().backward()
    vmap(grad(loss), (None, 0))(dict(model.named_parameters()), x)
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.acceptance
def test_torch_func_goes_on(tmp_path: Path) -> None:
    """It refuses to work beside hooks on saved tensors."""
    (tmp_path / "train.py").write_text(PER_SAMPLE)
    (process,), ended = run_counted(tmp_path, "train.py")
    assert ended.returncode == 0, ended.stderr
    assert work_of(process).flops == {"float32": 2 * (2 * (2 * 8 * 12 * 20))}


@pytest.mark.acceptance
def test_compiled_programs_are_not_counted_and_that_is_said(tmp_path: Path) -> None:
    (process,), ended = run_counted(tmp_path, str(SCRIPTS / "compiled.py"))
    assert ended.returncode == 0, ended.stderr
    assert not process.counts
    assert [m["reason"] for m in process.missing if m["what"] == wire.FLOPS] == [
        "torch.compile is in use: what its code computes cannot be seen"
    ]


@pytest.mark.acceptance
def test_each_rank_is_counted(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29641")
    processes, ended = run_counted(tmp_path, *words, str(SCRIPTS / "ddp.py"))
    assert ended.returncode == 0, ended.stderr
    trained = [process for process in processes if process.counts]
    assert len(trained) == 2
    assert len({json.dumps(work_of(process).flops) for process in trained}) == 1
