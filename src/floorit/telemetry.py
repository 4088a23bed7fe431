"""The machine while a program runs, sampled from outside of it: GPUs by NVML, CPU and memory by psutil."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec
import psutil

from floorit.vitals import NAME, GpuSample, Sample

PERIOD, LONGEST = 0.5, 10.0  # seconds between two samples, at first and at most
PERIOD_SHARE = 1 / 2000  # of the time it has run: so a run of days leaves thousands of samples, not millions
_MEGA, _MILLI, _PERCENT = 1e6, 1e-3, 1e-2
_KIBI, _MEBI = 1024.0, 1024.0**2
_BEGAN = 19  # in /proc/PID/stat, after the name: ticks since the machine started

T = TypeVar("T")
Pids = tuple[list[int], list[int]]  # of the processes that train, and of their loaders' workers


class Telemetry:
    """Samples into a file, whenever it is asked and one is due."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME
        self._gpus = _Gpus()
        self._training, self._workers, self._read = _Group(), _Group(), _from_storage()
        self._began = self._last = time.perf_counter()
        psutil.cpu_percent()  # the first answer means nothing

    def watch(self, pids: Callable[[], Pids] = lambda: ([], [])) -> None:
        """Take a sample, if one is due. A disk that is full costs the sample, nothing else."""
        now = time.perf_counter()
        passed = now - self._last
        if passed < min(max((now - self._began) * PERIOD_SHARE, PERIOD), LONGEST):
            return
        self._last = now
        training, workers = pids()
        workers = list({*workers, *(child for pid in training for child in _children(pid))} - set(training))
        before, self._read = self._read, _from_storage()
        sample = Sample(
            at=now,
            cpu=psutil.cpu_percent() * _PERCENT,
            memory_free=psutil.virtual_memory().available,
            gpus=self._gpus.sample(),
            training=self._training.cores(training, passed),
            workers=self._workers.cores(workers, passed),
            disk=(self._read - before) / passed if before is not None and self._read is not None else None,
        )
        with suppress(OSError), self._file.open("ab") as file:
            file.write(msgspec.json.encode(sample) + b"\n")

    def close(self) -> None:
        """Let go of the driver."""
        self._gpus.close()


class _Group:
    """Processes that have a part in common."""

    def __init__(self) -> None:
        self._used: dict[int, float] = {}  # seconds of cores, by process
        self._is_known = False  # once there was one

    def cores(self, pids: list[int], passed: float) -> float | None:
        """Those that they kept busy since the call before; None where that is not known, or there was never one.

        One that has ended since then is not counted: what it used last is not known.
        """
        if not pids and self._is_known:
            return 0.0
        self._is_known |= bool(pids)
        before, self._used, spent = self._used, {}, []
        for pid in pids:
            with suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                used = self._used[pid] = float(times.user + times.system)
                if pid in before or _age(pid) < passed:
                    spent.append(used - before.get(pid, 0.0))
        return sum(spent) / passed if spent else None


def _age(pid: int) -> float:
    """Seconds since a process began, where Linux tells; psutil knows it to the second only."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_BEGAN]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return math.inf


def _children(pid: int) -> list[int]:
    """Processes that a process has started, by each of its threads; where Linux tells."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def _from_storage() -> int | None:
    """Bytes that the machine has read from its disks; None where it does not say."""
    with suppress(OSError, RuntimeError):  # psutil's where there is no such file, or it can't be understood
        counters = psutil.disk_io_counters()
        return counters.read_bytes if counters is not None else None
    return None


class _Gpus:
    """Every GPU that the driver knows."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        self._open: list[_Gpu] = []
        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            self._open = [_Gpu(pynvml, handle) for handle in handles]

    def sample(self) -> list[GpuSample]:
        return [gpu.sample() for gpu in self._open]

    def close(self) -> None:
        for gpu in self._open:
            gpu.close()
        self._open = []
        with suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()


class _Gpu:
    """One GPU. What it cannot tell is None from the first time on."""

    def __init__(self, nvml: ModuleType, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        uuid = self._ask(lambda: nvml.nvmlDeviceGetUUID(handle))
        self._uuid = uuid.decode() if isinstance(uuid, bytes) else str(uuid)
        self._activity = _Activity.of(nvml, handle)
        self._ways = (nvml.NVML_PCIE_UTIL_RX_BYTES, nvml.NVML_PCIE_UTIL_TX_BYTES)
        # Idle is no reason to worry, and clocks that were set by hand or by an application are wished for.
        self._reasons = {
            nvml.nvmlClocksThrottleReasonSwPowerCap: "power",
            nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "power",
            nvml.nvmlClocksThrottleReasonSwThermalSlowdown: "heat",
            nvml.nvmlClocksThrottleReasonHwThermalSlowdown: "heat",
            nvml.nvmlClocksThrottleReasonHwSlowdown: "hardware",
        }

    def sample(self) -> GpuSample:
        nvml, handle = self._nvml, self._handle
        power = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle) * _MILLI)
        limit = self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) * _MILLI)
        held = self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
        graphics, sm, tensor, received, sent = self._activity.since_last() if self._activity else (None,) * 5
        if received is None and sent is None:  # the driver's own count, of the last 20 ms
            received, sent = (self._ask(partial(self._over_pcie, way)) for way in self._ways)
        return GpuSample(
            uuid=self._uuid,
            power=power,
            power_limit=limit,
            busy=self._ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu * _PERCENT),
            memory=self._ask(lambda: self._memory(nvml.nvmlMemory_v2)) or self._ask(self._memory),
            clock=self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * _MEGA),
            slowed=sorted({reason for bit, reason in self._reasons.items() if held & bit}),
            graphics=graphics,
            sm=sm,
            tensor=tensor,
            processes=self._ask(lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle))),
            received=received,
            sent=sent,
        )

    def _over_pcie(self, way: int) -> float:
        """Bytes a second."""
        return float(self._nvml.nvmlDeviceGetPcieThroughput(self._handle, way)) * _KIBI

    def _memory(self, version: int | None = None) -> int:
        """Bytes in use. By the first version of the question, all that old drivers know, what the driver keeps too."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle, version).used)

    def _ask(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except self._nvml.NVMLError:
            return None

    def close(self) -> None:
        if self._activity:
            self._activity.close()


class _Activity:
    """What the hardware counts between two moments (NVML's GPM, from Hopper on)."""

    def __init__(self, nvml: ModuleType, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._before, self._now = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        nvml.nvmlGpmSampleGet(handle, self._before)

    @classmethod
    def of(cls, nvml: ModuleType, handle: Any) -> _Activity | None:
        """Where the GPU and its driver can tell."""
        try:
            return cls(nvml, handle) if nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice else None
        except nvml.NVMLError:
            return None

    def since_last(self) -> tuple[float | None, ...]:
        """Since the call before: shares of the GPU, its SMs, its tensor cores; bytes a second received and sent."""
        nvml = self._nvml
        wanted = {
            nvml.NVML_GPM_METRIC_GRAPHICS_UTIL: _PERCENT,
            nvml.NVML_GPM_METRIC_SM_UTIL: _PERCENT,
            nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: _PERCENT,
            nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: _MEBI,
            nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: _MEBI,
        }
        try:
            nvml.nvmlGpmSampleGet(self._handle, self._now)
            query = nvml.c_nvmlGpmMetricsGet_t()
            query.version, query.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(wanted)
            query.sample1, query.sample2 = self._before, self._now
            for place, metric in enumerate(wanted):
                query.metrics[place].metricId = metric
            nvml.nvmlGpmMetricsGet(query)
        except nvml.NVMLError:
            return (None,) * len(wanted)
        self._before, self._now = self._now, self._before
        told = [(query.metrics[place], unit) for place, unit in enumerate(wanted.values())]
        return tuple(metric.value * unit if metric.nvmlReturn == nvml.NVML_SUCCESS else None for metric, unit in told)

    def close(self) -> None:
        for sample in (self._before, self._now):
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlGpmSampleFree(sample)
