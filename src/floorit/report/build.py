"""From a folder's record to its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from floorit import diagnose, vitals
from floorit.analyse import (
    alternatives,
    floor,
    gpu,
    iterations,
    job,
    ledger,
    limit,
    machine,
    memory,
    parts,
    ranks,
    settings,
    syncs,
    trace,
)
from floorit.analyse import input as loader_input
from floorit.diagnose import memory as memory_findings
from floorit.diagnose import verdict
from floorit.events import Process, RecordReader, read_record
from floorit.hardware import Environment
from floorit.record import wire
from floorit.report import advice
from floorit.report.model import NO_CUDA, PHYSICAL, Missing, Program, Rank, Report, RunFacts, StepFacts
from floorit.runfile import FLOOR, RECORD, FloorRun, RunFile, load
from floorit.stats import mean, median, rate

_NO_LOADER = [
    Missing(what="floor", reason="the batches do not come from a DataLoader of torch's: what they cost is unknown")
]


class _Trained(msgspec.Struct, frozen=True, kw_only=True):
    """A process that trained, and its iterations."""

    process: Process
    iterations: iterations.Iterations
    ledger: ledger.Ledger
    step: StepFacts


def build(folder: Path, warmup: int | None = None) -> Report:
    """The report of the record in `folder`; with another number of steps to leave out than the run was given."""
    run = load(folder)
    if warmup is not None:
        run = msgspec.structs.replace(run, warmup=warmup)
    return assemble(folder, run, read_record(folder / RECORD))


def assemble(folder: Path, run: RunFile, reader: RecordReader) -> Report:
    """The report of a record that has been read."""
    processes = reader.run()
    trained = [t for process in processes if (t := _examine(process, run.warmup)) is not None]
    missing = [
        *_missing([*processes, *reader.workers.values()], reader.folder),
        *_device_missing(trained),
        *_settings_missing(run, trained),
    ]
    out = memory.find(reader, run.exit_code, run.headroom)
    bare = Report(
        program=Program(command=run.command, exit_code=run.exit_code, seconds=run.seconds, cwd=run.cwd),
        environment=_environment(run, processes),
        run=None,
        step=None,
        ledger=[],
        workers=None,
        gpu=None,
        floor=None,
        syncs=[],
        settings=[],
        findings=memory_findings.find(out),
        missing=missing,
        ranks=[],
        record=str(folder),
        out_of_memory=out,
        summary=_untrained(processes),
    )
    if not trained:
        return bare
    report = advice.advised(_with_training(bare, trained, folder, run, reader))
    return msgspec.structs.replace(report, summary=_summary(report.findings[0]))


def _with_training(bare: Report, trained: list[_Trained], folder: Path, run: RunFile, reader: RecordReader) -> Report:
    """The report with all that is known of a program that trained."""
    first = trained[0]
    workers = loader_input.describe(
        first.process, reader.workers_of(first.process), first.iterations, run.usage, _cores(first.process, run)
    )
    vital = machine.describe(vitals.load(folder), *_stretch(first), besides=_watched(first))
    watched, unwatched = _gpu(first, reader.folder, run, vital)
    second = _second(folder, run.floor)
    counted = limit.count(second.process, second.iterations) if isinstance(second, _Trained) else None
    lowest, unlimited = _limit(first, second, run.floor, counted)
    ladder, below = _floor(first, watched, second, folder, run, lowest) if workers is not None else (None, _NO_LOADER)
    points = syncs.find(first.process, first.iterations)
    in_force = settings.compare(first.process, first.iterations, run.told, len(trained))
    facts_of_run = _run_facts(trained, run.stopped)
    here = bare.environment
    needs = advice.needs_of(facts_of_run, first.step, first.ledger.entries, workers, watched, in_force, here)
    if workers is not None:
        workers = alternatives.with_measured(workers, run.images, needs)
    if watched is not None and needs.gpu is not None:
        watched = gpu.in_usual_step(watched, needs.gpu.likely, needs.within, first.ledger)
    if watched is not None and lowest is not None:
        mfu, hfu = lowest.utilisation(first.step.mean)
        watched = msgspec.structs.replace(watched, mfu=mfu, hfu=hfu)
    facts = diagnose.Facts(
        process=first.process,
        iterations=first.iterations,
        ledger=first.ledger,
        workers=workers,
        needs=needs,
        gpu=watched,
        gpu_memory=advice.gpu_memory(here),
        settings=in_force,
        without_data=ladder.without_data if ladder is not None else None,
        batch=_batch(first) if workers is not None else None,
        ddp_waits=ranks.waits(first.process, first.iterations),
    )
    findings = verdict.diagnose(facts, points, bare.out_of_memory)
    whole, unknown = _job(first, run)
    model, unseen = _parts(first, reader.folder, run)
    if watched is not None:
        if model is None or not model.dtypes:
            reason = "kernels' operators are known only where the model's parts were watched"
            unseen.append(Missing(what="gpu.dtype_shares", reason=reason))
        else:
            watched = msgspec.structs.replace(watched, dtype_shares=model.dtypes)
    return msgspec.structs.replace(
        bare,
        run=facts_of_run,
        step=first.step,
        ledger=first.ledger.entries,
        job=whole,
        workers=workers,
        gpu=watched,
        parts=_with_flops(model, counted),
        parts_how=_how(model) if model is not None else None,
        floor=ladder,
        machine=vital,
        syncs=points,
        settings=in_force,
        findings=findings,
        missing=[*bare.missing, *unwatched, *unseen, *below, *unlimited, *unknown, *_workers_missing(workers)],
        ranks=[Rank(rank=t.process.rank, step=t.step, ledger=t.ledger.entries) for t in trained] if trained[1:] else [],
    )


def _workers_missing(workers: loader_input.Workers | None) -> list[Missing]:
    if workers is None:
        return []
    said = []
    if workers.supply is None:
        said.append(Missing(what="workers.supply", reason="no batch was timed after warm-up"))
    if not workers.time_in:
        none = "no look fell on a worker" if workers.count else "names that lines use are noted in workers only"
        said.append(Missing(what="workers.time_in", reason=none))
    if not workers.watched_batches:
        said.append(Missing(what="workers.operations", reason="no process made the second batch that is watched first"))
    return said


def _cores(process: Process, run: RunFile) -> float | None:
    """That the program may use: by affinity, as it was read inside of it, and by its cgroup."""
    here = run.environment
    allowed = process.readings[-1]["cores"] if process.readings else here.cores_allowed
    known = [float(cores) for cores in (allowed, here.cores_quota) if cores]
    return min(known, default=None)


def _job(trained: _Trained, run: RunFile) -> tuple[job.Job | None, list[Missing]]:
    """How long the whole job takes, or why that is not known."""
    try:
        if run.exit_code == 0 and run.seconds is not None and not run.stopped:
            return job.measured(trained.process, trained.iterations, run.seconds), []
        return job.project(trained.process, trained.iterations, run.told, run.started), []
    except job.Unknown as reason:
        return None, [Missing(what="job", reason=str(reason))]


def _environment(run: RunFile, processes: list[Process]) -> Environment:
    """The machine, with the Python and torch that the program really used."""
    if not processes:
        return run.environment
    facts = processes[0].facts
    return msgspec.structs.replace(
        run.environment, python=facts.get("python"), torch=facts.get("torch"), cuda=facts.get("cuda")
    )


def _examine(process: Process, warmup: int | None = None) -> _Trained | None:
    found = iterations.find(process, warmup)
    if found is None:
        return None
    drawn = ledger.draw(process, found)
    times = found.after_warmup
    middle = median(times)
    if middle is None:
        return None
    step = StepFacts(mean=drawn.mean, seconds=middle, p95=float(np.percentile(times, 95)))
    return _Trained(process=process, iterations=found, ledger=drawn, step=step)


def _batch(trained: _Trained) -> float | None:
    """Samples in a batch of one rank, where they were counted."""
    return float(trained.iterations.samples[trained.iterations.warmup :].mean()) or None


def _run_facts(trained: list[_Trained], stopped: bool) -> RunFacts:
    first = trained[0]
    found = first.iterations
    samples = sum(float(t.iterations.samples[t.iterations.warmup :].mean()) for t in trained)
    pace = mean(found.after_warmup)
    scale = first.step.mean / pace.value if pace and pace.value else 1.0  # what lies between steps counts too
    throughput = rate(samples / scale, pace) if samples and pace else None
    return RunFacts(
        steps=found.count,
        warmup_steps=found.warmup,
        ranks=len(trained),
        samples_per_step=samples or None,
        samples_per_second=throughput,
        steady=found.steady,
        optimizer_steps=found.optimizer_steps,
        accumulation=found.accumulation,
        border=found.border,
        epochs=found.epochs,
        eval_passes=found.eval_passes,
        compiled_steps=np.flatnonzero(found.compiled).tolist()[:100],
        warmup_seconds=float(found.seconds[: found.warmup].sum()),
        stack_samples=first.ledger.samples,
        stopped=stopped,
    )


def _missing(processes: list[Process], folder: Path) -> list[Missing]:
    seen = {(m["what"], m["reason"]): None for process in processes for m in process.missing}
    said = [Missing(what=what, reason=reason) for what, reason in seen]
    status = folder / "status"
    reason = status.read_bytes().rstrip(b"\0\n ").decode(errors="replace") if status.exists() else ""
    if reason:
        said.append(Missing(what="the rest of the record", reason=f"it could not be written: {reason}"))
    return said


def _device_missing(trained: list[_Trained]) -> list[Missing]:
    if not trained:
        return []
    said = []
    first = trained[0]
    if not len(first.process.device):
        used = _used_cuda(first.process)
        reason = "no step was marked on the GPU's clock: train longer" if used else NO_CUDA
        said.append(Missing(what="gpu_seconds", reason=reason))
    if first.ledger.samples < ledger.ENOUGH_LOOKS:
        reason = f"only {first.ledger.samples} looks at the stack: train longer for lines to rest on more"
        said.append(Missing(what="source lines", reason=reason))
    left = len(first.iterations.after_warmup)
    if left < 10:
        said.append(Missing(what="a steady state", reason=f"only {left} steps after warm-up: train longer"))
    elif first.ledger.is_ahead_of_gpu:
        reason = "the host was still running ahead of the GPU, so a step takes longer than is shown: train longer"
        said.append(Missing(what="a steady state", reason=reason))
    return said


def _settings_missing(run: RunFile, trained: list[_Trained]) -> list[Missing]:
    if not trained:
        return []
    said = []
    if not trained[0].process.readings:
        said.append(Missing(what="settings", reason="the record holds no reading of them"))
    if run.told is None:
        said.append(Missing(what="declared settings", reason="floorit was not there when the program ended"))
    else:
        unread = run.told.unread.items()
        said += [Missing(what="declared settings", reason=f"{file}: {reason}") for file, reason in unread]
    return said


def _used_cuda(process: Process) -> bool:
    watched = process.memory_peak is not None or "file" in (process.window or {})
    return bool(watched or len(process.device) or process.syncs or process.rows["seconds"][:, wire.H2D].any())


def _stretch(trained: _Trained) -> tuple[float, float]:
    """When the steps after warm-up began, and when the last row ended."""
    after = np.flatnonzero(trained.iterations.of_row >= trained.iterations.warmup)
    return float(trained.process.starts()[after[0]]), float(trained.process.rows["end"][-1])


def _watched(trained: _Trained) -> tuple[float, float] | None:
    """When the kernel window slowed steps down, and until when."""
    rows = np.flatnonzero(trained.iterations.windowed)
    if not len(rows):
        return None
    return float(trained.process.starts()[rows[0]]), float(trained.process.rows["end"][rows[-1]])


def _gpu(
    trained: _Trained, folder: Path, run: RunFile, vital: machine.Machine | None
) -> tuple[gpu.Gpu | None, list[Missing]]:
    """The GPU's own time and power; what of it is not known, and why."""
    process = trained.process
    if not _used_cuda(process):
        return None, [Missing(what="gpu", reason=NO_CUDA)]
    found, said = _in_window(trained, folder, run), []
    if isinstance(found, str):
        said.append(Missing(what="gpu.busy_share", reason=found))
        found = gpu.Gpu()
    use = vital.gpu if vital is not None else None
    if use is None or use.power_watts is None:
        said.append(Missing(what="gpu.power_watts", reason="no sample of the GPU's power was taken while it trained"))
    drawn = use.power_watts.value if use is not None and use.power_watts is not None else None
    limit = use.power_limit_watts if use is not None else None
    known = {"memory_peak": process.memory_peak, "power_watts": drawn, "power_limit_watts": limit}
    return msgspec.structs.replace(found, **known), said


def _floor(
    first: _Trained,
    watched: gpu.Gpu | None,
    second: _Trained | str | None,
    folder: Path,
    run: RunFile,
    lowest: limit.Limit | None,
) -> tuple[floor.Floor, list[Missing]]:
    """The ladder, and what of it is not known."""
    if second is None:
        reason = "it is an estimate from the ledger: `floorit run --floor` measures it"
        return floor.ladder(first.ledger, watched, None, None), [Missing(what="floor: without data", reason=reason)]
    if isinstance(second, str):
        return floor.ladder(first.ledger, watched, None, None), [Missing(what="the floor run", reason=second)]
    again, _ = _gpu(second, folder / FLOOR / RECORD, run, None)
    return floor.ladder(first.ledger, watched, second.ledger, again, lowest), []


def _limit(
    first: _Trained, second: _Trained | str | None, ended: FloorRun | None, work: limit.Work | None
) -> tuple[limit.Limit | None, list[Missing]]:
    """The physical limit, and what of it is not known."""

    def unknown(reason: str) -> tuple[None, list[Missing]]:
        return None, [Missing(what=what, reason=reason) for what in PHYSICAL]

    if not _used_cuda(first.process):
        return unknown(NO_CUDA)
    if second is None or ended is None:
        return unknown("it takes a floor run: `floorit run --floor`")
    if isinstance(second, str):
        return unknown("there is no floor run")
    if work is None:
        said = (m["reason"] for m in second.process.missing if m["what"] == wire.FLOPS)
        return unknown(next(said, "no whole step of the floor run was counted"))
    if not work.is_on_gpu:
        return unknown("what it computes, it computes on the CPU")
    if ended.rates is None:
        return unknown(ended.no_rates or "the GPU's rates were not measured")
    found = limit.find(work, ended.rates)
    if isinstance(found, str):
        return unknown(found)
    unseen = f"these operations are not in it: {', '.join(work.unseen)}"
    return found, [Missing(what="floor: all of the physical limit", reason=unseen)] if work.unseen else []


def _second(folder: Path, ended: FloorRun | None) -> _Trained | str | None:
    """What the run without the data path did, or why it says nothing; None: it was not wished for."""
    if ended is None:
        return None
    if ended.reason is not None:
        return ended.reason
    processes = read_record(folder / FLOOR / RECORD).run()
    trained = next((t for t in map(_examine, processes) if t is not None), None)
    if trained is None:
        return "no step was seen in it"
    failed = next((m["reason"] for p in processes for m in p.missing if m["what"] == wire.DATA_REPLAY), None)
    return failed or trained


def _in_window(trained: _Trained, folder: Path, run: RunFile) -> gpu.Gpu | str:
    """What the kernel window saw, or why there is nothing."""
    window = trained.process.window
    seen = _seen(trained, window, "kernel window", folder, run)
    return seen if isinstance(seen, str) else gpu.examine(trained.process, trained.iterations, window or {}, seen)


def _parts(trained: _Trained, folder: Path, run: RunFile) -> tuple[parts.Parts | None, list[Missing]]:
    """What the parts of the model cost; what of it is not known, and why."""
    window = trained.process.parts
    found: parts.Parts | str | trace.Trace = _seen(trained, window, "window of the model's parts", folder, run)
    if isinstance(found, trace.Trace):
        calls = _calls(trained.process, folder)
        found = parts.examine(trained.process, trained.iterations, window or {}, found, trained.ledger, calls)
    if isinstance(found, str):
        return None, [Missing(what="parts", reason=found)]
    said = []
    if not found.on_gpu:
        reason = "torch counts the memory of tensors on a GPU only"
        said.append(Missing(what="parts.activation_bytes", reason=reason))
    uncalled = [part.name for part in found.parts if part.forward_seconds is None]
    if uncalled:
        reason = f"no call of {', '.join(uncalled)} was seen: what it does, if anything, is in the rest"
        said.append(Missing(what="parts", reason=reason))
    if found.left_out:
        reason = f"the model has too many: {found.left_out} with few parameters are in the rest"
        said.append(Missing(what="parts", reason=reason))
    return found, said


def _with_flops(model: parts.Parts | None, counted: limit.Work | None) -> list[parts.Part]:
    if model is None:
        return []
    return model.parts if counted is None else parts.with_flops(model.parts, counted.by_module)


def _calls(process: Process, folder: Path) -> list[parts.Call] | None:
    """Of the parts, timed without operators; None where there is a GPU to tell."""
    if process.calls is None or "file" not in process.calls:
        return None
    try:
        return msgspec.json.decode((folder / Path(process.calls["file"]).name).read_bytes(), type=list[parts.Call])
    except (OSError, ValueError):
        return None


def _how(found: parts.Parts) -> str:
    if found.on_gpu:
        return f"kernels of {found.steps} watched steps"
    return f"the host's time in {found.steps} watched steps, scaled to the ledger's passes"


def _seen(trained: _Trained, window: dict[str, Any] | None, name: str, folder: Path, run: RunFile) -> trace.Trace | str:
    """The trace of a window, or why there is none."""
    if window is None and not run.window:
        return f"the {name} was switched off (--no-window)"
    if window is None and trained.iterations.slowed.any() and trained.process.ended is None:
        return f"the program was killed while the {name} was open"
    if window is None:
        return f"the program ended before the {name} could open: train longer"
    if "file" not in window:
        return f"there is no {name}: {window.get('reason')}"
    try:
        return trace.parse((folder / Path(window["file"]).name).read_bytes())
    except (OSError, ValueError) as error:
        return f"the trace of the {name} cannot be read: {error}"


def _untrained(processes: list[Process]) -> str:
    if not processes:
        return "No Python process that imports torch was seen, so there is nothing to account for."
    return (
        "torch was imported but never trained: no backward pass was seen"
        f" in {len(processes)} process{'es' if len(processes) > 1 else ''}."
    )


def _summary(first: diagnose.Finding) -> str:
    least = "at least " if first.share_is_least else ""
    share = f" ({least}{first.share:.0%} of a step)" if first.share is not None else ""
    place = f", at {Path(first.where[0].file).name}:{first.where[0].line}" if first.where else ""
    return f"{first.code}: {first.title}{share}{place}."
