"""The machine: what it has, and what of it this process may use. Unknown is None, never a guess."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import msgspec
import psutil


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, as its driver describes it."""

    name: str
    memory: int  # bytes
    power_limit: float | None  # watts


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program ran. Bytes."""

    python: str | None = None  # of the program, not of floorit
    torch: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    driver: str | None = None
    gpu: str | None = None
    gpus: list[Gpu] = []
    cpu: str | None = None
    cores: int | None = None  # that the machine has
    cores_allowed: int | None = None  # by affinity
    cores_quota: float | None = None  # by cgroup
    memory: int | None = None
    memory_limit: int | None = None  # by cgroup
    shm: int | None = None  # size of /dev/shm
    shm_free: int | None = None
    disk: int | None = None  # free, where the record is
    system: str | None = None
    host: str | None = None

    @property
    def usable_cores(self) -> float | None:
        """That a program may use: None where nobody says."""
        known = [float(limit) for limit in (self.cores_allowed, self.cores_quota, self.cores) if limit]
        return min(known) if known else None


def examine(folder: Path) -> Environment:
    """This machine; `folder` says which disk."""
    gpus, driver = _gpus()
    shm = _usage("/dev/shm")
    disk = _usage(str(folder))
    return Environment(
        driver=driver,
        gpu=gpus[0].name if gpus else None,
        gpus=gpus,
        cpu=_cpu_name(),
        cores=psutil.cpu_count(logical=True),
        cores_allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cores_quota=_cpu_quota(),
        memory=psutil.virtual_memory().total,
        memory_limit=_memory_limit(),
        shm=shm[0] if shm else None,
        shm_free=shm[1] if shm else None,
        disk=disk[1] if disk else None,
        system=platform.platform(),
        host=platform.node(),
    )


def _gpus() -> tuple[list[Gpu], str | None]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return [], None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [_gpu(handle) for handle in handles], _text(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return [], None
    finally:
        pynvml.nvmlShutdown()


def _gpu(handle: object) -> Gpu:
    import pynvml

    try:
        power: float | None = pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1e3
    except pynvml.NVMLError:
        power = None
    name = _text(pynvml.nvmlDeviceGetName(handle))
    return Gpu(name=name, memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total), power_limit=power)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cpu_name() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _cpu_quota() -> float | None:
    """Cores that the cgroup allows (version 2, then 1)."""
    text = _read("/sys/fs/cgroup/cpu.max")
    if text is not None:
        quota, _, period = text.partition(" ")
        return None if quota == "max" else int(quota) / int(period)
    quota_us, period_us = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if quota_us is None or period_us is None or int(quota_us) <= 0:
        return None
    return int(quota_us) / int(period_us)


def _memory_limit() -> int | None:
    text = _read("/sys/fs/cgroup/memory.max") or _read("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    if text is None or not text.isdigit() or int(text) >= psutil.virtual_memory().total:
        return None
    return int(text)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _usage(path: str) -> tuple[int, int] | None:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return usage.total, usage.free
