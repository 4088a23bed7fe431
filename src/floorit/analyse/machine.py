"""What the machine did while the program trained: means over the samples that fall into the ledger's stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from floorit.stats import Estimate, mean
from floorit.vitals import GpuSample, Sample

# From what share of them on all cores are taken to be busy; and of the cores, what others may use before it is said.
FULL, OTHERS = 0.9, 0.2


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU that was busiest. Shares are of the time, as its driver counts it."""

    power_watts: Estimate | None
    power_limit_watts: float | None
    busy_share: Estimate | None  # by the driver's coarse count
    active_share: Estimate | None  # by the hardware's counters, where it has any
    sm_share: Estimate | None
    tensor_share: Estimate | None
    memory_peak: int | None  # bytes, of every process
    clock_hertz: Estimate | None
    slowed: dict[str, float]  # why its clock was held down -> share of the samples


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's part of the report."""

    samples: int
    cpu_share: Estimate  # of all cores
    memory_free_least: int  # bytes
    gpu: GpuUse | None
    other_cores: float | None = None  # that other programs kept busy, where hardly any was free


def beside(machine: Machine, cores: int | None, cpu_seconds: float | None, seconds: float | None) -> Machine:
    """The same, with what other programs used beside one that took so many seconds of cores."""
    if not cores or not seconds or cpu_seconds is None or machine.cpu_share.value < FULL:
        return machine
    others = machine.cpu_share.value * cores - cpu_seconds / seconds
    return msgspec.structs.replace(machine, other_cores=others) if others > OTHERS * cores else machine


def describe(
    samples: list[Sample], begin: float, end: float, besides: tuple[float, float] | None = None
) -> Machine | None:
    """From the samples between two moments; None where there are none.

    A sample tells of the time since the one before it. Those that tell of the stretch `besides` are left out.
    """
    before = [begin, *(sample.at for sample in samples)]
    within = [
        sample
        for sample, since in zip(samples, before, strict=False)
        if begin <= sample.at <= end and (besides is None or sample.at <= besides[0] or since >= besides[1])
    ]
    cpu = mean(np.array([s.cpu for s in within]))
    if cpu is None:
        return None
    free = min(s.memory_free for s in within)
    return Machine(samples=len(within), cpu_share=cpu, memory_free_least=free, gpu=_gpu(within))


def _gpu(samples: list[Sample]) -> GpuUse | None:
    by_uuid: dict[str, list[GpuSample]] = {}
    for sample in samples:
        for gpu in sample.gpus:
            by_uuid.setdefault(gpu.uuid, []).append(gpu)
    if not by_uuid:
        return None
    seen = max(by_uuid.values(), key=lambda own: sum(gpu.busy or 0.0 for gpu in own))
    slowed = Counter(reason for gpu in seen for reason in gpu.slowed)
    return GpuUse(
        power_watts=_mean(gpu.power for gpu in seen),
        power_limit_watts=seen[-1].power_limit,
        busy_share=_mean(gpu.busy for gpu in seen),
        active_share=_mean(gpu.graphics for gpu in seen),
        sm_share=_mean(gpu.sm for gpu in seen),
        tensor_share=_mean(gpu.tensor for gpu in seen),
        memory_peak=max((gpu.memory for gpu in seen if gpu.memory is not None), default=None),
        clock_hertz=_mean(gpu.clock for gpu in seen),
        slowed={reason: count / len(seen) for reason, count in slowed.items()},
    )


def _mean(values: Iterable[float | None]) -> Estimate | None:
    return mean(np.array([value for value in values if value is not None]))
