"""The physical limit: rates as measured and kept, and the rung they make."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from test_floor import FIRST

from floorit import rates, rating, replay
from floorit.analyse import floor, iterations, limit
from floorit.analyse.gpu import Gpu
from floorit.events import Process, Rates
from floorit.replay import Row
from floorit.report import ladder
from floorit.runfile import FloorRun

RATES = Rates(
    device="a GPU", torch="2.4", date="2026-11-15", flops={"bfloat16": 500e12, "tf32": 250e12}, bandwidth=4e12
)


def work(**more: object) -> limit.Work:
    given = {
        "steps": 4,
        "device": "cuda:0",
        "name": "a GPU",
        "flops": {"bfloat16": 40e12, "tf32": 5e12},
        "recomputed": {"bfloat16": 10e12},
        "bytes": {"parameters": 20e9, "activations": 60e9},
        "unseen": [],
    }
    return limit.Work(**{**given, **more})  # type: ignore[arg-type]


def test_each_precision_has_its_rate() -> None:
    found = limit.find(work(), RATES)
    assert isinstance(found, limit.Limit)
    assert found.computing == pytest.approx(40 / 500 + 5 / 250)
    assert found.moving == pytest.approx(0.02)
    assert found.seconds == found.computing
    assert found.how == (
        "40 TFLOP in bfloat16 at 500 TFLOP/s, 5 TFLOP in tf32 at 250 TFLOP/s, as measured in a large product"
    )
    assert found.utilisation(0.2) == pytest.approx(((30 / 500 + 5 / 250) / 0.2, 0.1 / 0.2))


def test_what_takes_longer_is_the_limit() -> None:
    found = limit.find(work(bytes={"activations": 800e9}), RATES)
    assert isinstance(found, limit.Limit)
    assert found.seconds == pytest.approx(0.2)
    assert found.how == "800 GB that must move at 4 TB/s, as measured in a copy"


def test_steps_between_two_counts_do_not_count() -> None:
    """Ten steps of a second; counted are the 3rd and 4th and, after a fork, the 8th."""
    process = Process()
    process.facts = {"started": 0.0}
    second = 10**9
    process.add_rows(
        [Row(replay.BATCH, 1, backwards=1, end=(n + 1) * second, spent=[second] + [0] * 13) for n in range(10)]
    )
    for begin in (2, 3, 7):
        count = {"device": "cuda:0", "name": "a GPU", "total": 7, "by_dtype": {"tf32": 7}, "recomputed_by_dtype": {}}
        moved = dict.fromkeys(("forward_parameters", "backward_parameters", "activations", "copied"), 5)
        count |= {"begin": begin * second, "end": (begin + 1) * second, "bytes": moved, "step_bytes": [], "unseen": []}
        count["by_module"] = {"Net.layer": {"forward": 3, "backward": 4}}
        process.counts.append(count)
    found = iterations.find(process)
    assert found is not None
    done = limit.count(process, found)
    assert done is not None
    assert (done.steps, done.flops, done.by_module) == (3, {"tf32": 7.0}, {"Net.layer": 7.0})
    assert done.bytes == {"parameters": 10.0, "activations": 10.0, "batch": 10.0, "gradients": 0.0, "optimizer": 0.0}


def test_a_precision_without_a_rate_is_said() -> None:
    said = limit.find(work(flops={"float8_e4m3fn": 1e12}), RATES)
    assert said == "the rate of products in float8_e4m3fn could not be measured"


def test_the_gap_stops_above_the_limit() -> None:
    lowest = limit.find(work(), RATES)
    assert isinstance(lowest, limit.Limit)
    watched = Gpu(busy_share=0.25, step_seconds=1.0)
    found = floor.ladder(FIRST, watched, None, None, lowest)
    assert [rung.name for rung in found.rungs][-2:] == ["without waiting", "physical limit"]
    assert found.rungs[-1].seconds == pytest.approx(0.1)
    assert found.gap == floor.ladder(FIRST, watched, None, None).gap == pytest.approx(4.0)


# -- rates ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def device(tmp_path: Path) -> rates.Device:
    """An interpreter that answers with rates of its own, and notes what it was asked."""
    fake = tmp_path / "python"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "asked = json.loads(sys.argv[2])['precisions']\n"
        f"open({str(tmp_path / 'asked')!r}, 'a').write(json.dumps(asked) + '\\n')\n"
        "print('a warning on stdout')\n"
        "print(json.dumps({'flops': {p: 1e12 for p in asked}, 'bandwidth': 2e12}))\n"
    )
    fake.chmod(0o755)
    return rates.Device(executable=str(fake), torch="2.4.0+cu121", device="cuda:0", name="NVIDIA H200/x")


def asked(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]


def test_they_are_measured_once(device: rates.Device, tmp_path: Path) -> None:
    first = rates.known(device, ["bfloat16"])
    assert isinstance(first, Rates)
    assert (first.flops, first.bandwidth, first.device) == ({"bfloat16": 1e12}, 2e12, "NVIDIA H200/x")
    assert rates.known(device, ["bfloat16"]) == first
    more = rates.known(device, ["bfloat16", "tf32"])
    assert isinstance(more, Rates)
    assert more.flops == {"bfloat16": 1e12, "tf32": 1e12}
    assert asked(tmp_path) == [["bfloat16"], ["tf32"]]
    other = msgspec.structs.replace(device, torch="2.5.0")
    rates.known(other, ["bfloat16"])
    assert len(asked(tmp_path)) == 3


def test_what_is_kept_and_cannot_be_read_is_measured_again(device: rates.Device, tmp_path: Path) -> None:
    rates.known(device, ["tf32"])
    (file,) = rates.folder().iterdir()
    file.write_text('{"device": "torn')
    assert isinstance(rates.known(device, ["tf32"]), Rates)
    assert asked(tmp_path) == [["tf32"], ["tf32"]]
    assert isinstance(rates.known(device, ["tf32"]), Rates)
    assert len(asked(tmp_path)) == 2


def test_a_cache_that_cannot_be_written_is_done_without(
    device: rates.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert isinstance(rates.known(device, ["tf32"]), Rates)
    assert asked(tmp_path) == [["tf32"], ["tf32"]]


def test_one_that_fails_says_why(device: rates.Device, tmp_path: Path) -> None:
    gone = msgspec.structs.replace(device, executable="/nowhere/python")
    assert rates.known(gone, ["tf32"]) == "/nowhere/python cannot be started: No such file or directory"
    (tmp_path / "python").write_text("#!/bin/sh\necho a warning >&2\necho there is no GPU here >&2\nexit 1\n")
    assert rates.known(device, ["tf32"]) == "measuring the device's rates failed: there is no GPU here"
    (tmp_path / "python").write_text("#!/bin/sh\necho '[]'\n")
    assert rates.known(device, ["tf32"]) == "measuring the device's rates gave no result"


def test_operations_and_bytes_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that says how long each product and each copy takes."""
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(rating.SIZES, "cpu", (8, 16))
    monkeypatch.setitem(rating.COPIES, "cpu", (100, 50))
    taken = iter([0.01, 0.03, 1.0, 1.0])
    monkeypatch.setattr(rating._Timer, "__call__", lambda _, call: (call(), next(taken))[1])
    found = rating.rate(torch, "cpu", ["float32"])
    assert found == {"flops": {"float32": pytest.approx(2 * 16**3 / 0.03)}, "bandwidth": 200.0}


@pytest.mark.acceptance
def test_the_rate_is_what_a_stopwatch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(rating.SIZES, "cpu", (256, 768))
    monkeypatch.setitem(rating.COPIES, "cpu", (2**26,))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = rating.rate(torch, "cpu", ["float32", "no such precision"])
        one, large = torch.randn(768, 768), np.ones(2**26, np.uint8)
        result, target = torch.empty_like(one), np.empty_like(large)
        product, copy = _least(lambda: torch.mm(one, one, out=result)), _least(lambda: np.copyto(target, large))
    finally:
        torch.set_num_threads(before)
    assert list(found["flops"]) == ["float32"]
    assert 0.3 < found["flops"]["float32"] / (2 * 768**3 / product) < 3
    assert 0.2 < found["bandwidth"] / (2 * large.nbytes / copy) < 5


def _least(call: Callable[[], object]) -> float:
    times = []
    for _ in range(20):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


@pytest.mark.acceptance
def test_the_script_runs_in_an_interpreter_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch = pytest.importorskip("torch")
    cpu = rates.Device(executable=sys.executable, torch=str(torch.__version__), device="cpu", name="a CPU")
    found = rates.known(cpu, ["float32"])
    assert isinstance(found, Rates), found
    assert found.flops["float32"] > 1e9
    assert found.bandwidth > 1e9
    assert [file.name for file in rates.folder().iterdir()] == [f"a-CPU-torch-{torch.__version__}.json"]


# -- in the report -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "ended", "reason"),
    [
        (None, None, "it takes a floor run: `floorit run --floor`"),
        ("it ended badly", FloorRun(reason="it ended badly"), "there is no floor run"),
        ([{"what": "flops", "reason": "torch.compile is in use"}], FloorRun(), "torch.compile is in use"),
        ([], FloorRun(), "no whole step of the floor run was counted"),
    ],
)
def test_why_there_is_none_is_said(
    second: object, ended: FloorRun | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "used_cuda", lambda process: True)
    counted = SimpleNamespace(process=SimpleNamespace(counts=[], missing=second), iterations=None)
    given = counted if isinstance(second, list) else second
    found, said = ladder.of_limit(SimpleNamespace(process=None), given, ended, None)  # type: ignore[arg-type]
    assert found is None
    assert {(m.what, m.reason) for m in said} == {("floor: the physical limit", reason), ("gpu.mfu", reason)}


@pytest.mark.parametrize(
    ("done", "ended", "reason"),
    [
        (work(device="cpu"), FloorRun(rates=RATES), "what it computes, it computes on the CPU"),
        (work(), FloorRun(no_rates="there is no GPU here"), "there is no GPU here"),
        (work(unseen=["mine.op"]), FloorRun(rates=RATES), "these operations are not in it: mine.op"),
        (work(), FloorRun(rates=RATES), None),
    ],
)
def test_what_was_counted_meets_the_rates(
    done: limit.Work, ended: FloorRun, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "used_cuda", lambda process: True)
    trained = SimpleNamespace(process=None, iterations=None)
    found, said = ladder.of_limit(trained, trained, ended, done)  # type: ignore[arg-type]
    assert {m.reason for m in said} == ({reason} if reason else set())
    assert (found is None) == (done.device == "cpu" or ended.rates is None)
