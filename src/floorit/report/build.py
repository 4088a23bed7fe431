"""From a folder's record to its report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from floorit import diagnose, runfile, vitals
from floorit.analyse import (
    alternatives,
    callers,
    controls,
    gpu,
    habits,
    handover,
    job,
    ledger,
    limit,
    machine,
    memory,
    named,
    overrides,
    ranks,
    series,
    settings,
    slowdown,
    syncs,
)
from floorit.analyse import input as loader_input
from floorit.analyse.needs import Needs
from floorit.analyse.supply import Rate
from floorit.declared import Control
from floorit.diagnose import memory as memory_findings
from floorit.diagnose import verdict
from floorit.events import Process, RecordReader, open_record
from floorit.hardware import Environment
from floorit.report import advice, merging, windows
from floorit.report import ladder as floors
from floorit.report import trained as trainings
from floorit.report.merging import Spread
from floorit.report.model import NO_CUDA, Missing, Program, Rank, Report, RunFacts
from floorit.report.trained import Merged, Peer, Trained
from floorit.report.words import several
from floorit.runfile import RECORD, Draining, RunFile
from floorit.stats import mean, rate


def build(folder: Path, warmup: int | None = None) -> Report:
    """The report of the record in `folder`; with another number of steps to leave out than the run was given."""
    return merge(folder, warmup)[0]


def merge(folder: Path, warmup: int | None = None, spread: Spread = map) -> tuple[Report, RunFile, RecordReader]:
    """The report, made of one file after the other; and what it was made of, with the first rank whole."""
    run, reader = _opened(folder, warmup)
    return _assembled(folder, run, reader, merging.merge(reader, run.warmup, spread)), run, reader


def load(folder: Path, warmup: int | None = None) -> tuple[RunFile, RecordReader]:
    """All that a folder holds, for what is drawn of every rank."""
    run, reader = _opened(folder, warmup)
    reader.read()
    return run, reader


def _opened(folder: Path, warmup: int | None) -> tuple[RunFile, RecordReader]:
    run = runfile.load(folder)
    if warmup is not None:
        run = msgspec.structs.replace(run, warmup=warmup)
    return run, open_record(folder / RECORD)


def assemble(folder: Path, run: RunFile, reader: RecordReader) -> Report:
    """The report of a record that has been read."""
    return _assembled(folder, run, reader, trainings.gathered(reader, run.warmup))


def _assembled(folder: Path, run: RunFile, reader: RecordReader, merged: Merged) -> Report:
    processes, first = reader.run(), merged.first
    missing = [
        *_missing([*processes, *reader.workers.values()], reader.folder),
        *_device_missing(first),
        *_settings_missing(run, first),
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
        overrides=[*overrides.find(run.fixes, processes, reader.workers.values()), *run.turned],
        findings=memory_findings.find(out),
        missing=missing,
        ranks=[],
        record=str(folder),
        out_of_memory=out,
        summary=_untrained(processes),
    )
    if first is None:
        return bare
    report = advice.advised(_with_training(bare, first, merged, folder, run, reader))
    return msgspec.structs.replace(report, summary=_summary(report.findings[0]))


def _with_training(
    bare: Report, first: Trained, merged: Merged, folder: Path, run: RunFile, reader: RecordReader
) -> Report:
    """The report with all that is known of a program that trained."""
    peers = merged.peers
    cores = _cores(first.process, run, len(peers))
    makers = reader.workers_of(first.process)
    workers = loader_input.describe(first.process, makers, first.iterations, run.usage, cores)
    vital = _machine(first, folder, run, merged.on_gpu)
    kernels = windows.of_kernels(first, reader.folder, run)
    watched, unwatched = windows.of_gpu(first, kernels, vital)
    second = floors.second_run(folder, run.floor)
    counted = limit.count(second.process, second.iterations) if isinstance(second, Trained) else None
    lowest, unlimited = floors.of_limit(first, second, run.floor, counted)
    has_loader = workers is not None
    together = ranks.compare([one.member for one in peers]) if peers[1:] else None
    of_ranks = together.data_seconds if together is not None else None
    points = syncs.longest_first([*syncs.find(first.process, first.iterations), *kernels.blocked.points])
    in_force = settings.compare(first.process, first.iterations, run.told, len(peers))
    facts_of_run = _run_facts(first, peers, run.stopped)
    here = bare.environment
    needs = advice.needs_of(facts_of_run, first.step, first.ledger.entries, workers, watched, in_force, here)
    ladder, below = floors.of_floor(
        first, watched, second, folder, run, lowest, has_loader=has_loader, of_ranks=of_ranks, needs=needs
    )
    if workers is not None:
        workers = alternatives.with_measured(workers, run.images, needs)
        workers = msgspec.structs.replace(workers, drained=_drained(run.drained, facts_of_run))
    watched = _in_usual_step(watched, needs, lowest, first)
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
        batch=trainings.batch(first) if workers is not None else None,
        ddp_waits=ranks.waits(first.process, first.iterations),
        late=together.late if together is not None else None,
        waits=together.waits[0].seconds.value if together is not None and first.process.ddp is not None else None,
    )
    findings = verdict.diagnose(facts, points, bare.out_of_memory)
    whole, unknown = _job(first, run)
    model, unseen = windows.of_parts(first, reader.folder, run)
    watched, untyped = windows.with_types(watched, model)
    memory_of, unheld = windows.of_memory(first, reader.folder, run, vital, advice.gpu_memory(here), len(peers))
    return msgspec.structs.replace(
        bare,
        run=facts_of_run,
        step=first.step,
        ledger=first.ledger.entries,
        slowdown=slowdown.find(series.find(first.process, first.iterations), first.ledger),
        job=whole,
        workers=workers,
        gpu=watched,
        parts=windows.with_flops(model, counted),
        parts_how=windows.how(model) if model is not None else None,
        memory=memory_of,
        floor=ladder,
        machine=vital,
        syncs=points,
        settings=in_force,
        spans=named.find(first.process, makers, first.iterations, first.ledger),
        habits=habits.find(run.read, first.ledger, points, makers),
        controls=_controls(first, run),
        findings=findings,
        missing=[
            *bare.missing,
            *unwatched,
            *unseen,
            *untyped,
            *unheld,
            *below,
            *unlimited,
            *unknown,
            *_workers_missing(workers, run.drained),
            *_ranks_missing(merged, together),
        ],
        ranks=_ranks(peers, together) if peers[1:] else [],
        late_rank=together.late if together is not None else None,
    )


def _controls(first: Trained, run: RunFile) -> dict[str, list[Control]] | None:
    """The program's own settings for what fixes do; None where its files were not read."""
    if run.paced is None:
        return None
    return controls.find(first.ledger.looks, run.read, run.paced, run.recomputing, run.command)


def _in_usual_step(watched: gpu.Gpu | None, needs: Needs, lowest: limit.Limit | None, first: Trained) -> gpu.Gpu | None:
    """What the GPU does in a step that nobody watches, and how much of it the model can use."""
    if watched is not None and needs.gpu is not None:
        watched = gpu.in_usual_step(watched, needs.gpu.likely, needs.within, first.ledger)
    if watched is not None and lowest is not None:
        mfu, hfu = lowest.utilisation(first.step.mean)
        watched = msgspec.structs.replace(watched, mfu=mfu, hfu=hfu)
    return watched


def _machine(first: Trained, folder: Path, run: RunFile, on_gpu: int) -> machine.Machine | None:
    """What the machine did while the first rank trained, and what it was short of."""
    found = machine.describe(vitals.load(folder), *trainings.stretch(first), besides=trainings.watched(first))
    if found is None:
        return None
    found = machine.beside(found, run.environment.cores, run.cpu_seconds, run.seconds)
    found = machine.with_neighbours(found, on_gpu)
    return machine.with_room(found, run.headroom)


def _ranks(peers: list[Peer], together: ranks.Together | None) -> list[Rank]:
    alone = [Rank(rank=one.rank, step=one.step, ledger=one.member.ledger.entries) for one in peers]
    if together is None:
        return alone
    return [
        msgspec.structs.replace(rank, waits_for=wait.rank, waits_seconds=wait.seconds)
        for rank, wait in zip(alone, together.waits, strict=True)
    ]


def _ranks_missing(merged: Merged, together: ranks.Together | None) -> list[Missing]:
    """Why it is not known who waits for whom."""
    if len(merged.peers) < 2:
        return []
    if together is None:
        return [Missing(what="ranks.waits_for", reason="the ranks were not seen to go in step for long enough")]
    if any(one.used_cuda for one in merged.peers):
        reason = "on a GPU: what a rank's host does is compared, not how long its GPU takes for its part"
        return [Missing(what="ranks.waits_for", reason=reason)]
    return []


def _drained(draining: Draining | None, run: RunFacts) -> list[Rate]:
    """Samples a second of a rank's loader by itself."""
    if draining is None or not run.samples_per_step:
        return []
    samples = run.samples_per_step / run.ranks  # of a batch; batches are those of all ranks
    return [
        Rate(workers=one.workers, samples_per_second=samples * one.batches / run.ranks / one.seconds)
        for one in draining.rates
        if one.batches and one.seconds
    ]


def _workers_missing(workers: loader_input.Workers | None, draining: Draining | None) -> list[Missing]:
    if workers is None:
        return []
    said = []
    if draining is None:
        said.append(Missing(what="workers.drained", reason="it is measured with --floor only"))
    else:
        failed = [f"with {several(one.workers, 'worker')}: {one.reason}" for one in draining.rates if one.reason]
        reasons = [draining.reason] if draining.reason is not None else failed
        said += [Missing(what="workers.drained", reason=reason) for reason in reasons]
    if workers.supply is None:
        said.append(Missing(what="workers.supply", reason="no batch was timed after warm-up"))
    if not workers.time_in:
        none = "no look fell on a worker" if workers.count else "names that lines use are noted in workers only"
        said.append(Missing(what="workers.time_in", reason=none))
    if not workers.watched_batches:
        said.append(Missing(what="workers.operations", reason="no process made the second batch that is watched first"))
    return said


def _cores(process: Process, run: RunFile, ranks: int) -> float | None:
    """That a rank may use, if they share them alike: by affinity, as it was read inside of it, and by its cgroup."""
    here = run.environment
    allowed = process.readings[-1]["cores"] if process.readings else here.cores_allowed
    is_its_own = bool(allowed and here.cores_allowed and allowed < here.cores_allowed)  # a rank that is bound to some
    among = ((allowed, 1 if is_its_own else ranks), (here.cores_quota, ranks))
    return min((cores / sharing for cores, sharing in among if cores), default=None)


def _job(trained: Trained, run: RunFile) -> tuple[job.Job | None, list[Missing]]:
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


def _run_facts(first: Trained, peers: list[Peer], stopped: bool) -> RunFacts:
    found = first.iterations
    samples = sum(one.samples for one in peers)
    pace = mean(found.after_warmup, least=0.0)
    scale = first.step.mean / pace.value if pace and pace.value else 1.0  # what lies between steps counts too
    throughput = rate(samples / scale, pace) if samples and pace else None
    return RunFacts(
        steps=found.count,
        warmup_steps=found.warmup,
        ranks=len(peers),
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
        counted_steps=found.counted,
        stopped=stopped,
        framework=handover.framework(first.process.samples),
        ungraded="eval" in first.ledger.looks
        and callers.may_be_trained_on(first.ledger.looks, found.eval_passes, found.border == "batches"),
    )


def _missing(processes: list[Process], folder: Path) -> list[Missing]:
    seen = {(m["what"], m["reason"]): None for process in processes for m in process.missing}
    said = [Missing(what=what, reason=reason) for what, reason in seen]
    status = folder / "status"
    reason = status.read_bytes().rstrip(b"\0\n ").decode(errors="replace") if status.exists() else ""
    if reason:
        said.append(Missing(what="the rest of the record", reason=f"it could not be written: {reason}"))
    return said


def _device_missing(first: Trained | None) -> list[Missing]:
    if first is None:
        return []
    said = []
    if not len(first.process.device):
        used = trainings.used_cuda(first.process)
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


def _settings_missing(run: RunFile, first: Trained | None) -> list[Missing]:
    if first is None:
        return []
    said = []
    if not first.process.readings:
        said.append(Missing(what="settings", reason="the record holds no reading of them"))
    if run.told is None:
        said.append(Missing(what="declared settings", reason="floorit was not there when the program ended"))
    else:
        unread = run.told.unread.items()
        said += [Missing(what="declared settings", reason=f"{file}: {reason}") for file, reason in unread]
    return said


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
