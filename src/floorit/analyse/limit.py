"""The physical limit: what a step computes over the rate that its device reaches, or what it must move over the
bandwidth, whichever takes longer."""

from __future__ import annotations

from typing import Any

import msgspec

from floorit.analyse.iterations import Iterations
from floorit.analyse.watched import joined, lies_in, whole_steps
from floorit.events import Process, Rates
from floorit.stats import prefixed

_READ_AND_WRITTEN = 2


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a step computes and moves, counted in a few steps of the floor run."""

    steps: int  # that were counted
    device: str  # as torch calls it
    name: str | None  # of the GPU
    flops: dict[str, float]  # a step, by precision; with what is computed again
    recomputed: dict[str, float]  # of these, what activation checkpointing computes again
    bytes: dict[str, float]  # a step, read and written, by what they are; a lower bound
    unseen: list[str]  # operations that could not be counted
    by_module: dict[str, float] = {}  # a step, what each module itself computes, by its path below its class

    @property
    def is_on_gpu(self) -> bool:
        """Whether the rung exists."""
        return self.device.startswith("cuda")


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The limit, what it is made of, and the rates it goes by."""

    seconds: float
    computing: float  # seconds that the operations take at the rates
    moving: float  # seconds that the bytes take
    work: Work
    rates: Rates

    @property
    def how(self) -> str:
        """The larger of the two in words."""
        if self.moving > self.computing:
            moved = sum(self.work.bytes.values())
            return f"{prefixed(moved)}B that must move at {prefixed(self.rates.bandwidth)}B/s, as measured in a copy"
        parts = [
            f"{prefixed(count)}FLOP in {precision} at {prefixed(self.rates.flops[precision])}FLOP/s"
            for precision, count in sorted(self.work.flops.items(), key=lambda item: -item[1])
        ]
        return f"{', '.join(parts)}, as measured in a large product"

    def utilisation(self, step: float) -> tuple[float, float]:
        """Of the rates measured, the share that a step makes use of: without what is computed again, and with it."""
        again = _seconds(self.work.recomputed, self.rates)
        return (self.computing - again) / step, self.computing / step


def count(process: Process, iterations: Iterations) -> Work | None:
    """What a step computes and moves; None where no whole step was counted."""
    steps, inside = 0, list[dict[str, Any]]()
    for notes in _on_end(process.counts):
        found = whole_steps(process, iterations, notes[0]["begin"], notes[-1]["end"])
        steps += len(found)
        stretches = joined(found)
        inside += [note for note in notes if lies_in((note["begin"], note["end"]), stretches)]
    device = _busiest(inside)
    if not steps or device is None:
        return None
    inside = [note for note in inside if note["device"] == device]
    return Work(
        steps=steps,
        device=device,
        name=inside[0]["name"],
        flops=_a_step([note["by_dtype"] for note in inside], steps),
        recomputed=_a_step([note["recomputed_by_dtype"] for note in inside], steps),
        bytes=_bytes(inside, steps, iterations.accumulation),
        unseen=sorted({name for note in inside for name in note["unseen"]}),
        by_module=_a_step(
            [{path: sum(of.values()) for path, of in note["by_module"].items()} for note in inside], steps
        ),
    )


def find(work: Work, rates: Rates) -> Limit | str:
    """The limit, or why it is not known."""
    unknown = [precision for precision in work.flops if precision not in rates.flops]
    if unknown:
        return f"the rate of products in {', '.join(unknown)} could not be measured"
    computing = _seconds(work.flops, rates)
    moving = sum(work.bytes.values()) / rates.bandwidth
    return Limit(seconds=max(computing, moving), computing=computing, moving=moving, work=work, rates=rates)


def _on_end(notes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Notes that follow each other without a gap: counting begins again after the program has forked."""
    groups: list[list[dict[str, Any]]] = []
    for note in notes:
        if groups and groups[-1][-1]["end"] == note["begin"]:
            groups[-1].append(note)
        else:
            groups.append([note])
    return groups


def _busiest(notes: list[dict[str, Any]]) -> str | None:
    """The device that most was computed on."""
    totals: dict[str, int] = {}
    for note in notes:
        if note["device"] is not None:
            totals[note["device"]] = totals.get(note["device"], 0) + note["total"]
    return max(totals, key=lambda device: totals[device], default=None)


def _a_step(counts: list[dict[str, int]], steps: int) -> dict[str, float]:
    names = sorted({name for each in counts for name in each})
    return {name: sum(each.get(name, 0) for each in counts) / steps for name in names}


def _bytes(notes: list[dict[str, Any]], steps: int, accumulation: float) -> dict[str, float]:
    """Read and written. Gradients are written in each iteration, all else of a step comes once in `accumulation`."""
    seen = _a_step([note["bytes"] for note in notes], steps)
    by_optimizer: dict[int, list[dict[str, int]]] = {}
    for number, step in (step for note in notes for step in note["step_bytes"]):
        by_optimizer.setdefault(number, []).append(step)
    each = [_a_step(of_one, len(of_one)) for of_one in by_optimizer.values()]
    touched = {what: sum(step[what] for step in each) for what in ("parameters", "gradients", "state")}
    return {
        "parameters": seen["forward_parameters"] + seen["backward_parameters"],
        "activations": _READ_AND_WRITTEN * seen["activations"],
        "batch": _READ_AND_WRITTEN * seen["copied"],
        "gradients": touched["gradients"] * (1 + 1 / accumulation),
        "optimizer": _READ_AND_WRITTEN * (touched["parameters"] + touched["state"]) / accumulation,
    }


def _seconds(flops: dict[str, float], rates: Rates) -> float:
    return sum(number / rates.flops[precision] for precision, number in flops.items())
