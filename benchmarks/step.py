"""A training program to measure: a plain loop over tensors in memory, with steps of about 1, 5 or 50 ms.

It trains as many steps as a line of stdin asks for ("SIZE STEPS"), and answers with a line of JSON: the seconds of
each step, and of all of them together. So several of them can take turns on one machine. Other lines are "record" and
"profile", and "rest" that ends either; "pause" and "resume" have the recorder be as good as not there for a while.
The recorder is there from the start, but rests until it is asked for.

    echo "5 200" | python benchmarks/step.py
"""

import argparse
import contextlib
import functools
import gc
import json
import os
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# device -> milliseconds a step should take, roughly -> blocks, width, batch
SIZES = {
    "cpu": {1: (8, 32, 2), 5: (32, 96, 24), 50: (20, 448, 160)},
    "cuda": {1: (8, 256, 32), 5: (25, 1024, 64), 50: (50, 2048, 2048)},
}
BATCHES = {1: 500, 5: 500, 50: 100}  # in one pass over the data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--record-later", action="store_true", help='under `floorit run`: not before "record"')
    parser.add_argument("--one-thread", action="store_true", help="have no other thread in the process")
    parser.add_argument("--cores", type=int, nargs="+", help="train on the first of these, from the second turn on")
    options = parser.parse_args()
    if not options.one_thread:
        start_pool()
    torch.set_num_threads(1)
    answer(torch=torch.__version__, device=torch.cuda.get_device_name() if options.device == "cuda" else "cpu")
    trainings, around, record = {}, contextlib.nullcontext, put_off() if options.record_later else None
    switch = None
    for line in sys.stdin:
        if line == "record\n":
            record()
            continue
        if line in ("pause\n", "resume\n"):
            if options.record_later:
                switch = switch or Switch()
                getattr(switch, line.strip())()
            continue
        if line == "profile\n":
            around = functools.partial(profiling, options.device)
            continue
        if line == "rest\n":
            around = contextlib.nullcontext
            if options.record_later:
                take_out()
            continue
        size, steps = map(int, line.split())
        if size not in trainings:
            trainings[size] = Training(*SIZES[options.device][size], BATCHES[size], options.device)
        with around():
            times, wall = trainings[size].run(steps)
        answer(times=times, wall=wall)
        if options.cores:
            stay_on(options.cores, options.device)


def put_off():
    """Have nothing call the recorder, which stays loaded, as in every program that is recorded. Returns what has it
    begin."""
    from _floorit.patch import Span

    spans, tables = ours(Span), step_hooks()
    hooks = [dict(table) for table in tables]
    for span in spans:
        span.function.__code__ = span.bare
    for table in tables:
        table.clear()

    def begin():
        for span in spans:
            span.function.__code__ = span.hooked
        for table, its in zip(tables, hooks, strict=True):
            table.update(its)

    return begin


class Switch:
    """All by which a step calls the recorder, once it records: out for a while, and in again as it was."""

    def __init__(self):
        from _floorit.patch import Span

        self._spans = ours(Span)
        self._wrappers = list(replaced())
        self._codes = self._hooks = None

    def pause(self):
        self._codes = [span.function.__code__ for span in self._spans]
        self._hooks = [dict(table) for table in step_hooks()]
        for span in self._spans:
            span.function.__code__ = span.bare
        for table in step_hooks():
            table.clear()
        for owner, name, wrapper in self._wrappers:
            setattr(owner, name, wrapper.__wrapped__)

    def resume(self):
        for span, code in zip(self._spans, self._codes, strict=True):
            span.function.__code__ = code
        for table, its in zip(step_hooks(), self._hooks, strict=True):
            table.update(its)
        for owner, name, wrapper in self._wrappers:
            setattr(owner, name, wrapper)


def replaced():
    """What the recorder has put in the place of functions written in C: whose, called what, and what it is now."""
    ours = os.path.dirname(sys.modules["_floorit"].__file__)
    for owner in (torch.Tensor, torch.cuda, torch.cuda.Event, torch.cuda.Stream):
        for name, value in list(vars(owner).items()):
            code = getattr(value, "__code__", None)
            if hasattr(value, "__wrapped__") and code is not None and code.co_filename.startswith(ours):
                yield owner, name, value


def take_out():
    """Have nothing call the recorder any more, and have it look at nothing."""
    from _floorit.session import Session

    for session in ours(Session):
        session.sampler.stop()
        session.patches.undo()
    for table in step_hooks():
        table.clear()


def ours(kind):
    return [thing for thing in gc.get_objects() if isinstance(thing, kind)]


def step_hooks():
    """Torch's tables of what it calls before and after each optimizer's step, in which nobody is but the recorder."""
    from torch.optim import optimizer

    return optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks


def start_pool():
    """Have torch start a thread, as it does in every program that it lets use two cores.

    A process with one thread is faster: libc and libstdc++ leave out their locks. The first other thread ends that, be
    it torch's, CUDA's, the loader's or the recorder's.
    """
    torch.set_num_threads(2)
    torch.ones(1 << 20).add_(1)


def stay_on(cores, device):
    """Train on the first core. On a GPU another thread runs the backward pass: it has the last one. Threads that take
    no part in a step, and are there by now, go where they like, as they do in a program that nobody ties down."""
    os.sched_setaffinity(0, cores[:1])
    if device == "cuda":
        others = [thread for thread in map(int, os.listdir("/proc/self/task")) if thread != os.getpid()]
        os.sched_setaffinity(max(others, key=busy), cores[-1:])


def busy(thread):
    """Nanoseconds that a thread of this process has run."""
    with open(f"/proc/self/task/{thread}/schedstat") as file:
        return int(file.read().split()[0])


def answer(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Training:
    """One model, its optimizer and its data, over which it passes again and again."""

    def __init__(self, blocks, width, batch, batches, device):
        torch.manual_seed(0)
        self.device = device
        self.model = network(blocks, width).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.loader = DataLoader(data(width, batches * batch), batch_size=batch, shuffle=True, num_workers=0)
        self._steps = self._train()

    def run(self, steps):
        """Seconds from the end of each step to the end of the next, and of them all until the device is done."""
        times = []
        began = last = time.perf_counter()
        for _ in range(steps):
            next(self._steps)
            now = time.perf_counter()
            times.append(now - last)
            last = now
        if self.device == "cuda":
            torch.cuda.synchronize()
        return times, time.perf_counter() - began

    def _train(self):
        model, optimizer, device = self.model, self.optimizer, self.device
        while True:
            for inputs, targets in self.loader:
                inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
                loss = nn.functional.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                yield


def network(blocks, width):
    """Many small modules, one inside the other, as real models have."""
    block = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(blocks)]
    return nn.Sequential(*block, nn.Linear(width, 10))


def data(width, samples):
    inputs = torch.randn(samples, width)
    return TensorDataset(inputs, torch.randint(0, 10, (len(inputs),)))


def profiling(device):
    activity = torch.profiler.ProfilerActivity
    wanted = [activity.CPU] + ([activity.CUDA] if device == "cuda" else [])
    return torch.profiler.profile(activities=wanted)


if __name__ == "__main__":
    main()
