"""Findings from the GPU's idle time: what is named for programs whose limit is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import simulation
from simulation import Program

from floorit.analyse.gpu import Gpu, Idle
from floorit.analyse.ledger import Entry, Ledger, Line
from floorit.analyse.needs import Needs, Range
from floorit.analyse.settings import Setting
from floorit.analyse.stepmodel import apart, bound, without
from floorit.analyse.syncs import SyncPoint
from floorit.diagnose import Facts, verdict
from floorit.events import Place

GIB = 2**30
TRAIN = {"forward": 0.010, "loss": 0.002, "backward": 0.020, "optimizer": 0.002, "other": 0.001}
WORK = {"forward": 0.030, "backward": 0.060}
ROOM = 80 * GIB


def facts(program: Program, **more: Any) -> Facts:
    """What is known of the program, with a kernel window."""
    return of_needs(simulation.needs(program), **more)


def of_needs(needs: Needs, memory_peak: int | None = None, comm_alone: float = 0.0, **more: Any) -> Facts:
    entries = [
        Entry(phase=phase, seconds=s, share=s / needs.step, gpu_seconds=None, where=[])
        for phase, s in needs.host.items()
    ]
    idle = [
        Idle(cause=cause, share=s / needs.step, seconds=s, host=cause, where=[_line(cause)])
        for cause, s in (needs.idle or {}).items()
    ]
    gpu = None
    if needs.gpu is not None and needs.idle is not None:
        gpu = Gpu(
            busy_share=needs.gpu.likely / needs.step,
            step_seconds=needs.step,
            idle=idle,
            kernels_per_step=600.0,
            comm_alone_share=comm_alone,
            memory_peak=memory_peak,
        )
    process: Any = type("Process", (), {"switches": [], "readings": [], "rows": {"flags": np.zeros(1, np.int64)}})()
    return Facts(
        process=process,
        iterations=None,  # type: ignore[arg-type]
        ledger=Ledger(mean=needs.step, entries=entries, looks={}),
        workers=None,
        needs=needs,
        gpu=gpu,
        **more,
    )


def _line(name: str) -> Line:
    return Line(file=f"{name}.py", line=1, function="f", share=1.0)


def codes(of: Facts) -> list[str]:
    return [finding.code for finding in verdict.diagnose(of, [])]


def test_many_small_kernels_are_launch_bound() -> None:
    of = facts(Program(host=TRAIN, gpu={"forward": 0.001, "backward": 0.002}))
    [first, *_] = verdict.diagnose(of, [])
    assert first.code == "launch-bound"
    assert first.where[0].file == "launch.py"
    assert any("600 kernels a step, 5" in said for said in first.evidence)


def test_a_busy_gpu_is_compute_bound_and_no_phase_of_the_host_is_to_blame() -> None:
    """The host waits for room in the GPU's queue, in whatever phase it is: that is nobody's cost."""
    program = Program(host={**TRAIN, "loss": 0.015}, gpu=WORK)
    assert codes(facts(program)) == ["compute-bound"]


def test_one_item_a_step_is_not_what_limits_a_busy_gpu() -> None:
    of = facts(Program(host=TRAIN, gpu=WORK, syncs=1))
    assert of.ledger.share("sync") > 0.3
    assert codes(of) == ["compute-bound"]


def test_the_gpus_own_work_is_told_beside_what_could_be_removed() -> None:
    """Host and GPU need about as long: what shortens the GPU's work is worth as much as what shortens the host's."""
    of = facts(Program(host={**TRAIN, "other": 0.008}, gpu={"forward": 0.012, "backward": 0.020}, syncs=1))
    assert of.gpu is not None
    assert of.gpu.busy_share is not None
    assert 0.7 < of.gpu.busy_share < 0.95
    found = codes(of)
    assert found[0] != "compute-bound"
    assert "compute-bound" in found


def test_what_the_gpu_hides_is_not_named() -> None:
    """Seen: nanoGPT on a GPU that is busy for 91 % was called optimizer-bound, for a tenth of the host's time."""
    needs = simulation.needs(Program(host=TRAIN, gpu=WORK))
    busy = 0.90 * needs.step
    ahead = msgspec.structs.replace(
        needs,
        host={
            phase: share * needs.step
            for phase, share in (("forward", 0.27), ("backward", 0.40), ("other", 0.22), ("optimizer", 0.11))
        },
        gpu=Range(busy, busy, busy),
        idle={"launch": 0.09 * needs.step, "other": 0.01 * needs.step},
    )
    assert bound(ahead, without("optimizer")) > 1.1
    assert codes(of_needs(ahead))[0] == "compute-bound"


def test_host_and_gpu_that_take_turns_are_sync_bound() -> None:
    of = facts(Program(host=TRAIN, gpu={"forward": 0.020, "backward": 0.010}, syncs=10))
    point = SyncPoint(file="a.py", line=1, function="f", op="item", per_step=10, seconds=0.01)
    found = {finding.code: finding for finding in verdict.diagnose(of, [point])}
    assert "sync-bound" in found
    assert found["sync-bound"].bound == pytest.approx(of.needs.step / (of.needs.step - _turns(of.needs)), rel=0.01)


def _turns(needs: Needs) -> float:
    return min(needs.host["sync"], apart(needs))


def test_a_slow_loss_is_the_loss_and_not_its_launches() -> None:
    of = facts(Program(host={**TRAIN, "loss": 0.100}, gpu={"forward": 0.002, "loss": 0.002, "backward": 0.004}))
    assert codes(of)[0] == "loss-bound"


def test_a_wait_for_each_loss_is_named_where_the_training_process_makes_the_batches() -> None:
    """Without it they would be made while the GPU works: 30 ms of each, one after the other."""
    program = Program(host={"forward": 0.001, "backward": 0.002}, gpu={"forward": 0.010, "backward": 0.020}, syncs=1)
    assert codes(facts(program.but(batch=0.040)))[:2] == ["input-bound", "sync-bound"]
    assert "sync-bound" not in codes(facts(program))


def test_waiting_for_data_comes_first_where_it_is_most() -> None:
    of = facts(Program(host=TRAIN, gpu={"forward": 0.002, "backward": 0.004}, batch=0.100))
    assert codes(of)[0] == "input-bound"


def test_workers_that_share_cores_are_not_named_where_nobody_waits_for_them() -> None:
    needs = simulation.needs(Program(host=TRAIN, batch=0.010, workers=2))
    assert "input-bound" not in codes(of_needs(msgspec.structs.replace(needs, cores=1.0)))


def test_a_floor_that_was_measured_is_the_bound_of_waiting_for_data() -> None:
    of = facts(Program(host=TRAIN, gpu=WORK, batch=0.400, workers=2), without_data=0.050)
    [first] = [f for f in verdict.diagnose(of, []) if f.code == "input-bound"]
    assert first.bound == pytest.approx(of.needs.step / 0.050)
    assert "without its data path a step took 50 ms" in first.evidence


def test_copies_that_hold_up_the_step() -> None:
    of = facts(Program(host={"h2d": 0.030, **TRAIN}, gpu={"forward": 0.010, "backward": 0.020}))
    assert "transfer-bound" in codes(of)
    hidden = facts(Program(host={"h2d": 0.030, **TRAIN}, gpu=WORK))
    assert "transfer-bound" not in codes(hidden)


def test_ranks_that_wait_for_each_other() -> None:
    needs = simulation.needs(Program(host=TRAIN, gpu=WORK))
    waits = msgspec.structs.replace(needs, idle={"comm": 0.2 * needs.step})
    assert "comm-bound" in codes(of_needs(waits))
    assert "comm-bound" in codes(of_needs(needs, comm_alone=0.2))
    assert "comm-bound" not in codes(of_needs(needs))


@pytest.mark.parametrize(("peak", "named"), [(GIB, True), (60 * GIB, False), (None, False)])
def test_a_batch_is_too_small_where_memory_is_free_and_launches_are_the_limit(peak: int | None, named: bool) -> None:
    program = Program(host=TRAIN, gpu={"forward": 0.001, "backward": 0.002})
    assert ("batch-too-small" in codes(facts(program, memory_peak=peak, gpu_memory=ROOM))) == named
    busy = Program(host=TRAIN, gpu=WORK)
    assert "batch-too-small" not in codes(facts(busy, memory_peak=peak, gpu_memory=ROOM))


@pytest.mark.parametrize(("batch", "first"), [(2, "batch-too-small"), (64, "launch-bound"), (None, "launch-bound")])
def test_few_samples_are_why_launches_take_the_time(batch: float | None, first: str) -> None:
    program = Program(host=TRAIN, gpu={"forward": 0.001, "backward": 0.002})
    place = Place("data.py", 7, "make_loader", "user")
    made = facts(
        program, memory_peak=GIB, gpu_memory=ROOM, batch=batch, settings=[Setting(name="batch_size", set_at=place)]
    )
    found = verdict.diagnose(made, [])
    assert {"batch-too-small", "launch-bound"} <= {f.code for f in found}
    assert found[0].code == first
    [small] = [f for f in found if f.code == "batch-too-small"]
    assert [(line.file, line.line) for line in small.where] == [("data.py", 7)]


def test_few_samples_do_not_come_before_a_larger_cost() -> None:
    program = Program(host={**TRAIN, "optimizer": 0.080}, gpu={"forward": 0.001, "backward": 0.002})
    assert codes(facts(program, memory_peak=GIB, gpu_memory=ROOM, batch=2))[0] == "optimizer-bound"


def test_collectives_are_named_without_a_gpu() -> None:
    assert codes(of_needs(simulation.needs(Program(host={**TRAIN, "grad_sync": 0.050}))))[0] == "comm-bound"
    assert "comm-bound" not in codes(of_needs(simulation.needs(Program(host={**TRAIN, "grad_sync": 0.001}))))


def test_what_ddp_waits_for_inside_of_backward_is_communication_and_not_launching() -> None:
    assert codes(of_needs(simulation.needs(Program(host=TRAIN)), ddp_waits=0.015))[0] == "comm-bound"
    launching = Program(host=TRAIN, gpu={"forward": 0.001, "backward": 0.002})
    found = {f.code: f.bound or 0.0 for f in verdict.diagnose(facts(launching, ddp_waits=0.015), [])}
    alone = {f.code: f.bound or 0.0 for f in verdict.diagnose(facts(launching), [])}
    assert found["comm-bound"] > found["launch-bound"]
    assert found["launch-bound"] < alone["launch-bound"]


def test_ddp_waits_no_longer_than_backward_takes() -> None:
    [first, *_] = verdict.diagnose(of_needs(simulation.needs(Program(host=TRAIN)), ddp_waits=10.0), [])
    assert first.code == "comm-bound"
    assert first.share == pytest.approx(TRAIN["backward"] / sum(TRAIN.values()))


def test_every_finding_that_can_be_given_is_in_the_docs() -> None:
    text = (Path(__file__).parents[1] / "docs" / "report.md").read_text()
    for code in ("launch-bound", "transfer-bound", "sync-bound", "comm-bound", "batch-too-small", "compute-bound"):
        assert f"`{code}`" in text, code
