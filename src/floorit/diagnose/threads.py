"""More threads than cores, where they are seen to push each other aside."""

from __future__ import annotations

from floorit.diagnose import Facts, Finding
from floorit.diagnose.thresholds import CROWDED, PUSHED_ASIDE, SATURATED


def find(facts: Facts) -> list[Finding]:
    """One finding: threads that compute outnumber the cores, the training process fills them and is pushed aside."""
    actual = {setting.name: setting.actual for setting in facts.settings}
    threads, cores, ranks = actual.get("threads"), actual.get("cores_allowed"), actual.get("ranks")
    if not isinstance(threads, int) or not isinstance(cores, int) or not isinstance(ranks, int) or threads < 2:
        return []
    workers = facts.workers.count if facts.workers is not None else 0
    wanted = ranks * (threads + workers)
    crowd = _crowding(facts)
    if crowd is None or wanted < CROWDED * cores:
        return []
    busy, pushed = crowd
    if busy < SATURATED * cores / ranks or pushed < PUSHED_ASIDE:
        return []
    each = f"{threads} threads of torch" + (f" and {workers} loader workers" if workers else "")
    return [
        Finding(
            code="oversubscribed",
            title="threads outnumber the cores and push each other aside",
            share=None,
            bound=None,
            evidence=[
                f"{each}{f' in each of {ranks} ranks' if ranks > 1 else ''}, on {cores} cores",
                f"the training process was pushed off its core {pushed:.0f} times in each second that it computed",
            ],
            where=[],
        )
    ]


def _crowding(facts: Facts) -> tuple[float, float] | None:
    """Between the first reading and the last: cores that the process kept busy, and how often it was preempted."""
    readings = facts.process.readings
    if len(readings) < 2 or any(reading["preempted"] is None for reading in readings):
        return None
    first, last = readings[0], readings[-1]
    computed, passed = last["cpu_seconds"] - first["cpu_seconds"], last["at"] - first["at"]
    if passed <= 0 or computed <= 0:
        return None
    return computed / passed, (last["preempted"] - first["preempted"]) / computed
