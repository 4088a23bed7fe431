"""What recording costs a step, against the bare program.

A round is a pair of fresh processes on one core, of the bare program both; in one of them the recorder is loaded, but
rests. Then it records there for a while (or torch.profiler does, or nothing: A/A), and rests again. Two processes of
one program differ by 1 or 2 % for as long as they live, and by as much what a process has in its memory changes its
speed as it goes on. So the one is compared with itself, before and after: by how much is it slower against the other
while it records?

They take turns of a few steps, one trains while the other waits. What else the machine does makes a step's speed wander
within tenths of a second, so turns are shorter than that, and each is compared with the other's before and after it.
After a wait the caches are full of the other process's code and data, and the first steps take up to a fifth longer;
more so where more code runs. No program that has its cores to itself knows that: the steps at the beginning of a turn
are left out. The interval is over rounds, each weighed by how far its own turns differ.

What is measured is a program that has trained for a while: what comes once in a run is over by then, and where steps
are short the recorder naps as long at a time as it will. Its record says so; of the steps that are measured, the share
in naps is said below the table. The promise that is checked: at most 1 % of a step or 0.05 ms, whichever is larger.

A wait is shorter than what the recorder takes for a surprise (twenty steps and 0.1 s). It looks at the stack by the
clock, which goes on while a process waits: of the steps that are measured, twice as many are near a look as otherwise.

A step that takes half as long again as is usual in its round was held up. In `capped` such steps count as just that
long, in both arms alike; how many there were in each arm is said below the table, so that one sees if the recorder
makes them. Below it, too, by how much the one is slower afterwards than before it recorded.

With --within, a recorded process takes turns with itself: in every second one its steps call nothing of the
recorder's, and nothing else is different, neither process nor memory nor caches. That tells less than two processes do
(looks at the stack and writing go on in both kinds of turns), but what the hooks cost it tells more sharply.

With --sampling, what begins is that the machine is sampled beside one's turns (sampler.py). No recorded program takes
part then, because its parent samples all the time, beside everybody's turns.
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

import asleep
import numpy as np

from floorit import stats
from floorit.record.naps import SHORT

STEP = Path(__file__).with_name("step.py")
SAMPLER = Path(__file__).with_name("sampler.py")
FLOORIT = [sys.executable, "-m", "floorit"]
BARE, AGAIN, RECORDED, SAMPLED, PROFILED = "bare", "bare (A/A)", "floorit run", "bare, sampled", "torch.profiler"
WINDOWLESS = "floorit run --no-window"
WITHIN, WITHIN_AGAIN = "hooks in and out of one process", "nothing in and out (A/A)"
ARMS = (BARE, AGAIN, RECORDED, WINDOWLESS, SAMPLED, PROFILED, WITHIN, WITHIN_AGAIN)
RECORDING, PROMISED = (RECORDED, WINDOWLESS, WITHIN), (RECORDED, SAMPLED, WITHIN)
SIZES = (1, 5, 50)
WARM_UP = 3.0  # seconds that both train at first, at the same time
# Seconds once recording has begun that are not measured, at least and at most: until the windows are over, which come
# once, and a nap has lasted so many seconds. Where steps are too long for naps, none does.
BEGINNING, LONGEST_BEGINNING, LONG_NAP = 10.0, 45.0, 1.0
COLD, TURN = 0.03, 0.05  # seconds at the beginning of a turn that are left out, and those that count
SAMPLED_TURN = 1.0  # the same where the sampler comes and goes with a turn
PROFILED_TURNS = 5  # what it collects takes long to put away
SHORTEST = {"cpu": 0.7, "cuda": 2.6}  # milliseconds of the shortest step
HELD_UP = 1.5  # of the median step of a round
PROMISED_SHARE, PROMISED_MS = 0.01, 0.05
STATISTICS = ("mean", "capped")


def main():
    options = arguments()
    end = time.monotonic() + options.budget if options.budget else math.inf
    rounds, gpu, pairs = [], threading.Semaphore(options.on_gpu), list(enumerate(others(options)))
    with ThreadPoolExecutor(options.jobs) as pool:
        for found in pool.map(functools.partial(measure, options, end, gpu), pairs):
            if found is None:
                continue  # no time was left
            rounds.append(found)
            if options.verbose or sys.stderr.isatty():
                print(f"round {len(rounds)} of {len(pairs)}: {found['arm']}", file=sys.stderr, flush=True)
    if not rounds:
        sys.exit("no round ended within the budget")
    result = {"about": about(len(rounds), rounds[0]["about"]), "rows": rows(rounds, options)}
    if options.json:
        options.json.write_text(json.dumps({**result, "rounds": rounds}) + "\n")
    print(markdown(result))
    return 0 if all(row["kept"] for row in result["rows"] if row["arm"] in PROMISED) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="of each arm (default 4)")
    parser.add_argument(
        "--turns", type=int, default=60, help="of each process for each size in each part of a round (default 60)"
    )
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
    parser.add_argument(
        "--profiled-rounds", type=int, default=1, metavar="N", help="of torch.profiler, of few turns (default 1)"
    )
    parser.add_argument("--sampling", action="store_true", help="what sampling the machine costs, and nothing else")
    parser.add_argument("--within", action="store_true", help="what the hooks cost, in and out of one process, alone")
    parser.add_argument("--windowless", action="store_true", help="an arm that records without the kernel window, too")
    parser.add_argument("--one-thread", action="store_true", help="no thread in the bare program but its main one")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 40 turns")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="let no turns begin later")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    parser.add_argument("--verbose", action="store_true", help="a line a round, also where stderr is no terminal")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.turns = min(options.rounds, 2), min(options.turns, 40)
    return options


def others(options):
    """The arm that the bare program is compared with, in each round."""
    if options.sampling:
        return [SAMPLED, AGAIN] * options.rounds
    if options.within:
        return [WITHIN, WITHIN_AGAIN] * options.rounds
    each = [RECORDED, AGAIN, *([WINDOWLESS] if options.windowless else [])] * options.rounds
    return [*each[:1], *[PROFILED] * options.profiled_rounds, *each[1:]]


# -- measuring --------------------------------------------------------------------------------------------------


class Arm:
    """A running program that trains when it is asked to."""

    def __init__(self, name, options, folder, cores, seed):
        self._name = name
        command = [sys.executable, str(STEP), "--device", options.device, "--cores", *map(str, cores)]
        if options.one_thread:
            command.append("--one-thread")
        self._record = folder / "run" / "record"
        if name in RECORDING:
            more = ["--no-window"] if name == WINDOWLESS else []
            command = [*FLOORIT, "run", "--quiet", "--out", str(folder / "run"), *more, "--", *command]
            command.append("--record-later")
        self._stderr = (folder / f"{ARMS.index(name)}.txt").open("w+")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=environment(seed),
        )
        self._beside = nullcontext()

    def __enter__(self):
        self.about = self.answer()
        return self

    def __exit__(self, *_):
        self._end_sampler()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._stderr.close()

    def begin(self):
        """From now on it is what its name says."""
        if self._name in RECORDING:
            self._say("record")
        elif self._name == PROFILED:
            self._say("profile")
        elif self._name == SAMPLED:
            self._beside = Sampler()

    def end(self):
        """From now on it is the bare program again."""
        self._say("rest")
        self._end_sampler()

    def _end_sampler(self):
        if isinstance(self._beside, Sampler):
            self._beside.end()
        self._beside = nullcontext()

    def ask(self, size, steps):
        """Have it train."""
        self._say(f"{size} {steps}")

    def _say(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def turn(self, size, steps, cold):
        """Milliseconds of the steps at its beginning, of each after them, and of those until the device is done."""
        with self._beside:
            self.ask(size, steps)
            answer = self.answer()
        times = [round(time * 1e3, 4) for time in answer["times"]]
        wall = answer["wall"] * 1e3 - sum(times[:cold])
        return {"cold": times[:cold], "steps": times[cold:], "wall": wall}

    def is_settled(self, size, since):
        """Whether it goes on to be recorded as it will be: its windows are over, and since then it has napped long."""
        if self._name not in RECORDING:
            return True
        if self._name != WINDOWLESS and not asleep.windows_are_over(self._record):
            return False
        naps = [nap for nap in asleep.naps(self._record) if nap.began > since]
        return size * 1e6 > SHORT or any(nap.seconds > LONG_NAP for nap in naps)

    def napped(self, since):
        """The share of its steps since then that were in naps; None where it records none."""
        return asleep.share(self._record, since) if self._name in RECORDING else None

    def pause(self):
        """In the turns that come, its steps call nothing of the recorder's."""
        self._say("pause")

    def resume(self):
        """They do again."""
        self._say("resume")

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


def measure(options, end, gpu, pair):
    """One round: for each size, the turns of both arms. None if they can't begin before the end."""
    number, other = pair
    if number and time.monotonic() > end:
        return None
    if options.within:
        return measure_within(options, end, gpu, pair)
    cores = sorted(os.sched_getaffinity(0))
    first = number * 2 % len(cores)  # every second: two that are next to each other may be one
    with tempfile.TemporaryDirectory(prefix="floorit-overhead-") as folder, ExitStack() as stack:
        names = random.sample((BARE, other), 2)
        started = {name: Arm(name, options, Path(folder), cores[first : first + 2], number) for name in names}
        arms = {name: stack.enter_context(arm) for name, arm in started.items()}
        bare, another = arms[BARE], arms[other]
        with gpu if options.device == "cuda" else nullcontext():
            if number and time.monotonic() > end:
                return None
            turns = PROFILED_TURNS if other == PROFILED else options.turns
            for size in options.sizes:
                train(arms.values(), WARM_UP, size, options)
            before = {size: take_turns(bare, another, size, options.turns, options) for size in options.sizes}
            another.begin()
            during, napped = {}, {}
            for size in options.sizes:
                if other != PROFILED:
                    settle(arms.values(), size, options)
                began = time.perf_counter_ns()
                during[size] = take_turns(bare, another, size, turns, options)
                napped[size] = another.napped(began)
            another.end()
            after = {size: take_turns(bare, another, size, options.turns, options) for size in options.sizes}
        stages = {"before": before, "during": during, "after": after, "napped": napped}
        found = {size: {name: of[size] for name, of in stages.items()} for size in options.sizes}
        return {"arm": other, "about": bare.about, **found}


def measure_within(options, end, gpu, pair):
    """One round of a process with itself: for each size, turns with the hooks and without."""
    number, name = pair
    cores = sorted(os.sched_getaffinity(0))
    first = number * 2 % len(cores)
    with (
        tempfile.TemporaryDirectory(prefix="floorit-overhead-") as folder,
        Arm(name, options, Path(folder), cores[first : first + 2], number) as arm,
        gpu if options.device == "cuda" else nullcontext(),
    ):
        if number and time.monotonic() > end:
            return None
        found = {}
        for size in options.sizes:
            train([arm], WARM_UP, size, options)
        arm.begin()
        for size in options.sizes:
            settle([arm], size, options)
            began = time.perf_counter_ns()
            during = take_turns(Without(arm), arm, size, options.turns, options)
            found[size] = {"during": during, "napped": arm.napped(began)}
        return {"arm": name, "about": arm.about, **found}


class Without:
    """The same process, its steps left alone by the recorder for a turn."""

    def __init__(self, arm):
        self._arm = arm

    def turn(self, *asked):
        self._arm.pause()
        turn = self._arm.turn(*asked)
        self._arm.resume()
        return turn


def settle(arms, size, options):
    """Have both train, as recording has just begun in one, until what is to come once has come."""
    began = time.perf_counter_ns()
    while (spent := (time.perf_counter_ns() - began) * 1e-9) < LONGEST_BEGINNING:
        train(arms, BEGINNING / 5, size, options)
        if spent > BEGINNING and all(arm.is_settled(size, began) for arm in arms):
            return


def steps_in(seconds, size, options):
    """How many steps take about so long. On a GPU none is as short as it is called: its launches take longer."""
    return max(1, round(seconds * 1e3 / max(size, SHORTEST[options.device])))


def train(arms, seconds, size, options):
    """All of them at once."""
    for arm in arms:
        arm.ask(size, steps_in(seconds, size, options))
    for arm in arms:
        arm.answer()


def take_turns(bare, other, size, turns, options):
    """The turns of both in the order they had, which begins and ends with the bare program's."""
    cold = steps_in(COLD, size, options)
    steps = cold + steps_in(SAMPLED_TURN if options.sampling else TURN, size, options)
    found = {"bare": [bare.turn(size, steps, cold)], "other": []}
    for _ in range(turns):
        found["other"].append(other.turn(size, steps, cold))
        found["bare"].append(bare.turn(size, steps, cold))
    return found


def environment(seed):
    """Ours, with every library held to one thread, and one seed for the hashes of texts in all arms of a round: what it
    may do to a program's speed falls on those that are compared alike."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": str(seed + 1)}


# -- what it means ----------------------------------------------------------------------------------------------


def rows(rounds, options):
    arms = [arm for arm in ARMS if any(r["arm"] == arm for r in rounds)]
    return [row(rounds, size, arm, statistic) for size in options.sizes for arm in arms for statistic in STATISTICS]


def row(rounds, size, arm, statistic):
    """One arm against bare, over its rounds."""
    of_arm = [r[size] for r in rounds if r["arm"] == arm]
    percent = percent_of(slower(turns, statistic) for turns in of_arm)
    step = statistics.median(step for turns in of_arm for step in steps_of(turns, "bare"))
    extra = [p / 100 * step for p in percent]
    allowed = max(PROMISED_SHARE * step, PROMISED_MS)
    return {
        "size": size,
        "statistic": statistic,
        "arm": arm,
        "rounds": len(of_arm),
        "step_ms": step,
        "percent": percent,
        "ms": extra,
        "allowed_ms": allowed,
        "left_behind": percent_of(left_behind(turns, statistic) for turns in of_arm if "before" in turns),
        "held_up": [held_up(of_arm, which) for which in ("other", "bare")],
        "napped": [turns["napped"] for turns in of_arm if turns["napped"] is not None],
        "kept": extra[1] <= allowed,  # else it is broken beyond the noise
        "surely": extra[2] <= allowed,
    }


def slower(turns, statistic):
    """The log of how much slower the other is while it records, against the bare one; and the weight of that."""
    during, error = ratio(turns["during"], statistic)
    if "before" not in turns:  # one process: nothing else differs
        return during, 1 / max(error**2, 1e-12)
    (before, error_before), (after, error_after) = (ratio(turns[when], statistic) for when in ("before", "after"))
    variance = error**2 + (error_before**2 + error_after**2) / 4
    return during - (before + after) / 2, 1 / max(variance, 1e-12)


def left_behind(turns, statistic):
    """The same of when it rests again against when it had not begun: what recording changed for good, and all else that
    changed meanwhile, of which A/A has as much. Of that, half is in `slower`."""
    (before, error_before), (after, error_after) = (ratio(turns[when], statistic) for when in ("before", "after"))
    return after - before, 1 / max(error_before**2 + error_after**2, 1e-12)


def ratio(turns, statistic):
    """The log of how much longer the other's turns take than the bare ones before and after them, on average; and the
    standard error of that."""
    most = limit(turns) if statistic == "capped" else math.inf
    bare, other = ([math.log(length(turn, most)) for turn in turns[which]] for which in ("bare", "other"))
    longer = np.array(other) - (np.array(bare[:-1]) + np.array(bare[1:])) / 2
    return longer.mean(), longer.std() / math.sqrt(len(longer))


def length(turn, most):
    """Milliseconds of a turn whose steps count as no longer than `most`."""
    return turn["wall"] - sum(step - most for step in turn["steps"] if step > most)


def limit(turns):
    """Milliseconds from which on a step was held up."""
    return HELD_UP * statistics.median(step for turn in turns["bare"] for step in turn["steps"])


def held_up(rounds, which):
    """How many of a thousand steps something held up, while the one recorded."""
    found = [step > limit(turns["during"]) for turns in rounds for step in steps_of(turns, which)]
    return 1e3 * statistics.fmean(found)


def steps_of(turns, which):
    """Milliseconds of each step while the one recorded."""
    return [step for turn in turns["during"][which] for step in turn["steps"]]


def percent_of(found):
    """Logs and their weights as a percentage, with its interval; None where there are none."""
    found = list(found)
    if not found:
        return None
    estimate = weighed(*map(np.array, zip(*found, strict=True)))
    return [100 * math.expm1(x) for x in (estimate.value, estimate.low, estimate.high)]


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
        "| bare step | steps | arm | rounds | % of a step | ms a step | allowed | promise |",
        "|---:|---|---|---:|---:|---:|---:|---|",
    ]
    below = ["", *(f"- {below_shown(row)}" for row in result["rows"] if row["statistic"] == "capped")]
    return "\n".join(lines + [markdown_row(row) for row in result["rows"]] + below)


def below_shown(row):
    """What else is known of an arm."""
    held_up, bare = row["held_up"]
    shown = (
        f"{row['step_ms']:.2f} ms, {row['arm']}: held up {held_up:.1f} of a thousand steps, {bare:.1f} of the bare ones"
    )
    if row["napped"]:
        shown += f"; {min(row['napped']):.0%} to {max(row['napped']):.0%} in naps"
    return f"{shown}; afterwards {shown_of(row['left_behind'], 2)} %" if row["left_behind"] else shown


def markdown_row(row):
    verdict = "kept" if row["surely"] else "not told apart" if row["kept"] else "broken"
    cells = (
        f"{row['step_ms']:.2f} ms",
        row["statistic"],
        row["arm"],
        str(row["rounds"]),
        shown_of(row["percent"], 2),
        shown_of(row["ms"], 4),
        f"{row['allowed_ms']:.3f} ms",
        verdict if row["arm"] in PROMISED else "",
    )
    return f"| {' | '.join(cells)} |"


def shown_of(values, digits):
    value, low, high = (f"{v:+.{digits}f}" for v in values)
    return f"{value} [{low}, {high}]"


if __name__ == "__main__":
    sys.exit(main())
