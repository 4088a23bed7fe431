"""What the machine does at one moment, and the file of such moments that a run leaves behind."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

NAME = "telemetry.jsonl"


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU at one moment. None: the driver does not say."""

    uuid: str
    power: float | None  # watts
    power_limit: float | None
    busy: float | None  # share of the last moments in which a kernel ran, by the driver's own coarse count
    memory: int | None  # bytes in use, by every process
    clock: float | None  # hertz, of the SMs
    slowed: list[str]  # what holds its clock down
    graphics: float | None = None  # share of the time since the sample before in which the GPU was active
    sm: float | None = None  # mean share of its SMs that were busy
    tensor: float | None = None  # mean share of its tensor cores that were
    processes: int | None = None  # that compute on it
    received: float | None = None  # bytes a second over PCIe since the sample before
    sent: float | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at one moment, by the clock that every process shares."""

    at: float  # seconds
    cpu: float  # share of all cores that was busy since the sample before
    memory_free: int  # bytes
    gpus: list[GpuSample]
    training: float | None = None  # cores that the processes that train kept busy since then
    workers: float | None = None  # cores that their loaders' workers did
    disk: float | None = None  # bytes a second that the machine read from storage


def load(folder: Path) -> list[Sample]:
    """The samples of a run; a torn last line is passed over."""
    try:
        lines = (folder / NAME).read_bytes().splitlines()
    except OSError:
        return []
    samples = []
    for line in lines:
        with suppress(msgspec.MsgspecError):
            samples.append(msgspec.json.decode(line, type=Sample))
    return samples
