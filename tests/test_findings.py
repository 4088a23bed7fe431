"""What is said first of what was found: the limit, and the change that is worth most."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from floorit import plan
from floorit.analyse.floor import LIMIT, STEP, WITHOUT_DATA, WITHOUT_WAITING, Floor, Rung
from floorit.analyse.ledger import Line
from floorit.diagnose import Finding, FixAdvice, Rewrite
from floorit.report import findings, sentences, words
from floorit.stats import Estimate


def times(low: float, value: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=50)


def line(at: int = 3, function: str = "assign") -> Line:
    return Line(file="loss.py", line=at, function=function, share=0.5)


def fix(code: str, gain: Estimate | None, *, by_hand: bool = False, risk: str = "exact") -> FixAdvice:
    return FixAdvice(code=code, summary="s", risk=risk, effort="a flag", speedup=gain, by_hand=by_hand)


def found(code: str, bound: float | None, *fixes: FixAdvice, rewrite: Rewrite | None = None) -> Finding:
    return Finding(
        code=code,
        title="t",
        share=0.3,
        share_is_least=bound is None,
        bound=bound,
        evidence=[],
        where=[line(), line(7), line(9, "other")],
        fixes=list(fixes),
        rewrite=rewrite,
    )


ANOMALY = fix("anomaly", times(1.08, 1.08, 1.12))
LOSS = found("loss-bound", 1.5, rewrite=Rewrite(where=line(), halved=times(1.1, 1.14, 1.2), gone=times(1.2, 1.3, 1.5)))
LOGS = found("logging-bound", 1.3, fix("log-every", times(1.1, 1.16, 1.2), by_hand=True))


def given(*of: Finding) -> list[str]:
    return [advice.what for advice in findings.chosen(list(of))]


# -- the verdict


def test_a_switch_that_costs_little_is_not_the_verdict() -> None:
    switch = found("debug-left-on", None, ANOMALY)
    shown = plan.verdict_first([switch, LOSS, LOGS])
    assert [f.code for f in shown] == ["loss-bound", "debug-left-on", "logging-bound"]


@pytest.mark.parametrize(
    ("switch", "cost"),
    [
        (found("debug-left-on", None, fix("anomaly", times(2.0, 2.0, 3.3))), LOSS),  # it costs more than the loss
        (found("debug-left-on", None, fix("anomaly", times(1.2, 1.2, plan.LITTLE))), LOSS),  # a fifth of the step
        (found("debug-left-on", None), LOSS),  # what it costs is not known
        (found("debug-left-on", None, fix("anomaly", None)), LOSS),
        (found("debug-left-on", None, ANOMALY), found("compute-bound", 9.0)),  # which nothing removes
    ],
)
def test_a_switch_is_the_verdict_where_it_may_cost_most(switch: Finding, cost: Finding) -> None:
    assert plan.verdict_first([switch, cost]) == [switch, cost]


# -- what to do first


@pytest.mark.parametrize("order", list(itertools.permutations([found("debug-left-on", None, ANOMALY), LOSS, LOGS])))
def test_what_gains_most_comes_first_whichever_finding_it_answers(order: tuple[Finding, ...]) -> None:
    assert given(*order) == ["log-every", "rewrite assign (loss.py:3)", "anomaly"]


def test_what_changes_training_comes_last() -> None:
    other = found("batch-too-small", None, fix("batch", times(2.0, 3.0, 4.0), risk="training"))
    assert given(LOGS, other) == ["log-every", "batch"]


def test_what_can_be_tried_comes_before_what_is_to_be_written_if_it_may_gain_as_much() -> None:
    workers, cache = fix("workers", times(1.2, 1.3, 1.4)), fix("decode-cache", times(1.2, 1.6, 1.9))
    rewrite = Rewrite(where=line(), halved=times(1.4, 1.7, 1.8), gone=times(1.5, 2.0, 2.2))
    assert given(found("input-bound", 2.2, workers, cache, rewrite=rewrite)) == [
        "decode-cache",
        "rewrite assign (loss.py:3)",
        "workers",
    ]


def test_an_answer_to_the_verdict_is_among_few() -> None:
    others = [found(f"cost-{at}", 1.2, fix(f"fix-{at}", times(1.2, 1.3, 1.4))) for at in range(4)]
    assert given(LOSS, *others)[-1] == "rewrite assign (loss.py:3)"


def test_a_rewrite_names_the_lines_of_its_function() -> None:
    [advice] = findings.chosen([LOSS])
    assert [at.line for at in advice.lines] == [3, 7]


# -- ranges


@pytest.mark.parametrize(
    ("gain", "said", "beside"),
    [
        (times(1.2, 1.25, 1.3), "1.20 to 1.30x as fast, likely 1.25", "1.20 to 1.30"),
        (times(1.16, 1.64, 1.641), "1.16 to 1.64x as fast, likely 1.64", "1.16 to 1.64"),
        (times(1.08, 1.08, 1.12), "1.08 to 1.12x as fast, likely 1.08", "1.08 to 1.12"),
        (times(1.24, 1.24, 1.24), "1.24x as fast", ""),
    ],
)
def test_a_gain_is_said_with_its_range_in_one_way(gain: Estimate, said: str, beside: str) -> None:
    assert words.speedup(gain) == said
    assert words.around(gain) == beside


@pytest.mark.parametrize(
    ("bound", "high"),
    [(1.9, 1.9), (1.6, 1.6), (1.5, 2.0), (None, 2.0)],  # the bound, all of it likely, more than it likely, none
)
def test_a_bound_that_is_likely_exceeded_does_not_end_the_range(bound: float | None, high: float) -> None:
    assert plan._at_most(times(1.2, 1.6, 2.0), bound) == times(1.2, 1.6, high)


# -- the floor


def ladder(*names: str) -> Floor:
    return Floor(rungs=[Rung(name=name, seconds=1.0, how="") for name in names], gap=1.02)


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        (ladder(STEP, WITHOUT_DATA), "about data alone: fixes for anything else can gain more"),
        (ladder(STEP, WITHOUT_DATA, WITHOUT_WAITING), "the GPU never waits"),
        (ladder(STEP, WITHOUT_DATA, WITHOUT_WAITING, LIMIT), "the GPU never waits"),
    ],
)
def test_what_the_floor_leaves_is_said(floor: Floor, said: str) -> None:
    assert said in sentences.of_floor(floor)
    assert "can gain more" in sentences.of_floor(floor)


def test_without_a_gpus_rungs_no_floor_is_spoken_of() -> None:
    rungs = [Rung(name=STEP, seconds=0.2, how=""), Rung(name=WITHOUT_DATA, seconds=0.1, how="", estimate=True)]
    exact = Floor(rungs=rungs, gap=2.0)
    said = sentences.of_waiting(exact)
    assert said.startswith(
        "without waiting for data: a step would take 100 ms instead of 200 ms, 2.00x as fast (an est"
    )
    shorter = Floor(rungs=[rungs[0], msgspec.structs.replace(rungs[1], least=0.05)], gap=2.0)
    assert "50 ms to 100 ms instead of 200 ms, 2.00 to 4.00x as fast (an est" in sentences.of_waiting(shorter)
    measured = Floor(rungs=[rungs[0], msgspec.structs.replace(rungs[1], estimate=False)], gap=2.0)
    assert sentences.of_waiting(measured).endswith("2.00x as fast (measured)")


# -- in words


def test_a_rewrite_says_what_it_takes_and_the_most_it_could_gain() -> None:
    of = Rewrite(where=line(), share=0.2, halved=times(1.1, 1.14, 1.2), gone=times(1.2, 1.25, 1.3))
    assert findings.of_rewrite(of) == "20% of the step; if it took no time: 1.20 to 1.30x as fast, likely 1.25"
    beside = msgspec.structs.replace(of, share=None)  # where batches are made
    assert findings.of_rewrite(beside).startswith("50% of making batches; ")


def test_a_cost_of_two_rows_says_what_it_is_made_of() -> None:
    logs = msgspec.structs.replace(LOGS, of_which="12.0% itself, 18.0% in the functions that make what is written")
    whole = "30% of the step (12.0% itself, 18.0% in the functions that make what is written); without it up to 1.30x"
    assert findings.in_brief(logs).startswith(whole)


def test_a_switch_is_spelled_as_it_is_typed() -> None:
    off = msgspec.structs.replace(ANOMALY, value=False)
    assert findings.set_to(off) == "anomaly=off"
    [advice] = findings.chosen([found("debug-left-on", None, off)])
    assert advice.setting == "anomaly=off"


def test_waiting_for_a_worker_is_not_told_by_pythons_own_names() -> None:
    waits = msgspec.structs.replace(line(), inside="_PollLikeSelector.select")
    assert words.inside(waits) == " -> waits for another process"
    assert words.inside(msgspec.structs.replace(line(), inside="conv2d")) == " -> conv2d"
    assert words.inside(line()) == ""


def test_findings_that_are_equal_are_not_taken_for_each_other() -> None:
    switch = found("debug-left-on", None, ANOMALY)
    assert plan.verdict_first([switch, msgspec.structs.replace(switch), LOSS])[0] is LOSS
