"""Which line asked for what a look saw."""

from __future__ import annotations

from floorit.analyse import callers
from floorit.events import Place, Sample


def at(where: str) -> Place:
    """A line, as file:line@function; torch's own are said to be."""
    file, _, rest = where.partition(":")
    line, _, function = rest.partition("@")
    return Place(file, int(line), function or "f", "torch" if file.startswith("torch/") else "user")


def look(*stack: str) -> Sample:
    """A look at these lines, innermost first."""
    places = tuple(map(at, stack))
    return Sample(0.0, 0, 1, places[0], places[0], stack=places)


def found(lines: list[callers.Line]) -> list[tuple[str, int, float]]:
    return [(line.file, line.line, round(line.share, 2)) for line in lines]


CHECKPOINTED = ("layer.py:5", "torch/utils/checkpoint.py:500", "net.py:31", "train.py:9")


def test_checkpoint_is_called_by_the_line_outside_of_it() -> None:
    forward = [look(*CHECKPOINTED)] * 3 + [look("layer.py:6", "torch/utils/checkpoint.py:500", "net.py:40")]
    calls = callers.checkpoint_calls({"forward": [*forward, look("net.py:30", "train.py:9")]})
    assert found(calls) == [("net.py", 31, 0.75), ("net.py", 40, 0.25)]


def test_of_checkpoints_inside_each_other_the_inner_is_named() -> None:
    inner = ("attention.py:2", "torch/utils/checkpoint.py:80", *CHECKPOINTED)
    assert found(callers.checkpoint_calls({"forward": [look(*inner)]})) == [("layer.py", 5, 1.0)]


def test_the_line_that_goes_backward_does_not_call_checkpoint() -> None:
    again = look("layer.py:5", "torch/utils/checkpoint.py:900", "train.py:10")
    assert callers.checkpoint_calls({"recompute": [again], "backward": [again]}) == []


TRAINING = {
    "forward": [look("net.py:5", "train.py:20", "main.py:3")],
    "backward": [look("train.py:21", "main.py:3")],
    "optimizer": [look("train.py:22", "main.py:3")],
}


def test_evaluation_is_asked_for_where_its_way_leaves_that_of_training() -> None:
    """In the loop that trains; in what calls that loop; in one that does both, by what calls it."""
    inside = look("net.py:5", "validate.py:8", "train.py:30", "main.py:3")
    beside = look("net.py:5", "validate.py:8", "main.py:4")
    shared = look("net.py:5", "train.py:20", "main.py:5")
    for seen, line in ((inside, ("train.py", 30)), (beside, ("main.py", 4)), (shared, ("main.py", 5))):
        assert found(callers.leaving_training("eval", {**TRAINING, "eval": [seen]})) == [(*line, 1.0)]


def test_what_takes_the_way_of_training_has_no_line_of_its_own() -> None:
    assert callers.leaving_training("eval", {**TRAINING, "eval": TRAINING["forward"]}) == []


def test_lines_are_weighed_by_the_looks_that_came_from_them() -> None:
    often = look("net.py:5", "validate.py:8", "train.py:30", "main.py:3")
    rarely = look("net.py:5", "test.py:8", "main.py:9")
    seen = callers.leaving_training("eval", {**TRAINING, "eval": [often, often, often, rarely]})
    assert found(seen) == [("train.py", 30, 0.75), ("main.py", 9, 0.25)]
