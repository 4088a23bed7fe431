"""The memory ledger against torch's own count: what its parts add up to, and the peak of a batch it had not seen.

Each program is recorded at one batch size, then run as it is at another; both write what torch's own counter says
(peak.py). Memory does not mind company, so programs run beside each other on one GPU.

    python benchmarks/memory.py --out results            all of them
    python benchmarks/memory.py --out results resnet50 gpt2
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS, PEAK = str(ROOT / "benchmarks" / "public_models.py"), str(ROOT / "benchmarks" / "peak.py")
DATA = Path(os.environ.get("FLOORIT_CASES") or Path.home() / ".cache" / "floorit-cases")


def case(name):
    return str(ROOT / "cases" / name / "train.py")


# name -> the program, arguments of the recorded run, and of others: (what, times the batch, arguments)
PROGRAMS = {
    "resnet50": (
        MODELS,
        ["resnet50", "--batch", "64"],
        [("batch", 2.0, ["resnet50", "--batch", "128"]), ("batch", 0.5, ["resnet50", "--batch", "32"])],
    ),
    "vit_b_16": (
        MODELS,
        ["vit_b_16", "--batch", "32", "--amp"],
        [
            ("batch", 2.0, ["vit_b_16", "--batch", "64", "--amp"]),
            ("batch", 4.0, ["vit_b_16", "--batch", "128", "--amp"]),
        ],
    ),
    "gpt2": (
        MODELS,
        ["gpt2", "--batch", "8"],
        [("batch", 2.0, ["gpt2", "--batch", "16"]), ("amp", 1.0, ["gpt2", "--batch", "8", "--amp"])],
    ),
    "gpt2-amp": (MODELS, ["gpt2", "--batch", "8", "--amp"], [("batch", 2.0, ["gpt2", "--batch", "16", "--amp"])]),
    "detector": (
        case("detector"),
        ["--scale", "gpu", "--batch-size", "96"],
        [("batch", 2.0, ["--scale", "gpu", "--batch-size", "192"])],
    ),
    "deblur": (
        case("deblur"),
        ["--scale", "gpu"],
        [
            ("batch", 3.0, ["--scale", "gpu", "--fault-free", "batch"]),
            ("recompute", 1.0, ["--scale", "gpu", "--fault-free", "checkpoint"]),
        ],
    ),
    "heatmap": (case("heatmap"), ["--scale", "gpu"], [("batch", 2.0, ["--scale", "gpu", "--data", "DOUBLED"])]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS), metavar="PROGRAM", help=" ".join(PROGRAMS))
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and results.json")
    parser.add_argument("--jobs", type=int, default=3, help="programs that run beside each other")
    parser.add_argument("--limit", type=float, default=140.0, help="seconds after which a run is given up")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        waiting = {name: pool.submit(measure, name, given, began) for name in given.programs}
        results = {name: job.result() for name, job in waiting.items()}
    (given.out / "results.json").write_text(json.dumps(results, indent=1))
    for name, found in results.items():
        print(f"\n{name}: {found.get('error') or ''}")
        for line in found.get("lines", []):
            print(f"  {line}")


def measure(name, given, began):
    script, arguments, others = PROGRAMS[name]
    folder = given.out / name
    folder.mkdir(exist_ok=True)
    try:
        prepare(name, script)
        recorded, own = record(folder, script, arguments, given, began)
        measured = [(*other[:2], alone(folder, number, script, other[2], given, began))
                    for number, other in enumerate(others)]  # fmt: skip
    except (subprocess.SubprocessError, OSError, ValueError, RuntimeError) as error:
        return {"error": str(error)[-1500:], "lines": []}
    return compare(recorded, own, measured)


def prepare(name, script):
    """The data of a case; of heatmap, also in files of two batches each."""
    maker = Path(script).parent / "make_data.py"
    if not maker.exists():
        return
    folder = DATA / name / "gpu"
    subprocess.run([sys.executable, maker, "--scale", "gpu", "--out", folder], check=True, capture_output=True)
    if name == "heatmap":
        double(folder, DATA / name / "doubled")


def double(folder, into):
    import numpy as np

    for split, count in (("train", 16), ("val", 1)):
        (into / split).mkdir(parents=True, exist_ok=True)
        for kind in ("images", "keypoints", "heatmaps", "offsets"):
            files = sorted((folder / split).glob(f"batch_*_{kind}.npy"))
            for number in range(count):
                pair = [np.load(file) for file in files[2 * number : 2 * number + 2]]
                np.save(into / split / f"batch_{number:04d}_{kind}.npy", np.concatenate(pair))
    for extra in folder.glob("*.*"):
        (into / extra.name).write_bytes(extra.read_bytes())


def left(given, began):
    return max(given.limit - (time.monotonic() - began), 5)


def record(folder, script, arguments, given, began):
    told, out = folder / "own.json", folder / "run"
    # Long enough for the windows to be asked for; floorit ends it.
    enough = "120" if script == MODELS else "12"
    command = [sys.executable, "-m", "floorit", "run", "--quiet", "--steps", enough, "--out", out, "--"]
    command += [sys.executable, PEAK, told, script, *arguments, "--steps", "400", *to(script, folder / "work")]
    run(command, folder / "recorded.txt", left(given, began))
    return json.loads((out / "report.json").read_text()), json.loads(told.read_text())


def alone(folder, number, script, arguments, given, began):
    told = folder / f"other-{number}.json"
    data = [str(DATA / "heatmap" / "doubled") if word == "DOUBLED" else word for word in arguments]
    command = [sys.executable, PEAK, told, script, *data, "--steps", "6", *to(script, folder / f"work-{number}")]
    run(command, folder / f"other-{number}.txt", left(given, began))
    return json.loads(told.read_text())


def to(script, folder):
    return [] if script == MODELS else ["--out", str(folder)]


def run(command, output, limit):
    with open(output, "w") as said:
        done = subprocess.run(
            list(map(str, command)), stdout=said, stderr=subprocess.STDOUT, timeout=limit, check=False
        )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {Path(output).read_text()[-1200:]}")


def compare(report, own, others):
    memory = report["memory"]
    if memory is None:
        missing = [m["reason"] for m in report["missing"] if m["what"] == "memory"]
        return {"error": f"no ledger: {missing}", "lines": [], "own": own}
    mib = 2**20
    known = {row["what"]: round(row["bytes"] / mib, 1) for row in memory["ledger"]}
    total = sum(row["bytes"] for row in memory["ledger"])
    unknown = sum(known.get(what, 0) for what in ("unattributed", "other steps", "rounding")) * mib / memory["peak"]
    lines = [
        f"torch's own peak {own['allocated'] / mib:,.1f} MiB; ledger adds up to {total / mib:,.1f}"
        f" ({total / own['allocated'] - 1:+.2%}); in {memory['phase']}; not told apart {unknown:.1%}",
        f"MiB: {known}",
        f"activations: {[(p['name'], round(p['bytes'] / mib, 1)) for p in memory['activations'][:6]]}",
        f"reserved {own['reserved'] / mib:,.1f}, by the report {(memory['reserved'] or 0) / mib:,.1f};"
        f" cache {memory['cache']}, fragments {memory['fragments']}, not torch's {memory['not_torch']},"
        f" retries {memory['retries']}, worst {memory['worst']}, batch {memory['batch']},"
        f" step peaks {[round(p / mib, 1) for p in memory['step_peaks']]}",
    ]
    errors = []
    for what, times, figures in others:
        if what == "batch":
            foretold = next((p["bytes"] for p in memory["predicted"] if p["times"] == times), None)
        else:
            effect = next((e["bytes"] for e in memory["effects"] if e["code"] == what), None)
            foretold = None if effect is None else memory["peak"] + effect
        wrong = None if foretold is None else foretold / figures["allocated"] - 1
        errors.append({"what": what, "times": times, "foretold": foretold, "measured": figures["allocated"]})
        said = "not foretold" if foretold is None else f"foretold {foretold / mib:,.1f} ({wrong:+.2%})"
        lines.append(f"{what} x{times:g}: measured {figures['allocated'] / mib:,.1f} MiB, {said}")
    return {"lines": lines, "memory": memory, "own": own, "others": errors}


if __name__ == "__main__":
    main()
