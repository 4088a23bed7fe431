"""Findings: what counts towards each, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from test_callers import look

from floorit.analyse.ledger import Entry, Ledger, lines
from floorit.diagnose import Facts, logs
from floorit.events import Sample

LOOKS = 100  # in the runs below: each stands for a hundredth of the step


def facts(looks: dict[str, list[Sample]], **more: Any) -> Facts:
    """A step of one second, each phase as long as its share of the looks; what has none is the forward pass."""
    rest = LOOKS - sum(map(len, looks.values()))
    looks = {**looks, "forward": [*looks.get("forward", []), *[look("net.py:5", "train.py:20")] * rest]}
    entries = [
        Entry(phase=phase, seconds=len(s) / LOOKS, share=len(s) / LOOKS, gpu_seconds=None, where=lines(s))
        for phase, s in looks.items()
    ]
    given = {"process": None, "iterations": None, "workers": None, "on_gpu": False, **more}
    return Facts(ledger=Ledger(mean=1.0, entries=entries, looks=looks), **given)


# -- logging ------------------------------------------------------------------------------------------------------

WRITES = look("plot.py:9@plot", "train.py:30@train")
DRAWS = look("plot.py:4@plot", "train.py:30@train")
DRAWS_DEEPER = look("boxes.py:2@boxes", "plot.py:5@plot", "train.py:30@train")
TRAINS = look("net.py:5@forward", "train.py:20@train")


def test_what_is_drawn_before_it_is_written_counts_as_logging() -> None:
    others = [DRAWS] * 5 + [DRAWS_DEEPER] * 2 + [look("train.py:31@train")] * 4
    [found] = logs.find(facts({"logging": [WRITES] * 6, "other": others, "backward": [TRAINS]}))
    assert found.share == pytest.approx(0.13)
    assert found.bound == pytest.approx(1 / 0.87)
    assert found.evidence[0].startswith("60 ms of a step")
    assert found.evidence[1].startswith("and 70 ms")
    assert {(line.file, line.line) for line in found.where} == {("plot.py", 9), ("plot.py", 4), ("boxes.py", 2)}


def test_a_loop_that_prints_is_not_taken_for_logging() -> None:
    prints = look("train.py:29@train")
    [found] = logs.find(
        facts({"logging": [prints] * 20, "other": [look("train.py:31@train")] * 20, "optimizer": [TRAINS]})
    )
    assert found.share == pytest.approx(0.20)
    assert len(found.evidence) == 1


def test_a_function_that_computes_much_and_writes_little_is_not_taken_for_logging() -> None:
    assert not logs.find(facts({"logging": [WRITES] * 5, "other": [DRAWS] * 20, "backward": [TRAINS]}))


def test_nothing_logged_is_not_named() -> None:
    assert not logs.find(facts({"other": [DRAWS] * 50}))
