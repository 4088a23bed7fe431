"""What the machine did while the program trained: means over the samples that fall into the ledger's stretch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from floorit.events import Headroom
from floorit.stats import Estimate, mean
from floorit.vitals import GpuSample, Sample

# From what share of them on all cores are taken to be busy; and of the cores, what others may use before it is said.
FULL, OTHERS = 0.9, 0.2
# Of the machine's memory and of /dev/shm, what was left at the least: less is nearly full.
MEMORY_LOW, SHARED_LOW = 0.05, 0.1


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
    processes: float | None = None  # that compute on it, on average; None: the driver does not say
    received_bytes: Estimate | None = None  # a second, over PCIe
    sent_bytes: Estimate | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's part of the report."""

    samples: int
    cpu_share: Estimate  # of all cores
    memory_free_least: int  # bytes
    gpu: GpuUse | None
    training_cores: Estimate | None = None  # that the processes that train kept busy
    worker_cores: Estimate | None = None  # that their loaders' workers did
    disk_bytes: Estimate | None = None  # a second, read from storage by every process
    other_cores: float | None = None  # that other programs kept busy, where hardly any was free
    gpu_others: int | None = None  # processes of other programs that compute on the GPU; None: not known
    memory_low: int | None = None  # bytes that were free at the least, where that is next to nothing
    shared_low: int | None = None  # the same of /dev/shm, through which workers hand batches on


def beside(machine: Machine, cores: int | None, cpu_seconds: float | None, seconds: float | None) -> Machine:
    """The same, with what other programs used beside one that took so many seconds of cores."""
    if not cores or not seconds or cpu_seconds is None or machine.cpu_share.value < FULL:
        return machine
    others = machine.cpu_share.value * cores - cpu_seconds / seconds
    return msgspec.structs.replace(machine, other_cores=others) if others > OTHERS * cores else machine


def with_neighbours(machine: Machine, own: int) -> Machine:
    """The same, with the processes that compute on the GPU besides so many of the program's own."""
    if machine.gpu is None or machine.gpu.processes is None or not own:
        return machine
    return msgspec.structs.replace(machine, gpu_others=max(round(machine.gpu.processes) - own, 0))


def with_room(machine: Machine, room: Headroom | None) -> Machine:
    """The same, with what was nearly full."""
    if room is None:
        return machine
    return msgspec.structs.replace(
        machine,
        memory_low=_if_low(room.available_least, room.memory, MEMORY_LOW),
        shared_low=_if_low(room.shared_free_least, room.shared_size, SHARED_LOW),
    )


def _if_low(least: int | None, size: int | None, share: float) -> int | None:
    return least if least is not None and size and least < share * size else None


def describe(
    samples: list[Sample], begin: float, end: float, besides: Sequence[tuple[float, float]] = ()
) -> Machine | None:
    """From the samples between two moments; None where there are none.

    A sample tells of the time since the one before it. Those that tell of the stretches `besides` are left out.
    """
    before = [begin, *(sample.at for sample in samples)]
    within = [
        sample
        for sample, since in zip(samples, before, strict=False)
        if begin <= sample.at <= end and all(sample.at <= first or since >= last for first, last in besides)
    ]
    cpu = mean(np.array([s.cpu for s in within]), least=0.0)
    if cpu is None:
        return None
    free = min(s.memory_free for s in within)
    return Machine(
        samples=len(within),
        cpu_share=cpu,
        memory_free_least=free,
        gpu=_gpu(within),
        training_cores=_mean(s.training for s in within),
        worker_cores=_mean(s.workers for s in within),
        disk_bytes=_mean(s.disk for s in within),
    )


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
        processes=_average(gpu.processes for gpu in seen),
        received_bytes=_mean(gpu.received for gpu in seen),
        sent_bytes=_mean(gpu.sent for gpu in seen),
    )


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _mean(values: Iterable[float | None]) -> Estimate | None:
    return mean(np.array([value for value in values if value is not None]), least=0.0)
