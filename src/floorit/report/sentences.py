"""What is said of a run in words, for the terminal and the page alike; lists of clauses, for either to join."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from floorit.analyse.floor import Floor
from floorit.analyse.gpu import Gpu
from floorit.analyse.input import Workers
from floorit.analyse.job import Job
from floorit.analyse.ledger import Entry, Line
from floorit.analyse.machine import Machine
from floorit.analyse.slowdown import SlowDown
from floorit.analyse.supply import FULL, Supply
from floorit.report.model import Missing, Report, RunFacts
from floorit.report.words import PHASES, interval, number, several, size
from floorit.stats import Estimate, duration, seconds

WITHOUT_DATA = "Without waiting for data"
FEW = 10  # steps that count: fewer are said to be few before anything else
HELD = 0.1  # of the samples in which something holds the GPU's clock down: less is not said
IDLING, AT_LIMIT = 0.4, 0.95  # of the power that a GPU may draw: little, and all of it
BUSY = 0.6  # of a step, from which on a GPU is called so
SMALL = 0.005  # shares under this are not named one by one


def of_run(run: RunFacts) -> list[str]:
    """How much was recorded."""
    facts = [f"{several(run.steps, 'step')} ({run.warmup_steps} of them warm-up, {seconds(run.warmup_seconds)})"]
    if run.epochs > 1:
        facts.append(f"{run.epochs} epochs")
    if run.accumulation > 1.01:
        facts.append(f"{run.accumulation:.3g} batches an optimizer step")
    if run.ranks > 1:
        facts.append(f"{run.ranks} ranks; this is rank 0")
    if run.border != "batches":
        facts.append(f"a step lies between two {run.border}")
    if run.counted_steps:
        facts.append(f"{run.counted_steps:,} of them short and alike: timed as a whole, divided as the others")
    if run.stopped:
        facts.append("ended by --steps, which counts steady steps and is heard about a second later")
    if run.compiled_steps:
        facts.append(f"torch.compile ran in {len(run.compiled_steps)} of them")
    return facts


def warnings(report: Report) -> list[str]:
    """What makes every figure doubtful."""
    said = _of_few(report)
    if report.slowdown is not None:
        said.append(of_slowdown(report.slowdown))
    elif report.run is not None and not report.run.steady:
        said.append("not steady: later steps are not like earlier ones")
    if report.machine is not None and report.machine.other_cores is not None:
        others = f"other programs kept about {report.machine.other_cores:.1f} of {report.environment.cores} cores busy"
        said.append(
            f"{others} and none was free: times are longer than they need be, and on a free machine something else may"
            " come first"
        )
    return said + (_of_machine(report.machine) if report.machine is not None else [])


def _of_few(report: Report) -> list[str]:
    """That next to no step is left for the figures to rest on."""
    run, step = report.run, report.step
    if run is None or step is None or step.seconds.n >= FEW:
        return []
    left = step.seconds.n
    watched = run.steps - run.warmup_steps - left
    others = f"{run.warmup_steps} are warm-up" + (f", {watched} were watched by a window" if watched > 0 else "")
    remedy = "train longer, or leave the windows out (--no-window)" if watched > 0 else "train longer"
    return [f"only {left} of {several(run.steps, 'step')} count: {others}. Every figure rests on these: {remedy}"]


def _of_machine(machine: Machine) -> list[str]:
    """What else the machine was short of."""
    said = []
    if machine.gpu_others:
        said.append(f"other programs compute on the same GPU: {machine.gpu_others} of their processes")
    if machine.gpu is not None:
        held = [f"{why} in {share:.0%} of the samples" for why, share in machine.gpu.slowed.items() if share >= HELD]
        said += [f"the GPU's clock was held down: {', '.join(held)}"] if held else []
    if machine.memory_low is not None:
        said.append(f"the machine's memory was nearly full: {size(machine.memory_low)} were free at the least")
    if machine.shared_low is not None:
        said.append(f"/dev/shm was nearly full: {size(machine.shared_low)} were free at the least")
    return said


def of_slowdown(found: SlowDown) -> str:
    """From when on steps take longer, and what of them."""
    by = f"it slows down: from step {found.step:,} on a step takes {found.ratio.value:.2f} times as long"
    times = f"{seconds(found.before)}, then {seconds(found.after)}"
    still = ", and longer still later on" if found.goes_on else ""
    grown = f"{PHASES[found.phase]} from {seconds(found.phase_before)} to {seconds(found.phase_after)}"
    return f"{by} ({times}{still}); most of it {grown}"


def of_ranks(report: Report) -> list[str]:
    """Which rank the others wait for, and with what it is late."""
    late = report.late_rank
    if late is None:
        return []
    said = [f"rank {late.rank} is the last in {late.slowest_share:.0%} of the steps, by {interval(late.seconds)}"]
    if late.phase is not None:
        own, others = seconds(late.phase_seconds or 0.0), seconds(late.others_seconds or 0.0)
        said[0] += f": {PHASES[late.phase]} takes it {own} of a step, the others {others}"
    waits = [rank.waits_seconds.value for rank in report.ranks if rank.waits_seconds and rank.rank != late.rank]
    if waits:
        said.append(f"they wait {seconds(float(np.median(waits)))} of a step for it")
    return said


def of_job(job: Job) -> str:
    """How long all of it takes."""
    steps = several(job.steps, "step")
    if job.epochs and job.steps_per_epoch:
        steps = f"{several(job.epochs, 'epoch')} of {several(job.steps_per_epoch, 'step')}"
    whole = job.seconds
    spread = f" ({duration(whole.low)} to {duration(whole.high)})" if whole.low < whole.high else ""
    shares = ", ".join(f"{part.what} {part.share:.0%}" for part in job.shares if part.share >= SMALL)
    return f"{steps}, {duration(whole.value)}{spread}: {shares}"


def of_job_with_fixes(job: Job) -> list[str]:
    """What each of the first fixes would make of it."""
    return [f"with {fix.set_to}: {_span(fix.seconds)}" for fix in job.with_fixes]


def _span(seconds: Estimate) -> str:
    return f"{duration(seconds.value)} ({duration(seconds.low)} to {duration(seconds.high)})"


def of_loader(workers: Workers) -> list[str]:
    """Who makes the batches, and what that takes."""
    if workers.count:
        parts = [f"{several(workers.count, 'worker')}{_busy(workers.busy_share)}"]
    else:
        parts = ["no workers, the training process makes the batches itself"]
    if workers.sample_seconds is not None:
        parts.append(f"a sample takes {interval(workers.sample_seconds)} in the dataset")
    batch = _of_batch(workers)
    if batch:
        parts.append(f"a batch takes {', '.join(batch)}")
    if workers.queue_empty_share is not None and workers.queue_mean is not None:
        parts.append(
            f"queue empty {workers.queue_empty_share:.0%} of the times a batch was wanted"
            f" ({workers.queue_mean:.1f} waiting on average)"
        )
    return parts


def _busy(share: float | None) -> str:
    if share is None:
        return ""
    return f", {share:.0%} busy" if share >= SMALL else ", less than 1% busy"


def _of_batch(workers: Workers) -> list[str]:
    """Seconds of a batch, where it is made and on its way."""
    collate = workers.collate_seconds.value if workers.collate_seconds is not None else None
    times = [
        (workers.fetch_seconds, "in the dataset"),
        (collate, "to collate"),
        (workers.send_seconds, "to send"),
        (workers.receive_seconds, "to receive"),
    ]
    return [f"{seconds(spent)} {what}" for spent, what in times if spent is not None]


def _of_supply(supply: Supply, count: int) -> list[str]:
    """What it could give with its workers, and with the number from which on more bring nothing."""
    now, alone = number(supply.now), number(supply.alone if supply.alone is not None else supply.now)
    if not count or supply.alone is None or supply.now >= FULL * supply.alone:
        parts = [f"the loader by itself could give about {now} samples/s"]
    else:
        beside = "both together have cores for about" if supply.limit == "cores" else "beside the training about"
        parts = [f"the loader by itself could give about {alone} samples/s", f"{beside} {now}"]
    enough = [rate for rate in supply.rates if rate.workers == supply.saturates_at]
    parts += [f"{several(r.workers, 'worker')} would do as well" for r in enough if r.workers < count]
    parts += [
        f"with {several(r.workers, 'worker')} both together could reach about {number(r.samples_per_second)}"
        for r in enough
        if r.workers > count
    ]
    return parts


def of_data_path(workers: Workers, run: RunFacts) -> list[str]:
    """What a rank's loader could give, beside the samples a second that it takes, and what its time goes into."""
    parts, supply, pace = [], workers.supply, run.samples_per_second
    if supply is not None:
        taker = "each rank" if run.ranks > 1 else "the training"
        parts += [f"{taker} takes {number(pace.value / run.ranks)} samples/s"] if pace is not None else []
        parts += _of_supply(supply, workers.count)
    if workers.drained:
        rates = [f"{number(r.samples_per_second)} with {several(r.workers, 'worker')}" for r in workers.drained]
        parts.append(f"drained by itself, with nothing that trains, it gives {', '.join(rates)} (samples/s, measured)")
    if len(workers.time_in) > 1:
        looks = sum(kind.looks for kind in workers.time_in)
        kinds = ", ".join(f"{kind.what} {kind.share:.0%}" for kind in workers.time_in)
        parts.append(f"{kinds} ({looks} looks)")
    if workers.disk_share is not None:
        parts.append(f"{workers.disk_share:.0%} of what is read comes from disk")
    if workers.idle_workers:
        parts.append(f"an epoch has {workers.batches_per_epoch} batches: {workers.idle_workers} workers get none")
    elif workers.short_epochs:
        parts.append(f"workers start again for each epoch, of only {workers.batches_per_epoch} batches")
    if workers.shapes_vary:
        parts.append("shapes vary from batch to batch")
    return parts


def of_gpu(gpu: Gpu) -> list[str]:
    """How busy it was, and with what."""
    parts = []
    if gpu.busy_share is not None:
        parts.append(f"busy {gpu.busy_share:.0%} of a step, by {several(gpu.steps, 'step')} watched")
        if gpu.kernels_per_step is not None:
            parts.append(f"{number(gpu.kernels_per_step)} kernels a step")
        if gpu.tensor_share is not None:
            parts.append(f"tensor cores about {gpu.tensor_share:.0%} of kernel time")
    if gpu.mfu is not None:
        parts.append(f"MFU {gpu.mfu:.0%} of the rate measured")
    if gpu.memory_peak is not None:
        parts.append(f"memory peak {size(gpu.memory_peak)}")
    if gpu.power_watts is not None:
        limit = f" of {gpu.power_limit_watts:.0f}" if gpu.power_limit_watts is not None else ""
        parts.append(f"power {gpu.power_watts:.0f}{limit} W")
        parts += _of_power(gpu)
    return parts or ["its busy and idle time is not known"]


def _of_power(gpu: Gpu) -> list[str]:
    """What it means that it draws so much of its limit: one whose arithmetic units are fed draws most of it."""
    if gpu.power_watts is None or not gpu.power_limit_watts:
        return []
    share = gpu.power_watts / gpu.power_limit_watts
    if share >= AT_LIMIT:
        return ["which is all it may draw: its clock gives way"]
    if share > IDLING or gpu.busy_share is None:
        return []
    if gpu.busy_share < BUSY:
        return [f"which is little, as it has nothing to do for {1 - gpu.busy_share:.0%} of a step"]
    return ["which is little for one that is busy: its kernels are small, or move memory"]


def of_kernels(gpu: Gpu) -> str:
    """The kinds of kernels that took most, and the types of number that they computed in."""
    kinds = ", ".join(f"{kind.kind} {kind.share:.0%}" for kind in gpu.kinds[:4])
    if gpu.dtype_shares:
        kinds += "; in " + ", ".join(f"{of.dtype} {of.share:.0%}" for of in gpu.dtype_shares if of.share >= SMALL)
    return kinds


def of_floor(floor: Floor) -> str:
    """What it leaves of a step, and so why a fix may gain more than the gap."""
    if floor.takes_only_data:
        return "this is about data alone: fixes for anything else can gain more"
    taken = "in the floor the GPU never waits: its own work stays in it"
    return f"{taken}, and a fix that makes that less can gain more than the gap"


def of_waiting(floor: Floor) -> str:
    """What a step would be without its data path, where that is all that can be taken away."""
    step, rung = floor.rungs[0], floor.rungs[1]
    how = "an estimate; --floor measures it" if rung.estimate else "measured"
    instead = f"a step would take {without_data(floor)} instead of {seconds(step.seconds)}"
    return f"without waiting for data: {instead}, {gap(floor)}x as fast ({how})"


def without_data(floor: Floor) -> str:
    """Seconds of a step without its data path, with their range."""
    rung = floor.rungs[1]
    low, high = seconds(rung.least if rung.least is not None else rung.seconds), seconds(rung.seconds)
    return high if low == high else f"{low} to {high}"


def gap(floor: Floor) -> str:
    """How many times longer a step takes than the lowest rung, with its range."""
    low, high = f"{floor.gap:.2f}", f"{floor.most:.2f}"
    return low if low == high else f"{low} to {high}"


def costly_lines(ledger: list[Entry], most: int) -> list[tuple[float, str, Line]]:
    """Source lines by their share of the whole step, with the phase; those under a hundredth are chance."""
    found = [(entry.share * line.share, entry.phase, line) for entry in ledger for line in entry.where]
    return [item for item in sorted(found, key=lambda item: -item[0])[:most] if item[0] >= 0.01]


def by_reason(missing: Iterable[Missing]) -> list[tuple[str, list[str]]]:
    """What could not be measured, each reason once."""
    found: dict[str, list[str]] = {}
    for m in missing:
        found.setdefault(m.reason, []).append(m.what)
    return list(found.items())


def hint_untrained(report: Report) -> str:
    """What to know of a program in which no training was seen: what is likely first."""
    code = report.program.exit_code
    if code:
        return f"The program ended with exit code {code} before it trained: what it printed last says why."
    if "imports torch" in report.summary:
        return (
            "Is this the command that trains? If it is: a program started with python -I or -E, or in a container, is"
            " out of reach; so is one whose start-up script replaces PYTHONPATH instead of adding to it."
        )
    return "A step is counted where backward() or torch.autograd.grad is called; inference has none."
