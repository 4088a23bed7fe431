"""What a record says of its naps and windows, of a program that may still be running."""

import struct
from dataclasses import dataclass

from floorit.record import wire


@dataclass(frozen=True)
class Nap:
    """One nap that has ended. Nanoseconds on the clock of `time.perf_counter_ns`."""

    began: int
    ended: int

    @property
    def seconds(self):
        return (self.ended - self.began) * 1e-9


def naps(record):
    """Those that have ended, in their order."""
    found, began = [], None
    for now, word in events(record):
        kind = word & wire.KIND
        if kind == wire.NAP_IN:
            began = now
        elif kind == wire.NAP_OUT and began is not None:
            found.append(Nap(began, now))
            began = None
    return found


def windows_are_over(record):
    """Whether one has been open, and none is."""
    kinds = [word & wire.KIND for _, word in events(record)]
    return [kind for kind in kinds if kind in (wire.WINDOW_IN, wire.WINDOW_OUT)][-1:] == [wire.WINDOW_OUT]


def share(record, since):
    """Of the optimizer's steps since then, those in naps; None where there were none."""
    kinds = [word & wire.KIND for now, word in events(record) if now >= since]
    asleep, awake = kinds.count(wire.NAP_STEP), kinds.count(wire.STEP_OUT)
    return asleep / (asleep + awake) if asleep or awake else None


def events(record):
    """Times and words of the thread that trains."""
    for path in record.glob("*.rec"):
        if path.name.startswith("workers-"):
            continue
        for tag, payload, _ in wire.frames(path.read_bytes()):
            if tag == wire.LOG_TAG:
                numbers = struct.unpack(f"<{(len(payload) - wire.LOG.size) // 8}q", payload[wire.LOG.size :])
                yield from zip(numbers[::2], numbers[1::2], strict=True)
