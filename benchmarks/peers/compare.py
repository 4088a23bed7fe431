"""The size of batches that other tools find and the one that `floorit tune` finds, on the same work in the same memory.

Each searches once, in a fresh process, by the clock on the wall. Then train.py trains with every size that was found
and with powers of two about them, in turn, in fresh processes: what each size gives is measured, not believed.
A size that fails there is a failure of who found it. Share: of the best that any size gave.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import work

HERE = Path(__file__).resolve().parent
FINDERS = ("accelerate", "lightning-power", "lightning-binsearch")
OURS = "floorit tune"
OWN = 4  # train.py's own size

EXAMPLES = """\
examples:
  python benchmarks/peers/compare.py --budget 3m --rounds 3
  python benchmarks/peers/compare.py --size small --memory 6 --workers 0 --budget 4m      without a GPU
"""


def main():
    options = arguments()
    found = {finder: other(finder, options) for finder in FINDERS}
    found[OURS] = ours(options)
    powers = [2**power for power in range(2, 14) if 2**power <= 2 * max(size for size, _ in found.values() if size)]
    sizes = sorted({OWN, *powers, *(size for size, _ in found.values() if size)})
    rounds = []
    for number in range(options.rounds):
        rates = {}
        for size in random.sample(sizes, len(sizes)):
            rates[size] = rate(size, options)
            told = f"{rates[size]:.4g} samples a second" if rates[size] else "failed"
            say(f"round {number + 1} of {options.rounds}: batches of {size}: {told}")
        rounds.append(rates)
    said = markdown(found, rounds)
    if options.write:
        options.write.write_text(said, encoding="utf-8")
    print(said)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work.add_options(parser)
    parser.add_argument("--budget", default="3m", metavar="TIME", help="of floorit tune (default: 3m)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of training (default: 3)")
    parser.add_argument("--steps", default="60", metavar="N", help="of each training (default: 60)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args()


def common(options):
    return ["--size", options.size, "--memory", str(options.memory), "--workers", str(options.workers)]


# -- the searches -----------------------------------------------------------------------------------------------


def other(finder, options):
    """(the size that it found or None, seconds)"""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="floorit-peer-") as folder:  # one of them leaves files where it runs
        words = [sys.executable, str(HERE / "finders.py"), finder, *common(options)]
        ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    size = None if ended.returncode else json.loads(ended.stdout.splitlines()[-1])["size"]
    return told(finder, size, time.monotonic() - began, ended.stderr)


def ours(options):
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="floorit-peer-") as folder:
        wanted = ["--goal", "speed", "--allow", "training", "--batch-arg", "--batch-size {}"]
        limits = ["--budget", options.budget, "--steps", "40", "--out", f"{folder}/tune"]
        script = [sys.executable, "train.py", *common(options)]
        words = [sys.executable, "-m", "floorit", "tune", *wanted, *limits, "--", *script, "--steps", "1000000"]
        ended = subprocess.run(words, cwd=HERE, stderr=subprocess.PIPE, text=True, check=False)
        path = Path(folder, "tune", "tune.json")
        stack = json.loads(path.read_text())["stack"] if path.exists() else None
    size = None if stack is None else next((fix["value"] for fix in stack if fix["code"] == "batch"), OWN)
    return told(OURS, size, time.monotonic() - began, ended.stderr)


def told(finder, size, seconds, said):
    say(f"{finder}: {size if size is not None else said[-2000:]} ({seconds:.0f} s)")
    return size, seconds


# -- what the sizes give ----------------------------------------------------------------------------------------


def rate(size, options):
    """Samples a second; None where it fails."""
    words = [sys.executable, str(HERE / "train.py"), *common(options), "--batch-size", str(size)]
    ended = subprocess.run([*words, "--steps", options.steps], capture_output=True, text=True, check=False)
    return None if ended.returncode else json.loads(ended.stdout.splitlines()[-1])["samples_per_second"]


def markdown(found, rounds):
    usual = {size: typical(rounds, size) for size in rounds[0]}
    best = max(rate for rate in usual.values() if rate)
    lines = ["| found by | batches of | seconds | share of the best | trains with it |", "|---|---:|---:|---:|---|"]
    for finder, (size, seconds) in found.items():
        given = usual.get(size)
        share = f"{given / best:.0%}" if given else ""
        trains = "found none" if size is None else "yes" if given else "**no**"
        lines.append(f"| {finder} | {size or ''} | {seconds:.0f} | {share} | {trains} |")
    lines += ["", "| batches of | samples a second, each round | share of the best |", "|---:|---|---:|"]
    for size, given in usual.items():
        each = ", ".join(f"{rates[size]:.0f}" if rates[size] else "failed" for rates in rounds)
        lines.append(f"| {size} | {each} | {f'{given / best:.0%}' if given else ''} |")
    return "\n".join(lines) + "\n"


def typical(rounds, size):
    """The median of its rounds; None where one failed."""
    rates = [rates[size] for rates in rounds]
    return statistics.median(rates) if all(rates) else None


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
