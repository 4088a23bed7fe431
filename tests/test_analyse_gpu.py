"""Busy and idle time of the GPU, and why it was idle: exact, on traces whose answer is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from floorit import events
from floorit.analyse import gpu, iterations, ledger, trace
from floorit.record import wire
from floorit.replay import BATCH, GRAD_FORWARD, WINDOW, Row

MS = 1_000_000
WALL = 1_790_000_000_000_000_000  # the trace's clock is ahead of the log's by so much
BASE = WALL - 5 * MS


class Made:
    """A window of steps of 10 ms, with what ran in it. Times are milliseconds since the first of them began."""

    def __init__(self, steps=1, length=10.0):
        self.began = 100_000 * MS
        self.steps, self.length = steps, length
        self.calls, self.work, self.spans = [], [], []
        self._number = 0

    def call(self, name, begin, end, thread=1):
        self._number += 1
        self.calls.append(_event("cuda_runtime", name, begin, end, thread, {"correlation": self._number}))
        return self._number

    def kernel(self, begin, end, launched=None, name="some_kernel", stream=7, cat="kernel", by="cudaLaunchKernel"):
        """Work on the GPU; launched so many ms after the start, by a call of 0.01 ms."""
        number = -1 if launched is None else self.call(by, launched, launched + 0.01)
        args = {"correlation": number, "stream": stream, "device": 0}
        self.work.append(_event(cat, name, begin, end, stream, args))
        return self

    def copy(self, begin, end, launched=None, name="Memcpy HtoD (Pinned -> Device)", **how):
        return self.kernel(begin, end, launched, name, cat="gpu_memcpy", by="cudaMemcpyAsync", **how)

    def host(self, *phases):
        """The host's phases one after the other: (phase, until, line)."""
        now = 0.0
        for phase, until, *line in phases:
            place = events.Place("train.py", line[0], "main", "user") if line else None
            self.spans.append(events.Span(self.began + round(now * MS), self.began + round(until * MS), phase, place))
            now = until
        return self

    def process(self):
        made = events.Process()
        note = {"kind": "process", "pid": 1, "started": (self.began - 50 * MS) * 1e-9}
        made.add(wire.JSON_TAG, json.dumps(note).encode())
        rows = []
        for i in range(-5, self.steps + 1):  # the last is the one in which the trace is written
            row = Row(BATCH, 1, 8, 1, 1, GRAD_FORWARD | (WINDOW if i >= 0 else 0), 0, 1)
            row.end, row.spent = self.began + round((i + 1) * self.length * MS), [0] * len(wire.PHASES)
            row.spent[wire.FORWARD] = round(self.length * MS)
            rows.append(row)
        made.add_rows(rows)
        made.spans = self.spans
        return made

    def window(self):
        end = self.began + round(self.steps * self.length * MS)
        clocks = [[self.began, WALL], [end, WALL + end - self.began]]
        return {"file": "w.json", "measured": [self.began, end], "clocks": clocks}

    def trace(self):
        self.call("cudaLaunchKernel", self.steps * self.length + 1, self.steps * self.length + 1.1)
        return trace.parse(json.dumps({"traceEvents": self.work + self.calls, "baseTimeNanoseconds": BASE}).encode())

    def examine(self):
        process = self.process()
        return gpu.examine(process, iterations.find(process), self.window(), self.trace())


def _event(cat, name, begin, end, tid, args):
    ts = (WALL - BASE) / 1e3 + begin * 1e3
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": (end - begin) * 1e3, "tid": tid, "args": args}


def shares(found):
    """Idle shares by cause, in percent of a step, checked to close."""
    assert sum(i.share for i in found.idle) == pytest.approx(1 - found.busy_share, abs=1e-9)
    assert sum(i.seconds for i in found.idle) == pytest.approx(found.step_seconds * (1 - found.busy_share), abs=1e-12)
    return {i.cause: round(i.share * 100, 3) for i in found.idle}


def test_streams_that_overlap_are_counted_once():
    found = Made().kernel(0, 4, 0).kernel(2, 6, 0, stream=9).kernel(3, 5, 0, stream=11).kernel(8, 10, 0).examine()
    assert found.busy_share == pytest.approx(0.8)
    assert found.step_seconds == pytest.approx(0.010)
    assert shares(found) == {"other": 20.0}  # launched long before: the GPU itself waited
    assert found.idle[0].host == "gpu"


def test_a_step_is_over_when_what_it_launched_is_done():
    found = Made().kernel(-3, 2, -4).kernel(9, 15, 0).examine()
    assert found.step_seconds == pytest.approx(0.013)
    assert found.busy_share == pytest.approx(6 / 13)


def test_a_host_that_runs_ahead_does_not_shorten_the_steps():
    made = Made(steps=4, length=1.0)  # the host needs 1 ms for a step, the GPU 10
    for step in range(-1, 5):
        made.kernel(10 * step, 10 * step + 9, step).kernel(10 * step + 9, 10 * step + 10, step + 0.5)
    found = made.examine()
    assert (found.steps, found.kernels_per_step, found.launches_per_step) == (4, 2, 2)
    assert found.step_seconds == pytest.approx(0.01)
    assert found.busy_share == pytest.approx(1.0)


def test_work_whose_launch_was_not_seen_moves_no_border():
    found = Made().kernel(0, 5, 0).kernel(8, 30).examine()
    assert found.step_seconds == pytest.approx(0.01)
    assert found.busy_share == pytest.approx(0.7)


def test_a_wait_for_data_is_the_cause_up_to_the_launch():
    made = Made().kernel(0, 2, 0).kernel(8, 10, 7.0)
    found = made.host((wire.FORWARD, 2), (wire.DATA_WAIT, 6, 12), (wire.FORWARD, 10, 20)).examine()
    assert shares(found) == {"data_wait": 40.0, "launch": 20.0}  # forward until it launched, and until that began
    assert [(i.cause, i.host, i.where[0].line) for i in found.idle] == [
        ("data_wait", "data_wait", 12),
        ("launch", "forward", 20),
    ]


def test_a_host_that_issues_slowly_is_launch():
    made = Made().host((wire.FORWARD, 10))
    for i in range(10):
        made.kernel(i + 0.5, i + 1, i + 0.4)
    found = made.examine()
    assert found.busy_share == pytest.approx(0.5)
    assert shares(found) == {"launch": 50.0}
    assert found.kernels_per_step == 10
    assert found.launches_per_step == 10


def test_after_a_sync_filling_the_queue_again_is_its_cost():
    made = Made().kernel(0, 4, 0).kernel(7, 10, 6.9)
    made.call("cudaStreamSynchronize", 1, 4.1)
    found = made.host((wire.FORWARD, 1), (wire.SYNC, 4.2, 33), (wire.FORWARD, 10, 20)).examine()
    assert shares(found) == {"sync": 30.0}
    assert found.idle[0].where[0].line == 33


def test_a_sync_inside_of_the_forward_pass_is_seen_by_its_call():
    made = Made().kernel(0, 4, 0).kernel(7, 10, 6.9)
    made.call("cudaStreamSynchronize", 1, 4.1)
    assert shares(made.host((wire.FORWARD, 10)).examine()) == {"sync": 30.0}


def test_what_follows_a_sync_keeps_its_own_cause():
    made = Made().kernel(0, 2, 0).kernel(9, 10, 8.9)
    made.host((wire.SYNC, 2.5), (wire.LOGGING, 4.5, 7), (wire.DATA_WAIT, 8), (wire.H2D, 8.5), (wire.FORWARD, 10))
    assert shares(made.examine()) == {"data_wait": 35.0, "other": 20.0, "sync": 10.0, "h2d": 5.0}


def test_a_blocking_copy_is_h2d_whatever_the_phase():
    made = Made().kernel(0, 2, 0)
    made.copy(6, 7, 2.0, name="Memcpy HtoD (Pageable -> Device)")
    made.calls[-1]["dur"] = 4000  # the call lasts from 2 to 6: it copies to pinned memory first
    made.kernel(7, 10, 6.9).host((wire.OTHER, 10))
    found = made.examine()
    assert shares(found) == {"h2d": 40.0}
    assert found.copies_alone_share == pytest.approx(0.1)


def test_a_wait_right_after_a_copy_to_the_gpu_is_that_copy():
    made = Made().kernel(0, 1, 0).copy(2, 4, 1.5)
    made.call("cudaStreamSynchronize", 1.6, 6)
    found = made.kernel(7, 10, 6.5).host((wire.FORWARD, 10)).examine()
    assert shares(found)["h2d"] == 20.0  # 4 to 6


def test_the_programs_own_code_is_other_but_for_its_launches():
    made = Made().kernel(0, 1, 0).host((wire.OTHER, 10, 5))
    made.call("cudaLaunchKernel", 8, 9)
    made.work.append(_event("kernel", "k", 9, 10, 7, {"correlation": made._number, "stream": 7, "device": 0}))
    assert shares(made.examine()) == {"other": 70.0, "launch": 10.0}


def test_waiting_for_other_ranks_is_comm():
    made = Made().kernel(0, 5, 0).kernel(8, 10, 0, name="ncclDevKernel_AllReduce_Sum_f32", stream=9)
    assert shares(made.host((wire.BACKWARD, 10)).examine()) == {"comm": 30.0}
    made = Made().kernel(0, 5, 0).kernel(8, 10, 7.9)
    found = made.host((wire.BACKWARD, 5), (wire.GRAD_SYNC, 7.5), (wire.OPTIMIZER, 10)).examine()
    assert shares(found) == {"comm": 25.0, "launch": 5.0}


def test_a_gap_nested_in_another_stream_is_none():
    made = Made().kernel(0, 3, 0).kernel(5, 6, 0).kernel(2, 8, 0, stream=9).kernel(8, 10, 0)
    assert made.examine().busy_share == pytest.approx(1.0)


def test_a_gap_at_the_end_belongs_to_what_the_host_did():
    assert shares(Made().kernel(0, 6, 0).host((wire.DATA_WAIT, 10)).examine()) == {"data_wait": 40.0}


def test_only_whole_steps_count_and_several_are_averaged():
    made = Made(steps=4)
    for i in range(4):
        made.kernel(10 * i, 10 * i + 5, 10 * i)
    found = made.examine()
    assert (found.steps, found.busy_share) == (4, pytest.approx(0.5))
    process, window = made.process(), made.window()
    window["measured"][0] += 3 * MS  # in the middle of the first
    again = gpu.examine(process, iterations.find(process), window, made.trace())
    assert again.steps == 3


def test_a_clock_that_drifts_is_followed():
    made = Made(steps=2)
    for i in range(2):
        made.kernel(10 * i, 10 * i + 5, 10 * i)
    process, window = made.process(), made.window()
    window["clocks"] = [[log - 7 * MS, wall - 7 * MS] for log, wall in window["clocks"]]
    assert gpu.examine(process, iterations.find(process), window, made.trace()).busy_share == pytest.approx(0.5)


def waiting(seconds: float) -> ledger.Ledger:
    """A ledger in which the loop waits so long for data."""
    entry = ledger.Entry(phase="data_wait", seconds=seconds, share=0.0, gpu_seconds=None, where=[])
    return ledger.Ledger(mean=0.0, entries=[entry], looks={})


def test_a_usual_step_has_the_windows_busy_time_and_less_idle_time():
    watched = Made().kernel(2, 4, 1).kernel(6, 10, 5).examine()  # busy for 6 of 10 ms
    usual = gpu.in_usual_step(watched, 0.006, 0.008, waiting(0.0))
    assert (usual.busy_share, usual.step_seconds, usual.watched_seconds) == pytest.approx((0.75, 0.008, 0.010))
    assert sum(shares(usual).values()) == pytest.approx(25)
    before, after = shares(watched), shares(usual)
    assert {cause: share * 25 / 40 for cause, share in before.items()} == pytest.approx(after)
    full = gpu.in_usual_step(Made().kernel(0, 10, 0).examine(), 0.010, 0.010, waiting(0.0))
    assert (full.busy_share, full.idle) == (1.0, [])


def test_waits_for_data_that_the_window_missed_are_idle_time_too():
    watched = Made().kernel(2, 4, 1).kernel(6, 10, 5).examine()
    assert "data_wait" not in shares(watched)
    usual = gpu.in_usual_step(watched, 0.006, 0.030, waiting(0.020))
    assert shares(usual)["data_wait"] == pytest.approx(100 * 20 / 30, abs=0.01)
    assert sum(shares(usual).values()) == pytest.approx(100 * 24 / 30, abs=0.01)
    again = gpu.in_usual_step(usual, 0.006, 0.030, waiting(0.020))
    assert shares(again) == pytest.approx(shares(usual))


def test_what_the_program_does_in_every_so_many_steps_is_idle_time_too():
    """Of a step of 30 ms, 20 are the program's own code, which the window saw nothing of."""
    watched = Made().kernel(2, 4, 1).kernel(6, 10, 5).examine()
    line = ledger.Line(file="train.py", line=7, function="plot", share=1.0, inside=None)
    own = ledger.Entry(phase="other", seconds=0.020, share=0.0, gpu_seconds=None, where=[line])
    drawn = ledger.Ledger(mean=0.030, entries=[own], looks={})
    met = watched.watched_own["other"]
    usual = gpu.in_usual_step(watched, 0.006, 0.030, drawn)
    before, after = {i.cause: i for i in watched.idle}, {i.cause: i for i in usual.idle}
    assert usual.idle[0].cause == "other"
    assert usual.idle[0].where == [line]
    assert usual.idle[0].phases["other"] * usual.idle[0].seconds >= 0.020 - met
    assert sum(i.seconds for i in usual.idle) == pytest.approx(0.024)
    for cause in set(before) - {"other"}:  # what is left is shared as it was
        assert after[cause].seconds / before[cause].seconds == pytest.approx(
            (0.024 - (0.020 - met)) / sum(i.seconds for i in watched.idle)
        )
    again = gpu.in_usual_step(usual, 0.006, 0.030, drawn)
    assert shares(again) == pytest.approx(shares(usual))


def test_the_ledger_does_not_count_the_steps_of_the_window():
    found = iterations.find(Made(steps=3).process())
    assert found.count == 9
    assert found.slowed.tolist() == [False] * 5 + [True] * 4
    assert len(found.after_warmup) == 5 - found.warmup


def test_neither_time_nor_looks_of_the_window_are_in_the_ledger():
    process = Made(steps=3).process()
    place = events.Place("train.py", 1, "main", "user")
    ends = process.rows["end"].tolist()
    process.samples = [events.Sample(end - 0.001, wire.FORWARD, 1, place, place) for end in ends]
    process.rows["seconds"][5:] *= 50  # whatever was measured in the window
    found = iterations.find(process)
    drawn = ledger.draw(process, found)
    assert drawn.mean == pytest.approx(0.010)
    assert drawn.samples == len(found.after_warmup)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda made: made.work.clear(), "no kernel was seen"),
        (lambda made: made.__setattr__("call", lambda *_: None), "ends too early"),
    ],
)
def test_what_cannot_be_told_has_a_reason(change, reason):
    made = Made().kernel(0, 5, 0)
    change(made)
    assert reason in made.examine()


def test_no_whole_step_is_said():
    made = Made().kernel(0, 5, 0)
    process, window = made.process(), made.window()
    window["measured"] = [made.began + MS, made.began + 2 * MS]
    assert "no whole step" in gpu.examine(process, iterations.find(process), window, made.trace())


def test_only_the_busiest_gpu_is_described():
    made = Made().kernel(0, 5, 0).kernel(5, 10, 0, name="elsewhere")
    made.work[-1]["args"]["device"] = 1
    made.kernel(5, 6, 0)
    assert made.examine().busy_share == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("name", "kind", "tensor"),
    [
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTT", "matrix", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute", "matrix", True),
        ("ampere_sgemm_128x64_tn", "matrix", False),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>", "matrix", True),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", "matrix", False),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", "convolution", True),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", "convolution", False),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "attention", True),
        ("fmha_cutlassB_bf16_aligned_64x64_k64_sm80", "attention", True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "elementwise", False),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "elementwise", False),
        ("triton_poi_fused_add_relu_0", "elementwise", False),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512>", "normalisation", False),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "normalisation", False),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", "optimizer", False),
        ("Memcpy HtoD (Pinned -> Device)", "copies", False),
        ("Memset (Device)", "copies", False),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication", False),
        ("my_own_thing", "other", False),
    ],
)  # fmt: skip
def test_kinds_of_kernels(name, kind, tensor):
    assert gpu.kind_of(name) == kind
    assert gpu.uses_tensor_cores(name) is tensor


def test_kinds_and_kernels_add_up():
    made = Made().kernel(0, 3, 0, name="ampere_sgemm").kernel(3, 4, 0, name="reduce_kernel").copy(4, 8, 0)
    found = made.kernel(8, 10, 0, name="nvjet_x").examine()
    assert {k.kind: k.share for k in found.kinds} == pytest.approx({"matrix": 0.5, "copies": 0.4, "elementwise": 0.1})
    assert sum(k.seconds for k in found.kinds) == pytest.approx(found.step_seconds)
    assert found.kernels[0].name.startswith("Memcpy")
    assert found.tensor_share == pytest.approx(0.2)
    assert found.copies_alone_share == pytest.approx(0.4)
    assert found.kernels_per_step == 3


# -- reading a trace -----------------------------------------------------------------------------------------------


def test_a_number_that_is_not_json_is_passed_over():
    text = json.dumps({"traceEvents": [_event("kernel", "k", 0, 1, 7, {"stream": 7, "x": 1.5})]})
    assert len(trace.parse(text.replace("1.5", "inf").encode()).work) == 1


def test_a_torn_trace_is_a_value_error():
    with pytest.raises(ValueError, match="truncated"):
        trace.parse(b'{"traceEvents": [{"ph": "X"')


def test_times_are_exact_to_a_nanosecond():
    found = trace.parse(
        json.dumps({"traceEvents": [_event("kernel", "k", 1, 2, 7, {})], "baseTimeNanoseconds": BASE}).encode()
    )
    assert found.work.begin[0] == WALL + MS
    assert found.work.end[0] == WALL + 2 * MS


def test_a_real_trace_of_the_cpu_has_no_kernels_and_the_clock_it_is_taken_for(tmp_path):
    torch = pytest.importorskip("torch")
    import time

    path = tmp_path / "trace.json"
    with torch.profiler.profile() as profile:
        before = time.time_ns()
        torch.ones(3)
        after = time.time_ns()
    profile.export_chrome_trace(str(path))
    assert len(trace.parse(path.read_bytes()).work) == 0
    raw = json.loads(path.read_text())
    op = next(e for e in raw["traceEvents"] if e.get("name") == "aten::ones")
    at = raw.get("baseTimeNanoseconds", 0) + op["ts"] * 1e3
    assert before - MS <= at <= after + MS


def test_many_gaps_are_quick_to_explain():
    made = Made(steps=1, length=1000.0).host((wire.FORWARD, 1000))
    for i in range(20_000):
        made.kernel(i * 0.05 + 0.01, i * 0.05 + 0.03, i * 0.05)
    found = made.examine()
    assert found.busy_share == pytest.approx(0.4)
    assert shares(found)["launch"] == pytest.approx(60.0)
    assert np.isclose(found.kernels_per_step, 20_000)
