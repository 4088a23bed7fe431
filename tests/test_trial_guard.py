"""The guard on results: what it must catch, what it must let pass, and what it cannot say."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import subprocess
from typing import Any

import pytest
import torch
from conftest import PYTHON, clean_environment

from floorit import launch
from floorit.events import read_record
from floorit.record import losses as in_process
from floorit.record import wire
from floorit.trial import guard
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.state import Round, State
from floorit.trial.trial import Trial

STEPS = 60
BATCH = 32


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(**how: Any) -> list[float | None]:
    """The losses of a small classifier; every option is one thing that may differ."""
    return list(_train(**how))


@functools.cache
def _train(
    *,
    seed: int = 0,
    order: int = 0,
    lr: float = 0.05,
    term: float = 3.0,
    corrupt: int = 0,
    bf16: bool = False,
    double: bool = False,
    fused: bool = False,
    jitter: float = 0.0,
    steps: int = STEPS,
) -> list[float | None]:
    torch.manual_seed(seed)
    inputs, noise = torch.randn(1024, 20), torch.randn(1024)
    labels = ((inputs[:, 0] + inputs[:, 1] * inputs[:, 2] + 0.5 * noise) > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    if double:
        model, inputs = model.double(), inputs.double()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr / 10, fused=fused)
    shuffled = torch.Generator().manual_seed(order)
    kept: list[float | None] = []
    for step in range(steps):
        chosen = torch.randint(len(inputs), (BATCH,), generator=shuffled)
        x, y = inputs[chosen], labels[chosen]
        if corrupt and step % corrupt == corrupt - 1:
            x = torch.zeros_like(x)
        with torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss = loss + term * sum(w.float().pow(2).mean() for w in model.parameters())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if jitter and step == 0:
            with torch.no_grad():
                in_process._shake(torch, optimizer, jitter)
        kept.append(float(loss.detach().double()))
    return kept


def trial(arm: str, losses: list[float | None]) -> Trial:
    return Trial(arm=arm, state="ran", seconds=1.0, losses=[losses] if losses else [])


def judged(risk: str, change: dict[str, Any], fixes: dict[str, Any] | None = None) -> guard.Parity:
    """An arm of one change against the program as it is, as a try would have run them."""
    arm = Arm(name="b", command=[], risk=risk, fixes=fixes or {})
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), arm])
    for _ in range(2):
        state.rounds.append(Round(trials=[trial(AS_IS, train()), trial("b", train(**change))]))
    size = guard.wanted_unit(state, arm)
    if size is not None:
        state.yardsticks[guard.key(size)] = trial(AS_IS, train(jitter=size))
    return guard.compare(state, arm)


WRONG = {
    "a wrong learning rate": {"lr": 0.1},
    "a learning rate that is wrong by a hundredth": {"lr": 0.0505},
    "a dropped loss term": {"term": 0.0},
    "one batch in fifty corrupted": {"corrupt": 50},
    "another data order": {"order": 1},
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("risk", ["exact", "rounding"])
def test_what_is_wrong_is_caught(risk, what):
    assert judged(risk, WRONG[what]).status == "changed"


@pytest.mark.parametrize("what", ["a wrong learning rate", "a dropped loss term", "one batch in fifty corrupted"])
def test_half_precision_hides_no_mistake(what):
    """The most that rounding is allowed: a loss term and a corrupted batch stand out of it."""
    change = WRONG[what] if "rate" not in what else {"lr": 0.5}
    assert judged("rounding", {**change, "bf16": True}, {"amp": "bf16"}).status == "changed"


@pytest.mark.parametrize("risk", ["exact", "rounding", "order", "training"])
def test_the_same_program_again_is_the_same(risk):
    assert judged(risk, {}).status == "same"


@pytest.mark.parametrize(
    ("change", "fixes"),
    [({"bf16": True}, {"amp": "bf16"}), ({"fused": True}, {"fused": True}), ({"double": True}, {"compile": None})],
    ids=["bf16", "fused", "other rounding"],
)
def test_rounding_passes_as_rounding_and_not_as_exact(change, fixes):
    assert judged("rounding", change, fixes).status == "rounding"
    assert judged("exact", change, fixes).status == "changed"


@pytest.mark.parametrize("order", range(1, 9))
def test_another_order_passes_as_order(order):
    assert judged("order", {"order": order}).status == "alike"


@pytest.mark.parametrize("change", [{"lr": 1.0, "order": 1}, {"term": 0.0, "order": 1}, {"lr": 0.0005, "order": 1}])
def test_order_is_no_excuse_for_another_training(change):
    assert judged("order", change).status in ("changed", "broken")


def test_a_change_of_the_training_is_told_and_not_judged():
    parity = judged("training", {"lr": 1.0})
    assert parity.status == "changed"
    assert not parity.is_failure


def test_a_loss_that_gets_worse_than_untrained_is_a_failure_whatever_the_risk():
    parity = judged("training", {"lr": 50.0})
    assert parity.status == "broken"
    assert parity.is_failure


def _with(losses: list[float | None], risk: str = "exact") -> guard.Parity:
    arm = Arm(name="b", command=[], risk=risk)
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), arm])
    state.rounds = [Round(trials=[trial(AS_IS, train()), trial("b", losses)])] * 2
    return guard.compare(state, arm)


@pytest.mark.parametrize("risk", ["exact", "training"])
def test_a_loss_that_is_no_number_is_a_failure(risk):
    losses = train()
    losses[STEPS // 2] = None
    parity = _with(losses, risk)
    assert parity.is_failure
    assert f"pass {STEPS // 2 + 1} " in parity.reason


def test_no_losses_is_unverified_and_never_passed():
    assert _with([]).status == "unverified"
    assert _with(train(steps=guard.FEWEST - 1)).status == "unverified"


def test_losses_are_compared_as_far_as_both_go():
    assert _with(train(steps=STEPS // 2)).status == "same"


@pytest.mark.parametrize(("factor", "status"), [(1.0, "alike"), (1e4, "changed")])
def test_where_the_program_is_never_the_same_twice_its_own_scatter_is_the_measure(factor, status):
    """Sums in no fixed order, as atomics on a GPU make them."""
    arm = Arm(name="b", command=[], risk="exact")
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), arm])
    for number in range(4):
        own = [loss * (1 + 1e-6 * math.sin(7.0 * at + number)) for at, loss in enumerate(train())]
        theirs = [loss * (1 + factor * 1e-6 * math.sin(7.0 * at + number + 0.5)) for at, loss in enumerate(train())]
        state.rounds.append(Round(trials=[trial(AS_IS, own), trial("b", theirs)]))
    assert guard.compare(state, arm).status == status


def test_every_rank_is_compared():
    arm = Arm(name="b", command=[])
    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), arm])
    good, bad = train(), train(corrupt=50)
    two = [
        Trial(arm=name, state="ran", seconds=1.0, losses=[good, second]) for name, second in ((AS_IS, good), ("b", bad))
    ]
    state.rounds = [Round(trials=two)] * 2
    assert guard.compare(state, arm).status == "changed"


# -- in the program's process ----------------------------------------------------------------------------------------

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(24):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    optimizer.zero_grad()
    if step < 12:
        loss.backward()
        optimizer.step()
    else:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(repr(loss.item()))
"""


def _recorded(folder, **environ):
    launch.make_record(folder)
    record = folder / "record"
    own = clean_environment(**environ, FLOORIT_RECORD=str(record), PYTHONPATH=str(launch.START))
    said = subprocess.run([PYTHON, "-c", SCRIPT], capture_output=True, text=True, env=own, timeout=120)
    assert said.returncode == 0, said.stderr
    (process,) = read_record(record).run()
    return process, [float(line) for line in said.stdout.split()]


def test_the_losses_are_those_of_the_program_and_a_planted_error_draws_nothing(tmp_path):
    bare, printed = _recorded(tmp_path / "bare")
    assert bare.losses is None  # nothing is kept where nobody asks
    asked, same = _recorded(tmp_path / "asked", **{wire.LOSSES: json.dumps({"jitter": 0})})
    assert asked.losses == same == printed
    assert not [m for m in asked.missing if m["what"] == in_process.NAME]
    shaken, others = _recorded(tmp_path / "shaken", **{wire.LOSSES: json.dumps({"jitter": 2.0**-9})})
    assert shaken.losses == others
    assert others[0] == printed[0]
    differences = [abs(a / b - 1) for a, b in zip(others[1:], printed[1:], strict=True)]
    assert 0 < max(differences) < 0.05  # another draw of the inputs would be far larger
