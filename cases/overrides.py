"""What each fault's fix gains when it is applied from outside, beside what the case's own switch gains.

Each fix is tried on the case as shipped (`floorit try`), unedited, and the case's own switch in the same rounds: what
the machine does meanwhile falls on both alike. A fault of several fixes takes two tries, one after the other. What was
predicted is of the try's first run; the gain in truth.toml was measured by cases/measure.py on another day.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec  # noqa: E402

from floorit import demo, truth  # noqa: E402
from floorit.stats import Estimate  # noqa: E402

REACHED = 0.10  # how far the override's gain may stay behind the switch's

# Fault of a case: the fixes that do together what its switch does.
APPLIED = {
    ("bev", "workers"): {
        "cpu": ["workers=2", "prefetch=4", "persistent=on"],
        "gpu": ["workers=12", "prefetch=4", "persistent=on", "pin=on"],
    },
    ("bev", "eval"): {"cpu": ["eval-every=3"], "gpu": ["eval-every=3"]},
    ("bev", "fp16"): {"gpu": ["amp=fp16"]},
    ("deblur", "checkpoint"): {"cpu": ["recompute=off"], "gpu": ["recompute=off"]},
    ("deblur", "batch"): {"cpu": ["batch=3"], "gpu": ["batch=3"]},
    ("deblur", "timing-log"): {"gpu": ["sync-off=on"]},
    ("detector", "anomaly"): {"cpu": ["anomaly=off"], "gpu": ["anomaly=off"]},
    ("detector", "workers"): {"cpu": ["workers=2"], "gpu": ["workers=16"]},
    ("detector", "cache"): {"cpu": ["decode-cache=ram"], "gpu": ["decode-cache=ram"]},
    ("detector", "pin"): {"gpu": ["pin=on"]},
    ("heatmap", "targets"): {"cpu": ["from-batch=on"], "gpu": ["from-batch=on"]},
    ("heatmap", "workers"): {"gpu": ["workers=24", "prefetch=4"]},
    ("heatmap", "cudnn"): {"gpu": ["cudnn-benchmark=on", "deterministic=off"]},
    ("heatmap", "async-copy"): {"gpu": ["async-copy=on"]},
    ("heatmap", "tf32"): {"gpu": ["tf32=on"]},
    ("heatmap", "launch"): {"gpu": ["compile=reduce-overhead"]},
    ("service", "cache"): {"cpu": ["decode-cache=ram"], "gpu": ["decode-cache=ram"]},
    ("service", "workers"): {"cpu": ["read-on=on"], "gpu": ["read-on=on"]},
    ("service", "checkpoint-every"): {"cpu": ["checkpoint-every=1000"], "gpu": ["checkpoint-every=1000"]},
    ("service", "val"): {"cpu": ["eval-every=5"], "gpu": ["eval-every=5"]},
    ("service", "table"): {"gpu": ["batch=96"]},
}
_TOGETHER = "log-every turns all three of its intervals at once, those of plots, entries and progress lines"
_REWRITE = "its lines must be written anew"
CANNOT = {
    ("bev", "images"): _REWRITE + ": decoding at a smaller size gives other pixels",
    ("bev", "geometry"): _REWRITE,
    ("deblur", "optimizer-state"): "no fix keeps Adam's moments in bfloat16",
    ("deblur", "perceptual"): _REWRITE,
    ("detector", "assignment"): _REWRITE,
    ("detector", "mosaic"): "it is what the model is trained on",
    ("detector", "plots"): _TOGETHER,
    ("detector", "logging"): _TOGETHER,
    ("detector", "items"): "an .item() is not touched: the program uses its number",
}
# What a switch does beside it that no fix can.
PARTLY = {
    ("bev", "eval"): "the switch evaluates every 40 iterations, the fix every 45: it takes a whole number",
    ("detector", "cache"): "the switch has pictures decoded before training begins; from outside they are in the first"
    " pass over the data",
    ("service", "cache"): "the program goes on writing its cache that is never read",
}

EXAMPLES = """\
examples:
  python cases/overrides.py                                  all five at CPU scale
  python cases/overrides.py service heatmap --budget 4m
  python cases/overrides.py detector --only workers --extra "--steps 40" --write table.md
"""


def main():
    options = arguments()
    rows = [row for name in options.cases for row in of_case(name, options)]
    said = markdown(rows)
    if options.write:
        options.write.write_text(said, encoding="utf-8")
    else:
        print(said)
    return 1 if any(row.verdict == "failed" for row in rows) else 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="FAULT", help="this fault alone")
    parser.add_argument("--steps", default="24", metavar="N", help="steady steps of each run (default: 24)")
    parser.add_argument("--budget", default="5m", metavar="TIME", help="of each fault (default: 5m)")
    return parse(parser)


def parse(parser):
    """The options, with those that every script about whole cases has."""
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: {' '.join(demo.NAMES)}")
    parser.add_argument("--scale", choices=truth.SCALES, default="cpu", help="default: cpu")
    parser.add_argument("--extra", type=shlex.split, default=[], metavar="WORDS", help='for train.py: "--steps 40"')
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is run there, to go on with or to look at")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there instead of printing it")
    options = parser.parse_args()
    options.cases = options.cases or ([] if getattr(options, "program", None) else list(demo.NAMES))
    for name in options.cases:
        if name not in demo.NAMES:
            parser.error(f"there is no case {name!r}; there are {', '.join(demo.NAMES)}")
    return options


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a case."""

    case: str
    fault: str
    known: Estimate | None  # what the case's own switch gains, by truth.toml
    fixes: list[str]
    verdict: str  # or why there is none
    switch: Estimate | None = None  # the same, beside the override
    override: Estimate | None = None
    predicted: Estimate | None = None
    remark: str = ""

    @property
    def falls_short(self):
        """Whether the override gains less than the switch, by more than REACHED."""
        if self.switch is None or self.override is None:
            return False
        return self.override.value < (1 - REACHED) * self.switch.value


def of_case(name, options):
    """Every fault that costs anything at this scale, one after the other."""
    folder = ROOT / "cases" / name
    case = demo.Case(name=name, folder=folder, truth=truth.load(folder))
    for fault in case.truth.faults:
        if options.scale not in fault.scales or options.only not in (None, fault.name):
            continue
        key = (name, fault.name)
        known = measured(case.truth, fault, options.scale)
        if key in CANNOT:
            yield Row(case=name, fault=fault.name, known=known, fixes=[], verdict=f"cannot be applied: {CANNOT[key]}")
        else:
            yield of_fault(case, fault, known, APPLIED[key][options.scale], options)


def measured(known, fault, scale):
    """The gain of the fault's own switch at this scale, in its own regime; None where it was not measured."""
    tables = (t for t in known.measured.values() if t.scale == scale and t.regime == fault.regime)
    found = next((t.faults[fault.name] for t in tables if fault.name in t.faults), None)
    return None if found is None else found.speedup


def of_fault(case, fault, known, fixes, options):
    say(f"{case.name} {fault.name}: {' '.join(fixes)}")
    asked = [word for fix in fixes for word in ("--fix", fix)]
    switched = ["--vary", f"--fault-free {fault.name}"]
    tries = [["--each", *asked, *switched]] if len(fixes) == 1 else [asked, switched]
    with tempfile.TemporaryDirectory(prefix=f"floorit-{case.name}-") as temporary:
        # The same place each time: a try goes on only with the same command from the same folder.
        place = (options.keep or Path(temporary)).absolute() / f"{case.name}-{fault.name}"
        place.mkdir(parents=True, exist_ok=True)
        found = [
            outcome
            for number, words in enumerate(tries)
            for outcome in tried(case, fault, words, place, number, options)
        ]
    if len(found) != 2:
        return Row(case=case.name, fault=fault.name, known=known, fixes=fixes, verdict="failed")
    override, switch = found
    return Row(
        case=case.name,
        fault=fault.name,
        known=known,
        fixes=fixes,
        verdict=override["verdict"],
        switch=estimate(switch["speedup"]),
        override=estimate(override["speedup"]),
        predicted=estimate(override["predicted"]),
        remark="; ".join(filter(None, (PARTLY.get((case.name, fault.name)), override["reason"]))),
    )


def tried(case, fault, asked, place, number, options):
    """The outcomes of one try, in the order in which they were asked for; none where it failed."""
    data = demo.make_data(case, options.scale, sys.executable, sys.stderr)
    regime = case.truth.regimes[fault.regime].options if fault.regime else []
    script = demo.command(case, options.scale, sys.executable, data, place / "out")
    limits = ["--steps", options.steps, "--budget", options.budget, "--out", f"try{number}"]
    words = [sys.executable, "-m", "floorit", "try", *asked, *limits, "--", *script, *regime, *options.extra]
    ended = subprocess.run(words, cwd=place, env=environment(), check=False)
    if ended.returncode:
        return []
    told = json.loads((place / f"try{number}" / "trial.json").read_text())
    return [told, *told["others"]]


def estimate(value):
    return None if value is None else msgspec.convert(value, Estimate)


def environment():
    """Ours, with src/ on the path."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *others])}


def say(text):
    print(text, file=sys.stderr, flush=True)


# -- shown ------------------------------------------------------------------------------------------------------


def markdown(rows):
    short = [f"{row.case}/{row.fault}" for row in rows if row.falls_short]
    lines = [
        f"# Fixes applied from outside, {time.strftime('%Y-%m-%d', time.gmtime())}",
        "",
        *how_it_ran("cases/overrides.py"),
        "",
        f"More than {REACHED:.0%} behind the switch: {', '.join(short) or 'none'}.",
        "",
        "| case | fault | fixes | the override's gain | the switch's beside it | on another day | predicted | verdict"
        " | because |",
        "|---|---|---|---:|---:|---:|---:|---|---|",
        *map(line, rows),
    ]
    return "\n".join(lines) + "\n"


def how_it_ran(script):
    """By which command, on what, and when."""
    return [
        f"Command: `python {shlex.join([script, *sys.argv[1:]])}`  ",
        f"Machine: {platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()}"
        f" cores, Python {platform.python_version()}; {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
    ]


def line(row):
    cells = (
        row.case,
        row.fault,
        " ".join(f"`{fix}`" for fix in row.fixes),
        interval(row.override),
        interval(row.switch),
        interval(row.known),
        interval(row.predicted),
        row.verdict,
        row.remark,
    )
    return f"| {' | '.join(cells)} |"


def interval(estimate):
    if estimate is None:
        return ""
    spread = f" [{estimate.low:.2f}, {estimate.high:.2f}]" if estimate.n > 1 else ""
    return f"{estimate.value:.2f}{spread}"


if __name__ == "__main__":
    sys.exit(main())
