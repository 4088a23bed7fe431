"""What recording costs a step, against the bare program.

In every round each arm is a fresh process. They take turns: a turn is a pass over 100 batches (5 of long steps), one
process trains while the others wait, in random order, so that what else the machine does falls on all of them alike.
They train on the same core, another in each round. The bare program is there twice: one is compared with the other
(A/A), and each turn of another arm with the turns of both beside it. The interval is over rounds, each weighed by how
far its own turns differ. What is measured is a program that has trained for a while: what comes once in a run is over
by then. The promise that is checked: at most 1 % of a step or 0.05 ms, whichever is larger.

A step that takes half as long again as is usual in its turn was held up by something that none of the recorder's hooks
comes near to. On a GPU, `capped` is of turns in which such steps count as just that long, in all arms alike; how many
there were in each arm is said below the table, so that one sees if the recorder makes them.

With --sampling it is the bare program three times: beside the third one's turns, the machine is sampled (sampler.py).
No recorded program takes part then, because its parent samples all the time, beside everybody's turns.
"""

import argparse
import functools
import json
import math
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path

import numpy as np

from floorit import stats

STEP = Path(__file__).with_name("step.py")
SAMPLER = Path(__file__).with_name("sampler.py")
FLOORIT = [sys.executable, "-m", "floorit"]
BARE, AGAIN, RECORDED, SAMPLED, PROFILED = "bare", "bare (A/A)", "floorit run", "bare, sampled", "torch.profiler"
WINDOWLESS = "floorit run --no-window"
ARMS = (BARE, AGAIN, RECORDED, WINDOWLESS, SAMPLED, PROFILED)
PROMISED = (RECORDED, SAMPLED)
SIZES = (1, 5, 50)
WARM_UP = 6.0  # seconds that all arms train first, at the same time: in them fall the windows, which come once in a run
TURN = {1: 100, 5: 100, 50: 5}  # steps of a turn, by their milliseconds
PROFILED_SHARE = 0.06  # of the turns of the other arms, and of their steps: what it collects takes long to put away
SHORTEST = {"cpu": 1.0, "cuda": 2.6}  # milliseconds of the shortest step
SETTLE = 2  # steps at the start of a turn that fill the caches again; not counted
HELD_UP = 1.5  # of the median step of a turn
PROMISED_SHARE, PROMISED_MS = 0.01, 0.05
# What a row is of -> of the steps of a turn.
OF_TURN = {"median": "median", "mean": "mean", "middle": "mean", "capped": "capped"}


def main():
    options = arguments()
    end = time.monotonic() + options.budget if options.budget else math.inf
    rounds, gpu = [], threading.Semaphore(options.on_gpu)
    with ThreadPoolExecutor(options.jobs) as pool:
        found_in = functools.partial(measure, options, end, gpu)
        for number, found in enumerate(pool.map(found_in, range(options.rounds)), 1):
            if found is None:
                continue  # no time was left
            rounds.append(found)
            if options.verbose or sys.stderr.isatty():
                print(f"round {number} of {options.rounds}", file=sys.stderr, flush=True)
    if not rounds:
        sys.exit("no round ended within the budget")
    result = {"about": about(len(rounds), rounds[0]["about"]), "rows": rows(rounds, options)}
    if options.json:
        options.json.write_text(json.dumps({**result, "rounds": rounds}, indent=1) + "\n")
    print(markdown(result))
    return 0 if all(row["kept"] for row in result["rows"] if row["arm"] in PROMISED) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="of fresh processes (default 7)")
    parser.add_argument("--turns", type=int, default=14, help="of each process for each size in a round (default 14)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, choices=SIZES, help="milliseconds a step")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="rounds at the same time, each on cores of its own (default 1)",
    )
    parser.add_argument(
        "--on-gpu",
        type=int,
        default=1,
        metavar="N",
        help="of these rounds, those that train on the GPU while others start and end (default 1). More of them share "
        "it, which the time of a step does not show as long as it is the host's",
    )
    parser.add_argument("--profiled-rounds", type=int, metavar="N", help="those in which torch.profiler takes part")
    parser.add_argument("--sampling", action="store_true", help="what sampling the machine costs, and nothing else")
    parser.add_argument("--windowless", action="store_true", help="an arm that records without the kernel window, too")
    parser.add_argument("--one-thread", action="store_true", help="no thread in the bare program but its main one")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 10 turns")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="let no turns begin later")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    parser.add_argument("--verbose", action="store_true", help="a line a round, also where stderr is no terminal")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.turns = min(options.rounds, 3), min(options.turns, 10)
    if options.profiled_rounds is None:
        options.profiled_rounds = options.rounds
    if options.sampling:
        options.profiled_rounds = 0
    return options


# -- measuring --------------------------------------------------------------------------------------------------


class Arm:
    """A running program that trains when it is asked to."""

    def __init__(self, name, options, folder, cores, seed):
        command = [sys.executable, str(STEP), "--device", options.device, "--cores", *map(str, cores)]
        if options.one_thread:
            command.append("--one-thread")
        if name == PROFILED:
            command.append("--profiler")
        if name in (RECORDED, WINDOWLESS):
            more = ["--no-window"] if name == WINDOWLESS else []
            command = [*FLOORIT, "run", "--quiet", "--out", str(folder / f"run{ARMS.index(name)}"), *more, *command]
        self._stderr = (folder / f"{ARMS.index(name)}.txt").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=environment(seed),
        )
        self._beside = Sampler() if name == SAMPLED else nullcontext()

    def __enter__(self):
        self.about = self.answer()
        return self

    def __exit__(self, *_):
        if isinstance(self._beside, Sampler):
            self._beside.end()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._stderr.close()

    def ask(self, size, steps):
        """Have it train."""
        self._process.stdin.write(f"{size} {steps}\n")
        self._process.stdin.flush()

    def turn(self, size, steps):
        """Milliseconds of each step, and of a step on average, after those that settle."""
        with self._beside:
            self.ask(size, steps + SETTLE)
            answer = self.answer()
        times = answer["times"]
        wall, times = answer["wall"] - sum(times[:SETTLE]), times[SETTLE:]
        usual = statistics.median(times)
        beyond = [time - HELD_UP * usual for time in times if time > HELD_UP * usual]
        return {
            "median": usual * 1e3,
            "mean": wall / steps * 1e3,
            "capped": (wall - sum(beyond)) / steps * 1e3,
            "held_up": len(beyond),
            "steps": steps,
            "microseconds": [round(time * 1e6) for time in times],
        }

    def answer(self):
        """The next line that it says."""
        line = self._process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            sys.exit(f"{shlex.join(self._process.args)} ended:\n{self._stderr.read()}")
        return json.loads(line)


class Sampler:
    """The machine, sampled inside the context."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, str(SAMPLER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._process.stdout.readline()

    def __enter__(self):
        self._say("on")

    def __exit__(self, *_):
        self._say("off")

    def _say(self, word):
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def measure(options, end, gpu, number):
    """One round: for each size and arm, the milliseconds of its turns. None if that can't begin before the end."""
    if number and time.monotonic() > end:
        return None
    cores = sorted(os.sched_getaffinity(0))
    first = number * 2 % len(cores)  # every second: two that are next to each other may be one
    with tempfile.TemporaryDirectory(prefix="floorit-overhead-") as folder, ExitStack() as stack:
        wanted = [arm for arm in taking_part(options) if arm != PROFILED or number < options.profiled_rounds]
        names = random.sample(wanted, len(wanted))
        started = {name: Arm(name, options, Path(folder), cores[first : first + 2], number) for name in names}
        arms = {name: stack.enter_context(arm) for name, arm in started.items()}
        with gpu if options.device == "cuda" else nullcontext():
            if number and time.monotonic() > end:
                return None
            warm_up(arms.values(), options)
            found = {size: take_turns(arms, size, options) for size in options.sizes}
        return {"about": arms[BARE].about, **found}


def taking_part(options):
    """The arms, with torch.profiler only where a round has it."""
    if options.sampling:
        return [BARE, AGAIN, SAMPLED]
    asked = {WINDOWLESS: options.windowless, SAMPLED: False, PROFILED: options.profiled_rounds}
    return [arm for arm in ARMS if asked.get(arm, True)]


def steps_in(seconds, size, options):
    """How many steps take about so long. On a GPU none is as short as it is called: its launches take longer."""
    return max(4, round(seconds * 1e3 / max(size, SHORTEST[options.device])))


def warm_up(arms, options):
    size = options.sizes[0]
    for arm in arms:
        arm.ask(size, steps_in(WARM_UP, size, options))
    for arm in arms:
        arm.answer()


def take_turns(arms, size, options):
    """The arms' turns, in an order that is another each time."""
    steps, turns = TURN[size], options.turns
    for arm in arms.values():
        arm.turn(size, max(4, round(steps * PROFILED_SHARE)))  # warm-up
    found = {name: [] for name in arms}
    for number in range(turns):
        for name in random.sample(list(arms), len(arms)):
            if name != PROFILED:
                found[name].append(arms[name].turn(size, steps))
            elif number < max(2, turns * PROFILED_SHARE):
                found[name].append(arms[name].turn(size, max(4, round(steps * PROFILED_SHARE))))
    return found


def environment(seed):
    """Ours, with every library held to one thread, and one seed for the hashes of texts in all arms of a round: what it
    may do to a program's speed falls on those that are compared alike."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": str(seed + 1)}


# -- what it means ----------------------------------------------------------------------------------------------


def rows(rounds, options):
    """On a GPU the host runs ahead, so that only the wall time of a whole turn means anything. There the middle turn
    counts: into one of them the kernel window falls, which is a cost of the run and not of a step."""
    shown = ("middle", "capped") if options.device == "cuda" else ("median", "mean")
    others = taking_part(options)[1:]
    return [row(rounds, size, arm, statistic) for size in options.sizes for statistic in shown for arm in others]


def row(rounds, size, arm, statistic):
    """One arm against bare, over the rounds."""
    found = [ratio(r[size], arm, statistic) for r in rounds if arm in r[size]]
    over_rounds = weighed(*map(np.array, zip(*found, strict=True)))
    percent = [100 * math.expm1(x) for x in (over_rounds.value, over_rounds.low, over_rounds.high)]
    step = statistics.median(turn[OF_TURN[statistic]] for r in rounds for turn in r[size][BARE])
    extra = [p / 100 * step for p in percent]
    allowed = max(PROMISED_SHARE * step, PROMISED_MS)
    return {
        "size": size,
        "statistic": statistic,
        "arm": arm,
        "step_ms": step,
        "percent": percent,
        "ms": extra,
        "allowed_ms": allowed,
        "held_up": held_up(rounds, size, arm),
        "kept": extra[1] <= allowed,  # else it is broken beyond the noise
        "surely": extra[2] <= allowed,
    }


def held_up(rounds, size, arm):
    """How many of a thousand steps something held up, in this arm and in the bare program."""
    turns = [[turn for r in rounds for turn in r[size].get(name, ())] for name in (arm, BARE)]
    return [1e3 * sum(turn["held_up"] for turn in each) / sum(turn["steps"] for turn in each) for each in turns]


def ratio(turns, arm, statistic):
    """The log of how much longer a step takes than bare: in all turns for the mean, else in the middle ones; and the
    weight of that."""
    kind = OF_TURN[statistic]
    bare = [turns[BARE]] if arm == AGAIN else [turns[BARE], turns[AGAIN]]
    if statistic == "mean":
        count = len(turns[arm])
        usual = statistics.fmean(turn[kind] for each in bare for turn in each[:count])
        return math.log(statistics.fmean(turn[kind] for turn in turns[arm]) / usual), 1.0
    beside = [statistics.fmean(math.log(turn[kind]) for turn in at_once) for at_once in zip(*bare, strict=True)]
    return middle([math.log(turn[kind]) - before for turn, before in zip(turns[arm], beside, strict=False)])


def middle(values):
    """The mean of the middle half: as deaf to outliers as the median, and less noisy; and how much it tells, one over
    its variance (Tukey and McLaughlin 1963: that of the values with the outer ones drawn in)."""
    quarter = len(values) // 4
    inner = np.sort(values)[quarter : len(values) - quarter]
    drawn_in = np.clip(values, inner[0], inner[-1])
    return inner.mean(), 1 / max(drawn_in.var(), 1e-12) * (len(inner) / len(values)) ** 2 * len(values)


def weighed(values, weights):
    """Their mean by these weights, with its interval by how far they differ from it (Hartung and Knapp 2001): no
    narrower than rounds differ, however sure each is of itself."""
    mean = float(np.average(values, weights=weights))
    if len(values) < 2:
        return stats.Estimate(value=mean, low=mean, high=mean, n=1)
    error = math.sqrt(float(np.average((values - mean) ** 2, weights=weights)) / (len(values) - 1))
    half = stats.t(len(values) - 1) * error
    return stats.Estimate(value=mean, low=mean - half, high=mean + half, n=len(values))


def about(rounds, program):
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.platform()}",
        "load": os.getloadavg()[1],
        "python": platform.python_version(),
        "command": shlex.join(["python", *sys.argv]),
        "rounds": rounds,
        **program,
    }


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def markdown(result):
    facts = result["about"]
    lines = [
        f"Machine: {facts['machine']}; load {facts['load']:.1f}; device: {facts['device']}  ",
        f"Python {facts['python']}, torch {facts['torch']}, {facts['date']}  ",
        f"Command: `{facts['command']}` ({facts['rounds']} rounds; one thread computes; 95 % intervals over rounds)",
        "",
        "| bare step | of turns | arm | % of a step | ms a step | allowed | promise |",
        "|---:|---|---|---:|---:|---:|---|",
    ]
    capped = [row for row in result["rows"] if row["statistic"] == "capped"]
    below = [f"Held up, of a thousand steps (and of bare ones): {', '.join(map(held_up_shown, capped))}"]
    return "\n".join(lines + [markdown_row(row) for row in result["rows"]] + (["", *below] if capped else []))


def held_up_shown(row):
    return f"{row['step_ms']:.2f} ms, {row['arm']} {row['held_up'][0]:.1f} ({row['held_up'][1]:.1f})"


def markdown_row(row):
    verdict = "kept" if row["surely"] else "not told apart" if row["kept"] else "broken"
    cells = (
        f"{row['step_ms']:.2f} ms",
        row["statistic"],
        row["arm"],
        shown(row["percent"], 2),
        shown(row["ms"], 4),
        f"{row['allowed_ms']:.3f} ms",
        verdict if row["arm"] in PROMISED else "",
    )
    return f"| {' | '.join(cells)} |"


def shown(values, digits):
    value, low, high = (f"{v:+.{digits}f}" for v in values)
    return f"{value} [{low}, {high}]"


if __name__ == "__main__":
    sys.exit(main())
