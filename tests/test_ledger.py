"""To which phase a look at the stack is counted, and which lines are named for it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from test_callers import look
from test_iterations import Rows

from floorit.analyse import handover, iterations, ledger, series
from floorit.analyse.input import _leading_to_training, _looks
from floorit.analyse.ledger import heaviest
from floorit.events import Place, Process, Sample
from floorit.record import wire
from floorit.replay import OPTIMIZER_STEP


def seen(at: float, phase: int, iterator: int, *stack: str) -> Sample:
    return msgspec.structs.replace(look(*stack), at=at, phase=phase, iterator=iterator)


def test_what_follows_the_last_batch_of_an_evaluation_is_not_evaluation() -> None:
    """Its pass is still the last that was made when the program saves, or goes on without a loader."""
    rows = Rows().start(3.0).train(10).end_pass(seconds=0.5).evaluate(2).end_pass(2).train(10, iterator=3)
    process = rows.process()
    evaluates, saves = 104.6, 105.0  # 3 s start, 1 s training, 0.5 s, 0.25 s of evaluation, 0.5 s
    process.samples += [
        seen(evaluates, wire.FORWARD, 2, "net.py:5", "train.py:30"),
        seen(saves, wire.CHECKPOINT, 2, "train.py:31"),
    ]
    found = iterations.find(process)
    assert found is not None
    looks = ledger.draw(process, found).looks
    assert {phase: [s.at for s in samples] for phase, samples in looks.items()} == {
        "eval": [evaluates],
        "checkpoint": [saves],
    }


def test_of_what_a_program_writes_at_its_end_no_more_counts_than_it_wrote_before() -> None:
    rows = Rows().start().train(10).end_pass(seconds=0.2, phase=wire.LOGGING).train(11, iterator=2)
    rows.end_pass(2, 5.0, phase=wire.LOGGING).end_pass(2, 0.7, phase=wire.CHECKPOINT)
    process = rows.process()
    found = iterations.find(process)
    assert found is not None
    drawn, each = ledger.draw(process, found), series.find(process, found)
    assert (drawn.seconds("logging") * 20, drawn.seconds("checkpoint") * 20) == pytest.approx((0.2 + 0.2, 0.7))
    assert each.whole_steps().mean() == pytest.approx(drawn.mean)


def test_what_is_done_now_and_then_for_longer_than_steps_take_comes_in_bursts() -> None:
    rows = Rows().start()
    for step in range(21):
        rows.add().add(OPTIMIZER_STEP, steps=0, backwards=0, seconds=0.8 if step % 5 == 0 else 0.01, phase=wire.OTHER)
    process = rows.process()
    found = iterations.find(process)
    assert found is not None
    own = next(e for e in ledger.draw(process, found).entries if e.phase == "unattributed")  # no look fell into it
    assert own.seconds * 20 == pytest.approx(4 * 0.8 + 16 * 0.01)
    assert own.bursts * 20 == pytest.approx(4 * (0.8 - 0.01 - 2 * 0.11))


def test_the_loop_that_asks_for_a_batch_does_not_make_it() -> None:
    """Torch's code that puts a batch together has no line of the program inside of the loop's own."""
    process = Process()
    process.samples += [seen(1.0, wire.FORWARD, 1, "net.py:5@forward", "train.py:20@train")]
    collates = seen(1.0, wire.DATA_WAIT, 1, "train.py:18@train")
    reads = seen(1.0, wire.DATA_WAIT, 1, "data.py:7@read", "train.py:18@train")
    training = _leading_to_training(process)
    assert training == {("net.py", "forward"), ("train.py", "train")}
    found = heaviest([collates] * 3 + [reads], besides=training)
    assert found is not None
    assert (found.function, found.share, found.whole, found.looks) == ("read", 0.25, 0.25, 4)


def test_what_is_frozen_into_python_counts_but_has_no_line() -> None:
    frozen = Sample(1.0, wire.DATA_WAIT, 1, user=None, leaf=Place("<frozen os>", 760, "decode", "stdlib"))
    found = ledger.lines([frozen, *[seen(1.0, wire.DATA_WAIT, 1, "data.py:7@read")] * 3])
    assert [(at.file, at.share) for at in found] == [("data.py", pytest.approx(0.75))]


def test_the_evaluations_batches_are_not_the_training_loaders() -> None:
    process = Process()
    trains, judges = (seen(1.0, wire.DATA_WAIT, iterator, "data.py:7@read") for iterator in (1, 2))
    process.samples += [trains, judges]
    assert _looks(process, process, [1], begin=0.0) == [trains]
    assert _looks(Process(), process, [1], begin=0.0) == [trains, judges]  # of workers it is not known


def test_a_comprehension_is_part_of_the_function_it_is_written_in() -> None:
    inner = ["data.py:4@parse.<locals>.<listcomp>"] * 3 + ["data.py:5@parse.<locals>.<listcomp>.<genexpr>"] * 2
    looks = [look(line) for line in [*["data.py:9@read"] * 4, *inner, "data.py:6@parse.<locals>.clean"]]
    found = heaviest(looks)
    assert found is not None
    assert (found.function, found.line, found.share) == ("parse", 4, pytest.approx(0.5))


def test_a_function_takes_what_it_calls_too() -> None:
    """More lines than are named, and what it has others do: `iou` goes where `match` is not called."""
    own = [look(f"loss.py:{line}@match", "train.py:9@train") for line in range(10, 18)]
    called = [look("boxes.py:3@iou", "loss.py:20@match", "train.py:9@train")] * 4
    found = heaviest([*own, *called, *[look("loss.py:40@smooth", "train.py:9@train")] * 4])
    assert found is not None
    assert (found.function, found.share, found.whole) == ("match", 8 / 16, 12 / 16)


def test_the_loop_itself_takes_no_more_than_its_own_lines() -> None:
    own = [look("train.py:9@train")] * 3
    called = [look("log.py:3@note", "train.py:8@train")] * 2
    looks = {
        "other": [*own, *called],
        "forward": [look("net.py:5@forward", "train.py:6@train")],
        "backward": [look("train.py:7@train")],
    }
    found = heaviest(looks["other"], handover.leading(looks))
    assert found is not None
    assert (found.function, found.whole) == ("train", 3 / 5)


FORWARD, BACKWARD, RECOMPUTE = 4.0, 9.0, 5.0  # milliseconds on the GPU's clock, without marks


@pytest.mark.parametrize("cost", [0.0, 3.0])
def test_marks_that_hold_the_gpu_up_are_not_its_phases_time(cost: float) -> None:
    """Most marks are where a backward pass recomputes: forward would look as if it took a smaller part."""
    truth = np.array([FORWARD, BACKWARD, RECOMPUTE])
    marks = np.array([0.1, 1.0, 1.0]) * cost
    found = ledger._without_marks(truth + marks, marks, float(truth.sum()))
    assert found == pytest.approx(truth)


def test_marks_that_the_gpu_does_not_feel_change_nothing() -> None:
    truth = np.array([FORWARD, BACKWARD, RECOMPUTE])
    assert ledger._without_marks(truth, np.array([0.1, 2.0, 2.0]), float(truth.sum())) == pytest.approx(truth)


def test_marked_steps_that_waited_less_for_data_do_not_make_the_gpu_busy() -> None:
    """Usual steps wait 30 ms for data, those that happened to be marked did not: the GPU computes no longer for it."""
    waits, forward, backward = 30.0, 10.0, 20.0
    host_differs = np.array([-waits, 0.1, 0.1])
    found = ledger._without_marks(np.array([0.0, forward, backward]), host_differs, waits + forward + backward)
    assert found == pytest.approx(np.array([waits, forward, backward]))


@pytest.mark.parametrize(
    ("seconds", "on_gpu", "is_ahead"),
    [
        ({"data_wait": 0.577, "forward": 0.2}, {"data_wait": 2.16, "forward": 0.2}, False),  # seen in a starved loop
        ({"data_wait": 0.001, "forward": 0.02}, {"data_wait": 0.0, "forward": 0.1}, True),
        ({"forward": 0.1}, {"forward": 0.11}, False),
        ({"forward": 0.1}, {}, False),
    ],
)
def test_a_host_is_ahead_where_the_gpu_needs_longer_for_its_work(
    seconds: dict[str, float], on_gpu: dict[str, float], is_ahead: bool
) -> None:
    entries = [
        ledger.Entry(phase=phase, seconds=spent, share=0.0, gpu_seconds=on_gpu.get(phase), where=[])
        for phase, spent in seconds.items()
    ]
    assert ledger.Ledger(mean=sum(seconds.values()), entries=entries, looks={}).is_ahead_of_gpu is is_ahead
