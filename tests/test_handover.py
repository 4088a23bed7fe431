"""Which line is shown of what happens below a line that hands the loop over to a library."""

from __future__ import annotations

from floorit.analyse import handover
from floorit.events import Place, Sample


def at(where: str) -> Place:
    """A line, as file:line; those of libraries begin with the name of theirs and a slash."""
    file, _, line = where.partition(":")
    installed = "/" in file
    path = f"/env/lib/python3.11/site-packages/{file}" if installed else f"/home/me/{file}"
    return Place(path, int(line), "f", "library" if installed else "user")


def look(*stack: str) -> Sample:
    """A look at these lines, innermost first."""
    places = tuple(map(at, stack))
    user = next((place for place in places if place.is_users), None)
    return Sample(0.0, 0, 1, user, places[0] if places else None, stack=places)


def shown(looks: handover.Looks, phase: str) -> list[str]:
    """The lines that the looks of a phase are shown at."""
    lines = [sample.user for sample in handover.resolve(looks)[phase]]
    return [f"{line.file.rpartition('/')[2]}:{line.line}" if line else "none" for line in lines]


FIT = ("pl/loop.py:9", "pl/trainer.py:5", "train.py:80")
HANDED = {
    "forward": [look("net.py:5", "pl/strategy.py:7", *FIT)],
    "backward": [look("pl/strategy.py:8", *FIT)],
    "data_wait": [look("pl/fetch.py:2", *FIT)],
}


def test_below_a_line_that_hands_over_the_librarys_innermost_line_is_shown() -> None:
    looks = {**HANDED, "other": [look("fsspec/local.py:3", "pl/saving.py:4", *FIT)]}
    assert shown(looks, "other") == ["saving.py:4"]
    assert shown(looks, "backward") == ["strategy.py:8"]
    assert shown(looks, "data_wait") == ["fetch.py:2"]


def test_what_the_library_calls_of_the_programs_is_shown_at_its_own_line() -> None:
    looks = {**HANDED, "other": [look("numpy/mean.py:3", "callback.py:12", "pl/loop.py:11", *FIT[1:])]}
    assert shown(looks, "other") == ["callback.py:12"]
    assert shown(looks, "forward") == ["net.py:5"]


def test_a_library_that_hands_over_to_another_is_looked_through() -> None:
    """sentence-transformers' trainer runs transformers' one, which asks accelerate for a part of each step."""
    way = ("st/trainer.py:3", "train.py:80")
    looks = {
        "forward": [look("transformers/bert.py:5", "transformers/loop.py:20", *way)],
        "backward": [look("accelerate/accelerator.py:9", "transformers/loop.py:30", *way)],
        "optimizer": [look("transformers/loop.py:31", *way)],
    }
    assert shown(looks, "forward") == ["bert.py:5"]
    assert shown(looks, "backward") == ["loop.py:30"]


def test_a_line_that_leads_to_one_part_of_a_step_stays() -> None:
    """`accelerator.backward(loss)`, and a loop over a loader that a library has wrapped."""
    looks = {
        "backward": [look("accelerate/accelerator.py:9", "train.py:20")],
        "data_wait": [look("accelerate/loader.py:4", "train.py:18")],
        "other": [look("accelerate/loader.py:6", "train.py:18")],
        "forward": [look("transformers/bert.py:5", "train.py:19")],
    }
    assert shown(looks, "backward") == ["train.py:20"]
    assert shown(looks, "other") == ["train.py:18"]
    assert shown(looks, "forward") == ["train.py:19"]


def test_without_a_line_of_the_programs_the_outermost_librarys_is_shown() -> None:
    """`python -m package.train`, where the package is installed."""
    looks = {"forward": [look("numpy/a.py:1", "recbole/model.py:5", "recbole/run.py:2")], "other": [look()]}
    assert shown(looks, "forward") == ["model.py:5"]
    assert shown(looks, "other") == ["none"]


def test_of_which_package_a_file_is() -> None:
    assert handover.package("/usr/lib/python3/dist-packages/six.py") == "six"
    assert handover.package("/env/lib/site-packages/lightning/pytorch/trainer.py") == "lightning"
    assert handover.package("/home/me/train.py") is None


def test_the_framework_is_the_one_whose_code_was_seen() -> None:
    by_hand = look("net.py:5", "train.py:8")
    fitted = look("net.py:5", "lightning/loop.py:9", "train.py:60")
    assert handover.framework([by_hand]) is None
    assert handover.framework([by_hand, fitted]) == "lightning"
