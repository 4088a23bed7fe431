"""What memory is for at its peak, and what it would be: exact, on allocations whose answer is known."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import FLOORIT, PYTHON, execute
from torch import nn

from floorit import events
from floorit.analyse import footprint, iterations, timeline
from floorit.events import Headroom
from floorit.record import allocations, wire
from floorit.record.windows import Windows
from floorit.replay import BATCH, GRAD_FORWARD, WINDOW, Row

SCRIPT = str(Path(__file__).parent / "memory" / "saves.py")
STREAMS = str(Path(__file__).parent / "memory" / "streams.py")
MS = 1_000_000
WALL = 1_790_000_000_000_000_000  # the trace's clock is ahead of the log's by so much
SAMPLES = 8
WEIGHT, OTHER, CUDA = (
    1000,
    77,
    23,
)  # bytes of each of two parameters, of what nobody knows, of what blocks are larger by
HELD = 2 * WEIGHT + 4 * WEIGHT  # parameters, and twice as much of state
STEP = 10.0  # ms


class Made:
    """Steps of 10 ms on a made-up GPU: forward until 4, backward until 8, then the optimizer.

    Each part of two keeps `kept` bytes a sample for the backward pass, which drops the last part's first.
    """

    def __init__(self, steps=3, kept=(300, 500), batch=SAMPLES, recomputes=False, autocast=False):
        self.began = 100_000 * MS
        self.steps, self.kept, self.batch = steps, kept, batch
        self.recomputes, self.autocast = recomputes, autocast
        self.actions, self.calls, self.spans, self.peaks = [], [], [], []
        self._at, self._living, self._next = 0.0, {}, 10_000
        self.allocated = HELD + OTHER
        for step in range(-1, steps + 1):
            self._step(step * STEP)

    def take(self, at, size):
        self._next += 1
        self._living[self._next] = size
        self.actions.append((at, self._next, size))
        return self._next

    def give(self, at, *names):
        for name in names:
            self.actions.append((at, name, -self._living.pop(name)))

    def _step(self, now):
        def at(ms):
            return now + ms

        phases = [(wire.DATA_WAIT, 0.5), (wire.FORWARD, 4), (wire.BACKWARD, 8), (wire.OPTIMIZER, STEP)]
        if self.recomputes:
            phases[2:3] = [
                (wire.BACKWARD, 5), (wire.RECOMPUTE, 5.5), (wire.BACKWARD, 6), (wire.RECOMPUTE, 6.5), (wire.BACKWARD, 8)
            ]  # fmt: skip
        before = 0.0
        for phase, until in phases:
            self.spans.append((at(before), at(until), phase))
            before = until
        batch = self.take(at(0.2), 10 * self.batch)
        casts = [self.take(at(1.1), WEIGHT // 2), self.take(at(1.1), WEIGHT // 2)] if self.autocast else []
        first, second = self.kept
        small = 20 * self.batch  # what a part keeps that is computed again: its input
        passing = self.take(at(1.2), 40 * self.batch)
        saved = [self.take(at(1.3), small if self.recomputes else first * self.batch)]
        self.give(at(1.4), passing)
        saved.append(self.take(at(2.3), small if self.recomputes else second * self.batch))
        self.calls += [(0, at(1), at(2)), (1, at(2), at(3))]
        gradients = []
        for number, begin in ((1, 5.2), (0, 6.2)):
            again = self.take(at(begin), self.kept[number] * self.batch) if self.recomputes else None
            cleared = self.take(at(begin + 0.1), 30 * self.batch) if self.recomputes else None
            if cleared is not None:  # with the frame that made it, when that is over
                self.give(at(begin + 0.35), cleared)
            passing = self.take(at(begin + 0.4), 100 * self.batch)
            gradients.append(self.take(at(begin + 0.5), WEIGHT))
            self.give(at(begin + 0.6), passing, saved[number], *([] if again is None else [again]))
        self.give(at(7.5), *casts)
        temporary = self.take(at(8.5), 50)
        self.give(at(8.6), temporary)
        self.give(at(9), *gradients)
        self.give(at(9.5), batch)

    # -- what the record has of it ------------------------------------------------------------------------------

    def process(self):
        made = events.Process()
        note = {"kind": "process", "pid": 1, "started": (self.began - 50 * MS) * 1e-9}
        made.add(wire.JSON_TAG, json.dumps(note).encode())
        rows = []
        for i in range(-5, self.steps + 1):
            row = Row(BATCH, 1, self.batch, 1, 1, GRAD_FORWARD | (WINDOW if i >= -1 else 0), 0, 1)
            row.end, row.spent = self.began + round((i + 1) * STEP * MS), [0] * len(wire.PHASES)
            row.spent[wire.FORWARD] = round(STEP * MS)
            rows.append(row)
        made.add_rows(rows)
        made.spans = [events.Span(self._log(b), self._log(e), phase, None) for b, e, phase in self.spans]
        made.readings = [{"autocast": self.autocast}]
        made.optimizers = {0: {"name": "AdamW"}}
        made.memory_peak = self.peak + CUDA
        return made

    def _log(self, ms):
        return self.began + round(ms * MS)

    @property
    def peak(self):
        """By adding up."""
        living = most = self.allocated
        for _, _, size in self.actions:
            living += size
            most = max(most, living)
        return most

    def window(self):
        end = self._log(self.steps * STEP)
        held = [(1, 2 * WEIGHT, "parameters", "float32"), (2, 4 * WEIGHT, "optimizer state", "float32")]
        first = self._log(-STEP)
        return {
            "measured": [self.began, end],
            "clocks": [[first, WALL], [end, WALL + end - first]],
            "held": held,
            "sizes": [(WEIGHT // 4, 2)],
            "large_state": 4 * WEIGHT,
            "parts": [{"name": "body"}, {"name": "head"}],
        }

    def written(self):
        first = self._log(-STEP)
        times = [(WALL + self._log(at) - first) // 1000 for at, _, _ in self.actions]
        border = (self._log(-STEP), self.allocated + CUDA, self.allocated, 4 * self.allocated, 5)
        return timeline.Actions(
            times=times,
            addresses=[name for _, name, _ in self.actions],
            bytes=[size for _, _, size in self.actions],
            borders=[border],
            calls=[(number, self._log(begin), self._log(end)) for number, begin, end in self.calls],
        )

    def examine(self):
        process = self.process()
        found = iterations.find(process)
        return footprint.on_gpu(process, found, self.window(), self.written(), float(self.batch), None, None)


def ledger(memory):
    """Bytes by what they are for, checked to add up."""
    assert sum(share.bytes for share in memory.ledger) == memory.peak
    return {share.what: share.bytes for share in memory.ledger}


def test_each_byte_at_the_peak_is_for_something():
    memory = Made().examine()
    assert memory.phase == "backward"
    assert ledger(memory) == {
        "parameters": 2 * WEIGHT,
        "optimizer state": 4 * WEIGHT,
        "activations": 800 * SAMPLES,
        "temporary": 100 * SAMPLES,
        "gradients": WEIGHT,
        "batch": 10 * SAMPLES,
        "unattributed": OTHER,
        "rounding": CUDA,
    }
    assert {part.name: part.bytes for part in memory.activations} == {"body": 300 * SAMPLES, "head": 500 * SAMPLES}
    assert memory.step_peaks == [memory.peak] * 3
    assert memory.per_sample == 910
    assert memory.fixed == memory.peak - 910 * SAMPLES


@pytest.mark.parametrize("times", [0.5, 2, 4])
@pytest.mark.parametrize("how", [{}, {"autocast": True}, {"recomputes": True}, {"kept": (2, 3)}])
def test_the_peak_of_another_batch_is_that_of_steps_with_that_batch(times, how):
    """Also where it is reached at another moment: with small activations, in the optimizer's part."""
    foretold = next(f for f in Made(**how).examine().predicted if f.times == times)
    other = Made(**how, batch=round(times * SAMPLES))
    assert foretold.bytes == other.peak + CUDA
    assert foretold.samples == other.batch


def test_what_keeping_activations_takes_is_that_of_steps_that_keep_them():
    memory = Made(recomputes=True).examine()
    effect = next(e for e in memory.effects if e.code == "recompute")
    inputs = 2 * 20 * SAMPLES  # of both parts, which are kept anyway
    assert memory.peak + effect.bytes == Made().peak + CUDA + inputs


def test_effects_on_the_peak():
    memory = Made().examine()
    effects = {(e.code, e.value): e.bytes for e in memory.effects}
    assert effects["batch", "x2"] == 910 * SAMPLES
    assert effects["optimizer-8bit", None] == -round(4 * WEIGHT * (1 - (1 + 1 / 64) / 4))
    assert effects["accumulate", "2"] == WEIGHT  # one of two gradients was not there yet
    assert effects["amp", "bf16"] < 0
    assert ("recompute", "off") not in effects


def test_a_worse_step_than_the_watched_is_a_row_of_its_own():
    made = Made()
    process = made.process()
    process.memory_peak = made.peak + CUDA + 5000
    found = footprint.on_gpu(process, iterations.find(process), made.window(), made.written(), 8.0, None, None)
    assert ledger(found)["other steps"] == 5000
    assert next(f for f in found.predicted if f.times == 2).bytes == found.peak + 910 * SAMPLES + 5000


def test_what_a_step_leaves_behind_is_told():
    made = Made()
    freed = [i for i, (at, _, size) in enumerate(made.actions) if size < 0 and at % STEP == 9.5]
    for index in reversed(freed):  # the batch is let go only when the next one has come
        at, name, size = made.actions.pop(index)
        later = next((i for i, action in enumerate(made.actions) if action[0] > at + 8), len(made.actions))
        made.actions.insert(later, (at + 8, name, size))
    assert ledger(made.examine())["left over"] == 10 * SAMPLES


# -- what the allocator says all the time ----------------------------------------------------------------------------


def _with_notes(*peaks):
    """Notes of the allocator every 10 ms from the first step on: (peak, kind of the row)."""
    made = Made(steps=len(peaks))
    process = made.process()
    process.memory = [
        {"at": (made.began + (i + 1) * STEP * MS - 1) * 1e-9, "since": (made.began + i * STEP * MS + 1) * 1e-9,
         "peak": peak, "retries": i, "reserved_peak": 10 * peak}
        for i, peak in enumerate(peaks)
    ]  # fmt: skip
    process.memory_peak = max(peaks)
    return made, process


def test_when_the_peak_was_reached():
    made, process = _with_notes(20_000, 20_000, 30_000, 30_100)
    found = iterations.find(process)
    memory = footprint.on_gpu(process, found, made.window(), made.written(), 8.0, None, None)
    assert (memory.worst.first_step, memory.worst.last_step, memory.worst.samples) == (7, 7, SAMPLES)
    assert memory.worst.when == "training"
    assert memory.retries == 3
    assert memory.reserved == 301_000
    assert memory.cache == 301_000 - 30_100


# -- the recorder's side ---------------------------------------------------------------------------------------------


class Cuda:
    """Stands for torch.cuda and its allocator."""

    def __init__(self, is_recording=False):
        self.memory, self.said, self.is_recording = self, [], is_recording

    def is_initialized(self):
        return True

    def current_device(self):
        return 0

    def is_current_stream_capturing(self):
        return False

    def get_allocator_backend(self):
        return "native"

    def _record_memory_history(self, enabled, **how):
        self.is_recording = enabled is not None
        self.said.append(enabled)

    def _snapshot(self):
        entry = {"stream": 0, "time_us": 5}
        actions = [("alloc", 4096, 100), ("segment_alloc", 4096, 2048), ("free_requested", 4096, 100)]
        actions.append(("free_completed", 4096, 100))
        return {"device_traces": [[{**entry, "action": a, "addr": addr, "size": size} for a, addr, size in actions]]}

    def stats(self, device):
        names = ("allocated_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes")
        return {name: {"all": {"current": at}} for at, name in enumerate(names)}


def _session(cuda):
    stand_in = SimpleNamespace(
        _cuda_memoryStats=cuda.stats,
        _cuda_isHistoryEnabled=lambda: cuda.is_recording,
        DisableTorchFunctionSubclass=torch._C.DisableTorchFunctionSubclass,
    )
    fake = SimpleNamespace(cuda=cuda, _C=stand_in, is_tensor=torch.is_tensor, float32=torch.float32)
    return SimpleNamespace(
        torch=fake,
        trained_models=list,
        other_models=list,
        optimizers=list,
        windows=SimpleNamespace(is_own_history=False),
    )


def test_the_allocators_history_is_kept_in_the_window_only(tmp_path):
    cuda = Cuda()
    session = _session(cuda)
    assert allocations.obstacle(session) is None
    watch = allocations.Allocated(session, None)
    watch.start()
    assert cuda.is_recording
    watch.stop(False).save(tmp_path / "a.json")
    assert not cuda.is_recording
    written = json.loads((tmp_path / "a.json").read_text())
    assert (written["times"], written["addresses"], written["bytes"]) == ([5, 5], [4096, 4096], [100, -100])
    assert [border[1:] for border in written["borders"]] == [[0, 1, 2, 3]] * 2
    assert watch.facts()["held"] == []


def test_a_history_of_the_programs_own_is_left_alone():
    assert "itself" in allocations.obstacle(_session(Cuda(is_recording=True)))


def test_a_window_that_is_given_up_ends_the_history():
    cuda = Cuda()
    watch = allocations.Allocated(_session(cuda), None)
    watch.start()
    watch.cancel()
    watch.cancel()
    assert cuda.said == ["all", None]


def test_a_history_that_the_program_begins_meanwhile_is_its_own():
    reasons = []
    window = SimpleNamespace(give_up=reasons.append)
    windows = Windows(SimpleNamespace(log=SimpleNamespace(window=window), torch=None))
    windows.history_starts()  # another window is open
    windows._memory, windows.is_own_history = window, True
    windows.history_starts()  # it is we
    assert not reasons
    windows.is_own_history = False
    windows.history_starts()
    assert len(reasons) == 1
    assert "itself" in reasons[0]


# -- on a CPU --------------------------------------------------------------------------------------------------------


def test_on_a_cpu_the_rest_of_the_process_is_not_attributed():
    window = {
        "held": [
            (1, 400, "parameters", "float32"),
            (2, 100, "parameters", "bfloat16"),
            (3, 800, "optimizer state", "f"),
        ],
        "large_state": 0,
        "parts": [{"name": "body"}],
    }
    passes = [[(0, 50), (-1, 5)], [(0, 60), (-1, 10)]]
    memory = footprint.on_host(events.Process(), window, passes, 10.0, Headroom(training_most=2000))
    assert ledger(memory) == {"parameters": 500, "optimizer state": 800, "activations": 70, "unattributed": 630}
    assert memory.per_sample == 7
    assert [(part.name, part.bytes) for part in memory.activations] == [("body", 60), ("rest", 10)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saves")
    ran = execute([FLOORIT, "run", "--quiet", "--out", str(folder / "out"), "--", PYTHON, SCRIPT], folder)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran, json.loads((folder / "out" / "report.json").read_text())


def test_on_a_cpu_all_that_a_model_holds_is_told_to_the_byte(recorded):
    memory = recorded[1]["memory"]
    assert memory is not None, recorded[1]["missing"]
    numbers = (64 + 1) * 256 + (256 + 1) * 512 + (512 + 1) * 256 + (256 + 1)
    told = {row["what"]: row["bytes"] for row in memory["ledger"]}
    assert told["parameters"] == 4 * (numbers + 10 * 11)  # the frozen layer's, too
    assert told["gradients"] == 4 * numbers
    assert told["optimizer state"] == 4 * (2 * numbers + 8)  # and the steps counted for each of eight tensors
    assert told["buffers"] == 4 * 300
    assert sum(told.values()) == memory["peak"]


def test_on_a_cpu_activations_are_what_each_part_saves(recorded):
    """Inputs of linear layers and what ReLU returns, which is the next one's input."""
    memory = recorded[1]["memory"]
    rows = 128 * 4
    told = {part["name"]: part["bytes"] for part in memory["activations"]}
    assert told["stem"] == rows * 64
    assert told["body"] == rows * (256 + 512)
    assert told["head"] == rows * 256
    assert told["rest"] == rows  # what is squared; to scale it by a constant takes nothing
    assert memory["per_sample"] == sum(told.values()) / 128


def test_following_memory_changes_nothing(recorded, capsys):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    runpy.run_path(SCRIPT)
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    assert recorded[0].stdout.decode() == capsys.readouterr().out
    assert recorded[0].stderr == b""


class Twice(torch.autograd.Function):
    """Saves what no operator of torch's does."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x.clone())
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Doubled(nn.Module):
    def forward(self, x):
        return Twice.apply(x)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            (4, 3, 12, 12),
        ),
        (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (3, 5, 16)),
        (nn.Sequential(nn.Linear(8, 8), nn.Dropout(), Doubled(), nn.LayerNorm(8)), (6, 8)),
        (nn.Sequential(nn.Embedding(20, 8), nn.GELU()), None),
    ],
)
def test_what_a_graph_has_saved_is_what_torch_packs(model, shape):
    """Counted by torch's own hooks, in a pass of its own."""
    x = torch.arange(12).reshape(3, 4) if shape is None else torch.randn(shape)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    packed, alive = {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        alive.append(storage)
        packed[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x).square().mean()
    expected = sum(size for address, size in packed.items() if address not in own)
    loss = model(x).square().mean()
    assert dict(allocations._by_part(torch, (loss,), own, [])) == {-1: expected}
    loss.backward()  # it can still be had


# -- real programs -----------------------------------------------------------------------------------------------------


def _streamed(tmp_path, **how):
    ran = execute([PYTHON, STREAMS, json.dumps(how)], tmp_path)
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", ["blocks", "convolutions"])
@pytest.mark.parametrize(
    "how", [{}, {"set_to_none": False}, {"amp": True}, {"again": True}, {"again": True, "amp": True}]
)
def test_what_is_foretold_of_real_steps_is_what_other_steps_take(tmp_path, kind, how):
    """Four times the batch, and no recomputing: by the same steps with these, each in a process of its own."""
    memory = _streamed(tmp_path, kind=kind, batch=8, **how)
    assert sum(row["bytes"] for row in memory["ledger"]) == memory["peak"]
    assert sum(row["share"] for row in memory["ledger"] if row["what"] == "unattributed") < 0.03
    larger = _streamed(tmp_path, kind=kind, batch=32, **how)
    assert next(f["bytes"] for f in memory["predicted"] if f["times"] == 4) == pytest.approx(larger["peak"], rel=0.05)
    effects = {effect["code"]: effect["bytes"] for effect in memory["effects"]}
    assert ("recompute" in effects) == ("again" in how)
    if "again" in how:
        kept = _streamed(tmp_path, kind=kind, batch=8, **{**how, "again": False})
        assert kept["peak"] > 1.3 * memory["peak"]
        assert memory["peak"] + effects["recompute"] == pytest.approx(kept["peak"], rel=0.05)
