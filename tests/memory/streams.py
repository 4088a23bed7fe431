"""What a real training takes and gives back on a CPU, by torch's own memory profiler, made into a window's record.

It is what the allocator's history has on a GPU, but for the workspaces of CUDA's libraries. Prints what memory was for.
    python tests/memory/streams.py '{"kind": "blocks", "batch": 16, "again": true}'
"""

import contextlib
import json
import os
import sys
import tempfile
import time

import msgspec
import torch
from torch import nn
from torch._C import _autograd, _profiler
from torch.utils import checkpoint

from floorit import events
from floorit.analyse import footprint, iterations, timeline
from floorit.record import held, wire
from floorit.replay import BATCH, GRAD_FORWARD, WINDOW, Row

STEPS, SECOND = 5, 10**9
WORDS, WIDTH = 500, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.Dropout(0.1)
        self.attends = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        normed = self.first(x)
        x = x + self.drop(self.attends(normed, normed, normed, need_weights=False)[0])
        return x + self.drop(self.wide(self.second(x)))


def convolutions():
    pair = [(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(2)]
    return nn.Sequential(*(layer for layers in pair for layer in layers))


class Net(nn.Module):
    def __init__(self, kind, again):
        super().__init__()
        self.again, self.reads = again, kind == "blocks"
        self.stem = nn.Embedding(WORDS, WIDTH) if self.reads else nn.Conv2d(3, 16, 3, padding=1)
        self.stages = nn.ModuleList(Block() if self.reads else convolutions() for _ in range(4))
        self.head = nn.Linear(WIDTH if self.reads else 16, WORDS)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = checkpoint.checkpoint(stage, x, use_reentrant=False) if self.again else stage(x)
        return self.head(x if self.reads else x.mean((2, 3)))


class Watched:
    """A few steps: each action of the allocator, and when the phases were."""

    def __init__(self, kind, batch, again=False, amp=False, set_to_none=True):
        self.batch, self.amp = batch, amp
        self.spans, self.steps, self.again = [], [], []
        config = _profiler.ProfilerConfig(
            _profiler.ProfilerState.KINETO, False, True, False, False, False, _profiler._ExperimentalConfig()
        )
        activities = {_profiler.ProfilerActivity.CPU}
        _autograd._prepare_profiler(config, activities)
        _autograd._enable_profiler(config, activities)
        model = Net(kind, again)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        for number in range(STEPS):
            self._step(model, optimizer, set_to_none)
            if not number:  # from here on it is followed
                self.held, self.since = held.facts(torch, [model], [optimizer], "cpu"), time.time_ns()
        self._read(_autograd._disable_profiler())

    @contextlib.contextmanager
    def _phase(self, phase):
        began = time.time_ns()
        yield
        self.spans.append((began, time.time_ns(), phase))

    def _step(self, model, optimizer, set_to_none):
        began = time.time_ns()
        with self._phase(wire.DATA_WAIT):
            size = (self.batch, 32) if model.reads else (self.batch, 3, 32, 32)
            x = torch.randint(0, WORDS, size) if model.reads else torch.randn(size)
            y = x.flatten() if model.reads else torch.randint(0, WORDS, (self.batch,))
        with self._phase(wire.FORWARD), torch.autocast("cpu", torch.bfloat16, enabled=self.amp):
            loss = nn.functional.cross_entropy(model(x).float().flatten(0, -2), y)
        with self._phase(wire.OPTIMIZER):
            optimizer.zero_grad(set_to_none=set_to_none)
        with self._phase(wire.BACKWARD), self._recomputing():
            loss.backward()
        with self._phase(wire.OPTIMIZER):
            optimizer.step()
        self.steps.append((began, time.time_ns()))

    @contextlib.contextmanager
    def _recomputing(self):
        kind = checkpoint._recomputation_hook
        enter, leave, opened = kind.__enter__, kind.__exit__, []
        kind.__enter__ = lambda hooks: (opened.append(time.time_ns()), enter(hooks))[1]
        kind.__exit__ = lambda hooks, *how: (leave(hooks, *how), self.again.append((opened.pop(), time.time_ns())))[0]
        try:
            yield
        finally:
            kind.__enter__, kind.__exit__ = enter, leave

    def _read(self, seen):
        with tempfile.TemporaryDirectory() as folder:
            seen.save(os.path.join(folder, "trace.json"))
            with open(os.path.join(folder, "trace.json")) as file:
                raw = json.load(file)
        base = raw.get("baseTimeNanoseconds", 0)
        said = [event for event in raw["traceEvents"] if event["name"] == "[memory]"]
        said = [(base + e["ts"] * 1e3, e["args"]["Addr"], e["args"]["Bytes"]) for e in said]
        self.actions = sorted(said, key=lambda action: action[0])

    def memory(self):
        """What floorit makes of it."""
        zero = self.steps[0][0] - SECOND
        before = sum(size for at, _, size in self.actions if at < self.since)
        after = [action for action in self.actions if action[0] >= self.since]
        first, last = self.steps[1][1] - zero, self.steps[-1][1] - zero
        window = {"measured": [first, last], "clocks": [[0, zero], [last, last + zero]], "parts": [], **self.held}
        actions = timeline.Actions(
            times=[int(at // 1000) for at, _, _ in after],
            addresses=[address for _, address, _ in after],
            bytes=[size for _, _, size in after],
            borders=[(self.since - zero, before, before, before, 0)],
            calls=[],
        )
        process = self._process(zero)
        return footprint.on_gpu(process, iterations.find(process, 0), window, actions, float(self.batch), None, None)

    def _process(self, zero):
        made = events.Process()
        made.add(wire.JSON_TAG, json.dumps({"kind": "process", "pid": 1, "started": 0.5}).encode())
        rows = []
        for begin, end in self.steps:
            row = Row(BATCH, 1, self.batch, 1, 1, GRAD_FORWARD | WINDOW, 0, 1)
            row.end, row.spent = end - zero, [0] * len(wire.PHASES)
            row.spent[wire.FORWARD] = end - begin
            rows.append(row)
        made.add_rows(rows)
        made.spans = [events.Span(b - zero, e - zero, phase, None) for b, e, phase in self._exclusive()]
        made.readings, made.optimizers = [{"autocast": self.amp}], {0: {"name": "AdamW"}}
        return made

    def _exclusive(self):
        for begin, end, phase in self.spans:
            now = begin
            for again, over in sorted(a for a in self.again if begin <= a[0] and a[1] <= end):
                yield from ((now, again, phase), (again, over, wire.RECOMPUTE))
                now = over
            yield now, end, phase


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(msgspec.json.encode(Watched(**json.loads(sys.argv[1])).memory()).decode())
