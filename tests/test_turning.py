"""A setting of the program's own, turned: what it becomes, how it is typed, and where it stands in a file."""

from pathlib import Path
from typing import Any

import pytest
import simulation
from simulation import Program

from floorit import turning
from floorit.declared import Control
from floorit.fixes import ALL
from floorit.fixes.fix import Fix, Known
from floorit.turning import Turned

OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-e", "--eval_every", type=int, default=1)
parser.add_argument("--held", action="store_true")
parser.add_argument("--anew", action="store_false", dest="held")
parser.add_argument("--both", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--text", type=str2bool, default=False)
parser.add_argument("-s", dest="short", type=int, default=3)
parser.add_argument("--any", type=bool, default=True)
parser.add_argument("-dashes", type=int, default=2)
parser.set_defaults(kept=3)
EVERY, OTHER = 5, 7
ALIKE = (3, 3)
HELD = False
"""
CONFIG = "# how often\nlog: {every: 10, plot: 10}\nheld: no  # the batch has it\n"


def of(code: str) -> Fix:
    return next(fix for fix in ALL if fix.code == code)


def turned(value: Any, to: Any, **control: Any) -> Turned:
    whole = Control(**{"name": "", "file": "", "line": 0, **control, "value": value})
    return Turned(code="eval-every", control=whole, value=to)


# -- what it becomes


@pytest.mark.parametrize(
    ("own", "fix", "becomes"),
    [
        (2, 5, 10),
        (True, False, False),
        (False, True, True),
        (True, True, False),  # the branch that a fix takes is the one that the program does not
        (0, 5, None),  # never, as it is
        (-1, 5, None),
        (2, True, None),
        (True, 3, None),
        (2.5, 2, None),
        ("epoch", 2, None),
        (None, 2, None),
        (2, None, None),
    ],
)
def test_a_number_is_so_many_times_as_many_and_a_switch_the_other_way(own: Any, fix: Any, becomes: Any) -> None:
    made = Control(name="x", value=own, file="f", line=1).turned(fix)
    assert (made, type(made)) == (becomes, type(becomes))


def test_numbers_with_names_of_their_own_are_all_turned_and_switches_never_more_than_one() -> None:
    numbers = [("log", 5), ("plot", 3), ("never", 0), ("", 20)]
    controls = [Control(name=name, value=value, file="f", line=1) for name, value in numbers]
    assert names_and_values(of("log-every"), 4, controls) == [("log", 20), ("plot", 12)]
    assert names_and_values(of("log-every"), 4, [*reversed(controls)]) == [("", 80), ("plot", 12), ("log", 20)]
    switches = [Control(name=name, value=False, file="f", line=1) for name in ("held", "and_kept")]
    assert names_and_values(of("from-batch"), True, switches) == [("held", True)]
    assert turning.turn(of("log-every"), None, controls) == []


def test_a_name_that_stands_in_several_places_is_turned_in_all_of_them() -> None:
    """Which section of a file is in force, reading can't tell."""
    sections = [Control(name="save_steps", value=value, file="c.yaml", line=value) for value in (10, 2)]
    assert names_and_values(of("checkpoint-every"), 3, sections) == [("save_steps", 30), ("save_steps", 6)]
    alike = [Control(name="held", value=False, file="c.yaml", line=line) for line in (1, 7)]
    assert names_and_values(of("from-batch"), True, alike) == [("held", True)] * 2
    unlike = [Control(name="held", value=value, file="c.yaml", line=1) for value in (True, False)]
    beside = Control(name="kept", value=False, file="c.yaml", line=9)
    assert names_and_values(of("from-batch"), True, [*unlike, beside]) == [("kept", True)]


def test_a_default_is_not_typed_where_a_file_outdoes_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(OPTIONS)
    default = Control(name="eval_every", value=1, file=str(tmp_path / "train.py"), line=4, option="--eval-every")
    entry = Control(name="eval_every", value=3, file=str(tmp_path / "c.yaml"), line=1)
    assert [t.words for t in turning.turn(of("eval-every"), 4, [default])] == [["--eval_every", "4"]]
    both = turning.turn(of("eval-every"), 4, [default, entry])
    assert [t.words for t in both] == [[], []]
    assert "default=4)" in (both[0].text() or "")


def names_and_values(fix: Fix, value: Any, controls: list[Control]) -> list[tuple[str, Any]]:
    return [(turned.control.name, turned.value) for turned in turning.turn(fix, value, controls)]


@pytest.mark.parametrize(("framework", "found"), [(None, ["eval-every"]), ("Lightning", [])])
def test_a_framework_has_settings_of_its_own(framework: str | None, found: list[str]) -> None:
    every = [Control(name="every", value=1, file="f", line=1)]
    needs = simulation.needs(Program(host={"forward": 0.1}), window=False)
    of_both = {"eval-every": every, "recompute": every}  # the latter is applied from outside
    assert [*turning.settings(Known(needs=needs, controls=of_both, framework=framework))] == found


# -- how it is typed


@pytest.mark.parametrize(
    ("line", "option", "own", "to", "words"),
    [
        (4, "--eval-every", 1, 4, ["--eval_every", "4"]),  # as it is defined, not as it is kept
        (5, "--held", False, True, ["--held"]),
        (6, "--anew", True, False, ["--anew"]),
        (7, "--both", True, False, ["--no-both"]),  # BooleanOptionalAction
        (7, "--both", False, True, ["--both"]),
        (8, "--text", False, True, ["--text", "True"]),
        (9, "--short", 3, 6, ["-s", "6"]),
        (10, "--any", True, False, []),  # bool("False") is true
        (11, "--dashes", 2, 4, ["-dashes", "4"]),
        (12, "--kept", 3, 6, []),  # a default that is set so has no option to be seen
        (0, "--eval-every", 1, 4, ["--eval-every", "4"]),  # it was typed
        (0, "trainer.every", 2, 4, ["trainer.every=4"]),
        (13, "", 5, 10, []),
    ],
)
def test_an_option_is_typed_as_the_program_takes_it(
    tmp_path: Path, line: int, option: str, own: Any, to: Any, words: list[str]
) -> None:
    (tmp_path / "train.py").write_text(OPTIONS)
    where = {"file": str(tmp_path / "train.py"), "line": line} if line else {}
    assert turned(own, to, option=option, **where).words == words


# -- where it stands in a file


@pytest.mark.parametrize(
    ("name", "line", "own", "to", "before", "after"),
    [
        ("log.every", 2, 10, 40, "every: 10", "every: 40"),
        ("plot", 2, 10, 30, "plot: 10", "plot: 30"),
        ("held", 3, False, True, "held: no ", "held: yes "),
    ],
)
def test_an_entry_of_a_file_is_changed_and_nothing_else(
    tmp_path: Path, name: str, line: int, own: Any, to: Any, before: str, after: str
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    one = turned(own, to, name=name, file=str(tmp_path / "c.yaml"), line=line)
    assert one.text() == CONFIG.replace(before, after)
    assert one.text(CONFIG + "more: 1\n") == CONFIG.replace(before, after) + "more: 1\n"


@pytest.mark.parametrize("text", ['{"train": {"every": 4}, "eval": {"every": 4}}', '{"every": 4, "every": 4}'])
def test_of_several_entries_of_one_line_none_is_changed(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    assert turned(4, 8, name="every", file=str(tmp_path / "c.json"), line=1).text() is None


@pytest.mark.parametrize(
    ("line", "own", "to", "before", "after"),
    [
        (13, 5, 50, "EVERY, OTHER = 5", "EVERY, OTHER = 50"),
        (15, False, True, "HELD = False", "HELD = True"),
        (4, 1, 3, "default=1)", "default=3)"),
        (14, 3, 6, "", None),  # one of two that are alike
        (13, 8, 16, "", None),  # it does not stand there
    ],
)
def test_a_constant_of_the_source_is_changed_where_it_is_the_only_one(
    tmp_path: Path, line: int, own: Any, to: Any, before: str, after: str | None
) -> None:
    path = tmp_path / "train.py"
    path.write_text(OPTIONS)
    text = turned(own, to, file=str(path), line=line).text()
    assert text == (OPTIONS.replace(before, after) if after is not None else None)


@pytest.mark.parametrize("name", ["gone.yaml", "gone.py", ""])
def test_a_file_that_cannot_be_read_is_left(tmp_path: Path, name: str) -> None:
    assert turned(1, 2, name="x", file=str(tmp_path / name), line=1).text() is None


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        (["train.py", "-q"], ["train.py", "-q", "--eval_every", "4"]),
        (["train.py", "--eval_every", "1"], None),  # it was not given as the program was read
        (["train.py", "-e", "5"], None),
        (["train.py", "--eval=5"], None),  # argparse takes the beginning of an option for it
        (["train.py", "--ev", "5"], None),
        (["train.py", "--evaluate"], ["train.py", "--evaluate", "--eval_every", "4"]),
    ],
)
def test_an_option_is_not_typed_beside_what_the_command_says_of_it(
    tmp_path: Path, words: list[str], becomes: list[str] | None
) -> None:
    (tmp_path / "train.py").write_text(OPTIONS)
    one = turned(1, 4, option="--eval-every", file=str(tmp_path / "train.py"), line=4)
    made = turning.made(one, words, {})
    assert (made and made[0]) == becomes
    assert turning.is_outdone(one, words) is (becomes is None)


def test_an_option_that_has_another_default_by_now_is_not_typed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(OPTIONS.replace("default=1)", "default=2)"))
    assert turning.made(turned(1, 4, option="--eval-every", file=str(path), line=4), ["train.py"], {}) is None
    path.write_text("\n" + OPTIONS)
    assert turning.made(turned(1, 4, option="--eval-every", file=str(path), line=4), ["train.py"], {}) is None


def test_behind_the_name_of_a_command_no_option_of_its_parents_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(OPTIONS + "commands = parser.add_subparsers()\n")
    one = turned(1, 4, option="--eval-every", file=str(path), line=4)
    assert one.words == []
    assert turning.made(one, ["train.py", "fit"], {}) == (["train.py", "fit"], {str(path): one.text()})


def test_a_file_that_makes_no_sense_is_left(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("every = = 1\n")
    assert turned(1, 2, name="x", file=str(tmp_path / "train.py"), line=1).text() is None
