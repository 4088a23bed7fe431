"""Naps: when the hooks are taken out, what puts them back, and what becomes of the steps in between."""

from types import SimpleNamespace

import pytest
import torch
from conftest import truths
from test_replay import MODEL, Thread

from floorit import replay
from floorit.record import naps, wire
from floorit.record.log import Log
from floorit.record.probes import optimizer as optimizers
from floorit.record.wire import BACKWARD, DATA_WAIT, FORWARD, LOGGING, LOSS, OPTIMIZER, OTHER, SHIFT

STEP = 1_000_000  # nanoseconds


class Hook:
    """Knows whether it is in."""

    is_in = True

    def rest(self):
        self.is_in = False

    def reset(self):
        self.is_in = True


class Loop:
    """A training loop as the log sees it, at whatever pace it is told."""

    def __init__(self):
        self.log, self.hook, self.time = Log(), Hook(), 0
        self.log.alone = True
        self.log.lines = type("Lines", (), {"is_open": False, "wanted": 0})()
        self.log.naps.add(self.hook)

    @property
    def naps(self):
        return self.log.naps

    def trains(self, count, step=STEP, model=MODEL, backwards=1):
        """So many steps are judged; none is at a border yet."""
        for _ in range(count):
            words = [1 << SHIFT | wire.NEXT_IN, 5 << SHIFT | wire.NEXT_OUT, model << SHIFT | wire.MODEL_IN]
            words += [wire.MODEL_OUT, *[wire.BACKWARD_IN, wire.BACKWARD_OUT] * backwards, wire.STEP_IN, wire.STEP_OUT]
            self.naps.judge([(self.time, word) for word in words])
            self.time += step
        return self

    def asks_for_a_batch(self, times=1):
        for _ in range(times):
            self.log.batch_came = True
            self.log.at_border(1 << SHIFT | wire.NEXT_IN)
            self.log.backwards += not self.naps.is_asleep
        return self


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def asleep(loop):
    loop.trains(naps.ALIKE + 1).asks_for_a_batch(naps.AWAKE + 1)
    assert loop.naps.is_asleep
    assert not loop.hook.is_in
    return loop


def test_few_steps_are_not_enough(loop):
    loop.trains(naps.ALIKE).asks_for_a_batch(naps.AWAKE + 1)
    assert not loop.naps.is_asleep
    assert loop.hook.is_in


def test_long_steps_are_all_looked_at(loop):
    assert not loop.trains(naps.ALIKE * 2, step=20 * STEP).naps.is_regular


@pytest.mark.parametrize("odd", [{"backwards": 2}, {"backwards": 0}, {"model": wire.TRAINED}])
def test_steps_that_are_not_alike_are_all_looked_at(loop, odd):
    loop.trains(naps.ALIKE).trains(1, **odd).trains(naps.ALIKE - 1)
    assert not loop.naps.is_regular


def test_evaluation_between_passes_is_nothing_odd(loop):
    loop.trains(naps.ALIKE)
    for word in (2 << SHIFT | wire.NEXT_IN, wire.TRAINED << SHIFT | wire.MODEL_IN, wire.MODEL_OUT):
        loop.naps.judge([(loop.time, word)])
    assert loop.trains(2).naps.is_regular


def test_it_does_not_nap_where_nothing_trains(loop):
    loop.trains(naps.ALIKE + 1).asks_for_a_batch(naps.AWAKE + 1)
    loop.naps.wake(naps.BETWEEN)  # another pass begins: it evaluates
    for _ in range(2 * naps.AWAKE):
        loop.log.at_border(2 << SHIFT | wire.NEXT_IN)
    assert loop.hook.is_in


def test_a_look_wakes_it_for_some_steps(asleep):
    asleep.naps.call()
    asleep.asks_for_a_batch()
    assert asleep.hook.is_in
    asleep.asks_for_a_batch(naps.AWAKE - 1)
    assert asleep.hook.is_in
    asleep.asks_for_a_batch(1)
    assert not asleep.hook.is_in


def test_woken_between_two_borders_it_naps_again_soon(asleep):
    asleep.naps.wake(naps.BETWEEN)  # a pass over the data has ended
    for _ in range(naps.BETWEEN + 1):
        assert asleep.log.attend is not None
        asleep.asks_for_a_batch()
    assert asleep.naps.is_asleep


@pytest.mark.parametrize("what", ["window", "counting", "due", "stop_at"])
def test_what_is_to_be_done_at_a_border_wakes_it(asleep, what):
    setattr(asleep.log, what, 10**9 if what == "stop_at" else object())
    assert asleep.naps.must_wake()


def test_another_thread_wakes_it(asleep):
    asleep.log.alone = False
    assert asleep.naps.must_wake()


def test_a_step_that_takes_long_is_a_surprise(asleep):
    long = naps.LONG_AT_LEAST
    asleep.naps.judge([(0, wire.NAP_IN), (long // 2, wire.NAP_STEP), (long, wire.NAP_STEP)])
    assert asleep.naps.is_regular
    asleep.naps.judge([(2 * long + 1, wire.NAP_STEP)])
    assert not asleep.naps.is_regular
    asleep.asks_for_a_batch()
    assert asleep.hook.is_in


def test_a_second_step_without_a_batch_is_a_surprise(asleep):
    session = SimpleNamespace(log=asleep.log, torch=torch)
    steps, optimizer = optimizers._Steps(session), object.__new__(torch.optim.SGD)
    steps._numbers.learn(optimizer, 0)
    after = steps.in_nap()
    asleep.log.batch_came = True
    after(optimizer, (), {})
    assert asleep.naps.is_asleep
    after(optimizer, (), {})
    assert asleep.hook.is_in
    assert [word for _, word in asleep.log.events[-3:]] == [wire.NAP_STEP, wire.NAP_STEP, wire.NAP_OUT]


def test_each_surprise_makes_it_wait_twice_as_long(loop):
    for needed in (2 * naps.ALIKE, 4 * naps.ALIKE):
        loop.naps.surprised()
        assert not loop.trains(needed - 1).naps.is_regular
        assert loop.trains(2).naps.is_regular  # a row is judged when the next begins


def test_steps_that_never_are_alike_are_not_judged_for_ever(loop):
    loop.trains(naps.PATIENCE + 2, backwards=2)
    assert not loop.trains(2 * naps.ALIKE).naps.is_regular


def test_a_surprise_late_in_a_run_is_no_reason_to_give_up(loop):
    loop.trains(naps.PATIENCE + naps.ALIKE).naps.surprised()
    assert loop.trains(2 * naps.ALIKE + 1).naps.is_regular


def test_a_forked_child_has_its_hooks(asleep):
    asleep.naps.forget()
    assert asleep.hook.is_in
    assert not asleep.naps.is_asleep


@pytest.mark.xdist_group("short_steps")
def test_a_program_of_short_steps_has_napped(runs):
    (truth,) = [truth for truth in truths() if truth.name == "short_steps"]
    facts = runs.recorded(truth).report["run"]
    assert facts["steps"] == truth["steps"]
    assert 0.1 * truth["steps"] < facts["counted_steps"] < truth["steps"]


# -- played back --------------------------------------------------------------------------------------------------


def closely(thread, count=10):
    """Steps of 100 with 40 forward, 20 loss, 30 backward and 10 in the optimizer, after a batch of 5."""
    for _ in range(count):
        thread.batch(5).model(40).passes(20).backward(30).step(10)
    return thread


def napping(thread, count, nanoseconds=100):
    for number in range(count):
        thread.does(wire.NEXT_IN, 1)
        if not number:
            thread.does(wire.NAP_IN)
        thread.does(wire.NEXT_OUT, 5, after=5).does(wire.NAP_STEP, 0, after=nanoseconds)
    return thread


def test_a_nap_is_divided_as_the_steps_before_it():
    thread = closely(Thread())
    before = thread.replay.rows[-1].spent
    napping(thread, 5).does(wire.NAP_OUT).batch()
    napped = [row for row in thread.rows() if row.flags & replay.NAP]
    assert [row.spent for row in napped] == [before] * 5
    assert before[FORWARD] == 40
    assert before[LOSS] == 20
    assert before[BACKWARD] == 30
    assert before[OPTIMIZER] == 10


def test_steps_of_a_nap_are_counted():
    thread = closely(Thread(), 3)
    rows = napping(thread, 4).does(wire.NAP_OUT).batch().rows()
    assert sum(row.steps for row in rows) == sum(row.backwards for row in rows) == 7
    assert sum(row.samples for row in rows if row.opened == replay.BATCH) == 4 * 8


def test_a_batch_that_ends_the_loop_is_no_step():
    thread = napping(closely(Thread(), 3), 2)
    rows = thread.does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 5).passes(3).rows()
    assert sum(row.backwards for row in rows) == 5


def test_a_step_that_a_scaler_skips_was_a_backward_pass():
    thread = napping(closely(Thread(), 3), 2)
    thread.does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 5).passes(80)
    rows = thread.does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 5).does(wire.NAP_STEP, 0, after=80).rows()
    assert sum(row.backwards for row in rows) == 7
    assert sum(row.steps for row in rows) == 6


def test_what_is_told_in_a_nap_stays_what_it_is():
    thread = closely(Thread())
    thread.does(wire.NEXT_IN, 1).does(wire.NAP_IN).does(wire.NEXT_OUT, 5, after=7).phase(LOGGING, 11)
    row = thread.does(wire.NAP_STEP, 0, after=100).does(wire.NAP_OUT).batch().rows()[-2]
    assert row.spent[LOGGING] == 11
    assert row.spent[DATA_WAIT] == 7
    assert row.spent[FORWARD] == 40


def held_up(thread, count):
    """Steps of 1,000, 920 of them in the loss."""
    for _ in range(count):
        thread.batch(5).model(40).passes(920).backward(30).step(10)
    return thread


def test_a_step_that_was_held_up_does_not_tell_how_others_are_divided():
    thread = held_up(closely(Thread(), 20), replay.MANY_LONG - 1)
    napping(thread, 3)
    usual, long = napping(thread, 1, 1000).does(wire.NAP_OUT).batch().rows()[-3:-1]
    assert (usual.spent[FORWARD], usual.spent[LOSS]) == (40, 20)
    assert (long.spent[FORWARD], long.spent[LOSS]) == (400, 200)


def test_where_many_steps_are_long_those_are_divided_as_long_ones():
    thread = held_up(closely(Thread(), 20), replay.MANY_LONG)
    napping(thread, 3)
    usual, long = napping(thread, 1, 1000).does(wire.NAP_OUT).batch().rows()[-3:-1]
    assert (usual.spent[FORWARD], usual.spent[LOSS]) == (40, 20)
    assert (long.spent[FORWARD], long.spent[LOSS]) == (40, 920)


def test_what_is_far_longer_than_a_step_is_not_divided():
    thread = closely(Thread())
    row = napping(thread, 1, 100 * (replay.MOST + 50)).does(wire.NAP_OUT).batch().rows()[-2]
    assert row.spent[OTHER] == 100 * 50
    assert row.spent[FORWARD] == 40 * replay.MOST


def test_looks_in_a_nap_are_left_out_where_their_phase_is_not_known():
    thread = closely(Thread())
    for after in (2, 50):  # in the wait for the batch, and after it
        thread.replay.look(thread.time + after, 1, 1)
    napping(thread, 1)
    assert [look.phase for look in thread.replay.looks] == [DATA_WAIT]


def test_the_first_step_of_a_pass_divides_no_nap():
    thread = closely(Thread())
    before = thread.replay.rows[-1].spent
    for _ in range(replay.CLOSELY):
        napping(thread, 1).does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 0).does(wire.NAP_OUT)  # the pass is over
        thread.batch(5).model(400).passes(20).backward(30).step(10)  # and the model's first call takes long
    napping(thread, 3).does(wire.NAP_OUT).batch()
    assert thread.rows()[-2].spent == before
