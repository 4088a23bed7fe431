"""Where does a step's time go? Timers around the parts of the forward pass, written to timing.log."""

import os
import time
from contextlib import contextmanager

import torch

LABELS = {
    "forward": "前向传播总耗时    ",
    "vrt": "VRT处理          ",
    "spike": "Spike模块        ",
}


class TimingLogger:
    def __init__(self, folder, enabled=True, cuda=False):
        self.enabled, self.cuda = enabled, cuda
        self.file = open(os.path.join(folder, "timing.log"), "w", encoding="utf-8") if enabled else None
        self.times = {}

    @contextmanager
    def timer(self, name):
        if not self.enabled:
            yield
            return
        start = self.now()
        yield
        self.times[name] = (self.now() - start) * 1e3

    def now(self):
        if self.cuda:
            torch.cuda.synchronize()  # otherwise we only time the launches
        return time.perf_counter()

    def write(self, step):
        """The times of this step, in milliseconds and as a share of the total."""
        if not self.enabled:
            return
        total = sum(self.times.get(name, 0.0) for name in LABELS)
        lines = [f"Step {step}"]
        for name, label in LABELS.items():
            if name in self.times:
                lines.append(f"{label}: {self.times[name]:.2f}ms ({self.times[name] / total:.1%})")
        for name, ms in self.times.items():
            if name not in LABELS:
                lines.append(f"  - {name:<13}: {ms:.2f}ms ({ms / total:.1%})")
        lines.append(f"Total           : {total:.2f}ms")
        self.file.write("\n".join(lines) + "\n\n")
        self.file.flush()
