"""Exclusive time: whatever happens, the phases add up, and each nanosecond is where it belongs."""

import random

import pytest

from floorit.record import clock as clocks
from floorit.record import wire
from floorit.record.clock import PhaseClock
from floorit.record.wire import (
    BACKWARD,
    DATA_WAIT,
    EVAL,
    FORWARD,
    H2D,
    LOGGING,
    LOSS,
    OPTIMIZER,
    OTHER,
    PENDING,
    RECOMPUTE,
    SYNC,
)


class Time:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 1000

    def __call__(self):
        return self.now

    def passes(self, nanoseconds):
        self.now += nanoseconds


@pytest.fixture
def time(monkeypatch):
    fake = Time()
    monkeypatch.setattr(clocks, "perf_counter_ns", fake)
    return fake


@pytest.fixture
def clock(time):
    made = PhaseClock()
    made.cut()  # the stretch before: from here on the time is the user's own
    return made


def cut(clock):
    """What a stretch held, without the phases that are zero."""
    spent, _ = clock.cut()
    return {phase: ns for phase, ns in enumerate(spent) if ns}


def test_a_phase_gets_what_passed_in_it(clock, time):
    time.passes(5)
    depth = clock.enter(DATA_WAIT)
    time.passes(7)
    clock.leave(depth)
    time.passes(11)
    assert cut(clock) == {OTHER: 16, DATA_WAIT: 7}


def test_the_inner_phase_is_not_counted_in_the_outer(clock, time):
    outer = clock.enter(FORWARD)
    time.passes(3)
    inner = clock.enter(LOGGING)
    time.passes(4)
    clock.leave(inner)
    time.passes(5)
    clock.leave(outer)
    assert cut(clock) == {FORWARD: 8, LOGGING: 4}


def test_a_cut_inside_a_phase_splits_it(clock, time):
    depth = clock.enter(FORWARD)
    time.passes(3)
    assert cut(clock) == {FORWARD: 3}
    time.passes(4)
    clock.leave(depth)
    assert cut(clock) == {FORWARD: 4}


def test_a_cut_says_when_it_was(clock, time):
    time.passes(9)
    assert clock.cut()[1] == time.now


def test_after_a_forward_comes_the_loss_if_a_backward_follows(clock, time):
    depth = clock.enter_settling(FORWARD)
    time.passes(10)
    clock.leave_forward(depth)
    time.passes(6)
    clock.leave(clock.enter_settling(BACKWARD))
    time.passes(1)
    assert cut(clock) == {FORWARD: 10, LOSS: 6, OTHER: 1}


def test_after_a_forward_without_backward_the_time_is_the_users(clock, time):
    clock.leave_forward(clock.enter_settling(FORWARD))
    time.passes(6)
    assert cut(clock) == {OTHER: 6}


def test_two_forwards_before_the_loss(clock, time):
    clock.leave_forward(clock.enter_settling(FORWARD))
    time.passes(6)  # between two models: not the loss
    clock.leave_forward(clock.enter_settling(FORWARD))
    time.passes(7)
    clock.leave(clock.enter_settling(BACKWARD))
    assert cut(clock) == {OTHER: 6, LOSS: 7}


def test_without_modules_the_time_before_a_backward_is_the_forward(clock, time):
    time.passes(8)
    depth = clock.enter_settling(BACKWARD)
    time.passes(5)
    clock.leave(depth)
    assert cut(clock) == {FORWARD: 8, BACKWARD: 5}


def test_without_modules_and_without_backward_it_is_the_users(clock, time):
    time.passes(8)
    assert cut(clock) == {OTHER: 8}


def test_what_is_pending_does_not_outlive_the_optimizer(clock, time):
    time.passes(8)
    clock.leave(clock.enter_settling(OPTIMIZER))
    time.passes(2)
    assert cut(clock) == {OTHER: 10}


def test_logging_between_forward_and_backward_is_not_the_loss(clock, time):
    clock.leave_forward(clock.enter_settling(FORWARD))
    time.passes(1)
    depth = clock.enter(LOGGING)
    time.passes(20)
    clock.leave(depth)
    time.passes(2)
    clock.leave(clock.enter_settling(BACKWARD))
    assert cut(clock) == {LOSS: 3, LOGGING: 20}


def test_a_closure_inside_the_optimizer(clock, time):
    """LBFGS: forward, loss and backward inside the step; the rest of it is the optimizer's."""
    step = clock.enter_settling(OPTIMIZER)
    time.passes(1)
    for _ in range(3):
        depth = clock.enter_settling(FORWARD)
        time.passes(10)
        clock.leave_forward(depth)
        time.passes(4)
        depth = clock.enter_settling(BACKWARD)
        time.passes(20)
        clock.leave(depth)
        time.passes(2)
    clock.leave(step)
    time.passes(5)
    assert cut(clock) == {FORWARD: 30, LOSS: 12, BACKWARD: 60, OPTIMIZER: 7, OTHER: 5}


def test_recompute_inside_backward(clock, time):
    backward = clock.enter_settling(BACKWARD)
    time.passes(5)
    assert clock.in_backward()
    depth = clock.enter(RECOMPUTE)
    time.passes(7)
    assert clock.in_backward()
    clock.leave(depth)
    clock.leave(backward)
    assert not clock.in_backward()
    assert cut(clock) == {BACKWARD: 5, RECOMPUTE: 7}


def test_an_exception_leaves_inner_phases_open_and_the_outer_closes_them(clock, time):
    outer = clock.enter(EVAL)
    clock.enter(FORWARD)
    clock.enter(LOGGING)
    time.passes(3)
    clock.leave(outer)
    assert clock.current == PENDING
    assert clock.stack == []
    assert cut(clock) == {LOGGING: 3}


def test_leaving_twice_does_nothing(clock, time):
    depth = clock.enter(FORWARD)
    clock.leave(depth)
    time.passes(3)
    clock.leave(depth)
    assert cut(clock) == {OTHER: 3}


def test_an_optimizer_step_that_raised_ends_at_the_next_batch(clock, time):
    clock.enter_settling(OPTIMIZER)
    time.passes(3)
    clock.unwind()
    time.passes(4)
    assert clock.stack == []
    assert cut(clock) == {OPTIMIZER: 3, OTHER: 4}


def test_unwinding_leaves_a_forward_that_asks_for_batches_alone(clock):
    clock.enter_settling(FORWARD)
    clock.unwind()
    assert clock.current == FORWARD


def test_a_leaf_is_taken_out_of_the_phase_around_it(clock, time):
    depth = clock.enter(FORWARD)
    time.passes(3)
    started = time.now
    time.passes(5)
    clock.leaf(SYNC, started)
    time.passes(2)
    clock.leave(depth)
    assert cut(clock) == {FORWARD: 5, SYNC: 5}


def test_a_leaf_that_began_before_the_last_border_counts_from_there(clock, time):
    started = time.now
    time.passes(4)
    depth = clock.enter(FORWARD)
    time.passes(6)
    clock.leaf(H2D, started)
    clock.leave(depth)
    assert cut(clock) == {OTHER: 4, H2D: 6}


def test_a_leaf_inside_what_is_pending(clock, time):
    time.passes(2)
    started = time.now
    time.passes(3)
    clock.leaf(SYNC, started)
    time.passes(4)
    clock.leave(clock.enter_settling(BACKWARD))
    assert cut(clock) == {FORWARD: 6, SYNC: 3}


def test_samples_taken_while_pending_get_its_name(clock):
    taken = []
    clock.leave_forward(clock.enter_settling(FORWARD))
    clock.pending_samples.append((lambda *where: taken.append(where), 1, "user", "leaf"))
    clock.leave(clock.enter_settling(BACKWARD))
    assert taken == [(LOSS, 1, "user", "leaf")]
    assert clock.pending_samples == []


def test_the_device_hears_of_each_border_and_of_the_name(clock):
    class Device:
        def __init__(self):
            self.heard = []

        def mark(self, phase):
            self.heard.append(phase)

        def resolve(self, phase):
            self.heard.append(("resolve", phase))

    clock.device = Device()
    clock.leave_forward(clock.enter(FORWARD))
    clock.leave(clock.enter_settling(BACKWARD))
    heard = clock.device.heard
    assert heard[:2] == [PENDING, FORWARD]
    assert heard.index(PENDING) < heard.index(("resolve", LOSS))
    assert heard[-1] == BACKWARD


def _random_action(clock, dice, open_depths):
    """One of what probes do, in any order, however odd."""
    choice = dice.randrange(9)
    if choice == 0:
        open_depths.append(clock.enter(dice.randrange(len(wire.PHASES))))
    elif choice == 1 and open_depths:
        clock.leave(open_depths.pop(dice.randrange(len(open_depths))))
    elif choice == 2:
        open_depths.append(clock.enter_settling(FORWARD))
    elif choice == 3 and open_depths:
        clock.leave_forward(open_depths.pop())
    elif choice == 4:
        open_depths.append(clock.enter_settling(BACKWARD))
    elif choice == 5:
        open_depths.append(clock.enter_settling(OPTIMIZER))
    elif choice == 6:
        clock.leaf(SYNC, clocks.perf_counter_ns() - dice.randrange(5))
    elif choice == 7:
        clock.unwind()
    else:
        clock.leave_forward(clock.enter(FORWARD))


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_the_phases_add_up(clock, time, seed):
    dice = random.Random(seed)
    began, total, open_depths = time.now, 0, []
    for _ in range(200):
        time.passes(dice.randrange(10))
        _random_action(clock, dice, open_depths)
        if dice.random() < 0.1:
            spent, _ = clock.cut()
            total += sum(spent)
            assert spent[PENDING] == 0
            assert min(spent) >= 0
    total += sum(clock.cut()[0])
    assert total == time.now - began
