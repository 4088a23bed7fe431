"""How many samples a second the loader could give, with as many workers as it has and with others: a prediction."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import msgspec

from floorit.events import Process, Rows, Usage

FULL = 0.95  # of the most that any number of workers gives: from here on, more bring nothing


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What so many workers could give."""

    workers: int
    samples_per_second: float


class Supply(msgspec.Struct, frozen=True, kw_only=True):
    """Workers run beside each other until the cores, or the process that takes the batches, are full."""

    now: float  # samples a second with the workers there are; without any, while training waits
    alone: float | None = None  # the same if nothing else needed a core; None: a report that did not tell it
    rates: list[Rate]
    saturates_at: int  # workers from which on more bring nothing
    limit: str  # what stops it there: `cores` or `receiving`; `workers` where no number tried is enough
    cores: float  # allowed
    cpu_known: bool  # whether the time on a core was read from outside; else all of the workers' time is taken for it


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a batch takes."""

    samples: float  # in it
    making: float  # in a worker, left alone
    computing: float  # of it, on a core
    training: float  # on a core, in the training process, with all that the step does
    receiving: float  # in the training process, while nothing else happens in it
    made: float = 0.0  # batches a second that were: there were cores for them, though threads that wait look busy


def predict(costs: Costs, workers: int, cores: float, cpu_known: bool) -> Supply | None:
    """The rates with 1, 2, 4, ... workers up to the number of cores, and with the present number."""
    if costs.making <= 0 or costs.samples <= 0 or cores <= 0:
        return None
    whole = max(int(cores), 1)  # a rank or a container may have less than one core
    numbers = sorted({workers, *(1 << n for n in range(whole.bit_length())), whole} - {0})
    rates = [
        Rate(workers=n, samples_per_second=costs.samples * min(_limits(costs, n, cores).values())) for n in numbers
    ]
    most = max(rate.samples_per_second for rate in rates)
    first = next(rate.workers for rate in rates if rate.samples_per_second >= FULL * most)
    limits = _limits(costs, numbers[-1], cores)
    alone = max(workers, 1) * costs.samples / costs.making
    return Supply(
        now=next((rate.samples_per_second for rate in rates if rate.workers == workers), alone),
        alone=alone,
        rates=rates,
        saturates_at=first,
        limit=min(limits, key=lambda name: limits[name]),
        cores=cores,
        cpu_known=cpu_known,
    )


def _limits(costs: Costs, workers: int, cores: float) -> dict[str, float]:
    """Batches a second that each thing allows."""
    busy = costs.computing + costs.training
    return {
        "workers": workers / costs.making,
        "cores": max(cores / busy, costs.made) if busy else float("inf"),
        "receiving": 1 / costs.receiving if costs.receiving else float("inf"),
    }


def costs(
    fetches: Rows, usage: list[Usage], process: Process, receiving: float | None, in_process: bool
) -> tuple[Costs, bool] | None:
    """What a batch costs, and whether its time on a core was read. Time that workers wait for a core is not theirs."""
    if not len(fetches):
        return None
    making = float((fetches["fetch"] + fetches["collate"] + fetches["send"]).mean())
    watched = [(u, made) for u in usage if (made := _made(fetches, u))]
    batches = sum(made for _, made in watched)
    cpu = sum(u.cpu for u, _ in watched) / batches if batches else 0.0
    waited = sum(u.waited for u, _ in watched) / batches if batches else 0.0
    is_known = cpu > 0
    alone = max(making - waited, cpu) if is_known else making
    return Costs(
        samples=float(fetches["samples"].mean()),
        making=alone,
        computing=min(cpu, alone) if is_known else making,
        training=max(_training(process) - (making if in_process else 0.0), 0.0),
        receiving=receiving or 0.0,
    ), is_known


def _made(fetches: Rows, usage: Usage) -> int:
    """Batches that a worker made between the two looks at it."""
    own = (fetches["pid"] == usage.pid) & (fetches["end"] > usage.begin) & (fetches["end"] <= usage.end)
    return int(own.sum())


def _training(process: Process) -> float:
    """Seconds on a core that the training process needs for a step, in the middle of the times that it was read.

    Between two readings there may be an evaluation, or the windows in which torch's profiler works.
    """
    each = [
        (later["cpu_seconds"] - sooner["cpu_seconds"]) / (later["backwards"] - sooner["backwards"])
        for sooner, later in pairwise(process.readings)
        if later["backwards"] > sooner["backwards"]
    ]
    return float(median(each)) if each else 0.0
