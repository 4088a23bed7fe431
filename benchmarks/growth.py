"""How a record grows: bytes a step and a second, by what they are of, on `floorit run` of a loop with two workers.

Steps are made as long as asked for by a pause outside of Python; the forward and backward passes, the optimizer, the
loader and a call of `.item()` are real. Looks become rarer in the first minute, so bytes a second are of what was
written after `--settled` seconds. A week is what 604,800 such seconds take, with what the machine's samples add.

    python benchmarks/growth.py --milliseconds 1 5 50 500 --seconds 120
"""

import argparse
import collections
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from floorit.record import wire

WEEK = 7 * 86400
PROGRAM = """
import sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pause, seconds = float(sys.argv[1]), float(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(200_000, 32), torch.randn(200_000, 1))
loader = DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True, prefetch_factor=4)
began, total = time.perf_counter(), 0.0
while time.perf_counter() - began < seconds:
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        left = pause - (time.perf_counter() - began) % pause
        time.sleep(left) if pause > 0.002 else None
        if time.perf_counter() - began > seconds:
            break
"""


def main():
    options = arguments()
    columns = ("ms asked", "ms a step", "napped", "awake B/step", "asleep B/step", "worker B/batch", "notes B/s")
    print(" | ".join((*columns, "machine B/sample", "a week")))
    for milliseconds in options.milliseconds:
        folder = Path(tempfile.mkdtemp(prefix="floorit-growth-"))
        try:
            record(folder, milliseconds, options.seconds)
            print(row(folder, milliseconds, options.settled), flush=True)
        finally:
            shutil.rmtree(folder)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[1, 5, 50, 500])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--settled", type=float, default=60)
    return parser.parse_args()


def record(folder, milliseconds, seconds):
    program = folder / "train.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "floorit", "run", "--no-window", "--quiet", "--out", str(folder / "run")]
    subprocess.run(
        [*command, str(program), str(milliseconds / 1e3), str(seconds)], check=True, stderr=subprocess.DEVNULL
    )


def row(folder, milliseconds, settled):
    """What one record says, as a line of the table."""
    process = next(path for path in (folder / "run/record").glob("*.rec") if not path.name.startswith("workers-"))
    log, notes, took = told(process, settled)
    shared = [told(path, 0) for path in (folder / "run/record").glob("workers-*.rec")]
    steps = log["awake steps"] + log["asleep steps"]
    fetched = sum(count["batches"] for _, _, count in shared)
    worker_notes = sum(size for _, sizes, _ in shared for size in sizes.values())
    worker_bytes = sum(count["fetch bytes"] for _, _, count in shared) / max(fetched, 1)
    each = took["settled seconds"] / max(took["settled steps"], 1)
    a_second = sum(notes.values()) / took["settled seconds"] + worker_notes / took["seconds"]
    samples = (folder / "run/telemetry.jsonl").read_bytes().splitlines()
    machine = sum(map(len, samples)) / max(len(samples), 1)
    awake = log["awake bytes"] / max(log["awake steps"], 1)
    asleep = log["asleep bytes"] / max(log["asleep steps"], 1)
    napped = took["settled asleep"] / max(took["settled steps"], 1)
    a_step = napped * asleep + (1 - napped) * awake + worker_bytes
    week = WEEK / each * a_step + WEEK * a_second + WEEK / 10 * machine
    by_kind = [f"{kind} {size / took['settled seconds']:.0f}" for kind, size in notes.most_common(5)]
    by_kind.append(f"workers {worker_notes / took['seconds']:.0f}")
    return (
        f"{milliseconds:g} | {each * 1e3:.2f} | {napped:.0%} of {steps} | {awake:.0f} | {asleep:.0f} |"
        f" {worker_bytes:.0f} | {a_second:.0f} ({', '.join(by_kind)}) | {machine:.0f} | {week / 1e9:.2f} GB"
    )


def told(path, settled):
    """Bytes of the log awake and asleep, with their steps; bytes of notes by kind, and how long it took, settled."""
    log, notes, took = collections.Counter(), collections.Counter(), collections.Counter()
    asleep, first, now, began = False, None, 0, None
    for tag, payload, _ in wire.frames(path.read_bytes()):
        size = len(payload) + wire.FRAME.size
        is_settled = first is not None and now - first > settled * 1e9
        if tag == wire.LOG_TAG:
            numbers = struct.unpack(f"<{(len(payload) - wire.LOG.size) // 8}q", payload[wire.LOG.size :])
            for now, word in zip(numbers[::2], numbers[1::2], strict=True):
                first = first or now
                kind = word & wire.KIND
                asleep = kind == wire.NAP_IN or (asleep and kind != wire.NAP_OUT)
                state = "asleep" if asleep else "awake"
                log[state + " bytes"] += 16
                stepped = kind in (wire.STEP_OUT, wire.NAP_STEP)
                log[state + " steps"] += stepped
                if is_settled:
                    began = began or now
                    took["settled steps"] += stepped
                    took["settled asleep"] += stepped and asleep
        elif tag == wire.FETCH_TAG:
            took["batches"] += len(payload) // wire.FETCH.size
            took["fetch bytes"] += size
            ends = [end for end, *_ in wire.FETCH.iter_unpack(payload)]
            first, now = first or ends[0] * 1e9, ends[-1] * 1e9
        elif is_settled or not settled:
            kind = json.loads(payload)["kind"] if tag == wire.JSON_TAG else "marks"
            notes[kind] += size
    took["settled seconds"] = (now - (began or now)) * 1e-9
    took["seconds"] = (now - (first or now)) * 1e-9
    return log, notes, took


if __name__ == "__main__":
    main()
