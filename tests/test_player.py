"""Steps that repeat, played all at once: what comes out is what the replay makes of them one by one, to the bit."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from floorit import events, tables
from floorit.patterns import Patterns, learn, plain
from floorit.player import Player, SavedPlayer
from floorit.record import wire
from floorit.record.wire import BACKWARD, FORWARD, IN, LEAF, LOSS, OTHER, OUT, PHASES, SHIFT
from floorit.replay import BATCH, Replay

RECORDS = [
    pytest.param(path, id=path.name.partition(".")[0], marks=[pytest.mark.acceptance] if number % 3 else [])
    for number, path in enumerate(sorted((Path(__file__).parent / "records").glob("*.tar.xz")))
]
MODEL = wire.TRAINED | wire.WITH_GRAD | wire.TRAINING


class Plainly:
    """A player that knows no patterns: every event is played by itself, each part of the log as it comes."""

    def __init__(self, started: int, _: Patterns) -> None:
        self._replay = Replay(started)
        self.rows: list[Any] = []
        self.named: list[Any] = []
        self.device: list[Any] = []
        self.looks: list[Any] = []
        self.stretches: list[Any] = []
        self.spans: list[Any] = []

    def log(self, part: bytes) -> None:
        self._replay.feed(np.frombuffer(part, np.int64).tolist())
        self.rows += [tables.of_rows(self._replay.rows)] if self._replay.rows else []
        self._replay.rows.clear()

    def looked(self, looks: list[list[int]]) -> None:
        for look in looks:
            self._replay.look(*look)

    def lines(self, lines: list[list[int]]) -> None:
        for line in lines:
            self._replay.line(*line)

    def marks(self, began: int, milliseconds: list[float]) -> None:
        self._replay.marks(began, milliseconds)

    def lost(self, now: int) -> None:
        self._replay.skip(now)

    def play(self) -> None:
        replay = self._replay
        self.named += [tables.of_named(replay.named)] if replay.named else []
        self.device += [np.array(replay.device, tables.DEVICE_ROW)] if replay.device else []
        self.looks += [tables.of_looks(replay.looks)] if replay.looks else []
        self.stretches += [tables.of_stretches(replay.stretches)] if replay.stretches else []
        self.spans += replay.spans
        for told in (replay.named, replay.device, replay.looks, replay.stretches, replay.spans):
            told.clear()


TABLES = {
    "rows": tables.ROW,
    "named": tables.NAMED_ROW,
    "device": tables.DEVICE_ROW,
    "looks": tables.LOOK,
    "stretches": tables.STRETCH,
}


def told(one: Any) -> dict[str, Any]:
    """All that a player has made of a log."""
    found = {name: np.concatenate([np.zeros(0, kind), *getattr(one, name)]) for name, kind in TABLES.items()}
    return {**{name: table.tobytes() for name, table in found.items()}, "spans": list(one.spans)}


# -- random logs --------------------------------------------------------------------------------------------------

USUAL = (
    [(wire.NEXT_OUT, 9), (wire.MODEL_IN, MODEL), (wire.MODEL_OUT, 0), (wire.BACKWARD_IN, 0), (wire.BACKWARD_OUT, 0)],
    [(wire.NEXT_OUT, 9), (wire.MODEL_IN, wire.TRAINED), (wire.MODEL_OUT, 0)],
    [(wire.MODEL_IN, MODEL | 6 << wire.SAMPLES_SHIFT), (wire.MODEL_OUT, 0), (wire.BACKWARD_IN, 0)],
    [(wire.BACKWARD_OUT, 0), (wire.STEP_IN, 0), (wire.STEP_OUT, 0)],
    [(wire.STEP_IN, 1), (wire.CLOSURE_IN, 0), (wire.MODEL_IN, MODEL), (wire.MODEL_OUT, 0), (wire.CLOSURE_OUT, 0)],
    [(wire.MARKS_IN, 0), (wire.BACKWARD_IN, 0), (LEAF + wire.SYNC, 7), (wire.BACKWARD_OUT, 0), (wire.MARKS_OUT, 0)],
    [(wire.NAMED_IN, 3), (IN + wire.LOGGING, 0), (OUT + wire.LOGGING, 0), (wire.NAMED_OUT, 3)],
    [(LEAF + wire.H2D, 5), (wire.NAP_STEP, 0)],
    [(wire.STEP_ENDS, 0)],
)
SELDOM = (wire.NAP_IN, wire.NAP_OUT, wire.COMPILED, wire.WINDOW_IN, wire.WINDOW_OUT, wire.FAILED, wire.ADOPTED)


def sequence(dice: random.Random) -> list[tuple[int, int]]:
    """What comes between two batches: things that happen in training, or anything at all."""
    events = [event for _ in range(dice.randrange(1, 4)) for event in dice.choice(USUAL)]
    if dice.random() < 0.3:
        kinds = [base + phase for base in (IN, OUT, LEAF) for phase in range(len(PHASES))]
        kinds += range(wire.MODEL_IN, wire.CLOSURE_OUT + 1)
        events.insert(
            dice.randrange(len(events)), (dice.choice([k for k in kinds if k not in SELDOM]), dice.randrange(4))
        )
    end = dice.choice([[(wire.READY, 0), (wire.NEXT_IN, 1)], [(wire.NEXT_IN, 1)], [(wire.STEP_OUT, 0)]])
    return events + end


def random_log(dice: random.Random, length: int) -> list[tuple[int, int]]:
    """Sequences that repeat, in stretches; now and then something comes between, and time goes back."""
    known = [sequence(dice) for _ in range(4)]
    now, iterator, log = 1000, 1, []
    takes_turns = dice.random() < 0.3  # two passes over data at once
    while len(log) < length:
        chosen = dice.choice(known)
        for _ in range(dice.choice((1, 3, 12, 40))):
            for kind, operand in chosen:
                now += dice.choice((1, 5, 90, 1000))
                varied = {
                    wire.NEXT_IN: dice.choice((1, iterator)) if takes_turns else iterator,
                    wire.READY: dice.randrange(5),
                    wire.NEXT_OUT: dice.choice((operand, 5)) if operand > 1 else operand,
                }
                operand = dice.randrange(200) if LEAF <= kind < LEAF + len(PHASES) else varied.get(kind, operand)
                log.append((now, operand << SHIFT | kind))
        iterator += dice.random() < 0.3
        if dice.random() < 0.5:
            now += 1
            log.append((now, dice.randrange(500) << SHIFT | dice.choice(SELDOM)))
        if dice.random() < 0.1:
            log.append((now - dice.randrange(50), IN + wire.LOGGING))
    return [*log, (now + 1, wire.END)]


def play_both(dice: random.Random, log: list[tuple[int, int]], both: tuple[Any, Any], every: int) -> None:
    """Hand the log to both in parts, with looks and lines, some of which come late; play after each so many."""
    at, part, noted = 0, 0, set()
    while at < len(log):
        end = at + dice.randrange(1, 120)
        some = log[at:end]
        near = log[max(at - 3, 0) : end + 5]
        looks = sorted(
            [time + dice.randrange(-90, 3), dice.randrange(9), 1] for time, _ in dice.sample(near, min(4, len(near)))
        )
        new = {time for time, _ in dice.sample(near, min(9, len(near)))} - noted
        lines = [[time, dice.randrange(1, 9)] for time in sorted(new)]
        noted |= new
        gap = dice.random() < 0.02
        for one in both:
            one.looked(looks)
            one.lines(lines)
            if gap:
                one.lost(some[0][0])
            one.log(np.array(some, np.int64).tobytes())
        at, part = end, part + 1
        if part % every == 0:
            for one in both:
                one.play()
    for one in both:
        for began in (time for time, word in log if word & wire.KIND == wire.MARKS_IN):
            for count in range(12):
                one.marks(began, [1.0] * count)
        one.play()


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_the_same_comes_out(seed: int) -> None:
    dice = random.Random(seed)
    both = (Player(1000, Patterns()), Plainly(1000, Patterns()))
    play_both(dice, random_log(dice, 1500), both, every=dice.choice((3, 10**9)))
    quick, plainly = map(told, both)
    assert {name for name in quick if quick[name] != plainly[name]} == set()


def test_steps_that_repeat_are_not_played_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests here would show nothing."""
    fed = []
    real = Replay.feed
    monkeypatch.setattr(Replay, "feed", lambda self, words: (fed.append(len(words) // 2), real(self, words))[1])
    one = Player(0, Patterns())
    log = [(wire.NEXT_IN, 1), *([*USUAL[0], (wire.NEXT_IN, 1)] * 1000)]
    one.log(np.array([(10 * at, operand << SHIFT | kind) for at, (kind, operand) in enumerate(log, 1)]).tobytes())
    one.play()
    assert len(np.concatenate(one.rows)) == 1 + 1000
    assert sum(fed) < 50


# -- what is learnt -----------------------------------------------------------------------------------------------


def test_an_effect_says_which_intervals_make_up_which_phase() -> None:
    """By hand: after the batch 2 ns of own code, 3 forward, 5 loss with 4 blocked in it, 7 backward."""
    replay = Replay(0)
    replay.feed([1, 5 << SHIFT | wire.NEXT_IN])
    state = replay.state()
    assert state is not None
    words = np.array(
        [
            9 << SHIFT | wire.NEXT_OUT,
            MODEL << SHIFT | wire.MODEL_IN,
            wire.MODEL_OUT,
            4 << SHIFT | LEAF + wire.SYNC,
            wire.BACKWARD_IN,
            wire.BACKWARD_OUT,
            5 << SHIFT | wire.NEXT_IN,
        ]
    )
    effect = learn(state, plain(words).tolist())
    assert effect is not None
    [row] = effect.rows
    spent = {phase: dict(total.terms) for phase, total in row.spent}
    # 0: the wait, 1: own code, 2: forward, 3 and 4: the loss and what was blocked in it, 5: the rest of it, 6: backward
    assert spent == {
        wire.DATA_WAIT: {0: 1},
        OTHER: {1: 1, 7: 1},
        FORWARD: {2: 1},
        LOSS: {3: 1, 5: 1},
        wire.SYNC: {4: 1},
        BACKWARD: {6: 1},
    }
    assert (row.opened, row.backwards, row.iterator, row.end) == (BATCH, 1, -1, 6)
    assert row.samples.terms == ((0, 1),)
    assert effect.after == state


def test_what_looks_at_other_rows_is_not_learnt() -> None:
    replay = Replay(0)
    replay.feed([1, wire.NEXT_IN])
    state = replay.state()
    assert state is not None
    assert learn(state, [wire.NEXT_OUT, wire.COMPILED, wire.NEXT_IN]) is None
    assert learn(state, [wire.NEXT_OUT, wire.NAP_IN, wire.NEXT_IN]) is None


@pytest.mark.parametrize("seed", range(10))
def test_a_replay_goes_on_from_a_state_as_the_one_it_was_taken_of(seed: int) -> None:
    log = random_log(random.Random(seed), 1500)
    whole = Replay(1000)
    at = 0
    while at < 200 or whole.state() is None:
        whole.feed(log[at])
        at += 1
    state = whole.state()
    assert state is not None
    other = Replay(0)
    other.nap, other.closely = whole.nap, whole.closely.copy()
    other.go_on(state, whole.point())
    whole.rows.clear()
    for one in (whole, other):
        one.feed([number for event in log[at:] for number in event])
    assert whole.rows == other.rows
    assert len(whole.rows) > 1


class Resumed:
    """A player that is written down after each part that is played, and read back: another goes on."""

    def __init__(self, started: int) -> None:
        self._player = Player(started, Patterns())
        self._told: dict[str, list[Any]] = {name: [] for name in (*TABLES, "spans")}

    def __getattr__(self, name: str) -> Any:
        return self._told[name] if name in self._told else getattr(self._player, name)

    def play(self) -> None:
        self._player.play()
        for name, told in self._told.items():
            told += getattr(self._player, name)
        written = msgspec.msgpack.encode(self._player.saved())
        self._player = Player(0, Patterns())
        self._player.resume(msgspec.msgpack.decode(written, type=SavedPlayer))


@pytest.mark.parametrize("seed", range(8))
def test_a_player_goes_on_where_another_was_written_down(seed: int) -> None:
    dice = random.Random(seed)
    both = (Player(1000, Patterns()), Resumed(1000))
    play_both(dice, random_log(dice, 1500), both, every=3)
    whole, resumed = map(told, both)
    assert {name for name in whole if whole[name] != resumed[name]} == set()


# -- records ------------------------------------------------------------------------------------------------------


def read_both(record: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    quick = contents(record)
    monkeypatch.setattr(events, "Player", Plainly)
    return quick, contents(record)


def contents(record: Path) -> list[dict[str, Any]]:
    """All that was made of the files of a record."""
    reader = events.read_record(record)
    return [
        {
            **{name: getattr(one, name).tobytes() for name in ("rows", "device", "named", "fetches")},
            **{name: getattr(one, name) for name in ("samples", "stretches", "spans")},
        }
        for one in [*reader.processes.values(), *reader.workers.values()]
    ]


@pytest.mark.parametrize("packed", RECORDS)
def test_a_record_is_the_same_either_way(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(packed) as archive:
        inside = [member for member in archive.getmembers() if member.name.endswith(".rec")]
        archive.extractall(tmp_path, members=inside, filter="data")
    quick, plainly = read_both(tmp_path / "record", monkeypatch)
    assert quick == plainly
    assert sum(len(one["rows"]) for one in quick) > 0
