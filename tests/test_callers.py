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
