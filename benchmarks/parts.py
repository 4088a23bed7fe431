"""What each part of the recorder costs a step: switched on and off inside one process, a few steps at a time.

Finer than overhead.py on a noisy machine, and says where the cost is; but it is not how the recorder is used.
"""

import argparse
import contextlib
import json
import random
import statistics
import sys
import tempfile

import torch
from step import SIZES, Training
from torch.optim import optimizer as optim

from floorit.record import probes
from floorit.record.session import Session

TURN = 0.03  # seconds of a turn, roughly
SAMPLES = "stack samples"
PROBES = ("data loader", "loader workers", "forward and loss", "backward and recompute", "optimizer")


def _nothing():
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, choices=(1, 5, 50), default=1, help="milliseconds a step")
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, folder)
    print(f"torch {torch.__version__}, a step of {found['nothing']:.3f} ms\n")
    print("| part | ms a step, beside nothing |\n|---|---:|")
    for name, (low, middle, high) in found["parts"].items():
        print(f"| {name} | {middle:+.4f} [{low:+.4f}, {high:+.4f}] |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file)


class Parts:
    """The recorder's changes, by probe, so that each can be put in and taken out."""

    def __init__(self, folder):
        self.session = Session(folder, torch)
        self._start = self.session.sampler.start
        self._inside = {}  # part -> [(function, original code, changed code)]
        before = dict(optim._global_optimizer_pre_hooks), dict(optim._global_optimizer_post_hooks)
        changed = []
        inside = self.session.patches.inside

        def noticed(function, hooks, names=()):
            function = getattr(function, "__func__", function)
            while hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            code = function.__code__
            inside(function, hooks, names)
            changed.append((function, code, function.__code__))

        self.session.patches.inside = noticed
        for name, install in probes.ALL:
            install(self.session)
            self._inside[name] = list(changed)
            changed.clear()
        self._optimizer = before, (dict(optim._global_optimizer_pre_hooks), dict(optim._global_optimizer_post_hooks))
        self.session.clock.reset()
        self.session.steps.reset()

    def names(self):
        return list(self._inside)

    def switch(self, names):
        """These parts on, the others off."""
        for name, functions in self._inside.items():
            for function, original, changed in functions:
                function.__code__ = changed if name in names else original
        hooks = self._optimizer["optimizer" in names]
        for target, wanted in zip(
            (optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks), hooks, strict=True
        ):
            target.clear()
            target.update(wanted)
        sampler = self.session.sampler
        sampler.stop()
        sampler.start = self._start if SAMPLES in names else _nothing
        self.session.clock.reset()


def measure(options, folder):
    parts = Parts(folder)
    training = Training(*SIZES[options.device][options.size], options.device)
    everything = [*parts.names(), SAMPLES]
    arms = {"nothing": [], "nothing (A/A)": [], "everything": everything}
    arms["all but stack samples"] = parts.names()
    for name in PROBES:
        arms[name] = [name]
    steps = max(2, round(TURN * 1e3 / options.size))
    for wanted in arms.values():
        parts.switch(wanted)
        training.run(steps * 3)
    found = {name: [] for name in arms}
    for _ in range(options.turns):
        for name in random.sample(list(arms), len(arms)):
            parts.switch(arms[name])
            times, _ = training.run(steps + 2)
            found[name].append(statistics.median(times[2:]) * 1e3)
    with contextlib.suppress(Exception):
        parts.session.close()
    bare = found["nothing"]
    return {
        "nothing": statistics.median(bare),
        "parts": {
            name: spread([b - a for a, b in zip(bare, of, strict=True)]) for name, of in found.items() if of is not bare
        },
    }


def spread(values):
    """The median, and its 95 % interval by order statistics."""
    ordered = sorted(values)
    half = 1.96 * len(values) ** 0.5 / 2
    low, high = int(len(values) / 2 - half), int(len(values) / 2 + half)
    return ordered[max(low, 0)], statistics.median(ordered), ordered[min(high, len(ordered) - 1)]


if __name__ == "__main__":
    sys.exit(main())
