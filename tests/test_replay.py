"""Exclusive time: whatever the log says, the phases add up, and each nanosecond is where it belongs."""

import random
from itertools import pairwise

import pytest

from floorit import replay
from floorit.record import wire
from floorit.record.wire import (
    BACKWARD,
    CHECKPOINT,
    DATA_WAIT,
    EPOCH_GAP,
    EVAL,
    FORWARD,
    H2D,
    IN,
    LEAF,
    LOGGING,
    LOSS,
    OPTIMIZER,
    OTHER,
    OUT,
    RECOMPUTE,
    SHIFT,
    SYNC,
)
from floorit.replay import Replay

MODEL = wire.TRAINED | wire.WITH_GRAD


class Thread:
    """Logs what a training thread does; the time passes when it is told to."""

    def __init__(self, began=1000):
        self.time = began
        self.replay = Replay(began)
        self.fed = 0

    def does(self, kind, operand=0, after=0):
        self.time += after
        self.replay.feed([self.time, operand << SHIFT | kind])
        return self

    def passes(self, nanoseconds):
        self.time += nanoseconds
        return self

    def phase(self, phase, nanoseconds):
        return self.does(IN + phase).does(OUT + phase, after=nanoseconds)

    def model(self, nanoseconds, facts=MODEL):
        return self.does(wire.MODEL_IN, facts).does(wire.MODEL_OUT, after=nanoseconds)

    def backward(self, nanoseconds=0, facts=0):
        return self.does(wire.BACKWARD_IN, facts).does(wire.BACKWARD_OUT, after=nanoseconds)

    def step(self, nanoseconds=0, optimizer=0):
        return self.does(wire.STEP_IN, optimizer << 1).does(wire.STEP_OUT, optimizer, after=nanoseconds)

    def batch(self, nanoseconds=0, samples=4, iterator=1):
        return self.does(wire.NEXT_IN, iterator).does(wire.NEXT_OUT, samples + 1, after=nanoseconds)

    def rows(self):
        """The rows since the last call, the open one closed."""
        self.does(wire.END)
        rows, self.replay.rows = self.replay.rows, []
        return rows

    def spent(self):
        """Nanoseconds by phase so far, without the phases that are zero."""
        total = [sum(column) for column in zip(*[row.spent for row in self.rows()], strict=True)]
        return {phase: ns for phase, ns in enumerate(total) if ns}


@pytest.fixture
def thread():
    return Thread()


# -- phases -------------------------------------------------------------------------------------------------------


def test_a_phase_gets_what_passed_in_it(thread):
    thread.passes(5).phase(DATA_WAIT, 7).passes(11)
    assert thread.spent() == {OTHER: 16, DATA_WAIT: 7}


def test_the_inner_phase_is_not_counted_in_the_outer(thread):
    thread.does(IN + CHECKPOINT).passes(3).phase(LOGGING, 4).does(OUT + CHECKPOINT, after=5)
    assert thread.spent() == {CHECKPOINT: 8, LOGGING: 4}


def test_after_a_forward_comes_the_loss_if_a_backward_follows(thread):
    thread.model(10).passes(6).backward().passes(1)
    assert thread.spent() == {FORWARD: 10, LOSS: 6, OTHER: 1}


def test_after_a_forward_without_backward_the_time_is_the_users(thread):
    thread.model(10).passes(6)
    assert thread.spent() == {FORWARD: 10, OTHER: 6}


def test_two_forwards_before_the_loss(thread):
    thread.model(10).passes(6)  # between two models: not the loss
    thread.model(1).passes(7).backward()
    assert thread.spent() == {FORWARD: 11, OTHER: 6, LOSS: 7}


def test_a_loss_that_the_model_returned_leaves_nothing_for_after_it(thread):
    thread.model(10).passes(6).backward(2, wire.LOSS_KNOWN)
    assert thread.spent() == {FORWARD: 10, OTHER: 6, BACKWARD: 2}


def test_without_modules_the_time_before_a_backward_is_the_forward(thread):
    thread.passes(8).backward(5)
    assert thread.spent() == {FORWARD: 8, BACKWARD: 5}


def test_without_modules_and_without_backward_it_is_the_users(thread):
    thread.passes(8)
    assert thread.spent() == {OTHER: 8}


def test_what_is_pending_does_not_outlive_the_optimizer(thread):
    thread.passes(8).step().passes(2)
    assert thread.spent() == {OTHER: 10}


def test_logging_between_forward_and_backward_is_not_the_loss(thread):
    thread.model(0).passes(1).phase(LOGGING, 20).passes(2).backward()
    assert thread.spent() == {LOSS: 3, LOGGING: 20}


def test_a_module_called_after_the_model_that_nothing_trains_is_the_loss(thread):
    thread.model(10).model(5, wire.WITH_GRAD).passes(2).backward()
    assert thread.spent() == {FORWARD: 10, LOSS: 7}


def test_a_module_with_loss_in_its_name_is_the_loss(thread):
    thread.model(10).model(5, wire.OF_LOSS | wire.WITH_GRAD).backward()
    assert thread.spent() == {FORWARD: 10, LOSS: 5}


def test_without_gradients_and_not_in_training_it_is_evaluation(thread):
    thread.model(4, wire.TRAINED).model(3, wire.TRAINED | wire.TRAINING)
    assert thread.spent() == {EVAL: 4, FORWARD: 3}


def test_a_network_that_nothing_trains_is_judged_after_the_step(thread):
    """An average of the weights that samples are drawn from; before the step it is a teacher."""
    thread.batch().model(3, 0).model(5).backward(6).step(7).model(20, 0).passes(2).model(20, 0)
    thread.batch().model(3, 0).model(5).backward(6).step(7)
    assert thread.spent() == {FORWARD: 16, BACKWARD: 12, OPTIMIZER: 14, EVAL: 40, OTHER: 2}


def test_it_is_not_if_more_is_trained_with_the_same_batch(thread):
    """Two optimizers in turn, and a teacher before the second."""
    thread.replay.look(1025, 1, 0)
    thread.batch().model(5).backward(6).step(7).model(20, 0).model(5).backward(6).step(7, 1)
    assert [look.phase for look in thread.replay.looks] == [FORWARD]
    assert thread.spent() == {FORWARD: 30, BACKWARD: 12, OPTIMIZER: 14}


def test_a_closure_inside_the_optimizer(thread):
    """LBFGS: forward, loss and backward inside the step; the rest of it is the optimizer's."""
    thread.does(wire.STEP_IN, 1).passes(1)
    for _ in range(3):
        thread.model(10).passes(4).backward(20).passes(2)
    thread.does(wire.STEP_OUT).passes(5)
    assert thread.spent() == {FORWARD: 30, LOSS: 12, BACKWARD: 60, OPTIMIZER: 6, OTHER: 6}


def test_recompute_inside_backward(thread):
    thread.does(wire.BACKWARD_IN).passes(5).model(7).phase(RECOMPUTE, 3).does(wire.BACKWARD_OUT, after=1)
    assert thread.spent() == {BACKWARD: 6, RECOMPUTE: 10}


def test_what_looks_like_recompute_outside_of_backward_is_not(thread):
    thread.does(IN + CHECKPOINT).phase(RECOMPUTE, 3).does(OUT + CHECKPOINT, after=1)
    assert thread.spent() == {CHECKPOINT: 4}


def test_a_backward_inside_a_backward_is_one_pass(thread):
    thread.does(wire.BACKWARD_IN).passes(5).backward(7).does(wire.BACKWARD_OUT, after=1)
    rows = thread.rows()
    assert sum(row.backwards for row in rows) == 1
    assert sum(row.spent[BACKWARD] for row in rows) == 13


def test_a_gradient_taken_inside_the_loss(thread):
    thread.model(10).passes(2).backward(5, wire.WITHOUT_ACCUMULATING).passes(3).backward(7)
    assert thread.spent() == {FORWARD: 10, LOSS: 5, BACKWARD: 12}


def test_an_exception_leaves_inner_phases_open_and_the_outer_closes_them(thread):
    thread.does(IN + EVAL).does(IN + CHECKPOINT).does(IN + LOGGING).does(OUT + EVAL, after=3).passes(2)
    assert thread.spent() == {LOGGING: 3, OTHER: 2}


def test_leaving_what_is_not_open_does_nothing(thread):
    thread.phase(LOGGING, 1).does(OUT + LOGGING).does(wire.MODEL_OUT).does(wire.STEP_OUT).passes(3)
    assert thread.spent() == {LOGGING: 1, OTHER: 3}


def test_an_optimizer_step_that_raised_ends_at_the_next_batch(thread):
    thread.does(wire.STEP_IN).passes(3).batch(4).passes(5)
    assert thread.spent() == {OPTIMIZER: 3, DATA_WAIT: 4, OTHER: 5}


def test_an_optimizer_step_that_raised_ends_at_its_next_step(thread):
    thread.does(wire.STEP_IN).passes(3).step(2).passes(5)
    assert thread.spent() == {OPTIMIZER: 5, OTHER: 5}


def test_a_forward_that_asks_for_batches_goes_on(thread):
    thread.does(wire.MODEL_IN, MODEL).passes(1).batch(2).does(wire.MODEL_OUT, after=3)
    assert thread.spent() == {FORWARD: 4, DATA_WAIT: 2}


def test_a_leaf_is_taken_out_of_the_phase_around_it(thread):
    thread.does(IN + CHECKPOINT).passes(8).does(LEAF + SYNC, 5).does(OUT + CHECKPOINT, after=2)
    assert thread.spent() == {CHECKPOINT: 5, SYNC: 5}


def test_a_leaf_that_began_before_the_last_border_counts_from_there(thread):
    thread.passes(4).does(IN + CHECKPOINT).passes(6).does(LEAF + H2D, 10).does(OUT + CHECKPOINT)
    assert thread.spent() == {OTHER: 4, H2D: 6}


def test_a_leaf_inside_what_is_pending(thread):
    thread.passes(5).does(LEAF + SYNC, 3).passes(4).backward()
    assert thread.spent() == {FORWARD: 6, SYNC: 3}


def test_time_never_goes_back(thread):
    thread.passes(10).does(IN + LOGGING)
    thread.time -= 5
    thread.does(OUT + LOGGING).passes(20)
    assert thread.spent() == {OTHER: 25}


# -- rows ---------------------------------------------------------------------------------------------------------


def test_one_row_a_batch(thread):
    for _ in range(3):
        thread.batch(1, samples=7).model(2).backward(3).step(4)
    first, *rows, last = thread.rows()
    assert first.opened == replay.START
    assert [(r.opened, r.samples, r.backwards, r.steps) for r in rows] == [(replay.BATCH, 7, 1, 1)] * 3
    assert sum(last.spent) == 0


def test_without_a_loader_a_row_a_step(thread):
    for _ in range(3):
        thread.model(2).backward(3).step(4)
    rows = [row for row in thread.rows() if row.steps]
    assert [row.opened for row in rows] == [replay.BACKWARD_CALL, replay.OPTIMIZER_STEP, replay.OPTIMIZER_STEP]


def test_without_an_optimizer_a_row_a_backward(thread):
    for _ in range(3):
        thread.passes(2).backward(3)
    assert [row.backwards for row in thread.rows()] == [1, 1, 1, 0]


def test_a_batch_that_did_not_come_is_the_gap_between_epochs(thread):
    thread.batch(1).backward(1).step(1).does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 0, after=9)
    *_, gap = thread.rows()
    assert gap.opened == replay.EXHAUSTED
    assert gap.spent[EPOCH_GAP] == 9
    assert gap.spent[DATA_WAIT] == 0


def test_the_first_batch_of_workers_is_a_gap_and_the_queue_is_told(thread):
    thread.does(wire.READY, 3).does(wire.NEXT_FRESH_IN, 5).does(wire.NEXT_OUT, 2, after=9)
    row = thread.rows()[-1]
    assert (row.iterator, row.samples, row.ready, row.spent[EPOCH_GAP]) == (5, 1, 3, 9)


def test_a_loader_inside_a_loader_is_the_outer_ones_wait(thread):
    thread.does(wire.NEXT_IN, 1).passes(2).batch(3, iterator=2).does(IN + EPOCH_GAP).does(OUT + EPOCH_GAP, after=4)
    thread.does(wire.NEXT_OUT, 9, after=5).passes(1)
    *_, row = thread.rows()
    assert (row.iterator, row.samples) == (1, 8)
    assert row.spent[DATA_WAIT] == 14


def test_a_wrapper_around_an_optimizer_makes_one_step(thread):
    thread.batch().does(wire.STEP_IN, 0 << 1).step(3, optimizer=1).does(wire.STEP_OUT, 0, after=2)
    assert sum(row.steps for row in thread.rows()) == 1


def test_many_steps_on_one_batch_are_rows_of_their_own(thread):
    thread.batch(1)
    for _ in range(4):
        thread.backward(3).step(4)
    assert [row.steps for row in thread.rows()] == [0, 1, 1, 1, 1, 0]


def test_compiling_is_told_of_the_longest_row_of_that_time(thread):
    for length in (1, 50, 2):
        thread.batch(1).backward(length).step(1)
    thread.does(wire.COMPILED, 1000)
    assert [bool(row.flags & replay.COMPILED) for row in thread.rows()] == [False, False, True, False, False]


def test_after_a_probe_has_failed_what_it_began_does_not_go_on(thread):
    thread.does(wire.NEXT_IN, 1).passes(3).does(wire.FAILED).passes(4).backward(5).passes(6)
    assert thread.spent() == {DATA_WAIT: 3, OTHER: 10, BACKWARD: 5}


def test_where_a_part_of_the_log_is_lost_only_its_rows_are(thread):
    thread.batch(1).backward(2).step(3).batch(4)
    thread.passes(1000).replay.skip(thread.time)
    thread.does(wire.BACKWARD_OUT).passes(5).batch(6).backward(7).step(8)
    rows = thread.rows()
    assert [sum(row.spent) for row in rows] == [0, 6, 0, 5, 21, 0]
    assert [row.opened for row in rows[2:4]] == [replay.EXHAUSTED, replay.EXHAUSTED]
    assert rows[2].end == rows[3].end - 5


def test_another_thread_turns_out_to_train(thread):
    thread.does(IN + LOGGING).passes(5).does(wire.ADOPTED, 3).passes(2).backward(7)
    before, row, *_ = thread.rows()
    assert sum(before.spent) == 5
    assert (row.opened, row.iterator) == (replay.BATCH, 3)
    assert row.spent[BACKWARD] == 7


# -- what comes with the log --------------------------------------------------------------------------------------


def test_looks_are_named_by_the_phase_they_fell_into(thread):
    for time in (1003, 1012, 1017, 1025):
        thread.replay.look(time, time, 0)
    thread.passes(5).model(10).passes(5).backward(10)  # 1005, 1015, 1020, 1030
    phases = {look.time: look.phase for look in thread.replay.looks}
    assert phases == {1003: OTHER, 1012: FORWARD, 1017: LOSS, 1025: BACKWARD}


def test_a_look_into_a_leaf_is_the_leafs(thread):
    """What it is, is told when it is over; the looks have come before."""
    for time in (1003, 1012, 1017, 1025):
        thread.replay.look(time, time, 0)
    thread.passes(5).does(LEAF + SYNC, 10, after=15).passes(6).does(wire.END)  # 1010 to 1020
    assert [look.phase for look in thread.replay.looks] == [SYNC, SYNC, OTHER, OTHER]  # the last, when it is settled


def test_marks_on_the_gpu_are_booked_to_the_phase_that_ended_there(thread):
    thread.batch().does(wire.MARKS_IN).passes(2)
    began = thread.time - 2
    thread.model(10).passes(3).does(LEAF + SYNC, 1).backward(20).does(wire.MARKS_OUT, after=1)
    thread.replay.marks(began, [1, 2, 4, 8, 16])  # up to: model in, out, backward in, out, end
    [(row, seconds)] = thread.replay.device
    assert row == 1
    assert {phase: round(s * 1e3) for phase, s in enumerate(seconds) if s} == {
        OTHER: 17,
        FORWARD: 2,
        LOSS: 4,
        BACKWARD: 8,
    }


def test_marks_that_do_not_fit_the_log_are_left_out(thread):
    began = thread.does(wire.MARKS_IN).time
    thread.model(10).does(wire.MARKS_OUT)
    thread.replay.marks(began, [1.0])
    thread.replay.marks(began + 1, [1.0])
    assert thread.replay.device == []


def test_time_after_an_event_from_a_known_line_is_that_lines(thread):
    for time, place in ((1005, 7), (1015, 8), (1020, 9)):
        thread.replay.line(time, place)
    thread.passes(5).model(10).passes(5).phase(LOGGING, 10).passes(4).step()  # 1005, 1015, 1020, 1030, 1034
    found = [(s.place, s.phase, s.nanoseconds) for s in thread.replay.stretches]
    assert found == [(7, FORWARD, 10), (9, LOGGING, 10), (8, OTHER, 5)]


def test_words_of_a_kind_not_known_are_passed_over(thread):
    thread.passes(3).does(200, 7)
    assert thread.spent() == {OTHER: 3}


@pytest.mark.parametrize("seed", range(50))
def test_whatever_happens_the_phases_add_up(thread, seed):
    dice = random.Random(seed)
    kinds = list(range(wire.MODEL_IN, wire.END))
    kinds += [base + phase for base in (IN, OUT, LEAF) for phase in range(len(wire.PHASES))]
    began = thread.time
    for _ in range(300):
        thread.does(dice.choice(kinds), dice.randrange(12), after=dice.randrange(10))
    rows = thread.rows()
    assert sum(sum(row.spent) for row in rows) == thread.time - began
    assert [row.end for row in rows] == sorted(row.end for row in rows)


# -- the kernel window --------------------------------------------------------------------------------------------


def test_rows_that_the_window_touches_are_marked_and_no_others(thread):
    for i in range(6):
        thread.batch(3)
        if i == 2:
            thread.does(wire.WINDOW_IN)
        if i == 4:
            thread.does(wire.WINDOW_OUT)
        thread.model(10).backward(5).step(2)
    flags = [bool(row.flags & replay.WINDOW) for row in thread.rows() if row.opened == replay.BATCH]
    assert flags == [False, False, True, True, True, False]


def test_a_row_that_is_split_stays_marked(thread):
    thread.batch(3).does(wire.WINDOW_IN)
    thread.backward(5).step(1).backward(5).step(1)  # its second step: the row is split at the first
    rows = [row for row in thread.rows() if row.backwards]
    assert len(rows) == 2
    assert all(row.flags & replay.WINDOW for row in rows)


def test_the_windows_spans_are_exclusive_whole_and_named(thread):
    thread.batch(3).does(wire.WINDOW_IN)
    began = thread.time
    thread.model(10).passes(4).does(LEAF + SYNC, 3).backward(5).step(2)
    thread.passes(6).does(wire.WINDOW_OUT)
    thread.model(1)
    spans = thread.replay.spans
    assert [(s.phase, s.end - s.begin) for s in sorted(spans, key=lambda s: s.begin)] == [
        (FORWARD, 10),
        (LOSS, 1),
        (SYNC, 3),
        (BACKWARD, 5),
        (OPTIMIZER, 2),
        (OTHER, 6),
    ]
    ordered = sorted(spans, key=lambda s: s.begin)
    assert ordered[0].begin == began
    assert all(a.end == b.begin for a, b in pairwise(ordered))


def test_a_span_has_the_line_of_the_event_it_began_at_and_a_leaf_its_own(thread):
    thread.batch(3).does(wire.WINDOW_IN)
    thread.replay.line(thread.time, 7)
    thread.does(IN + LOGGING).passes(4)
    thread.replay.line(thread.time, 9)
    thread.does(LEAF + SYNC, 3).does(OUT + LOGGING, after=2)
    assert [(s.phase, s.end - s.begin, s.place) for s in thread.replay.spans] == [
        (LOGGING, 1, 7),
        (SYNC, 3, 9),
        (LOGGING, 2, 7),
    ]


def test_samples_of_each_backward_pass_count_where_no_loader_counts_them(thread):
    for _ in range(2):
        for _ in range(4):
            thread.model(2, MODEL | 12 << wire.SAMPLES_SHIFT).backward(3)
        thread.step(1)
    assert sum(row.samples for row in thread.rows()) == 2 * 4 * 12


def test_two_models_called_for_one_backward_pass_see_the_same_samples(thread):
    thread.model(2, MODEL | 12 << wire.SAMPLES_SHIFT).model(2, MODEL | 12 << wire.SAMPLES_SHIFT).backward(3).step(1)
    assert sum(row.samples for row in thread.rows()) == 12


# -- batches that are read ahead ----------------------------------------------------------------------------------


def test_backward_passes_after_one_batch_have_a_row_each(thread):
    """It may be that each is the work on a batch of its own, all of them read at once."""
    thread.batch(1).batch(2).batch(3)
    for work in (10, 20, 40):
        thread.model(work).backward(work).passes(7)
    rows = thread.step(5).batch(1, iterator=1).rows()
    assert [row.opened for row in rows[1:6]] == [replay.BATCH] * 3 + [replay.BACKWARD_CALL] * 2
    assert [sum(row.spent) for row in rows[1:6]] == [1, 2, 3 + 20 + 7, 40 + 7, 80 + 7 + 5]
    assert [row.backwards for row in rows[1:6]] == [0, 0, 1, 1, 1]
    assert [row.samples for row in rows[1:6]] == [4, 4, 4, 0, 0]
    assert [row.steps for row in rows[1:6]] == [0, 0, 0, 0, 1]


def test_work_after_the_last_batch_is_told_from_what_follows_it(thread):
    thread.batch(1).does(wire.NEXT_IN, 1).does(wire.NEXT_OUT, 0, after=2)  # one batch, and then none
    rows = thread.model(10).backward(20).step(5).passes(100).batch(1, iterator=2).rows()
    exhausted = [row for row in rows if row.opened == replay.EXHAUSTED]
    assert [(row.backwards, row.steps, sum(row.spent)) for row in exhausted] == [(1, 1, 37), (0, 0, 100)]


# -- closures -----------------------------------------------------------------------------------------------------


def closure(thread, forward=10, loss=4, backward=20, after=7):
    """One call of a closure as Lightning makes it, callbacks after the backward pass included."""
    thread.does(wire.CLOSURE_IN).passes(3).model(forward).passes(loss).backward(backward).passes(after)
    return thread.phase(OPTIMIZER, 2).passes(1).does(wire.CLOSURE_OUT)  # clips


def test_what_follows_the_backward_pass_in_a_closure_is_the_programs(thread):
    closure(thread.batch(1).does(wire.STEP_IN, 1)).does(wire.STEP_OUT, 0, after=50)
    expected = {DATA_WAIT: 1, FORWARD: 10, LOSS: 4, BACKWARD: 20, OTHER: 3 + 7 + 1, OPTIMIZER: 2 + 50}
    assert thread.spent() == expected


def test_a_closure_that_is_called_again_and_again(thread):
    thread.batch(1).does(wire.STEP_IN, 1)
    for _ in range(3):
        closure(thread).passes(5)
    thread.does(wire.STEP_OUT, 0)
    assert thread.spent() == {DATA_WAIT: 1, FORWARD: 30, LOSS: 12, BACKWARD: 60, OTHER: 33, OPTIMIZER: 6 + 15}


def test_a_closure_without_a_backward_pass(thread):
    thread.batch(1).does(wire.STEP_IN, 1).does(wire.CLOSURE_IN).model(10).passes(4).does(wire.CLOSURE_OUT)
    thread.does(wire.STEP_OUT, 0, after=50).model(10).passes(6).backward(1)
    assert thread.spent() == {DATA_WAIT: 1, FORWARD: 20, OTHER: 4, OPTIMIZER: 50, LOSS: 6, BACKWARD: 1}


def test_a_closure_outside_of_any_step_is_nothing(thread):
    """The step before ended by an exception, and somebody else switches gradients on."""
    thread.batch(1).does(wire.CLOSURE_IN).passes(5).does(wire.CLOSURE_OUT).model(2).backward(3)
    assert thread.spent() == {DATA_WAIT: 1, OTHER: 5, FORWARD: 2, BACKWARD: 3}


def test_what_follows_the_last_batch_of_an_evaluation_that_is_left_is_a_row(thread):
    """Nobody asks it for another: a loop with a break, or a loader without an end."""
    judged = wire.TRAINED
    thread.batch().model(5).backward(6).step(7)
    for _ in range(2):
        thread.batch(1, iterator=2).model(10, judged).passes(3)
    thread.phase(CHECKPOINT, 40).passes(2)
    thread.batch().model(5).backward(6).step(7)
    *_, judging, left, _, _ = thread.rows()
    assert (judging.opened, left.opened, left.iterator, left.samples) == (replay.BATCH, replay.LEFT, 2, 0)
    assert sum(judging.spent) == 1 + 10
    assert (left.spent[CHECKPOINT], left.spent[OTHER]) == (40, 3 + 2)


def test_a_batch_that_is_trained_with_after_a_call_without_gradient_is_one_row(thread):
    thread.batch().model(5, wire.TRAINED).batch(iterator=2).model(5).backward(6).step(7)
    thread.batch(iterator=1).model(9, wire.TRAINED).passes(4).model(5).backward(6).step(7)
    assert [row.opened for row in thread.rows() if row.backwards] == [replay.BATCH, replay.BATCH]
