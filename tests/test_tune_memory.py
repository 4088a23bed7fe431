"""Memory in trials: what is read of it, the cap it is run under, and the speed that less of it may cost."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from conftest import PYTHON

from floorit.record.overrides import capping
from floorit.record.patch import Patches
from floorit.trial import attempt, conduct, peaks, runner, statistics, trial, verdict
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.guard import Parity
from floorit.trial.state import State
from floorit.trial.trial import Cap, Trial
from floorit.tune import candidates, judge, probing, sizes
from floorit.tune.dressing import Dressing

GIB = 1 << 30
STEPS = 30


def simulated(seed: int, speed: float, peak: int, sigma: float = 0.02, budget: float = 400.0) -> verdict.Outcome:
    """A change that is truly so fast, and takes so much of 1000 bytes, tried until it is clear or the time is over."""
    dice = np.random.default_rng(seed)

    def run(arm: Arm, *, jitter: float = 0.0) -> Trial:
        is_changed = arm.name != AS_IS
        pace = math.exp(dice.normal(0, sigma)) / (speed if is_changed else 1.0)
        return Trial(
            arm=arm.name,
            state="ran",
            seconds=10.0,
            starts=[pace * at for at in range(STEPS)],
            warmup=1,
            losses=[[1.0] * STEPS],
            memory=peak if is_changed else 1000,
        )

    state = State(cwd="", arms=[Arm(name=AS_IS, command=[]), Arm(name="b", command=[])], steps=STEPS)
    state.pilot = run(state.base)
    asked = {"budget": budget, "dice": random.Random(seed), "told": lambda text: None}
    conduct.conduct(state, run, lambda state: None, sought="memory", **asked)
    (outcome,) = verdict.outcomes(state, lambda arm: "it is not predicted")
    return outcome


def test_what_is_slower_than_95_per_cent_is_hardly_ever_kept():
    """At exactly the limit, in no more than the 2.5 % that an interval leaves on one side (and some luck)."""
    kept = [judge.is_kept("memory", simulated(seed, 0.95, 500), speed=1.0) for seed in range(120)]
    assert sum(kept) <= 0.05 * len(kept)


def test_what_is_as_fast_is_mostly_kept():
    kept = [judge.is_kept("memory", simulated(seed, 1.0, 500), speed=1.0) for seed in range(60)]
    assert sum(kept) >= 0.9 * len(kept)


def test_what_saves_nothing_costs_one_pair_and_what_is_far_too_slow_two():
    assert len(simulated(0, 1.0, 995).pairs) == 1
    assert len(simulated(0, 0.5, 400).pairs) == conduct.HOPE
    assert len(simulated(0, 1.0, 400).pairs) >= statistics.FEWEST


def test_on_the_host_more_must_be_saved():
    def said(**peaks: int | None) -> bool:
        return verdict.Memory(**{"a": None, "b": None, "host_a": None, "host_b": None, **peaks}).is_less

    assert said(a=1000, b=970)
    assert not said(host_a=1000, host_b=970)
    assert said(host_a=1000, host_b=940)
    assert not said(a=1000, b=1000, host_a=1000, host_b=100)  # the model is trained on the GPU
    assert not said()


def test_trials_with_other_batches_are_compared_by_the_sample_over_their_own_steps():
    small = Trial(arm="a", state="ran", seconds=1, starts=[0.1 * at for at in range(41)], samples=8.0)
    large = Trial(arm="b", state="ran", seconds=1, starts=[0.2 * at for at in range(11)], samples=32.0)
    pair = trial.pair(small, large, "ab")
    assert pair.a / pair.b == pytest.approx(2.0)


def test_larger_batches_make_shorter_trials():
    run = runner.Runner(Path(), None, lambda: None)
    run.steps, run.samples = 40, 8.0
    for samples, enough in ((8, 41), (16, 21), (64, 9), (4, 41)):
        count = next(n for n in range(100) if run._is_enough(_iterations(n, samples)))
        assert count == enough, samples


def _iterations(count: int, samples: int) -> SimpleNamespace:
    return SimpleNamespace(count=count, warmup=0, after_warmup=np.ones(count), samples=np.full(count, samples))


def test_a_size_that_had_to_give_memory_back_does_not_fit():
    ran = Trial(arm="", state="ran", seconds=1, starts=[0.1 * at for at in range(20)], samples=8.0, memory=GIB)
    assert probing.read(ran, 8).rate == pytest.approx(80.0)
    tight = Trial(arm="", state="ran", seconds=1, cap=Cap(bytes=GIB, total=GIB, retries=2))
    assert probing.read(tight, 8).state == "out of memory"
    assert probing.read(Trial(arm="", state="failed", seconds=1, ran_out=True), 8).state == "out of memory"
    assert probing.read(Trial(arm="", state="hung", seconds=1, reason="it hung"), 8).state == "failed"


def test_what_is_resident_is_read_from_outside():
    """A process that has had 200 MiB, and its worker with 100 of its own."""
    watch = peaks.Watch()
    code = "import time; x = bytes(range(256)) * (%d << 12); print(1, flush=True); del x; time.sleep(60)"
    codes = code % 200, code.replace("del x;", "") % 100
    had, holds = (subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE) for code in codes)
    try:
        for process in (had, holds):
            process.stdout.readline()
        watch.look(lambda: ([had.pid], [holds.pid]))
    finally:
        for process in (had, holds):
            process.kill()
            process.communicate()
    assert 295 << 20 < watch.host < 340 << 20


class Runs:
    """Stands for the processes: a size takes 10 bytes each, of 700; with amp half of that."""

    ran: list[str]

    def __init__(self, folder, sandbox, tick):
        self.cap = self.limit = self.seconds = self.fewest = None

    def __call__(self, arm, *, jitter=0.0):
        assert self.cap == probing.CAP
        self.ran.append(arm.name)
        size = arm.fixes.get("batch", 8)
        cap = Cap(bytes=700, total=1000, retries=0)
        peak = size * (5 if "amp" in arm.fixes else 10)
        if peak > 700:
            return Trial(arm=arm.name, state="failed", seconds=5.0, ran_out=True, reason="out", cap=cap)
        told = [trial.Override(code="batch", state="in force")] * ("batch" in arm.fixes)
        pace = 0.1 + 0.0002 * size
        starts = [pace * at for at in range(20)]
        facts = {"starts": starts, "samples": float(size), "memory": peak, "cap": cap, "overrides": told}
        return Trial(arm=arm.name, state="ran", seconds=5.0, **facts)


def test_sizes_are_run_once_and_those_that_do_not_fit_with_what_makes_room(tmp_path, monkeypatch):
    monkeypatch.setattr(probing.runner, "Runner", Runs)
    monkeypatch.setattr(Runs, "ran", [], raising=False)
    saver = candidates.Candidate(changes={"amp": "bf16"}, risk="rounding", predicted=None)
    pilot = Trial(arm="", state="ran", seconds=5.0, starts=[0.2 * at for at in range(20)], samples=8.0)
    terms = attempt.Terms(steps=None, budget=1000.0, in_place=True, quiet=True)

    def found(room: float) -> sizes.Sizes:
        probe = probing.Probe(tmp_path, terms, Dressing(["train.py"], None).dress, sys.stderr, room)
        return probe.find(8, pilot, None, [saver])

    assert found(11.0).by == "time"  # for two of them
    assert Runs.ran == ["batches of 8", "batches of 16"]
    whole = found(1000.0)
    assert Runs.ran[2:] == ["batches of 32", "batches of 64", "amp=bf16 batches of 128"]  # 70 is where it is full
    assert whole.limits["gpu"] == 700
    assert (whole.chosen, whole.by) == (64, "memory")
    together, alone = probing.candidates_of(whole, [saver])
    assert (together.changes, alone.changes) == ({"amp": "bf16", "batch": 128}, {"batch": 64})
    own, large = 8 / (0.1 + 0.0016), 128 / (0.1 + 0.0256)
    assert together.predicted.value == pytest.approx(large / own)
    assert probing.load(tmp_path) == whole


# -- the cap ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "devices", "visible", "uses"),
    [
        ("13.0", ("/dev/null",), None, True),
        ("13.0", ("/dev/null",), "0", True),
        ("13.0", ("/dev/null",), "", False),
        ("13.0", ("/dev/null",), "-1", False),
        ("13.0", ("/nowhere",), None, False),  # as pip's torch is on a machine without a GPU
        (None, ("/dev/null",), None, False),
    ],
)
def test_the_host_is_capped_where_no_gpu_is(monkeypatch, built, devices, visible, uses):
    monkeypatch.setattr(capping, "_DEVICES", devices)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert capping._may_use_gpu(SimpleNamespace(version=SimpleNamespace(cuda=built, hip=None))) is uses


@pytest.fixture
def gpu(monkeypatch):
    """One of 100 GiB, of which others have 40 and the program 10."""
    monkeypatch.setattr(capping, "_may_use_gpu", lambda torch: True)
    cuda = SimpleNamespace(fraction=None)
    cuda.current_device = lambda: 0
    cuda.mem_get_info = lambda device: (50 * GIB, 100 * GIB)
    cuda.memory_reserved = lambda device: 10 * GIB
    cuda.memory_stats = lambda device: {"reserved_bytes.all.peak": 20 * GIB, "num_alloc_retries": 0}
    cuda.set_per_process_memory_fraction = lambda fraction, device=None: setattr(cuda, "fraction", fraction)
    version = SimpleNamespace(cuda="13.0", hip=None)
    session = SimpleNamespace(patches=Patches(), on_cuda=[], last_words=[], torch=None)
    session.torch = SimpleNamespace(cuda=cuda, version=version)
    return session, cuda, Mock(value=0.9)


def test_a_program_has_a_share_of_what_is_free_and_no_more(gpu):
    session, cuda, applied = gpu
    capping.install(session, {"memory-cap": applied})
    session.on_cuda[0]()
    assert cuda.fraction == pytest.approx(0.9 * 0.6)
    cuda.set_per_process_memory_fraction(0.8)
    assert cuda.fraction == pytest.approx(0.54)
    cuda.set_per_process_memory_fraction(0.1)
    assert cuda.fraction == pytest.approx(0.1)
    session.last_words[0]()
    assert applied.value == {"bytes": int(0.54 * 100 * GIB), "total": 100 * GIB, "reserved": 20 * GIB, "retries": 0}


def test_what_the_program_allows_itself_is_not_raised(gpu):
    session, cuda, applied = gpu
    capping.install(session, {"memory-cap": applied})
    cuda.set_per_process_memory_fraction(0.2)
    session.on_cuda[0]()
    assert cuda.fraction == pytest.approx(0.2)
    assert applied.value["bytes"] == 20 * GIB


GREEDY = """
import resource, torch
model = torch.nn.Linear(8, 1)
for step in range(6):
    model(torch.randn(4, 8)).mean().backward()
    print(resource.getrlimit(resource.RLIMIT_DATA)[0])
free = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
torch.empty(free // 2, dtype=torch.uint8)
"""


def test_without_a_gpu_it_is_the_host_that_is_capped(tmp_path):
    """What is asked for is never touched: it would be had, if nothing forbade it."""
    (tmp_path / "train.py").write_text(GREEDY)
    run = runner.Runner(tmp_path, None, lambda: None)
    run.cap = 0.2
    done = run(Arm(name="a", command=[PYTHON, str(tmp_path / "train.py")]))
    assert done.ran_out, done
    assert done.state == "failed"
    assert int(Path(done.said).read_text().split()[0]) > 0  # a limit is in force; none is -1


def test_where_the_host_runs_short_a_capped_trial_is_ended(tmp_path, monkeypatch):
    """Whoever takes it: what is left is not the program's to have."""
    left = iter([1000, 500])
    monkeypatch.setattr(runner.peaks, "free_memory", lambda: next(left, 50))
    run = runner.Runner(tmp_path, None, lambda: None)
    run.cap = 0.9
    done = run(Arm(name="a", command=[PYTHON, "-c", "import time; time.sleep(60)"]))
    assert done.ran_out
    assert done.seconds < 30
    assert probing.read(done, 8).state == "out of memory"


def test_nothing_is_known_of_results_or_noise_nothing_is_kept():
    outcome = simulated(0, 1.0, 500)
    unverified = Parity(status="unverified", reason="no losses were captured")
    assert judge.is_kept("memory", outcome, speed=1.0)
    assert not judge.is_kept("memory", _with(outcome, parity=unverified), speed=1.0)
    assert not judge.is_kept("memory", _with(outcome, noise=None), speed=1.0)
    assert not judge.is_kept("memory", _with(outcome, verdict="changed results"), speed=1.0)
    assert not judge.is_kept("memory", outcome, speed=0.9)  # what it was tried on top of is slow already


def _with(outcome: verdict.Outcome, **changes: object) -> verdict.Outcome:
    return msgspec.structs.replace(outcome, **changes)
