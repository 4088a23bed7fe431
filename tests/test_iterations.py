"""From rows to iterations: what is a step, what evaluation, what a gap, what warm-up."""

import numpy as np
import pytest

from floorit import events, replay
from floorit.analyse import iterations
from floorit.analyse.iterations import BETWEEN, EVAL, TRAIN
from floorit.record import wire
from floorit.replay import BATCH, EXHAUSTED, GRAD_FORWARD, LEFT, NO_GRAD_FORWARD, OPTIMIZER_STEP, START, Row


class Rows:
    """A record, row by row."""

    def __init__(self):
        self._rows = []
        self._now = 100.0

    def add(
        self,
        opened=BATCH,
        iterator=1,
        seconds=0.1,
        samples=8,
        steps=1,
        backwards=1,
        flags=GRAD_FORWARD,
        phase=wire.FORWARD,
    ):
        """One row; `steps` has a bit for each optimizer that stepped in it."""
        self._now += seconds
        spent = [0.0] * len(wire.PHASES)
        spent[phase] = seconds
        row = Row(opened, iterator, samples, steps, backwards, flags, 0, steps.bit_count())
        row.end, row.spent = round(self._now * 1e9), [round(s * 1e9) for s in spent]
        self._rows.append(row)
        return self

    def start(self, seconds=3.0):
        """What lies before the first batch."""
        return self.add(START, 0, seconds, samples=0, steps=0, backwards=0, flags=0)

    def train(self, count=20, **how):
        for _ in range(count):
            self.add(**how)
        return self

    def end_pass(self, iterator=1, seconds=0.5, phase=wire.FORWARD):
        """The batch that did not come, and what follows until the next is asked for."""
        return self.add(EXHAUSTED, iterator, seconds, samples=0, steps=0, backwards=0, flags=0, phase=phase)

    def evaluate(self, iterator, count=5, seconds=0.05):
        return self.train(count, iterator=iterator, seconds=seconds, steps=0, backwards=0, flags=NO_GRAD_FORWARD)

    def leave(self, iterator, seconds=0.3):
        """What follows the last batch of a pass that goes on later, or never."""
        return self.add(LEFT, iterator, seconds, samples=0, steps=0, backwards=0, flags=0)

    def process(self):
        process = events.Process()
        process.add(wire.JSON_TAG, b'{"kind": "process", "pid": 1, "started": 100.0}')
        process.add_rows(self._rows)
        return process

    def find(self, memory_peak=None):
        process = self.process()
        process.memory_peak = memory_peak  # known of a program that used the GPU
        return iterations.find(process)


def test_a_batch_at_which_the_loop_is_left_is_no_step():
    rows = Rows().start()
    for iterator in (1, 2):
        rows.train(20, iterator=iterator).train(1, iterator=iterator, steps=0, backwards=0, flags=0)
    found = rows.find()
    assert (found.count, found.optimizer_steps, found.accumulation) == (40, 40, 1.0)
    assert found.kind[[21, 42]].tolist() == [BETWEEN, BETWEEN]


def test_a_batch_that_is_skipped_is_one():
    assert Rows().start().train(9).train(1, steps=0, backwards=0, flags=0).train(10).find().count == 20


def test_one_row_a_batch_is_one_iteration_each():
    found = Rows().start().train(20).end_pass().find()
    assert (found.border, found.count, found.optimizer_steps, found.accumulation) == ("batches", 20, 20, 1.0)
    assert found.seconds == pytest.approx(np.full(20, 0.1))
    assert (found.samples == 8).all()
    assert found.epochs == 1


def test_start_and_gaps_are_between():
    found = Rows().start().train(3).end_pass().train(3, iterator=2).end_pass(2).find()
    assert found.kind.tolist() == [BETWEEN, *[TRAIN] * 3, BETWEEN, *[TRAIN] * 3, BETWEEN]
    assert found.epochs == 2
    assert found.count == 6
    assert found.seconds.sum() == pytest.approx(0.6)


def test_evaluation_after_each_epoch_is_told_apart():
    rows = Rows().start().train(10).end_pass().evaluate(2).end_pass(2)
    found = rows.train(10, iterator=3).end_pass(3).evaluate(4).end_pass(4).find()
    assert (found.count, found.epochs, found.eval_passes) == (20, 2, 2)
    assert found.eval_iterators == {2, 4}
    assert (found.kind == EVAL).sum() == 10
    assert found.seconds.max() == pytest.approx(0.1)


def test_evaluation_in_the_middle_of_an_epoch_is_not_in_its_step():
    rows = Rows().start().train(10).evaluate(2, count=30).end_pass(2)
    found = rows.train(10).end_pass().find()
    assert found.count == 20
    assert found.seconds == pytest.approx(np.full(20, 0.1))
    assert (found.kind == EVAL).sum() == 30


def test_evaluation_before_training():
    found = Rows().start().evaluate(1).end_pass(1).train(10, iterator=2).end_pass(2).find()
    assert found.count == 10
    assert found.eval_passes == 1
    assert found.kind[0] == BETWEEN


def test_accumulation_has_more_iterations_than_steps():
    rows = Rows().start()
    for _ in range(10):
        rows.train(3, steps=0).add(steps=1)
    found = rows.end_pass().find()
    assert (found.count, found.optimizer_steps, found.accumulation) == (40, 10, 4.0)
    assert found.border == "batches"


def test_without_a_loader_an_iteration_lies_between_optimizer_steps():
    found = Rows().train(20, opened=OPTIMIZER_STEP, iterator=0).find()
    assert (found.border, found.count, found.accumulation) == ("optimizer steps", 20, 1.0)
    assert (found.samples == 8).all()


def test_without_a_loader_what_follows_the_last_step_is_no_iteration():
    rows = Rows().train(20, opened=OPTIMIZER_STEP, iterator=0)
    found = rows.add(OPTIMIZER_STEP, 0, seconds=60.0, samples=0, steps=0, backwards=0, flags=0).find()
    assert found.count == 20
    assert found.kind[-1] == BETWEEN
    assert found.seconds.max() == pytest.approx(0.1)


def test_without_loader_and_optimizer_an_iteration_lies_between_backward_passes():
    found = Rows().train(20, opened=replay.BACKWARD_CALL, iterator=0, steps=0).find()
    assert (found.border, found.count, found.optimizer_steps) == ("backward passes", 20, 0)


def test_two_optimizers_without_a_loader_make_one_iteration_of_two_rows():
    rows = Rows()
    for _ in range(10):
        rows.add(OPTIMIZER_STEP, 0, 0.1, steps=1).add(OPTIMIZER_STEP, 0, 0.3, steps=2)
    found = rows.find()
    assert found.count == 10
    assert found.optimizer_steps == 10
    assert found.seconds[1:-1] == pytest.approx(np.full(8, 0.4))
    assert (found.samples[1:-1] == 8).all()  # the same batch, seen by both


def test_two_optimizers_with_a_loader_are_one_step_a_batch():
    found = Rows().start().train(20, steps=3, backwards=2).end_pass().find()
    assert (found.count, found.optimizer_steps, found.accumulation) == (20, 20, 1.0)


def test_many_steps_on_one_batch_are_iterations_of_their_own():
    rows = Rows().start().add(BATCH, 1)
    found = rows.train(50, opened=OPTIMIZER_STEP, iterator=1, samples=0).find()
    assert found.border == "optimizer steps"
    assert found.count == 51


def test_a_program_that_never_trains_has_no_iterations():
    assert Rows().start().evaluate(1).end_pass(1).find() is None
    assert Rows().find() is None


def test_slow_first_steps_are_warm_up():
    found = Rows().start().train(3, seconds=2.0).train(40).end_pass().find()
    assert found.warmup == 3
    assert found.after_warmup.max() == pytest.approx(0.1)


def test_the_first_step_is_always_warm_up():
    assert Rows().start().train(20).find().warmup == 1


def test_warm_up_lasts_until_compilation_is_over():
    flags = GRAD_FORWARD | replay.COMPILED
    rows = Rows().start().train(1, seconds=20.0, flags=flags).train(2).add(seconds=9.0, flags=flags)
    found = rows.train(40).end_pass().find()
    assert found.warmup == 4
    assert np.flatnonzero(found.compiled).tolist() == [0, 3]


def test_compiling_again_later_is_told_but_is_not_warm_up():
    rows = Rows().start().train(20).add(seconds=9.0, flags=GRAD_FORWARD | replay.COMPILED)
    found = rows.train(20).end_pass().find()
    assert found.warmup == 1
    assert np.flatnonzero(found.compiled).tolist() == [20]


def test_warm_up_is_at_most_half():
    found = Rows().start().train(20, seconds=2.0).train(3).find()
    assert found.warmup <= 11


def test_of_very_few_iterations_none_is_called_warm_up():
    assert Rows().start().train(3).find().warmup == 0


def test_a_single_slow_step_later_is_not_warm_up():
    found = Rows().start().train(20).add(seconds=5.0).train(20).end_pass().find()
    assert found.warmup == 1
    assert found.steady


def test_alike_halves_are_steady():
    assert Rows().start().train(40).end_pass().find().steady


def test_a_drift_is_not_steady():
    rows = Rows().start()
    for number in range(60):
        rows.add(seconds=0.1 * (1 + number / 40))
    assert not rows.end_pass().find().steady


def test_too_few_steps_are_not_called_steady():
    assert not Rows().start().train(6).end_pass().find().steady


def test_every_row_has_a_kind_and_no_time_is_lost():
    rows = Rows().start().train(7).end_pass().evaluate(2).end_pass(2).train(7, iterator=3).end_pass(3)
    found = rows.find()
    assert len(found.kind) == len(found.of_row) == 23
    assert set(found.kind.tolist()) == {TRAIN, EVAL, BETWEEN}
    assert (np.diff(found.of_row) >= 0).all()


def test_an_optimizer_after_another_is_not_a_turn():
    found = (
        Rows()
        .train(30, opened=OPTIMIZER_STEP, iterator=0, steps=1)
        .train(30, opened=OPTIMIZER_STEP, iterator=0, steps=2)
    )
    found = found.find()
    assert (found.count, found.optimizer_steps) == (60, 60)


def test_steps_in_which_the_host_runs_ahead_of_the_gpu_are_warm_up():
    rows = Rows().start().train(1, seconds=2.0).train(12, seconds=0.01).train(60, seconds=0.1)
    assert rows.find(memory_peak=1).warmup == 11  # of the next five, three are as long as the later ones
    assert rows.find().warmup == 1  # nothing runs ahead on a CPU


def test_what_the_host_does_ahead_after_the_kernel_window_counts_with_the_window():
    rows = Rows().start().train(20, seconds=0.1).train(3, seconds=0.2, flags=GRAD_FORWARD | replay.WINDOW)
    rows.train(5, seconds=0.01).train(20, seconds=0.1).train(1, seconds=0.01)
    found = rows.find(memory_peak=1)
    assert found.slowed.sum() == 8
    assert found.after_warmup == pytest.approx([0.1] * 39 + [0.01])


def idle(rows, count=1, **how):
    """Batches that are asked for while nothing is done with any."""
    return rows.train(count, steps=0, backwards=0, flags=0, seconds=0.01, **how)


def test_of_a_loader_that_reads_one_batch_ahead_the_last_step_is_one():
    """accelerate's: the second batch is asked for before the first is handed out."""
    rows = Rows().start()
    for iterator in (1, 2):
        idle(rows, iterator=iterator, samples=8).train(8, iterator=iterator).train(1, iterator=iterator, samples=3)
        rows.add(EXHAUSTED, iterator, samples=0).end_pass(iterator)
    found = rows.find()
    assert (found.count, found.optimizer_steps, found.accumulation, found.epochs) == (20, 20, 1.0, 2)
    assert found.seconds == pytest.approx(([0.11] + [0.1] * 9) * 2)
    assert found.samples.tolist() == ([8] * 9 + [3]) * 2
    assert found.kind.tolist() == [BETWEEN, *[TRAIN] * 11, BETWEEN, *[TRAIN] * 11, BETWEEN]


def test_batches_read_at_once_are_a_step_each():
    """transformers' trainer: all batches of an optimizer step are read before the first is worked on."""
    rows = Rows().start()
    for _ in range(5):
        idle(rows, 3, iterator=1).train(1, steps=0, seconds=0.1)
        rows.train(2, opened=replay.BACKWARD_CALL, samples=8, steps=0).train(1, opened=replay.BACKWARD_CALL, steps=1)
    found = rows.end_pass().find()
    assert (found.count, found.optimizer_steps, found.accumulation) == (20, 5, 4.0)
    assert found.seconds == pytest.approx([0.13, 0.1, 0.1, 0.1] * 5)
    assert (found.samples == 8).all()


def test_read_ahead_and_at_once_with_a_rest_and_two_backward_passes_each():
    rows = Rows().start()
    idle(rows, 2).train(1, steps=0).train(3, opened=replay.BACKWARD_CALL, steps=0)  # two of four batches
    idle(rows).add(EXHAUSTED, samples=0, steps=0).train(3, opened=replay.BACKWARD_CALL, steps=0)
    found = rows.end_pass().find()
    assert found.count == 4
    assert found.seconds == pytest.approx([0.22, 0.2, 0.21, 0.2])


def test_a_pass_of_one_batch_that_is_read_ahead_trains():
    rows = Rows().start()
    for iterator in range(1, 11):
        idle(rows, iterator=iterator).add(EXHAUSTED, iterator, samples=0)
    found = rows.end_pass(10).find()
    assert (found.count, found.epochs, found.optimizer_steps) == (10, 10, 10)


def test_a_loop_over_batches_that_were_read_before_it_has_steps_of_its_own():
    """The data are loaded into memory, and trained on without a loader."""
    rows = idle(Rows().start(), 3).end_pass()
    found = rows.train(30, opened=OPTIMIZER_STEP).find()
    assert (found.border, found.count) == ("optimizer steps", 30)


def test_a_read_ahead_batch_that_the_loop_never_gets_to_is_no_step():
    found = idle(Rows().start()).train(20).train(20, iterator=2).find()
    assert (found.count, found.samples.tolist()) == (40, [8] * 40)


def test_an_evaluation_between_a_batch_and_its_work_is_no_read_ahead():
    """The work on that batch falls into the row that ends the evaluation's pass."""
    rows = Rows().start()
    for number in range(4):
        rows.add(backwards=0, steps=0, flags=0).evaluate(2 + number).add(EXHAUSTED, 2 + number, samples=0).train(4)
    found = rows.end_pass().find()
    assert found.count == 20


def test_what_follows_an_evaluation_that_is_left_is_not_part_of_it():
    rows = Rows().start()
    for _ in range(2):
        rows.train(20).evaluate(2, count=3).leave(2)
    found = rows.find()
    assert (found.count, found.epochs, found.eval_passes) == (40, 1, 2)
    assert found.kind[21:25].tolist() == [EVAL, EVAL, EVAL, BETWEEN]
    assert found.seconds == pytest.approx([0.1] * 40)


def test_of_an_evaluation_of_one_batch_all_that_follows_is_part():
    found = Rows().start().train(20).evaluate(2, count=1).leave(2).train(20).find()
    assert found.kind[21:23].tolist() == [EVAL, EVAL]
