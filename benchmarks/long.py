"""What it takes to report on a large job: a record of many ranks is written, then read by `floorit report`.

The record is that of 1,000 ranks and 10,000 steps of 49 ms (tests/manyranks.py): the bytes that the recorder would have
written, without a program that was run. One rank waits 8 ms longer than the others for each batch, and must be named.
Seconds are by the wall; memory is the most that the command and all processes it starts had resident together, looked
at every 20 ms, and beside it the most that one of them had (getrusage). The promise that is checked: a minute, 1 GiB.

    python benchmarks/long.py
    python benchmarks/long.py --ranks 8 --steps 100000 --html
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import manyranks

PROMISED_SECONDS, PROMISED_BYTES = 60.0, 1 << 30
LOOK = 0.02  # seconds between two looks at the memory


def main():
    options = arguments()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="floorit-long-"))
    try:
        if not (folder / "record").exists():
            write(folder, options.ranks, options.steps, options.late)
        files, size = manyranks.sizes(folder)
        print(f"{files} files, {size / 1e9:.2f} GB, {size / files / options.steps:.0f} bytes a step")
        bounds = [measure(folder, options) for _ in range(options.times)]
    finally:
        if options.folder is None:
            shutil.rmtree(folder)
    return 0 if all(bounds) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--late", type=int, default=617, help="the rank that is late (617)")
    parser.add_argument("--times", type=int, default=1, help="how often it is read")
    parser.add_argument("--html", action="store_true", help="the page instead of the JSON")
    parser.add_argument("--folder", type=Path, help="where the record is, or is to be left")
    return parser.parse_args()


def write(folder, ranks, steps, late):
    """The record, by all cores."""
    manyranks.begin(folder, ranks)
    began = time.monotonic()
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(write_rank, folder, ranks, steps, late), range(ranks), chunksize=10))
    print(f"written in {time.monotonic() - began:.0f} s")


def write_rank(folder, ranks, steps, late, rank):
    manyranks.write_rank(folder, loop(steps), rank, ranks, is_late=rank == late)


@cache
def loop(steps):
    return manyranks.Loop(steps)


def measure(folder, options):
    """One fresh process; whether it kept what is promised."""
    command = [sys.executable, "-m", "floorit", "report", "--html" if options.html else "--json", str(folder)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out) as process:
        most = 0
        while process.poll() is None:
            most = max(most, resident(process.pid))
            time.sleep(LOOK)
        seconds = time.monotonic() - began
        out.seek(0)
        said = out.read()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{seconds:.1f} s ({cpu:.1f} s of cores; load of the machine {os.getloadavg()[0]:.1f}),"
        f" {most / 2**20:.0f} MiB together, {used.ru_maxrss / 2**10:.0f} MiB the largest process"
    )
    if not options.html:
        late = json.loads(said)["late_rank"]
        if late is None or late["rank"] != options.late:
            print(f"rank {options.late} is late, and {late and late['rank']} was named")
            return False
        print(f"late: rank {late['rank']}, {late['phase']}, {late['seconds']['value'] * 1e3:.3f} ms a step")
    return process.returncode == 0 and seconds < PROMISED_SECONDS and most < PROMISED_BYTES


def resident(pid):
    """Bytes of a process and of all that it has started."""
    total = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


if __name__ == "__main__":
    sys.exit(main())
