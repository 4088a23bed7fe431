"""A report with what to do about it, from the report's own values: so it can be redone for any report."""

from __future__ import annotations

import msgspec

from floorit import plan
from floorit.analyse import needs
from floorit.analyse.gpu import Gpu
from floorit.analyse.input import Workers
from floorit.analyse.job import CHECKPOINTS, EVALUATION, Faster, Job
from floorit.analyse.ledger import Entry
from floorit.analyse.settings import Setting
from floorit.diagnose import Finding
from floorit.fixes.fix import Known
from floorit.hardware import Environment
from floorit.report import findings
from floorit.report.model import Report, RunFacts, StepFacts
from floorit.stats import Estimate


def advised(report: Report) -> Report:
    """The same report; its findings have fixes, its blocking calls what removing each would gain."""
    known = known_of(report)
    if known is None:
        return report
    told = plan.advise(report.findings, known)
    job = msgspec.structs.replace(report.job, with_fixes=_faster(report.job, told)) if report.job is not None else None
    return msgspec.structs.replace(report, findings=told, syncs=plan.sync_gains(report.syncs, known), job=job)


def _faster(job: Job, told: list[Finding]) -> list[Faster]:
    """The job with each of the fixes that are advised first."""
    fixes = [one for one in findings.chosen(told) if one.fix is not None] if told else []
    return [Faster(set_to=one.what, seconds=_shorter(job, one.speedup)) for one in fixes]


def _shorter(job: Job, gain: Estimate) -> Estimate:
    return Estimate(value=job.at(gain.value), low=job.at(gain.high), high=job.at(gain.low), n=gain.n)


def known_of(report: Report) -> Known | None:
    """What predictions rest on; None where nothing trained."""
    if report.run is None or report.step is None:
        return None
    return Known(
        needs=needs_of(
            report.run, report.step, report.ledger, report.workers, report.gpu, report.settings, report.environment
        ),
        ledger=report.ledger,
        workers=report.workers,
        gpu=report.gpu,
        syncs=report.syncs,
        settings=report.settings,
        shares={finding.code: finding.share or 0.0 for finding in report.findings},
        epochs=report.run.epochs,
        ranks=report.run.ranks,
        gpu_memory=gpu_memory(report.environment),
        memory=report.memory,
        framework=report.run.framework,
        ungraded=report.run.ungraded,
        habits=report.habits,
        controls=report.controls,
        times=_times(report.job),
        samples_per_epoch=_samples_per_epoch(report.run, report.workers),
        backward_beside=report.parts[-1].backward_seconds if report.parts else None,
        without_data=report.floor.least_without_data if report.floor is not None else None,
    )


def _times(job: Job | None) -> dict[str, float]:
    """How often, by the fix that makes it rarer."""
    often = job.times if job is not None else {}
    by_code = {"eval-every": EVALUATION, "checkpoint-every": CHECKPOINTS}
    return {code: often[what] for code, what in by_code.items() if what in often}


def _samples_per_epoch(run: RunFacts, workers: Workers | None) -> float | None:
    """Of all ranks: by the loader's length, else by the passes that were seen, if there was more than one."""
    if not run.samples_per_step:
        return None
    batches = workers.batches_per_epoch if workers is not None else None
    steps = batches or (run.steps / run.epochs if run.epochs > 1 else None)
    return steps * run.samples_per_step if steps else None


def needs_of(
    run: RunFacts,
    step: StepFacts,
    ledger: list[Entry],
    workers: Workers | None,
    gpu: Gpu | None,
    settings: list[Setting],
    environment: Environment,
) -> needs.Needs:
    """What a step needs, of a report's values."""
    actual = {setting.name: setting.actual for setting in settings}
    threads = actual.get("threads")
    return needs.find(
        ledger=ledger,
        step=step.mean,
        median=step.seconds,
        steps=run.steps,
        batch=run.samples_per_step / run.ranks if run.samples_per_step else None,
        workers=workers if run.border == "batches" else None,
        gpu=gpu,
        cores=_cores(environment, run.ranks),
        threads=threads if isinstance(threads, int) else None,
        epochs=run.epochs,
        evals=run.eval_passes,
    )


def gpu_memory(environment: Environment) -> int | None:
    """Of the first GPU."""
    return environment.gpus[0].memory if environment.gpus else None


def _cores(environment: Environment, ranks: int) -> float | None:
    """That each rank may use, if they share them alike."""
    usable = environment.usable_cores
    return usable / max(ranks, 1) if usable is not None else None
