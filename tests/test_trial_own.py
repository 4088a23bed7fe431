"""Fixes of a trial that are settings of the program's own: in its command, in its files, and whether they got there."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from floorit import apart
from floorit.declared import Control
from floorit.events import Process
from floorit.record.wire import IN_FORCE, NOT_MET
from floorit.sandbox import sandbox, write
from floorit.trial import trial
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.own import Own, felt, found
from floorit.trial.state import Round, State
from floorit.trial.trial import Override, Trial
from floorit.turning import Turned

CONFIG = "log: 5\nplot: 2\nheld: false\n"
TYPED = Control(name="eval_every", value=2, file="", line=0, option="--eval-every")
TURNED = Turned(code="eval-every", control=TYPED, value=8)
COMMAND = ["train.py", "--eval-every", "2", "--quiet"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    return path


def at(config: Path, *names: str) -> list[Control]:
    """Entries of the file, by its lines."""
    values = {"log": (1, 5), "plot": (2, 2), "held": (3, False)}
    return [Control(name=n, value=values[n][1], file=str(config), line=values[n][0]) for n in names]


def test_a_word_of_the_command_is_another_and_the_process_is_asked_for_nothing() -> None:
    own = Own({"eval-every": [TYPED]}, shows_files=False)
    arm, (told,) = own.dress(Arm(name="x", command=COMMAND, fixes={"eval-every": 4, "workers": 2}))
    assert arm.command == ["train.py", "--eval-every", "8", "--quiet"]
    assert arm.fixes == {"workers": 2}
    assert (told.code, told.value, told.state) == ("eval-every", 4, IN_FORCE)
    assert told.turned == [TURNED]
    assert told.reason == "the program's own setting eval_every: 2 -> 8, in the command"


def test_entries_of_a_file_that_several_fixes_turn_are_all_in_its_text(config: Path) -> None:
    settings = {"log-every": at(config, "log", "plot"), "from-batch": at(config, "held")}
    arm, told = Own(settings, shows_files=True).dress(
        Arm(name="x", command=COMMAND, fixes={"from-batch": True, "log-every": 10})
    )
    assert arm.texts == {str(config): "log: 50\nplot: 20\nheld: true\n"}
    assert {(o.code, o.state): [(t.control.name, t.value) for t in o.turned] for o in told} == {
        ("log-every", IN_FORCE): [("log", 50), ("plot", 20)],
        ("from-batch", IN_FORCE): [("held", True)],
    }
    assert config.read_text() == CONFIG


@pytest.mark.parametrize(
    ("shows", "line", "reason"),
    [(False, 1, "nothing here can show the program another"), (True, 2, "cannot be changed where it stands")],
)
def test_a_file_that_cannot_be_another_leaves_the_arm_as_it_is(
    config: Path, shows: bool, line: int, reason: str
) -> None:
    settings = {"log-every": [Control(name="log", value=5, file=str(config), line=line)]}
    arm, (told,) = Own(settings, shows_files=shows).dress(Arm(name="x", command=COMMAND, fixes={"log-every": 2}))
    assert not arm.texts
    assert told.state == NOT_MET
    assert reason in (told.reason or "")


def test_other_fixes_and_the_program_as_it_is_are_left_alone() -> None:
    own = Own({"eval-every": [TYPED]}, shows_files=True)
    for arm in (Arm(name=AS_IS, command=COMMAND), Arm(name="x", command=COMMAND, fixes={"workers": 2})):
        assert own.dress(arm) == (arm, [])


def process(command: list[str], *read: Path) -> Process:
    """One that was started so, and has read these files."""
    made = Process()
    made.facts = {"argv": command}
    made.configs = [
        {"path": str(path), "size": path.stat().st_size, "modified": path.stat().st_mtime_ns} for path in read
    ]
    return made


@pytest.mark.parametrize(
    ("commands", "state"),
    [
        ([["python", "train.py", "--eval-every", "8"]], IN_FORCE),
        ([["python", "train.py", "--eval-every=8"]], IN_FORCE),
        ([["python", "launcher.py"], ["python", "train.py", "--eval-every", "8"]], IN_FORCE),
        ([["python", "train.py"]], NOT_MET),  # a script of the shell's that passes nothing on
        ([], NOT_MET),
    ],
)
def test_words_that_did_not_reach_the_program_were_not_in_force(commands: list[list[str]], state: str) -> None:
    told = Override(code="eval-every", value=4, state=IN_FORCE, turned=[TURNED])
    (made,) = found([told], [process(command) for command in commands], {})
    assert made.state == state
    assert bool(made.turned) is (state == IN_FORCE)


def test_a_text_that_no_process_has_read_was_not_in_force(config: Path, tmp_path: Path) -> None:
    turned = [Turned(code="log-every", control=one, value=50) for one in at(config, "log")]
    told = Override(code="log-every", value=4, state=IN_FORCE, reason="as asked", turned=turned)
    copy = tmp_path / "copy" / "c.yaml"
    copy.parent.mkdir()
    copy.write_text(CONFIG.replace("log: 5", "log: 50"))
    other = process(["train.py"], copy)
    other.configs[0]["path"] = str(config)  # where it is shown
    shown = {str(config): copy}
    assert list(found([told], [other], shown)) == [told]
    assert list(found([told], [process(["train.py"], copy)], shown)) == [told]  # the command was given the copy
    for read, reason in (([], "was not seen to read"), ([config], "found"), ([copy, config], "found")):
        (made,) = found([told], [process(["train.py"], *read)], shown)
        assert (made.state, made.turned) == (NOT_MET, [])
        assert reason in (made.reason or "")


def test_a_setting_is_turned_once(config: Path) -> None:
    """Two fixes may be behind one number: what they would make of it together, nobody has asked for."""
    both = {"log-every": at(config, "log"), "eval-every": at(config, "log")}
    arm, told = Own(both, shows_files=True).dress(
        Arm(name="x", command=COMMAND, fixes={"log-every": 10, "eval-every": 2})
    )
    assert arm.texts == {str(config): CONFIG.replace("log: 5", "log: 50")}
    assert [(one.state, bool(one.turned)) for one in told] == [(IN_FORCE, True), (NOT_MET, False)]
    assert "another of the fixes" in (told[1].reason or "")


@pytest.mark.parametrize(
    ("before", "now", "state"),
    [
        ({"eval": 0.02}, {"eval": 0.005}, IN_FORCE),
        ({"eval": 0.02}, {"eval": 0.019}, NOT_MET),  # another setting is the one in force
        ({"eval": 0.02, "logging": 0.1}, {"eval": 0.005, "logging": 0.1}, IN_FORCE),  # that is no affair of it
        ({"eval": 0.0}, {"eval": 0.0}, IN_FORCE),  # it was not seen to evaluate: nothing is known
        ({}, {"eval": 0.02}, IN_FORCE),  # it was as rare before
    ],
)
def test_what_is_no_rarer_than_before_was_not_in_force(
    before: dict[str, float], now: dict[str, float], state: str
) -> None:
    told = Override(code="eval-every", value=4, state=IN_FORCE, reason="as asked", turned=[TURNED])
    trial = Trial(arm="x", state="ran", seconds=9.0, warmup=1, rare={phase: [9.0, s, s] for phase, s in now.items()})
    (made,) = felt([told], trial, before)
    assert made.state == state
    assert bool(made.turned) is (state == IN_FORCE)


def test_a_file_that_the_command_names_can_be_another_everywhere(config: Path) -> None:
    own = Own({"log-every": at(config, "log")}, shows_files=False)
    arm, (told,) = own.dress(Arm(name="x", command=["train.py", "--cfg", str(config)], fixes={"log-every": 2}))
    assert told.state == IN_FORCE
    assert arm.texts == {str(config): CONFIG.replace("log: 5", "log: 10")}


def test_a_command_finds_another_file_and_the_users_own_stays(tmp_path: Path, config: Path) -> None:
    other, link = tmp_path / "other.yaml", tmp_path / "link.yaml"
    other.write_text("log: 50\n")
    link.symlink_to(config)
    kept = tmp_path / "kept"
    kept.mkdir()
    with sandbox(kept) as place:
        if place is None or place.way != apart.OVERLAY:
            pytest.skip("no mount namespace here")
        reads = f"print(open({str(config)!r}).read(), open({str(link)!r}).read()); open({str(config)!r}, 'w')"
        for shown in (config, link):
            command = place.around([sys.executable, "-c", reads], {str(shown): other})
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            assert ran.stdout.split() == ["log:", "50"] * 2
    assert config.read_text() == CONFIG


# -- what a try says of what comes rarely


@pytest.mark.parametrize(("steps", "due"), [(100, 0), (100, 1), (60, 0)])
def test_what_is_rarer_is_counted_as_that_part_however_often_it_came_due(steps: int, due: int) -> None:
    """Steps of 0.1 s, an evaluation of 5 s every 50 steps; every 200 a quarter of that, coming once or never."""
    a = course(steps, list(range(49, steps, 50)))
    b = course(steps, [120][:due] if steps > 120 else [70][:due])
    plain, told = trial.pair(a, b, "ab"), trial.pair(a, b, "ab", {"eval": 4})
    assert isinstance(plain, trial.Pair)
    assert isinstance(told, trial.Pair)
    often = len(range(49, steps, 50)) / steps
    assert told.a / told.b == pytest.approx((0.1 + 5 * often) / (0.1 + 5 * often / 4), rel=0.02)
    assert (plain.a / plain.b == pytest.approx(told.a / told.b, rel=0.1)) is False


def course(steps: int, evaluates_after: list[int]) -> Trial:
    lengths = [0.1 + (5.0 if at in evaluates_after else 0.0) for at in range(steps)]
    starts = [sum(lengths[:at]) for at in range(steps + 1)]
    rare = {"eval": [5.0 if at in evaluates_after else 0.0 for at in range(steps + 1)]} if evaluates_after else {}
    return Trial(arm="x", state="ran", seconds=starts[-1], starts=starts, rare=rare)


def test_what_both_sides_have_as_rarely_is_compared_as_it_is() -> None:
    own = Override(code="eval-every", value=4, state=IN_FORCE, turned=[TURNED])
    a, b = course(100, [49, 99]), course(100, [49])
    b = msgspec.structs.replace(b, arm="b", overrides=[own])
    arms = [Arm(name="x", command=[]), Arm(name="b", command=[], fixes={"eval-every": 4})]
    state = State(cwd="", arms=arms, rounds=[Round(trials=[a, b])])
    (alone,) = state.pairs(arms[1])
    state.arms[0] = msgspec.structs.replace(arms[0], fixes={"eval-every": 4})
    (beside,) = state.pairs(arms[1])
    assert alone.a / alone.b == pytest.approx(0.2 / 0.125)
    assert beside.a / beside.b == pytest.approx(0.2 / 0.15)


# -- files that are others


def test_a_text_is_written_as_the_file_is(tmp_path: Path) -> None:
    """In the encoding that source names, and to be executed where it was."""
    source = tmp_path / "train.py"
    text = "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nevery = 5  # \xfcber\n"
    source.write_bytes(text.encode("latin-1"))
    source.chmod(0o755)
    (copy,) = write({str(source): text.replace("5", "50")}, tmp_path / "settings").values()
    assert copy.read_bytes() == source.read_bytes().replace(b"5", b"50")
    assert copy.stat().st_mode & 0o111
