"""A program against itself: how often `floorit try` calls one of two that are the same faster or slower.

Each try gives the program an argument that it never reads, so the truth is known: no difference. On a machine with
nothing else to do a try takes a minute and a half. What is saved is gone on with.

    python benchmarks/itself.py --out results                 forty tries, ten of each program
    python benchmarks/itself.py --out results --tries 4
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

PROGRAM = Path(__file__).with_name("alike.py")
KINDS = ("compute", "threads", "loader", "uneven")
ALLOWED = 5 / 40  # that may be called other than they are: a 95 % interval misses by itself now and then


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tries")
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--budget", default="90s", help="of one try")
    parser.add_argument("--steps", default="600")
    given = parser.parse_args()
    found = []
    for number in range(given.tries):
        found.append(tried(KINDS[number % len(KINDS)], given.out / f"{number:02}", given))
        print(line(found[-1]), flush=True)
    called = [one for one in found if is_called(one)]
    print(f"\n{len(called)} of {len(found)} called faster or slower, {ALLOWED * len(found):g} allowed")
    print(dict(Counter(one["verdict"] for one in found)))
    sys.exit(len(called) > ALLOWED * len(found))


def tried(kind, folder, given):
    """What is said of one try: trial.json."""
    path = folder / "trial.json"
    if not path.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        asked = ["--vary", "--unread {1}", "--risk", "exact", "--budget", given.budget, "--steps", given.steps]
        command = [sys.executable, "-m", "floorit", "try", "--quiet", *asked, "--out", str(folder), "--"]
        subprocess.run([*command, sys.executable, str(PROGRAM), kind], check=True)
    return {**json.loads(path.read_text()), "kind": kind}


def is_called(one):
    """Whether a difference is claimed, in words or by an interval without 1 in it."""
    speedup = one["speedup"]
    return (
        one["verdict"] in ("faster", "changed results")
        or "slower" in (one["reason"] or "")
        or (one["verdict"] != "unclear" and speedup is not None and not speedup["low"] <= 1 <= speedup["high"])
    )


def line(one):
    gain, noise = one["speedup"], one["noise"]
    times = f"{gain['value']:.3f} ({gain['low']:.3f} to {gain['high']:.3f}), {gain['n']} pairs" if gain else "no speed"
    by = f"noise {noise:.1%}" if noise is not None else "noise not known"
    return f"{one['kind']:8} {one['verdict']:12} {times}, {by}{'  <- WRONG' if is_called(one) else ''}"


if __name__ == "__main__":
    main()
