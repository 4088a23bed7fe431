"""Fixes: what each predicts on made-up runs, and the reasons where it would not help."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
import simulation
from rich.console import Console, Group
from rich.text import Text
from simulation import Program

from floorit import plan
from floorit.analyse.footprint import Effect, Memory
from floorit.analyse.gpu import Gpu, Kind
from floorit.analyse.habits import Habit
from floorit.analyse.ledger import Entry, Function, Line
from floorit.analyse.operations import Operation
from floorit.analyse.settings import Setting
from floorit.analyse.syncs import SyncPoint
from floorit.declared import Control
from floorit.diagnose import Finding, FixAdvice
from floorit.fixes import ALL
from floorit.fixes.fix import Known, rarer
from floorit.fixes.values import Value
from floorit.report import findings
from floorit.stats import Estimate
from floorit.trial import attempt
from floorit.trial.arms import Arm

CODES = [
    *("workers", "prefetch", "persistent", "read-on", "worker-threads", "in-order", "context", "decode-cache"),
    "cache-hit",
    *("pin", "async-copy", "device-prefetch"),
    *("amp", "tf32", "cudnn-benchmark", "deterministic", "channels-last", "compile", "fused", "set-to-none"),
    *("anomaly", "launch-blocking", "sync-off", "log-every", "eval-every", "checkpoint-every"),
    "from-batch",
    *("recompute", "accumulate", "batch", "allocator", "optimizer-8bit"),
    *("static-graph", "bucket-view", "bucket-mb"),
]
DOCS = Path(__file__).parents[1] / "docs"
HEALTHY_GAIN = 1.05
GIB = 2**30
TRAIN = {"forward": 0.010, "loss": 0.002, "backward": 0.020, "optimizer": 0.004, "other": 0.001}
CPU = Program(host=TRAIN, cores=8)
GPU = Program(host=TRAIN, gpu={"forward": 0.030, "backward": 0.060, "optimizer": 0.002}, cores=8)
LAUNCHING = Program(host=TRAIN, gpu={"forward": 0.001, "backward": 0.002})
COPYING = GPU.but(host={"h2d": 0.030, **TRAIN}, gpu={"forward": 0.010, "backward": 0.020})


def line(share: float, function: str = "load") -> Line:
    return Line(file="data.py", line=3, function=function, share=share)


def function(where: list[Line]) -> Function | None:
    """The first line's function, with all of its lines and nothing that it calls."""
    own = sum(at.share for at in where if at.function == where[0].function)
    names = {"file": "data.py", "line": 3, "function": where[0].function, "inside": None} if where else {}
    return Function(**names, share=own, whole=own, looks=10_000) if where else None


def known(program: Program, *, window: bool = True, kinds: dict[str, float] | None = None, **more: Any) -> Known:
    """What a report of the program would say, and more."""
    loader = more.pop("loader", {})
    needs = simulation.needs(program, window, **loader)
    workers = simulation.workers(program, needs.step)
    gpu = None
    if program.gpu is not None and window:
        gpu = Gpu(
            busy_share=0.5,
            tensor_share=more.pop("tensor_share", 0.0),
            kinds=[Kind(kind=kind, seconds=0.0, share=s, count=1) for kind, s in (kinds or {}).items()],
            memory_peak=more.pop("memory_peak", None),
        )
    settings = [Setting(name=name, actual=value) for name, value in more.pop("settings", {}).items()]
    where = more.pop("where", [])
    workers = msgspec.structs.replace(workers, where=where, heaviest=function(where), **loader)
    host = more.pop("host", {})
    needs = msgspec.structs.replace(needs, host={**needs.host, **host})
    ledger = [
        Entry(
            phase=phase,
            seconds=s,
            share=s / needs.step,
            gpu_seconds=None,
            where=[line(1.0)],
            heaviest=function([line(1.0)]),
        )
        for phase, s in needs.host.items()
    ]
    return Known(needs=needs, ledger=ledger, workers=workers, gpu=gpu, settings=settings, **more)


def unseen(program: Program, **more: Any) -> Known:
    """A program on a GPU that no window has watched, and of which no step was marked."""
    found = known(program, **more)
    return msgspec.structs.replace(
        found,
        needs=msgspec.structs.replace(found.needs, gpu=None, idle=None),
        gpu=msgspec.structs.replace(found.gpu, busy_share=None) if found.gpu is not None else None,
    )


def used(peak: int, **more: int) -> Memory:
    """A ledger that foretells what fixes do to the peak."""
    effects = [Effect(code=code, value=None, bytes=size, how="") for code, size in more.items()]
    return Memory(where="gpu", peak=peak, ledger=[], steps=3, effects=effects)


def said(code: str, of: Known) -> Estimate | str:
    return next(fix for fix in ALL if fix.code == code).predict(of)


def test_the_codes_are_those_that_users_rely_on() -> None:
    assert [fix.code for fix in ALL] == CODES


def test_each_is_described() -> None:
    text = (DOCS / "fixes.md").read_text()
    for fix in ALL:
        assert f"### `{fix.code}`" in text, fix.code


STARVED = CPU.but(batch=0.300, workers=2)
# Nine tenths of a batch are putting it together, which is not the same for any two.
COLLATING = {"fetch_seconds": 0.030, "collate_seconds": Estimate(value=0.270, low=0.27, high=0.27, n=100)}
# Nothing is waited for but the taking over of a batch.
READY = {"prefetch": 2, "queue_mean": 3.9}
# A file is read in `load`; most of a sample is made of it elsewhere, at random.
READING = Operation(
    name="cv2.imread",
    kind="decoding",
    setting=None,
    flag=None,
    calls=1.0,
    seconds=Estimate(value=0.001, low=0.001, high=0.001, n=8),
    share=0.25,
    shape=None,
    dtype=None,
    result=None,
    matrix=None,
    threads=None,
    where=line(1.0),
)
GAINS = [
    ("workers", known(STARVED), 2.0, 4.2),
    ("workers", known(CPU.but(batch=0.037)), 1.7, 2.1),
    ("prefetch", known(STARVED, loader={"busy_share": 0.8}), 1.05, 1.25),
    ("in-order", known(STARVED, loader={"busy_share": 0.8}), 1.05, 1.25),
    ("decode-cache", known(STARVED, where=[line(0.5), line(0.1), line(0.2, "crop")]), 2.3, 2.7),
    ("decode-cache", known(STARVED, where=[line(0.9)], loader=COLLATING), 1.05, 1.15),
    (
        "decode-cache",
        known(STARVED, where=[line(0.6, "augment"), line(0.3)], loader={"operations": [READING]}),
        1.35,
        1.5,
    ),
    ("persistent", known(STARVED.but(epoch=20), epochs=20, host={"epoch_gap": 0.030}), 1.05, 1.3),
    ("read-on", known(STARVED.but(epoch=20), epochs=20, host={"epoch_gap": 0.030}), 1.05, 1.3),
    # Workers make batches for 20 ms a step more, in which the loop evaluates.
    (
        "read-on",
        known(STARVED.but(epoch=20, eval_every=20, eval_seconds=0.4), epochs=20, settings={"persistent_workers": True}),
        1.05,
        1.3,
    ),
    ("worker-threads", known(STARVED, shares={"oversubscribed": 0.0}, loader={"threads": 8}), 1.05, 1.12),
    ("pin", known(COPYING), 1.1, 1.6),
    ("async-copy", known(COPYING, loader={"pinned": True}), 1.1, 2.0),
    ("device-prefetch", known(COPYING), 1.1, 2.0),
    ("amp", known(GPU, kinds={"matrix": 0.9}), 1.4, 2.5),
    ("tf32", known(GPU, kinds={"matrix": 0.9}, settings={"matmul.allow_tf32": False}), 1.4, 3.0),
    ("cudnn-benchmark", known(GPU, kinds={"convolution": 0.9}), 1.03, 1.3),
    ("deterministic", known(GPU, kinds={"convolution": 0.9}, settings={"cudnn.deterministic": True}), 1.03, 1.3),
    ("channels-last", known(GPU, kinds={"convolution": 0.9}), 1.03, 1.35),
    ("compile", known(LAUNCHING), 1.3, 2.5),
    ("fused", known(LAUNCHING), 1.01, 1.2),
    ("fused", known(LAUNCHING, settings={"optimizer": "AdamW"}), 1.01, 1.2),  # of which nobody has asked for anything
    ("fused", known(LAUNCHING, settings={"optimizer": "Mine", "optimizer.fused": False}), 1.01, 1.2),
    ("fused", known(CPU.but(host={**TRAIN, "optimizer": 0.037}), settings={"optimizer": "AdamW"}), 1.4, 1.8),
    ("anomaly", known(CPU, settings={"anomaly_detection": True}, shares={"debug-left-on": 0.5}), 3.3, 3.4),
    ("static-graph", known(CPU, ranks=2, settings={"ddp.static_graph": False}, shares={"comm-bound": 0.5}), 1.3, 1.5),
    ("launch-blocking", known(GPU, settings={"CUDA_LAUNCH_BLOCKING": "1"}), 1.0, 2.0),
    ("sync-off", known(GPU.but(gpu={"forward": 0.02, "backward": 0.01}, syncs=10)), 1.1, 2.0),
    ("log-every", known(CPU.but(host={**TRAIN, "logging": 0.037}), shares={"logging-bound": 0.5}), 1.7, 2.0),
    ("eval-every", known(CPU.but(eval_every=10, eval_seconds=0.37), shares={"eval-bound": 0.5}), 1.7, 2.0),
    ("checkpoint-every", known(CPU.but(host={**TRAIN, "checkpoint": 0.037})), 1.7, 2.0),
    # 10 of 45 ms, and what checkpointing takes beside them.
    ("recompute", known(CPU.but(host={**TRAIN, "recompute": 0.010})), 1.3, 1.4),
    ("accumulate", known(CPU), 1.03, 1.1),
    ("batch", known(LAUNCHING, memory_peak=GIB, gpu_memory=80 * GIB), 1.5, 2.0),
    # Most of it does not grow with the batch.
    ("batch", known(LAUNCHING, memory_peak=60 * GIB, gpu_memory=80 * GIB, memory=used(60 * GIB, batch=GIB)), 1.5, 2.0),
]


@pytest.mark.parametrize(("code", "of", "least", "most"), GAINS, ids=[row[0] for row in GAINS])
def test_a_fix_gains_what_its_mechanism_says(code: str, of: Known, least: float, most: float) -> None:
    found = said(code, of)
    assert isinstance(found, Estimate), found
    assert least <= found.value <= most
    assert found.low <= found.value <= found.high


FED = CPU.but(batch=0.02, workers=2)


def untimed(program: Program) -> Known:
    """A program that ended before a batch of its workers was timed."""
    seen = known(program)
    return msgspec.structs.replace(seen, needs=msgspec.structs.replace(seen.needs, loader=None))


FULL = {"memory_peak": 70 * GIB, "gpu_memory": 80 * GIB}
REASONS = [
    ("workers", known(CPU), "nothing to win"),
    ("workers", known(STARVED.but(cores=2)), "the cores are taken: 2 workers and the loop on 2"),
    ("workers", known(CPU.but(batch=0.037, cores=1)), "no core free"),
    ("workers", msgspec.structs.replace(known(CPU), workers=None), "no DataLoader"),
    ("workers", untimed(STARVED), "was not seen"),
    ("prefetch", untimed(FED), "nothing to win"),
    ("prefetch", known(STARVED), "100% busy"),
    ("prefetch", known(CPU.but(batch=0.037)), "without workers"),
    ("prefetch", known(STARVED, loader={**READY, "busy_share": 0.1}), "3.9 of at most 4 batches are ready"),
    ("workers", known(STARVED, loader=READY), "none is made too late"),
    ("persistent", known(STARVED, settings={"persistent_workers": True}), "already"),
    ("persistent", known(STARVED), "started once"),
    ("persistent", known(CPU), "no workers"),
    ("read-on", known(CPU), "no workers"),
    ("read-on", known(STARVED), "nothing to go on with"),
    ("worker-threads", known(STARVED), "not seen"),
    ("worker-threads", known(STARVED, shares={"oversubscribed": 0.0}), "no worker is seen to use threads"),
    ("worker-threads", known(CPU.but(batch=0.037), shares={"oversubscribed": 0.0}, loader={"threads": 8}), "no worker"),
    (
        "worker-threads",
        known(STARVED, shares={"oversubscribed": 0.0}, loader={"threads": 8, "busy_share": 0.02}),
        "2% busy: it is not they who crowd the cores",
    ),
    ("in-order", known(CPU.but(batch=0.2, workers=1)), "fewer than two"),
    ("decode-cache", known(STARVED), "was not seen"),
    ("pin", known(CPU), "does not use a GPU"),
    ("pin", known(CPU, settings={"pin_memory": True}), "does not use a GPU"),
    ("pin", unseen(COPYING), "was not seen"),
    ("pin", known(COPYING, loader={"pinned": True}), "already"),
    ("pin", known(GPU), "copies to the GPU take 0 µs"),
    ("async-copy", known(COPYING), "pin first"),
    ("amp", unseen(GPU), "was not seen"),
    ("amp", known(LAUNCHING), "idle for 92% of a step"),
    ("amp", known(GPU, settings={"autocast": "bfloat16"}), "autocast is on already"),
    ("amp", known(GPU, tensor_share=0.8), "80% of the GPU's time is on tensor cores"),
    ("tf32", known(GPU, settings={"matmul.allow_tf32": True, "cudnn.allow_tf32": True}), "allowed already"),
    ("cudnn-benchmark", known(GPU, kinds={"matrix": 1.0}), "convolutions are 0.0%"),
    ("cudnn-benchmark", known(GPU, settings={"cudnn.benchmark": True}), "on already"),
    ("cudnn-benchmark", known(GPU, kinds={"convolution": 0.9}, loader={"shapes_vary": True}), "of several sizes"),
    ("deterministic", known(GPU), "no deterministic algorithms"),
    ("channels-last", known(GPU, settings={"channels_last": True}), "already"),
    ("compile", known(CPU), "does not use a GPU"),
    ("compile", known(GPU, settings={"torch.compile": True}), "already"),
    ("compile", unseen(LAUNCHING), "was not seen"),
    ("fused", unseen(GPU), "was not seen"),
    ("fused", known(GPU, settings={"optimizer.fused": True}), "already"),
    ("fused", known(CPU.but(host={**TRAIN, "optimizer": 0.037}), settings={"optimizer": "LBFGS"}), "no fused LBFGS"),
    ("fused", known(GPU, settings={"optimizer": "RMSprop", "optimizer.foreach": False}), "RMSprop has no fused form"),
    ("set-to-none", known(GPU), "by default"),
    ("anomaly", known(CPU), "is off"),
    ("launch-blocking", known(GPU), "not set"),
    ("launch-blocking", known(CPU, settings={"CUDA_LAUNCH_BLOCKING": "1"}), "does not use a GPU"),
    ("sync-off", unseen(GPU.but(syncs=1)), "was not seen"),
    ("sync-off", known(GPU.but(syncs=1)), "but the GPU works meanwhile"),
    ("sync-off", known(GPU), "no blocking call"),
    ("eval-every", known(CPU), "does not do it"),
    ("eval-every", known(CPU.but(host={**TRAIN, "eval": 0.040}), ungraded=True), "what it is trained on"),
    ("from-batch", known(CPU), "nothing is seen to be computed"),
    ("recompute", known(CPU), "nothing is recomputed"),
    ("recompute", known(GPU.but(host={**TRAIN, "recompute": 0.01}), **FULL), "88% of the GPU's memory"),
    ("batch", known(CPU), "does not use a GPU"),
    ("batch", unseen(LAUNCHING), "was not seen"),
    ("batch", known(LAUNCHING, **FULL), "may not fit"),
    ("batch", known(LAUNCHING), "not known"),
    ("batch", known(LAUNCHING, memory_peak=GIB, gpu_memory=80 * GIB, shares={"out-of-memory": 0.0}), "ran out"),
    (
        "batch",
        known(LAUNCHING, memory_peak=30 * GIB, gpu_memory=80 * GIB, memory=used(30 * GIB, batch=50 * GIB)),
        "would be 100% of the GPU's memory",
    ),
    (
        "recompute",
        known(
            GPU.but(host={**TRAIN, "recompute": 0.01}), gpu_memory=80 * GIB, memory=used(60 * GIB, recompute=12 * GIB)
        ),
        "would be 90% of the GPU's memory",
    ),
    ("batch", known(LAUNCHING.but(batch=0.2, workers=1)), "for batches"),
    ("allocator", known(GPU), "not time"),
    ("optimizer-8bit", known(GPU), "not time"),
    ("static-graph", known(GPU), "one rank"),
    ("static-graph", known(GPU, ranks=2, settings={"ddp.static_graph": False}), "not seen to wait"),
    ("bucket-view", known(GPU, ranks=2, settings={"ddp.gradient_as_bucket_view": True}), "on already"),
]


@pytest.mark.parametrize(("code", "of", "reason"), REASONS, ids=[f"{r[0]}-{r[2]}" for r in REASONS])
def test_a_fix_that_would_not_help_says_why(code: str, of: Known, reason: str) -> None:
    found = said(code, of)
    assert isinstance(found, str), found
    assert reason in found


def test_workers_that_start_for_each_short_epoch_cost_what_they_save() -> None:
    """Four batches of 37 ms an epoch: two processes take about as long to start and to end."""
    short = known(CPU.but(batch=0.037, epoch=4), epochs=20)
    found = said("workers", short)
    assert isinstance(found, str) or found.low < 1
    endless = said("workers", known(CPU.but(batch=0.037)))
    assert isinstance(endless, Estimate)
    assert isinstance(found, str) or found.value < endless.value


def test_no_more_workers_than_an_epoch_has_batches() -> None:
    workers = next(fix for fix in ALL if fix.code == "workers")
    assert workers.value(known(STARVED)) > 3
    assert workers.value(known(STARVED, loader={"batches_per_epoch": 3})) == 3


def test_a_queue_is_made_longer_not_shorter() -> None:
    prefetch = next(fix for fix in ALL if fix.code == "prefetch")
    assert [prefetch.value(known(STARVED, loader={"prefetch": now})) for now in (2, 8)] == [4, 16]


def test_evaluation_is_no_idle_time_of_the_gpu() -> None:
    """It works for nearly all of a training step; evaluation takes as long again."""
    of = known(GPU.but(eval_every=10, eval_seconds=1.2), kinds={"matrix": 0.9})
    assert isinstance(said("amp", of), Estimate)


def test_a_larger_batch_does_not_halve_what_comes_once_an_epoch() -> None:
    evaluating = LAUNCHING.but(eval_every=10, eval_seconds=0.37)  # half of the step
    found = said("batch", known(evaluating, memory_peak=GIB, gpu_memory=80 * GIB))
    assert isinstance(found, Estimate)
    assert found.low <= 4 / 3 < found.high


# -- what is kept, and what it takes ------------------------------------------------------------------------------

# Of making batches, 90 % pass in the function that looks for a file and does not find it; 10 % in saving it.
IN_VAIN = Habit(
    **dict.fromkeys(("message", "unsafe"), ""),
    code="cache-never-read",
    file="data.py",
    line=9,
    function="load",
    instead="end the name in .npy",
    risk="exact",
    seconds=None,
    share=0.9,
    line_share=0.1,
    controls=[Control(name="suffix", value=".cache", file="cfg.yaml", line=2)],
)


def test_a_cache_that_is_read_spares_what_makes_the_sample() -> None:
    """Two workers need 150 ms a batch. With a tenth of it they keep up with a loop of 37 ms, reading back or not."""
    found = said("cache-hit", known(STARVED, habits=[IN_VAIN]))
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(0.150 / 0.037, rel=0.01)
    half = said("cache-hit", known(STARVED, habits=[msgspec.structs.replace(IN_VAIN, share=0.5)]))
    assert isinstance(half, Estimate)
    gains = [1 / (0.5 + reading) for reading in (0.1, 0.03, 0.0)]  # all of what saving takes, some of it, nothing
    assert [half.low, half.value, half.high] == [pytest.approx(gain, rel=0.02) for gain in gains]


def test_it_comes_first_with_its_line_and_the_setting_behind_it() -> None:
    of = known(STARVED, where=[line(0.5), line(0.4)], habits=[IN_VAIN], loader={"operations": [READING]})
    [found] = plan.advise([finding("input-bound")], of)
    first, *_ = findings.chosen([found])
    assert (first.what, first.setting) == ("cache-hit", None)
    assert "end the name in .npy; at data.py:9; set by `suffix: .cache` (cfg.yaml:2)" in first.promise
    assert first.promise.endswith("(cfg.yaml:2)")


# Of a step, 60 % pass in a line that draws what the batch has; all of it in the loop's own code.
DRAWN = msgspec.structs.replace(
    IN_VAIN, code="batch-has-it", instead="take it from the batch", seconds=0.057, share=0.6, line_share=None
)


def test_a_value_that_somebody_asks_for_is_foretold() -> None:
    """A quarter of an evaluation that takes a third of the step is left; twice the workers are not the advised ones."""
    control = Control(name="every", value=1, file="f", line=1)
    evaluates = CPU.but(host={**TRAIN, "eval": 0.033})
    told = known(evaluates, shares={"eval-bound": 0.47}, controls={"eval-every": [control]})
    step = sum(TRAIN.values()) + 0.033
    found = asked_for(told, **{"eval-every": 4})
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(step / (step - 0.033 * 3 / 4), rel=0.02)
    unseen = asked_for(known(evaluates, shares={"eval-bound": 0.47}), **{"eval-every": 4})
    assert isinstance(unseen, str)
    assert unseen.startswith("no setting of the program is seen")


def asked_for(told: Known, **fixes: Value) -> Estimate | str:
    return attempt.predict(Arm(name="x", command=[], fixes=fixes), told)


def test_fixes_together_are_foretold_where_each_is_one_change() -> None:
    """More workers gain what the GPU leaves them, and half precision nothing as long as it waits for data; together
    both count."""
    starved = GPU.but(gpu={"forward": 0.030, "backward": 0.060}, batch=0.400, workers=2)
    told = known(starved, kinds={"matrix": 1.0})
    alone = [asked_for(told, workers=8), asked_for(told, amp="bf16")]
    both = asked_for(told, workers=8, amp="bf16")
    assert isinstance(alone[0], Estimate)
    assert isinstance(both, Estimate)
    assert both.value > alone[0].value * 1.3
    assert isinstance(alone[1], str) or alone[1].value < 1.1
    assert asked_for(told, workers=8, compile="default") == "compile: what it does beside others is not foretold"


@pytest.mark.parametrize(
    ("times", "value"), [(None, 17), (100.0, 17), (6.0, 6), (2.5, 2), (1.0, None)]
)  # 1: it comes once in the whole training, which is not made rarer
def test_what_is_made_rarer_still_comes_once(times: float | None, value: int | None) -> None:
    evaluates = CPU.but(host={**TRAIN, "eval": 0.033})
    told = known(evaluates, shares={"eval-bound": 0.47}, times={} if times is None else {"eval-every": times})
    found = said("eval-every", told)
    if value is None:
        assert found == "the whole training does it once"
    else:
        assert isinstance(found, Estimate)
        (fix,) = [fix for fix in ALL if fix.code == "eval-every"]
        assert fix.value is not None
        assert fix.value(told) == value


def test_what_the_batch_has_is_spared() -> None:
    drawing = CPU.but(host={**TRAIN, "other": 0.058})  # of 94 ms
    found = said("from-batch", known(drawing, habits=[DRAWN]))
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(1 / 0.4, rel=0.03)
    [advised] = plan.advise([finding("python-bound")], known(drawing, habits=[DRAWN]))
    first, *_ = findings.chosen([advised])
    assert first.what == "from-batch"
    assert "take it from the batch; at data.py:9" in first.promise


def test_from_outside_only_calls_that_return_nothing_are_left_out() -> None:
    """Seen: a try of `sync-off` promised all that `.item()` and indexing by a mask wait."""
    program = GPU.but(gpu={"forward": 0.02, "backward": 0.01}, syncs=10)

    def point(op: str, seconds: float) -> SyncPoint:
        return SyncPoint(file="train.py", line=1, function="main", op=op, per_step=1.0, seconds=seconds)

    numbers, both = [point("item", 0.018)], [point("item", 0.009), point("synchronize", 0.009)]
    [tried, *_] = [fix.foretell(known(program, syncs=numbers)) for fix in ALL if fix.code == "sync-off"]
    assert isinstance(tried, str)
    assert "what the program goes on with" in tried
    of = known(program, syncs=both)
    half, whole = attempt.predict(Arm(name="", command=[], fixes={"sync-off": True}), of), said("sync-off", of)
    assert isinstance(half, Estimate)
    assert isinstance(whole, Estimate)
    assert 1.0 < half.value < whole.value


def test_the_page_foretells_what_a_try_does() -> None:
    of = known(STARVED, where=[line(0.6), line(0.3, "crop")], loader={"operations": [READING]})
    [found] = plan.advise([finding("input-bound")], of)
    advised = next(fix for fix in found.fixes if fix.code == "decode-cache")
    tried = attempt.predict(Arm(name="", command=[], fixes={"decode-cache": "ram"}), of)
    assert isinstance(tried, Estimate)
    assert advised.speedup is not None
    assert advised.in_program is not None
    assert (advised.speedup.value, advised.speedup.low) == (tried.value, tried.low)
    assert advised.in_program.value > tried.value
    assert "by the program itself" in findings.promise(advised)


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        ({}, True),
        ({"name": "PIL.Image.resize"}, False),
        ({"calls": READING.calls / 2}, False),  # of another picture, or of this one once it was changed
        ({"where": line(1.0, "augment")}, False),
    ],
)
def test_what_is_resized_as_it_was_read_is_kept_too(changes: dict[str, Any], is_kept: bool) -> None:
    resizing = msgspec.structs.replace(READING, **{"name": "cv2.resize", "kind": "resizing", "share": 0.3, **changes})
    colour = msgspec.structs.replace(READING, name="cv2.cvtColor", kind="colour", share=0.01)

    def foretold(*operations: Operation) -> Estimate:
        of = known(STARVED, where=[line(0.9)], loader={"operations": list(operations)})
        found = attempt.predict(Arm(name="", command=[], fixes={"decode-cache": "ram"}), of)
        assert isinstance(found, Estimate)
        return found

    assert (foretold(READING, resizing).value > foretold(READING).value) == is_kept
    assert foretold(READING, resizing).low == foretold(READING).low
    assert foretold(READING, resizing, colour).value == foretold(READING).value  # of other colours by then


PICTURE = msgspec.structs.replace(READING, dtype="uint8", result=[10, 20, 3])


@pytest.mark.parametrize(
    ("operations", "samples", "kept"),
    [
        ([PICTURE], 100.0, 100 * 600),
        ([msgspec.structs.replace(PICTURE, calls=5.98, dtype="float32")], 100.0, 100 * 6 * 2400),
        ([PICTURE, msgspec.structs.replace(PICTURE, kind="reading", result=[5])], 10.0, 10 * 605),
        ([msgspec.structs.replace(PICTURE, calls=4.5)], 100.0, None),  # others of the set, at random
        ([PICTURE, msgspec.structs.replace(PICTURE, name="PIL.Image.open", kind="reading")], 100.0, 100 * 600),
        ([PICTURE], None, None),
        ([READING], 100.0, None),
    ],
)
def test_what_a_cache_of_pictures_takes_is_said(operations: list[Operation], samples: float | None, kept: int) -> None:
    of = known(STARVED, where=[line(0.9)], loader={"operations": operations}, samples_per_epoch=samples)
    [found] = plan.advise([finding("input-bound")], of)
    advised = next(fix for fix in found.fixes if fix.code == "decode-cache")
    assert advised.memory == kept
    assert ("how much memory it takes is not known" in findings.promise(advised)) == (kept is None)


# -- the program's own settings ------------------------------------------------------------------------------------

OFTEN = CPU.but(host={**TRAIN, "logging": 0.037})


def logs(of: Known) -> str:
    [found] = plan.advise([msgspec.structs.replace(finding("logging-bound"), where=[line(1.0)])], of)
    return findings.promise(found.fixes[0])


def test_a_setting_of_the_program_is_named_with_what_it_would_be() -> None:
    every = [Control(name="plot_every", value=2, file="opt.yaml", line=4)]
    every += [Control(name="bars_every", value=None, file="opt.yaml", line=5)]
    every += [Control(name="log_every", value=5, file="", line=0, option="--log-every")]
    promise = logs(known(OFTEN, controls={"log-every": every}))
    times = rarer(known(OFTEN).share("logging"))
    assert f"set by `plot_every: 2 -> {2 * times}` (opt.yaml:4)" in promise
    assert "`bars_every` (opt.yaml:5)" in promise
    assert f"`log_every: 5 -> {5 * times}` (--log-every)" in promise


def test_where_none_is_seen_the_line_is_named_and_where_none_was_looked_for_nothing_is() -> None:
    assert logs(known(OFTEN, controls={})).endswith("no setting of the program is seen for it: change it at data.py:3")
    assert "setting of the program" not in logs(known(OFTEN))
    assert "setting of the program" not in logs(known(OFTEN, controls={}, framework="lightning"))


def test_a_switch_of_the_program_is_named_as_it_would_be() -> None:
    switch = Control(name="use_checkpoint", value=True, file="vrt.yaml", line=26)
    of = known(CPU.but(host={**TRAIN, "recompute": 0.02}), controls={"recompute": [switch]})
    [found] = plan.advise([finding("recompute-bound")], of)
    assert "set by `use_checkpoint: true -> false` (vrt.yaml:26)" in findings.promise(found.fixes[0])
    assert found.fixes[0].effort == "a flag"


# -- what is said of findings -------------------------------------------------------------------------------------


def finding(code: str) -> Finding:
    return Finding(code=code, title="t", share=0.5, bound=2.0, evidence=[], where=[])


def test_a_finding_is_given_its_own_fixes_best_first() -> None:
    of = known(STARVED, where=[line(0.9)])
    first, second = plan.advise([finding("input-bound"), finding("python-bound")], of)
    assert [fix.code for fix in first.fixes] == ["decode-cache", "workers"]
    assert first.fixes[1].value == 8
    assert first.rewrite is not None
    assert 1 < first.rewrite.halved.value < first.rewrite.gone.value
    assert not second.fixes
    assert not second.not_advised
    assert "prefetch" in {no.code for no in first.not_advised}


def test_costs_stand_in_the_order_of_the_bounds_that_are_shown() -> None:
    """What is done about the data path frees cores too, so that it may be worth more than a cost with more seconds."""
    waits, evaluates = (
        msgspec.structs.replace(finding(code), bound=bound)
        for code, bound in (("input-bound", 1.2), ("eval-bound", 1.3))
    )
    ordered = plan.advise([evaluates, waits], known(STARVED, where=[line(0.9)]))
    assert [f.code for f in ordered] == ["input-bound", "eval-bound"]
    assert ordered[0].bound is not None
    assert ordered[0].bound > 1.3


def test_a_fix_for_several_costs_does_not_make_one_of_them_larger() -> None:
    """Compiling answers launches and the model's own work: what it gains by the latter is not the launches' cost."""
    launching = msgspec.structs.replace(finding("launch-bound"), bound=1.2)
    fix = FixAdvice(
        code="compile", summary="s", risk="rounding", effort="e", speedup=Estimate(value=1.4, low=1, high=1.7, n=9)
    )
    assert plan._most(launching, [fix], None, known(CPU)) == 1.2
    assert plan._beyond(1.2, [fix]) == ["compile may gain more than that, by what else it saves"]
    assert not plan._beyond(1.7, [fix])
    assert not plan._beyond(None, [fix])


def test_code_that_no_switch_makes_faster_is_to_be_rewritten() -> None:
    of = known(CPU.but(host={**TRAIN, "loss": 0.037}))
    [found] = plan.advise([finding("loss-bound")], of)
    assert found.rewrite is not None
    assert found.rewrite.where.file == "data.py"
    assert found.rewrite.gone.value == pytest.approx(0.072 / 0.035, rel=0.02)
    assert found.rewrite.halved.value == pytest.approx(0.072 / 0.0535, rel=0.02)


@pytest.mark.parametrize(("beside", "most"), [(None, None), (0.0, None), (0.015, 0.072 / 0.020)])
def test_a_loss_may_have_a_part_of_the_backward_pass(beside: float | None, most: float | None) -> None:
    """Which is not in its own time: what no part of the model takes of it may be the loss's."""
    of = known(CPU.but(host={**TRAIN, "loss": 0.037}), backward_beside=beside)
    [found] = plan.advise([finding("loss-bound")], of)
    assert found.rewrite is not None
    assert found.rewrite.with_backward == (pytest.approx(most, rel=0.02) if most else None)
    assert found.rewrite.most == (found.rewrite.with_backward or found.rewrite.gone.high)


def test_what_a_setting_is_ignored_for_is_what_it_would_change() -> None:
    of = known(STARVED)
    ignored = [Setting(name="num_workers", declared=8, actual=2, ignored=True)]
    [found] = plan.advise([finding("setting-ignored")], msgspec.structs.replace(of, settings=ignored))
    assert [fix.code for fix in found.fixes] == ["workers"]
    [found] = plan.advise([finding("setting-ignored")], of)
    assert not found.fixes


@pytest.mark.parametrize(("setting", "is_cause"), [("num_workers", True), ("pin_memory", False)])
def test_a_setting_that_is_ignored_comes_before_what_it_would_remove(setting: str, is_cause: bool) -> None:
    ignored = [Setting(name=setting, declared=8, actual=2, ignored=True)]
    of = msgspec.structs.replace(known(STARVED), settings=ignored)
    found = plan.advise([finding("input-bound"), msgspec.structs.replace(finding("setting-ignored"), bound=None)], of)
    assert found[0].code == ("setting-ignored" if is_cause else "input-bound")
    assert any("answer to input-bound" in said for f in found for said in f.evidence) == is_cause
    assert found[0].not_advised
    assert not found[1].not_advised


@pytest.mark.parametrize("code", ["healthy", "compute-bound"])
@pytest.mark.parametrize(
    "of",
    [
        known(CPU),
        known(CPU.but(batch=0.050, workers=2)),
        known(GPU, tensor_share=0.9, kinds={"matrix": 0.95}, settings={"matmul.allow_tf32": True}),
    ],
    ids=["cpu", "fed", "gpu"],
)
def test_a_healthy_program_is_promised_nothing(code: str, of: Known) -> None:
    [found] = plan.advise([finding(code)], of)
    assert not [fix for fix in found.fixes if fix.speedup.value > HEALTHY_GAIN]


def test_the_terminal_says_what_to_do_and_what_not() -> None:
    of = known(STARVED, where=[line(0.9)], loader={"busy_share": 1.0})
    drawn = Console(width=100, record=True, file=io.StringIO())
    drawn.print(
        Group(*findings.render(plan.advise([finding("input-bound")], of), lambda best: [Text(f"of {len(best)}")]))
    )
    text = drawn.export_text()
    assert "what to do" in text
    assert "workers=8" in text
    assert "rewrite load (data.py:3)" in text
    assert "(other order of data; a setting)" in text
    assert "(same results where samples are not random, from the second epoch on; a few lines, by hand)" in " ".join(
        text.split()
    )
    assert "would not help  prefetch: the workers are 100% busy" in text
    assert "prove it        of 3" in text


@pytest.mark.parametrize("code", ["workers", "decode-cache"])
def test_no_change_to_the_data_path_gains_more_than_its_absence(code: str) -> None:
    of = known(STARVED, where=[line(0.9)], loader={"busy_share": 1.0})
    alone = said(code, of)
    assert isinstance(alone, Estimate)
    most = (1 + alone.low) / 2
    capped = said(code, msgspec.structs.replace(of, without_data=of.needs.step / most))
    assert capped == Estimate(value=most, low=most, high=most, n=alone.n)
    roomy = said(code, msgspec.structs.replace(of, without_data=of.needs.step / (2 * alone.high)))
    assert roomy == alone


def test_of_anomaly_detection_more_than_its_traces_goes_but_never_all_of_the_step() -> None:
    for share in (0.1, 0.5, 0.9):
        found = said("anomaly", known(CPU, settings={"anomaly_detection": True}, shares={"debug-left-on": share}))
        assert isinstance(found, Estimate)
        assert found.low == pytest.approx(1 / (1 - share))
        assert found.low < found.value <= found.high <= 2.001 * found.low


def test_each_blocking_call_has_its_gain() -> None:
    of = known(GPU.but(gpu={"forward": 0.02, "backward": 0.01}, syncs=10))
    blocked = of.needs.host["sync"]
    points = [
        SyncPoint(file="a.py", line=n, function="f", op="item", per_step=1, seconds=blocked * share)
        for n, share in enumerate((0.75, 0.25))
    ]
    first, second = plan.sync_gains(points, of)
    assert first.gain is not None
    assert second.gain is not None
    assert first.gain.value > second.gain.value > 1
    assert plan.sync_gains(points, known(CPU))[0].gain is None


def test_an_item_in_a_program_that_the_gpu_limits_gains_nothing() -> None:
    of = known(GPU.but(syncs=1))
    point = SyncPoint(file="a.py", line=1, function="f", op="item", per_step=1, seconds=of.needs.host["sync"])
    [found] = plan.sync_gains([point], of)
    assert found.gain is not None
    assert found.gain.high < 1.03


def test_an_optimizer_that_takes_tensors_one_by_one_gains_most_by_being_fused() -> None:
    """Half of the step issues it, and the GPU is idle meanwhile: a quarter of that is left."""
    program = Program(host={"forward": 0.02, "backward": 0.03, "optimizer": 0.05}, gpu={"optimizer": 0.002})
    by_one = said("fused", known(program, settings={"optimizer.foreach": False}))
    assert isinstance(by_one, Estimate)
    assert by_one.value == pytest.approx(1 / (1 - 0.75 / 2), rel=0.03)
    assert 1.3 < by_one.low < by_one.value < by_one.high < 2
    by_many = said("fused", known(program, settings={}))
    assert isinstance(by_many, Estimate)
    assert by_many.value < by_one.value


def test_what_a_fix_does_to_memory_stands_beside_it() -> None:
    of = known(LAUNCHING, memory_peak=GIB, gpu_memory=80 * GIB, memory=used(GIB, batch=3 * GIB))
    [found] = plan.advise([Finding(code="launch-bound", title="", share=0.5, bound=2.0, evidence=[], where=[])], of)
    memory = {fix.code: fix.memory for fix in found.fixes}
    assert memory["batch"] == 3 * GIB
    assert set(memory.values()) == {3 * GIB, None}
    batch = next(fix for fix in found.fixes if fix.code == "batch")
    assert "+3.00 GiB of memory at the peak" in findings.promise(batch)
