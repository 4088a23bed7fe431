"""The machine's samples: what the driver says ends up in the file, what it does not say is None, not zero."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pynvml
import pytest

from floorit import telemetry, vitals
from floorit.analyse import machine
from floorit.events import Headroom
from floorit.vitals import GpuSample, Sample


class Nvml(types.ModuleType):
    """A driver with one GPU, whose counters go up by a half of the time that passes between two of their samples."""

    def __init__(self, *, counters: bool = True, power: bool = True, there: bool = True) -> None:
        super().__init__("pynvml")
        self._counters, self._power, self._there = counters, power, there
        self.freed = 0
        self.open = False
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(pynvml, name)  # constants, structures, the error

    def nvmlInit(self) -> None:
        if not self._there:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"handle {index}"

    def nvmlDeviceGetUUID(self, handle: str) -> bytes:
        return b"GPU-1"

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        if not self._power:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return 100_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 575_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return pynvml.nvmlClocksThrottleReasonGpuIdle | pynvml.nvmlClocksThrottleReasonSwPowerCap

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return types.SimpleNamespace(gpu=34)

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int | None = None) -> Any:
        return types.SimpleNamespace(used=5 << 30 if version == self.nvmlMemory_v2 else 6 << 30)

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:
        return 1980

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return [types.SimpleNamespace(pid=pid) for pid in (10, 11, 12)]

    def nvmlDeviceGetPcieThroughput(self, handle: str, way: int) -> int:
        return {pynvml.NVML_PCIE_UTIL_RX_BYTES: 7, pynvml.NVML_PCIE_UTIL_TX_BYTES: 5}[way]

    def nvmlGpmQueryDeviceSupport(self, handle: str) -> Any:
        return types.SimpleNamespace(isSupportedDevice=self._counters)

    def nvmlGpmSampleAlloc(self) -> Any:
        return pynvml.c_nvmlGpmSample_t()

    def nvmlGpmSampleGet(self, handle: str, sample: Any) -> None:
        self._asked += 1

    def nvmlGpmMetricsGet(self, query: Any) -> None:
        assert (query.version, query.numMetrics) == (pynvml.NVML_GPM_METRICS_GET_VERSION, 5)
        answers = {1: 50.0, 2: 25.0, pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: 3.0}
        for place in range(query.numMetrics):
            metric = query.metrics[place]
            is_known = metric.metricId in answers
            metric.nvmlReturn = pynvml.NVML_SUCCESS if is_known else pynvml.NVML_ERROR_NOT_SUPPORTED
            metric.value = answers.get(metric.metricId, ctypes.c_double(7.0).value)

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        self.freed += 1


def sampled(monkeypatch: pytest.MonkeyPatch, folder: Path, nvml: Nvml, count: int = 3) -> list[Sample]:
    """So many samples of a machine with that driver."""
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    watcher = telemetry.Telemetry(folder)
    for _ in range(count):
        watcher._last -= 2 * telemetry.PERIOD
        watcher.watch()
        watcher.watch()  # not due yet
    watcher.close()
    return vitals.load(folder)


def test_what_the_driver_says_is_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nvml = Nvml()
    samples = sampled(monkeypatch, tmp_path, nvml)
    assert len(samples) == 3
    assert samples[-1].gpus == [
        GpuSample(
            uuid="GPU-1",
            power=100.0,
            power_limit=575.0,
            busy=0.34,
            memory=5 << 30,
            clock=1.98e9,
            slowed=["power"],
            graphics=0.5,
            sm=0.25,
            tensor=None,
            processes=3,
            received=3 * 2.0**20,
        )
    ]
    assert nvml.freed == 2
    assert not nvml.open


def test_what_it_does_not_say_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    [gpu] = sampled(monkeypatch, tmp_path, Nvml(counters=False, power=False), count=1)[0].gpus
    assert (gpu.power, gpu.graphics, gpu.sm, gpu.tensor) == (None, None, None, None)
    assert gpu.power_limit == 575.0
    assert (gpu.received, gpu.sent) == (7 * 1024, 5 * 1024)  # the driver's coarse count is there without counters


def test_cores_are_told_by_who_keeps_them_busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One process computes all the time, two wait."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(there=False))
    waits = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    works = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, **pipes) for command in (works, waits, waits)]
    try:
        for process in processes:
            process.stdout.readline()
        busy, *idle = (process.pid for process in processes)
        watcher = telemetry.Telemetry(tmp_path)
        before = psutil.Process(busy).cpu_times().user
        for _ in range(2):
            time.sleep(telemetry.PERIOD)
            watcher.watch(lambda: ([busy], idle))
        used = psutil.Process(busy).cpu_times().user - before
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    first, second = vitals.load(tmp_path)
    assert first.training is None  # since when it has computed is not known
    assert second.training is not None
    assert 0 < second.training * (second.at - first.at) <= used + 0.05
    assert second.workers == pytest.approx(0, abs=0.02)


def test_workers_are_what_training_started_though_nobody_has_told_of_them_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are started again for each epoch, and the record tells of them later."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(there=False))
    starts = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print(flush=True)
sys.stdin.read()
worker.kill()
"""
    watcher = telemetry.Telemetry(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(telemetry.PERIOD)
    watcher.watch(lambda: ([process.pid], []))
    process.communicate()
    [sample] = vitals.load(tmp_path)
    assert sample.workers is not None
    assert sample.workers > 0.05


def test_without_a_driver_there_is_still_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    [sample] = sampled(monkeypatch, tmp_path, Nvml(there=False), count=1)
    assert sample.gpus == []
    assert 0 <= sample.cpu <= 1
    assert sample.memory_free > 0


def test_a_folder_that_is_gone_costs_samples_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sampled(monkeypatch, tmp_path / "gone", Nvml()) == []


def test_a_torn_line_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sampled(monkeypatch, tmp_path, Nvml())
    file = tmp_path / vitals.NAME
    file.write_bytes(file.read_bytes()[:-40])
    assert len(vitals.load(tmp_path)) == 2


def gpu(uuid: str, busy: float, power: float | None, slowed: list[str] | None = None) -> GpuSample:
    return GpuSample(
        uuid=uuid, power=power, power_limit=700.0, busy=busy, memory=1, clock=None, slowed=slowed or [], tensor=None
    )


def test_means_are_of_the_stretch_that_trained_and_of_the_busiest_gpu() -> None:
    samples = [
        Sample(at=float(at), cpu=0.5 if at < 10 else 1.0, memory_free=100 - at, gpus=[gpu("a", 0.0, 60.0), own])
        for at in range(20)
        for own in [gpu("b", 0.9, 100.0 + at, ["heat"] if at % 2 else [])]
    ]
    found = machine.describe(samples, 10.0, 13.0)
    assert found is not None
    assert found.gpu is not None
    assert (found.samples, found.cpu_share.value, found.memory_free_least) == (4, 1.0, 87)
    assert found.gpu.power_watts is not None
    assert found.gpu.power_watts.value == pytest.approx(np.mean([110, 111, 112, 113]))
    assert found.gpu.slowed == {"heat": 0.5}
    assert found.gpu.tensor_share is None
    assert machine.describe(samples, 30.0, 40.0) is None
    without = machine.describe(samples, 10.0, 19.0, besides=[(12.5, 14.5)])  # samples 13, 14 and 15 tell of it
    assert without is not None
    assert without.samples == 7


@pytest.mark.parametrize(
    ("share", "cpu_seconds", "others"),
    [(1.0, 100.0, 1.0), (1.0, 195.0, None), (0.6, 20.0, None), (1.0, None, None)],
)
def test_what_other_programs_use_is_told_where_no_core_is_free(
    share: float, cpu_seconds: float | None, others: float | None
) -> None:
    samples = [Sample(at=10.0 + n, cpu=share, memory_free=1, gpus=[]) for n in range(4)]
    found = machine.describe(samples, 0.0, 20.0)
    assert found is not None
    assert machine.beside(found, 2, cpu_seconds, 100.0).other_cores == others


def _machine() -> machine.Machine:
    samples = [
        Sample(at=float(at), cpu=0.5, memory_free=1, gpus=[msgspec.structs.replace(gpu("a", 0.5, 60.0), processes=3)])
        for at in range(5)
    ]
    found = machine.describe(samples, 0.0, 5.0)
    assert found is not None
    return found


@pytest.mark.parametrize(("own", "others"), [(0, None), (1, 2), (3, 0), (4, 0)])
def test_other_programs_on_the_gpu_are_told_of(own: int, others: int | None) -> None:
    found = machine.with_neighbours(_machine(), own)
    assert found.gpu_others == others


def test_what_is_nearly_full_is_told_and_what_is_not_known_is_not() -> None:
    tight = Headroom(memory=1000, available_least=40, shared_size=1000, shared_free_least=90)
    full = machine.with_room(_machine(), tight)
    assert (full.memory_low, full.shared_low) == (40, 90)
    roomy = machine.with_room(_machine(), Headroom(memory=1000, available_least=60, shared_free_least=0))
    assert (roomy.memory_low, roomy.shared_low) == (None, None)
    assert machine.with_room(_machine(), None).memory_low is None
