"""More threads than cores, where they are seen to push each other aside."""

from __future__ import annotations

from floorit.diagnose import Facts, Finding, place_of
from floorit.diagnose.thresholds import (
    CROWDED,
    HELPED,
    KEPT_WAITING,
    PUSHED_ASIDE,
    PUSHED_BY_ITS_OWN,
    SATURATED,
)


def find(facts: Facts) -> list[Finding]:
    """One finding: threads that compute outnumber the cores, and push each other aside."""
    actual = {setting.name: setting.actual for setting in facts.settings}
    threads, cores, ranks = actual.get("threads"), actual.get("cores_allowed"), actual.get("ranks")
    if not isinstance(threads, int) or not isinstance(cores, int) or not isinstance(ranks, int):
        return []
    return _of_training(facts, threads, cores, ranks) or _of_workers(facts, cores, ranks)


def comes_first(facts: Facts) -> bool:
    """Whether torch's own threads are the crowd: then all that is computed takes longer, and other costs with it."""
    actual = {setting.name: setting.actual for setting in facts.settings}
    wanted = [actual[name] for name in ("threads", "ranks", "cores_allowed")]
    threads, ranks, cores = (value if isinstance(value, int) else 1 for value in wanted)
    return threads > 1 and ranks * threads >= CROWDED * cores


def _of_training(facts: Facts, threads: int, cores: int, ranks: int) -> list[Finding]:
    """The training process fills its cores and is pushed aside; or so often that no other program would do it."""
    workers = facts.workers.at_work if facts.workers is not None else 0
    wanted = ranks * (threads + workers)
    crowd = _crowding(facts)
    if crowd is None or threads < 2 or wanted < CROWDED * cores:
        return []
    busy, pushed = crowd
    fills_cores = busy >= SATURATED * cores / ranks and pushed >= PUSHED_ASIDE
    if not fills_cores and not (comes_first(facts) and pushed >= PUSHED_BY_ITS_OWN):
        return []
    each = f"{threads} threads of torch" + (f" and {workers} loader workers" if workers else "")
    return [
        _finding(
            [
                f"{each}{f' in each of {ranks} ranks' if ranks > 1 else ''}, on {cores} cores",
                f"the training process was pushed off its core {pushed:.0f} times in each second that it computed",
            ],
            facts,
        )
    ]


def _of_workers(facts: Facts, cores: int, ranks: int) -> list[Finding]:
    """Of the libraries that workers use: OpenCV takes as many threads as there are cores, in each of them."""
    workers = facts.workers
    if workers is None or not workers.threads or workers.helped_share is None or workers.core_wait_share is None:
        return []
    is_crowd = ranks * workers.at_work * workers.threads >= CROWDED * cores
    if not is_crowd or workers.helped_share < HELPED or workers.core_wait_share < KEPT_WAITING:
        return []
    return [
        _finding(
            [
                f"{workers.count} loader workers of {workers.threads} threads each, on {cores} cores",
                f"{workers.helped_share:.0%} of what they compute is in threads of their libraries, and each worker"
                f" waits for a core for {workers.core_wait_share:.0%} of the time in which it could run",
            ],
            facts,
        )
    ]


def _finding(evidence: list[str], facts: Facts) -> Finding:
    return Finding(
        code="oversubscribed",
        title="threads outnumber the cores and push each other aside",
        share=None,
        bound=None,
        evidence=evidence,
        where=place_of(facts, "threads", "num_workers"),
    )


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
