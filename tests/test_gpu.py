"""On an NVIDIA GPU: the program behaves as before, the ledger closes, and blocked time is where it was planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gpu.expected import assert_parts_cost

from floorit.report.build import load
from floorit.trial import attempt, runner
from floorit.trial.trial import Trial
from floorit.tune import probing
from floorit.tune.dressing import Dressing

SCRIPTS = Path(__file__).parent / "gpu"


def _has_gpu() -> bool:
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).stdout.startswith(b"GPU")
    except OSError:
        return False


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not _has_gpu(), reason="no NVIDIA GPU here; run on one with: pytest -m gpu"),
]


def _run(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **environ}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)


def _recorded(tmp_path: Path, script: str, *options: str, **environ: str) -> tuple[dict[str, Any], str, Any]:
    times = tmp_path / "times.json"
    command = [sys.executable, "-m", "floorit", "run", "--quiet", "--out", str(tmp_path / "out"), *options, "--"]
    ran = _run([*command, sys.executable, str(SCRIPTS / script)], TIMES=str(times), **environ)
    assert ran.returncode == 0, ran.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    return report, ran.stdout, json.loads(times.read_text()) if times.exists() else None


def _phase(report: dict[str, Any], name: str) -> float:
    return sum(entry["seconds"] for entry in report["ledger"] if entry["phase"] == name)


@pytest.mark.parametrize(
    ("script", "environ"),
    [
        ("amp_scaler.py", {}),
        ("cuda_graph.py", {}),
        ("recompute.py", {"REENTRANT": "0"}),
        ("recompute.py", {"REENTRANT": "1"}),
        ("compiled.py", {}),
        ("syncs.py", {}),
        ("masks.py", {}),
    ],
)
def test_same_output_and_memory(tmp_path: Path, script: str, environ: dict[str, str]) -> None:
    """Losses, memory peaks, graphs and graph breaks are printed by the script itself."""
    bare = _run([sys.executable, str(SCRIPTS / script)], **environ)
    report, stdout, _ = _recorded(tmp_path, script, **environ)
    assert stdout == bare.stdout
    assert not [m for m in report["missing"] if "probe" in m["reason"]]


@pytest.mark.parametrize("script", ["amp_scaler.py", "recompute.py", "syncs.py"])
def test_closes(tmp_path: Path, script: str) -> None:
    """The ledger adds up to the step that the script's own clock saw, on the host and on the device."""
    report, _, times = _recorded(tmp_path, script, "--no-window")  # its steps are in the script's own times
    own = times["total"] if isinstance(times, dict) else times
    assert report["run"]["steps"] == len(own)
    after = own[report["run"]["warmup_steps"] :]
    if script != "amp_scaler.py":  # between its epochs lies more than the script's clock saw in a step
        assert report["step"]["mean"] == pytest.approx(sum(after) / len(after), rel=0.02)
    assert sum(entry["seconds"] for entry in report["ledger"]) == pytest.approx(report["step"]["mean"], rel=0.02)
    device = {entry["phase"]: entry["gpu_seconds"] or 0 for entry in report["ledger"]}
    assert sum(device.values()) == pytest.approx(report["step"]["mean"], rel=0.02)


def test_planted_sync_and_copy(tmp_path: Path) -> None:
    """Blocked and copying time are what the script measured around those calls, at that line."""
    report, _, times = _recorded(tmp_path, "syncs.py", "--no-window")
    skip = report["run"]["warmup_steps"]
    for phase, own in (("sync", times["sync"]), ("h2d", times["h2d"])):
        expected = sum(own[skip:]) / len(own[skip:])
        assert _phase(report, phase) == pytest.approx(expected, rel=0.05), phase
    first = report["syncs"][0]
    line = next(n for n, text in enumerate((SCRIPTS / "syncs.py").read_text().splitlines(), 1) if "loss.item()" in text)
    assert (Path(first["file"]).name, first["line"], first["op"]) == ("syncs.py", line, "item")
    assert first["per_step"] == pytest.approx(1, rel=0.02)


def test_calls_that_choose_by_a_mask(tmp_path: Path) -> None:
    """Those are told that torch itself says wait, in each step, for as long as by the script's own timers."""
    report, _, told = _recorded(tmp_path, "masks.py")
    lines = (SCRIPTS / "masks.py").read_text().splitlines()
    planted = {text.partition("# waits: ")[2]: number for number, text in enumerate(lines, 1) if "# waits: " in text}
    assert sorted(planted.values()) == told["warned"]
    found = {point["line"]: point for point in report["syncs"] if point["phase"] != "sync"}
    assert sorted(found) == told["warned"], [m for m in report["missing"] if m["what"] == "syncs"]
    first, last = (moment * 1e-9 for moment in _window(tmp_path / "out")["measured"])
    for name, line in planted.items():
        own = [spent for began, spent in told["times"][name] if first <= began <= last]
        assert found[line]["per_step"] >= 1, name  # some wait twice: for how many, and for which
        assert found[line]["seconds"] < 1.05 * sum(own) / len(own), name
        if name != "backward":  # which does more than wait; the others first launch what counts
            assert found[line]["seconds"] > sum(own) / len(own) - 0.5e-3, name
    assert not [m for m in report["missing"] if m["what"] == "syncs"]


def _window(folder: Path) -> dict[str, Any]:
    """What a record says of its kernel window."""
    _, reader = load(folder)
    return next(process.window for process in reader.processes.values() if process.window)


def test_recompute_is_its_own_phase(tmp_path: Path) -> None:
    """The engine's thread recomputes: that time is not in backward."""
    for reentrant in ("0", "1"):
        folder = tmp_path / reentrant
        folder.mkdir()
        report, _, _ = _recorded(folder, "recompute.py", REENTRANT=reentrant)
        assert _phase(report, "recompute") > 0.3 * _phase(report, "forward")


def test_the_devices_time_is_divided_as_by_the_scripts_own_events(tmp_path: Path) -> None:
    report, _, times = _recorded(tmp_path, "recompute.py", "--no-window", STEPS="600")  # some of them are marked
    device = {entry["phase"]: entry["gpu_seconds"] or 0 for entry in report["ledger"]}
    skip = report["run"]["warmup_steps"]
    phases = {"forward": ("forward",), "backward": ("loss", "backward", "recompute"), "optimizer": ("optimizer",)}
    for own, parts in phases.items():
        expected = sum(times[own][skip:]) / len(times[own][skip:])
        assert sum(device.get(part, 0) for part in parts) == pytest.approx(expected, rel=0.1), own


# -- the kernel window ---------------------------------------------------------------------------------------------


def _idle(report: dict[str, Any]) -> dict[str, float]:
    """Idle shares by cause; with the busy share they are all of a step."""
    gpu = report["gpu"]
    assert gpu["busy_share"] is not None, report["missing"]
    shares = {entry["cause"]: entry["share"] for entry in gpu["idle"]}
    assert sum(shares.values()) + gpu["busy_share"] == pytest.approx(1, abs=1e-6)
    return shares


def _busy(trace: Path) -> float:
    """The busy share between the script's own marks, by its own trace: one event after the other."""
    raw = json.loads(trace.read_text())
    begin, end = json.loads(Path(f"{trace}.marks").read_text())
    base = raw.get("baseTimeNanoseconds", 0)
    work = sorted(
        (base + event["ts"] * 1e3, base + (event["ts"] + event["dur"]) * 1e3)
        for event in raw["traceEvents"]
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy, reached = 0.0, float(begin)
    for start, stop in work:
        busy += max(min(stop, end) - max(start, reached), 0)
        reached = max(reached, min(stop, end))
    return busy / (end - begin)


@pytest.mark.parametrize("kind", ["data", "sync", "launch", "copy", "compute", "graphed"])
def test_busy_share_is_what_a_trace_of_the_scripts_own_says(tmp_path: Path, kind: str) -> None:
    own = tmp_path / "own.json"
    bare = _run([sys.executable, str(SCRIPTS / "bound.py")], KIND=kind, PROFILE=str(own))
    assert bare.returncode == 0, bare.stderr
    report, _, _ = _recorded(tmp_path, "bound.py", KIND=kind)
    _idle(report)
    gpu = report["gpu"]
    while_watched = gpu["busy_share"] * gpu["step_seconds"] / gpu["watched_seconds"]  # the script's own was, too
    traced = _busy(own)
    print(f"{kind}: busy {while_watched:.4f} of a watched step, {traced:.4f} by the script's own trace")
    assert while_watched == pytest.approx(traced, abs=0.03)
    assert gpu["steps"] >= 3


@pytest.mark.parametrize("kind", ["data", "sync", "launch", "copy", "compute"])
def test_busy_share_is_what_the_hardware_counts(tmp_path: Path, kind: str) -> None:
    """NVML's GPM over the steady steps, which counts no copies, and of each kernel a little more than its own time.

    To be run with nothing else on the GPU.
    """
    report, _, _ = _recorded(tmp_path, "bound.py", KIND=kind, SECONDS="20")
    _idle(report)
    counted = report["machine"]["gpu"]["active_share"]
    if counted is None:
        pytest.skip("this GPU does not count its activity")
    computing = report["gpu"]["busy_share"] - report["gpu"]["copies_alone_share"]
    assert computing == pytest.approx(counted["value"], abs=0.05 if kind == "launch" else 0.03)


@pytest.mark.parametrize("kind", ["data", "sync", "launch"])
def test_what_holds_the_gpu_up_is_told_apart(tmp_path: Path, kind: str) -> None:
    report, _, _ = _recorded(tmp_path, "bound.py", KIND=kind)
    shares = _idle(report)
    cause = "data_wait" if kind == "data" else kind
    assert max(shares, key=lambda name: shares[name]) == cause, shares
    first = next(entry for entry in report["gpu"]["idle"] if entry["cause"] == cause)
    assert Path(first["where"][0]["file"]).name == "bound.py"


def test_copies_hold_the_step_up(tmp_path: Path) -> None:
    report, _, _ = _recorded(tmp_path, "bound.py", KIND="copy")
    assert _idle(report).get("h2d", 0) + report["gpu"]["copies_alone_share"] > 0.5
    assert report["gpu"]["kinds"][0]["kind"] == "copies"


def test_a_gpu_that_computes_is_busy(tmp_path: Path) -> None:
    report, _, _ = _recorded(tmp_path, "bound.py", KIND="compute")
    _idle(report)
    assert report["gpu"]["busy_share"] > 0.9
    assert report["gpu"]["kinds"][0]["kind"] == "matrix"
    assert report["gpu"]["memory_peak"] > 6 * 4096 * 4096 * 4


@pytest.mark.parametrize(("kind", "steps"), [("launch", "1200"), ("graphed", "12000")])
def test_the_window_changes_neither_losses_nor_memory(tmp_path: Path, kind: str, steps: str) -> None:
    """The number of steps must make the run last longer than the window needs to open."""
    bare = _run([sys.executable, str(SCRIPTS / "bound.py")], KIND=kind, STEPS=steps)
    report, stdout, _ = _recorded(tmp_path, "bound.py", KIND=kind, STEPS=steps)
    _idle(report)
    assert stdout == bare.stdout
    assert report["run"]["steps"] == int(steps)


@pytest.mark.parametrize("own", ["inside", "after"])
def test_the_programs_own_profiler_works(tmp_path: Path, own: str) -> None:
    report, stdout, _ = _recorded(tmp_path, "bound.py", KIND="launch", OWN=own)
    assert stdout == "own profiler saw kernels: True\n"
    if own == "inside":
        reasons = {m["what"]: m["reason"] for m in report["missing"]}
        assert "profiler itself" in reasons["gpu.busy_share"]
    else:
        _idle(report)


def test_the_window_leaves_no_lasting_cost(tmp_path: Path) -> None:
    """Steps before it and after it, within one process: blocks of both, their medians."""
    report, _, seen = _recorded(tmp_path, "bound.py", KIND="launch", SECONDS="20")
    _idle(report)
    opened, closed = seen["opened"][0], seen["closed"][-1]  # there are two, one after the other
    ends, now = [], seen["started"]
    for seconds in seen["times"]:
        now += seconds
        ends.append(now)
    before = sorted(t for t, end in zip(seen["times"], ends, strict=True) if opened - 2 < end < opened)
    after = sorted(t for t, end in zip(seen["times"], ends, strict=True) if end > closed + 0.5)
    assert after[len(after) // 2] < 1.1 * before[len(before) // 2]


# -- the model's parts ---------------------------------------------------------------------------------------------


def test_parts_cost_what_cuda_events_say(tmp_path: Path) -> None:
    """Forward and backward seconds of each stage, and the memory that its forward pass leaves; nothing else changes."""
    bare = _run([sys.executable, str(SCRIPTS / "parts.py")], SECONDS="1")
    report, stdout, own = _recorded(tmp_path, "parts.py")
    assert stdout == bare.stdout
    assert_parts_cost(report, own)


def test_parts_of_a_captured_graph_are_not_told(tmp_path: Path) -> None:
    report, _, _ = _recorded(tmp_path, "bound.py", KIND="graphed")
    assert report["parts"] == []
    assert "CUDA graph" in next(m["reason"] for m in report["missing"] if m["what"] == "parts")


# -- the memory ledger ---------------------------------------------------------------------------------------------

BATCH = 8192


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each kind by itself, recorded, and by itself with twice the batch. Memory does not mind company."""
    folder = tmp_path_factory.mktemp("memories")
    script = [sys.executable, str(SCRIPTS / "ledger.py")]

    def run(kind: str) -> dict[str, Any]:
        (folder / kind).mkdir()
        bare = _run(script, KIND=kind, SECONDS="1")
        report, stdout, own = _recorded(folder / kind, "ledger.py", KIND=kind)
        larger = _run(script, KIND=kind, SECONDS="1", BATCH=str(2 * BATCH))
        measured = int(larger.stdout.split("peak ")[1].split()[0])
        return {"bare": bare.stdout, "stdout": stdout, "report": report, "own": own, "larger": measured}

    kinds = ("plain", "amp", "recompute")
    with ThreadPoolExecutor(len(kinds)) as pool:
        return dict(zip(kinds, pool.map(run, kinds), strict=True))


@pytest.mark.parametrize("kind", ["plain", "amp", "recompute"])
def test_the_memory_ledger_adds_up_to_what_torch_counts(memories: dict[str, Any], kind: str) -> None:
    memory, own = memories[kind]["report"]["memory"], memories[kind]["own"]
    assert memory is not None, memories[kind]["report"]["missing"]
    ledger = {row["what"]: row["bytes"] for row in memory["ledger"]}
    assert sum(ledger.values()) == memory["peak"]
    assert memory["peak"] == pytest.approx(own["peak"], rel=0.03)
    assert ledger["parameters"] == own["parameters"]
    assert ledger["optimizer state"] == own["optimizer state"]
    assert sum(ledger.get(what, 0) for what in ("unattributed", "other steps", "rounding")) < 0.03 * memory["peak"]
    assert memory["retries"] == 0


@pytest.mark.parametrize("kind", ["plain", "amp", "recompute"])
def test_the_memory_of_a_larger_batch_is_foretold(memories: dict[str, Any], kind: str) -> None:
    memory = memories[kind]["report"]["memory"]
    foretold = next(f["bytes"] for f in memory["predicted"] if f["times"] == 2)
    assert foretold == pytest.approx(memories[kind]["larger"], rel=0.05)


@pytest.mark.parametrize("kind", ["plain", "amp", "recompute"])
def test_following_memory_changes_neither_losses_nor_memory(memories: dict[str, Any], kind: str) -> None:
    """The script prints both: its own peak, of allocated and reserved memory, is what it is without us."""
    assert memories[kind]["stdout"] == memories[kind]["bare"]


def test_memory_without_recompute_is_foretold(memories: dict[str, Any]) -> None:
    memory = memories["recompute"]["report"]["memory"]
    more = next(e["bytes"] for e in memory["effects"] if e["code"] == "recompute")
    assert memory["peak"] + more == pytest.approx(memories["plain"]["own"]["peak"], rel=0.05)


def test_activations_are_told_by_the_parts_of_the_model(memories: dict[str, Any]) -> None:
    """What a stage saves: its input, what goes into the activation function and what comes out."""
    memory = memories["plain"]["report"]["memory"]
    by_part = {part["name"]: part["bytes"] for part in memory["activations"]}
    wide = 2 * BATCH * 2048 * 4
    assert memory["phase"] in ("forward", "loss", "backward")
    assert by_part["stages.1"] == pytest.approx(2 * wide + wide // 2, rel=0.02)


# -- out of memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caught", ["0", "1"])
@pytest.mark.parametrize("phase", ["forward", "backward", "eval"])
def test_out_of_memory_is_named_with_its_phase(tmp_path: Path, phase: str, caught: str) -> None:
    """The program ends as it would, and what was asked for is what the script asked for."""
    script = str(SCRIPTS / "out_of_memory.py")
    environ = {"PHASE": phase, "CAUGHT": caught}
    bare = _run([sys.executable, script], **environ)
    command = [sys.executable, "-m", "floorit", "run", "--quiet", "--out", str(tmp_path / "out"), "--"]
    ran = _run([*command, sys.executable, script], **environ)
    assert ran.returncode == bare.returncode == (0 if caught == "1" else 1)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    out = report["out_of_memory"]
    assert (out["where"], out["phase"], out["ended"]) == ("gpu", phase, caught == "0")
    assert out["asked"] == 4 << 30
    assert out["total"] == pytest.approx(2 << 30, rel=0.01)
    assert {held["what"] for held in out["held"]} >= {"parameters", "optimizer state"}
    assert Path(out["place"]["file"]).name == "out_of_memory.py"
    assert (report["findings"][0]["code"] == "out-of-memory") == (caught == "0")


# -- the physical limit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "recompute", "small"])
def test_the_physical_limit_is_the_last_rung(tmp_path: Path, kind: str) -> None:
    """The script says itself how much it computes."""
    report, _, own = _recorded(tmp_path, "products.py", "--floor", KIND=kind, XDG_CACHE_HOME=str(tmp_path / "cache"))
    rungs = {rung["name"]: rung["seconds"] for rung in report["floor"]["rungs"]}
    assert list(rungs) == ["step", "without data", "without waiting", "physical limit"], report["missing"]
    work, gpu = report["floor"]["limit"]["work"], report["gpu"]
    assert work["flops"] == {"bfloat16": own["flops"]}
    assert sum(work["recomputed"].values()) == own["recomputed"]
    assert rungs["physical limit"] <= rungs["without waiting"] <= rungs["step"]
    assert report["floor"]["gap"] == pytest.approx(rungs["step"] / min(s for n, s in rungs.items() if "limit" not in n))
    rate = report["floor"]["limit"]["rates"]["flops"]["bfloat16"]
    assert gpu["hfu"] == pytest.approx(own["flops"] / rate / report["step"]["mean"])
    assert 0 < gpu["mfu"] <= gpu["hfu"] <= 1
    if kind == "plain":
        assert gpu["mfu"] > 0.6
    (kept,) = (tmp_path / "cache" / "floorit" / "rates").iterdir()
    assert json.loads(kept.read_text())["flops"]["bfloat16"] == rate


def test_the_rungs_are_the_same_the_next_time(tmp_path: Path) -> None:
    rungs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        report, _, _ = _recorded(tmp_path / name, "products.py", "--floor", XDG_CACHE_HOME=str(tmp_path / "cache"))
        rungs.append({rung["name"]: rung["seconds"] for rung in report["floor"]["rungs"]})
    assert rungs[0] == pytest.approx(rungs[1], rel=0.02)


def test_the_rates_are_those_of_a_stopwatch(tmp_path: Path) -> None:
    """In the range of what a loop of products takes by the host's clock, in each precision."""
    import torch

    from floorit import rating

    began = time.perf_counter()
    found = rating.rate(torch, "cuda:0", ["float32", "tf32", "bfloat16", "float16"])
    assert time.perf_counter() - began < 10
    for precision, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        one = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        one @ one
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(10):
            one @ one
        torch.cuda.synchronize()
        assert found["flops"][precision] == pytest.approx(10 * 2 * 8192**3 / (time.perf_counter() - began), rel=0.2)
    assert found["flops"]["tf32"] > 2 * found["flops"]["float32"]


# -- overrides -----------------------------------------------------------------------------------------------------

FIXES = [
    *("pin", "async-copy", "sync-off", "launch-blocking", "allocator", "tf32", "cudnn-benchmark", "deterministic"),
    *("channels-last", "fused", "amp=bf16"),
]
SLOW = {
    "pinned": False,
    "copies wait": True,
    "runs ahead": False,
    "runs ahead of synchronize": False,
    "benchmark": False,
    "deterministic": True,
    "kinds": ["torch.float32"],
    "channels last": False,
    "expandable": False,
    "counted on GPU": False,
    "compiled": False,
}
FAST = {
    "pinned": True,
    "copies wait": False,
    "runs ahead": True,
    "runs ahead of synchronize": True,
    "benchmark": True,
    "deterministic": False,
    "kinds": ["torch.bfloat16"],
    "channels last": True,
    "expandable": True,
    "counted on GPU": True,
    "compiled": False,
}


def _overridden(folder: Path, *fixes: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the script says, and what the report tells of each override."""
    folder.mkdir()
    report, stdout, _ = _recorded(folder, "overridden.py", *(word for fix in fixes for word in ("--fix", fix)))
    return json.loads(stdout), {override["code"]: override for override in report["overrides"]}


def test_overrides_are_in_force_on_the_gpu(tmp_path: Path) -> None:
    """As the GPU itself shows: by what the host waits for, by rounding, by the allocator's segments."""
    slow, _ = _overridden(tmp_path / "slow")
    fast, told = _overridden(tmp_path / "fast", *FIXES)
    assert {name: slow[name] for name in SLOW} == SLOW
    assert {name: fast[name] for name in FAST} == FAST
    assert slow["tf32 error"] < 1e-5 < fast["tf32 error"]  # 24 and 11 bits of mantissa
    assert {code: override["state"] for code, override in told.items()} == dict.fromkeys(told, "in force")
    for code in ("tf32", "cudnn-benchmark", "deterministic", "launch-blocking", "allocator", "async-copy", "fused"):
        assert told[code]["opposed"], code
    assert fast["losses"] == pytest.approx(slow["losses"], rel=0.05)


@pytest.mark.parametrize("fixes", [("amp=fp16",), ("compile=default",), ("compile=reduce-overhead", "amp=fp16")])
def test_model_overrides_train_alike_on_the_gpu(tmp_path: Path, fixes: tuple[str, ...]) -> None:
    slow, _ = _overridden(tmp_path / "slow")
    fast, told = _overridden(tmp_path / "fast", *fixes)
    assert fast["compiled"] == any("compile" in fix for fix in fixes)
    assert {override["state"] for override in told.values()} == {"in force"}
    assert fast["losses"] == pytest.approx(slow["losses"], rel=0.05)


def test_copies_are_made_ahead_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    (tmp_path / "ahead").mkdir()
    _, usual, _ = _recorded(tmp_path / "usual", "ahead.py", "--no-window")
    report, stdout, _ = _recorded(tmp_path / "ahead", "ahead.py", "--no-window", "--fix", "device-prefetch")
    before, after = json.loads(usual), json.loads(stdout)
    assert all(before["waited"])
    (told,) = report["overrides"]
    assert told["state"] == "in force"
    assert told["acted"] > len(after["waited"]) / 2
    assert after["waited"].count(False) == told["acted"]
    for name in ("losses", "order", "drawn"):
        assert after[name] == before[name], name


# -- the machine ---------------------------------------------------------------------------------------------------


def test_power_memory_and_use_are_what_nvidia_smi_says(tmp_path: Path) -> None:
    """Over the same stretch: both sample for as long as the program trains."""
    query = "--query-gpu=power.draw,utilization.gpu,memory.used"
    asked = ["nvidia-smi", query, "--format=csv,noheader,nounits", "-lms", "250"]
    told = tmp_path / "smi.csv"
    with told.open("w") as file:
        smi = subprocess.Popen(asked, stdout=file)
        report, _, _ = _recorded(tmp_path, "bound.py", "--no-window", KIND="compute", SECONDS="25")
        smi.terminate()
        smi.wait()
    rows = [[float(cell) for cell in line.split(",")] for line in told.read_text().splitlines() if line.count(",") == 2]
    busy = [row for row in rows if row[1] > 50]  # not while it starts and ends
    power, use = (sum(row[column] for row in busy) / len(busy) for column in (0, 1))
    gpu = report["machine"]["gpu"]
    assert gpu["power_watts"]["value"] == pytest.approx(power, rel=0.05)
    assert gpu["busy_share"]["value"] == pytest.approx(use / 100, abs=0.05)
    assert gpu["memory_peak"] / 2**20 == pytest.approx(max(row[2] for row in rows), rel=0.02)


def test_what_goes_over_pcie_is_what_the_program_copies(tmp_path: Path) -> None:
    """64 x 1024 x 1024 numbers of four bytes in each step, with what the bus itself adds to them; hardly any back."""
    report, _, told = _recorded(tmp_path, "bound.py", "--no-window", KIND="copy", SECONDS="20")
    steady = told["times"][len(told["times"]) // 4 :]
    copied = (64 << 20) * 4 * len(steady) / sum(steady)
    gpu = report["machine"]["gpu"]
    print("copied", copied, "received", gpu["received_bytes"], "sent", gpu["sent_bytes"])  # pytest -s: for the record
    assert copied * 0.9 < gpu["received_bytes"]["value"] < copied * 1.3
    assert gpu["sent_bytes"]["value"] < copied * 0.1


@pytest.mark.parametrize("others", [0, 1])
def test_another_program_on_the_gpu_is_noticed(tmp_path: Path, others: int) -> None:
    idle = "import torch, sys; x = torch.ones(1, device='cuda'); print('there', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    besides = [subprocess.Popen([sys.executable, "-c", idle], **pipes) for _ in range(others)]  # type: ignore[call-overload]
    for other in besides:
        assert other.stdout.readline()
    try:
        report, _, _ = _recorded(tmp_path, "bound.py", "--no-window", KIND="compute", SECONDS="8")
    finally:
        for other in besides:
            other.communicate()
    assert report["machine"]["gpu_others"] == others


def test_sizes_of_batches_are_run_under_a_cap_and_one_that_fits_is_chosen(tmp_path: Path) -> None:
    """The program allows itself 6 GiB: what is taken of it is torch's own count, and 16,384 do not fit."""
    dressing = Dressing([sys.executable, str(SCRIPTS / "batches.py")], "--batch-size {}")
    terms = attempt.Terms(steps=None, budget=300.0, in_place=True, quiet=True)
    pilot = Trial(arm="as it is", state="ran", seconds=20.0)
    found = probing.Probe(tmp_path, terms, dressing.dress, sys.stderr, 240.0).find(16, pilot, None, [])
    assert found.limits["gpu"] <= 6 << 30
    assert found.chosen is not None
    assert found.chosen > 16
    assert all(one.peaks["gpu"] <= found.limits["gpu"] for one in found.seen if one.state == "ran")
    run = runner.Runner(tmp_path, None, lambda: None)
    run.cap = probing.CAP
    assert run(dressing.dress({"batch": 16384})).ran_out
