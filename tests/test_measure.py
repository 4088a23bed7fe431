"""cases/measure.py: what it makes of its rounds, and that it writes truth.toml without losing anything."""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from test_truth import ABOVE, BELOW, written

from floorit import demo, truth

SCRIPT = Path(__file__).parents[1] / "cases" / "measure.py"


@pytest.fixture(scope="module")
def measure() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("measure", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["measure"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ran(
    measure: Any,
    step: float,
    verdict: str = "input-bound",
    ledger: float = 1.0,
    samples: float = 8.0,
    memory: int | None = None,
    **phases: float,
) -> Any:
    """A run whose ledger is off by a factor."""
    seconds = {phase: value * ledger for phase, value in phases.items()}
    environment = {"gpu": None, "cpu": "a CPU", "cores": 4, "cores_allowed": 2, "cores_quota": None, "torch": "2.13.0"}
    return measure.Ran(
        step=step,
        mean=step * ledger,
        phases=seconds,
        samples=samples,
        memory=memory,
        verdict=verdict,
        device="cpu",
        report={"environment": environment, "findings": [{"code": verdict}]},
    )


def measurement(measure: Any, folder: Path, rounds: int = 5, **given: Any) -> Any:
    """A case whose fault is half of its step, measured on a machine that slows down from round to round."""
    given = {"ledger": 1.0, "only": None, "noise": 0.01, **given}
    options = argparse.Namespace(
        scale="cpu",
        regime=None,
        only=given["only"],
        rounds=rounds,
        dry_run=False,
        write_to=folder,
        extra=[],
        budget=None,
        window="first",
    )
    made = object.__new__(measure.Measurement)
    known = truth.load(folder / "cases" / "toy")
    made.case = demo.Case(name="toy", folder=folder / "cases" / "toy", truth=known)
    made.options, made.arms, made.rounds = options, measure.arms(known, "cpu", given["only"]), []
    made.recorded, made.failed, made.begun, made.longest_round = False, False, {}, 0.0
    dice = np.random.default_rng(0)
    for number in range(rounds):
        machine = 1 + number
        slow = 0.2 * machine * (1 + given["noise"] * dice.normal())
        fast = 0.1 * machine * (1 + given["noise"] * dice.normal())
        shipped = ran(measure, slow, ledger=given["ledger"], data_wait=slow - 0.08 * machine, forward=0.08 * machine)
        without = ran(measure, fast, "compute-bound", data_wait=fast - 0.08 * machine, forward=0.08 * machine)
        made.rounds.append({arm: shipped if arm == measure.AS_SHIPPED else without for arm in made.arms})
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cases").mkdir()
    written(tmp_path / "cases" / "toy", ABOVE)
    return tmp_path


def test_a_machine_that_slows_down_does_not_widen_the_gain(measure: Any, root: Path) -> None:
    found = measure.result(measurement(measure, root))
    gain = found.faults["draw"]
    assert gain.speedup.low < 2 < gain.speedup.high
    assert gain.speedup.high / gain.speedup.low < 1.1
    assert gain.agrees is True
    assert gain.on_named == pytest.approx(1.0, abs=1e-6)
    assert list(gain.phases) == ["data_wait"]
    assert found.verdicts == {"input-bound": 5}
    assert found.machine == "a CPU, 2 cores"
    assert found.all_off is not None


def test_a_ledger_that_saves_something_else_does_not_agree(measure: Any, root: Path) -> None:
    gain = measure.result(measurement(measure, root, ledger=1.2)).faults["draw"]
    assert gain.agrees is False


def test_of_a_small_gain_nothing_is_asked(measure: Any) -> None:
    pairs = [ran(measure, 1.0, data_wait=1.0)] * 3, [ran(measure, 0.97, data_wait=0.97)] * 3
    gain = measure.gain(*pairs, {"data_wait"})
    assert (gain.agrees, gain.on_named) == (None, None)


def test_a_larger_batch_is_compared_by_samples(measure: Any) -> None:
    """Three times the samples in twice the time are 1.5 times as fast, whatever a step takes."""
    pairs = [ran(measure, 1.0, forward=1.0)] * 3, [ran(measure, 2.0, samples=24, forward=2.0)] * 3
    gain = measure.gain(*pairs, {"forward"})
    assert gain.speedup.value == pytest.approx(1.5)
    assert gain.saved.value == pytest.approx(1 / 3)
    assert gain.phases == pytest.approx({"forward": 1 / 3})
    assert gain.agrees is True
    assert gain.on_named == pytest.approx(1.0)


def test_memory_is_told_where_the_program_tells_it(measure: Any) -> None:
    runs = [ran(measure, 1.0, memory=gib * 2**30) for gib in (28, 17)]
    assert measure.gain(runs[:1], runs[1:], set()).memory_saved == 11 * 2**30
    assert measure.gain(runs[:1], [ran(measure, 1.0)], set()).memory_saved is None


def test_arms_are_each_fault_of_the_scale_alone_and_all(measure: Any, root: Path) -> None:
    known = truth.load(root / "cases" / "toy")
    assert measure.arms(known, "cpu", None) == {"as-shipped": [], "without-draw": ["draw"], "all-off": ["all"]}
    assert list(measure.arms(known, "gpu", None)) == ["as-shipped", "without-draw", "without-item", "all-off"]
    assert list(measure.arms(known, "gpu", ["item"])) == ["as-shipped", "without-item"]
    with pytest.raises(Exception, match="has no fault 'item' at this scale; it has draw"):
        measure.arms(known, "cpu", ["item"])


def test_what_is_written_is_read_back_and_the_rest_stays(measure: Any, root: Path) -> None:
    path = root / "cases" / "toy" / truth.NAME
    path.write_text(ABOVE + "\n" + truth.MARKER + BELOW.format(key="h200", scale="gpu"))
    before = truth.load(path.parent).measured["h200"]
    for _ in range(2):  # a second measurement replaces the first
        measure.write_truth(path, measurement(measure, root))
    after = truth.load(path.parent)
    assert path.read_text().startswith(ABOVE)
    assert path.read_text().count(truth.MARKER) == 1
    assert list(after.measured) == ["h200", "cpu"]
    assert after.measured["h200"] == before
    assert after.measured["cpu"].faults["draw"].speedup.value == pytest.approx(2.0, rel=0.02)
    assert after.measured["cpu"].step_seconds.n == 5


def test_one_fault_measured_again_leaves_the_others_as_they_were(measure: Any, root: Path) -> None:
    path = root / "cases" / "toy" / truth.NAME
    measure.write_truth(path, measurement(measure, root))
    first = truth.load(path.parent).measured["cpu"]
    measure.write_truth(path, measurement(measure, root, rounds=3, only=["draw"]))
    then = truth.load(path.parent).measured["cpu"]
    assert msgspec.structs.replace(then, faults={}) == msgspec.structs.replace(first, faults={})
    assert then.faults["draw"].speedup.n == 3
    assert then.faults["draw"].date is not None


def test_the_records_of_the_first_round_are_kept(measure: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "run", lambda *_: ran(measure, 0.1, data_wait=0.1))
    made = measurement(measure, root, rounds=0)
    made.round(0)
    kept = sorted((root / "docs" / "measurements" / "cases").glob("*-cpu/toy/*"))
    assert [path.name for path in kept] == ["all-off.json", "as-shipped.json", "rounds.json", "without-draw.json"]
    assert len(list(measure.earlier_rounds(kept[2], "toy", made.arms))) == 1


def test_a_round_that_was_interrupted_goes_on_where_it_was(
    measure: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[list[str]] = []

    def run(case: Any, off: list[str], options: Any) -> Any:
        if len(ended) == 2:
            raise KeyboardInterrupt
        ended.append(off)
        return ran(measure, 0.1, data_wait=0.1)

    monkeypatch.setattr(measure, "run", run)
    made = measurement(measure, root, rounds=0)
    with pytest.raises(KeyboardInterrupt):
        made.round(0)
    [kept] = (root / "docs" / "measurements" / "cases").glob("*-cpu/toy/rounds.json")
    again = measurement(measure, root, rounds=0)
    assert not list(measure.earlier_rounds(kept, "toy", again.arms))
    again.begun = measure.earlier_begun(kept, "toy", again.arms)
    assert len(again.begun) == 2

    monkeypatch.setattr(measure, "run", lambda _, off, __: (ended.append(off), ran(measure, 0.1, data_wait=0.1))[1])
    again.round(0)
    assert sorted(ended) == sorted(again.arms.values())  # each arm once, over both
    assert len(list(measure.earlier_rounds(kept, "toy", again.arms))) == 1
    assert not measure.earlier_begun(kept, "toy", again.arms)


@pytest.mark.parametrize("seed", range(20))
def test_the_formatter_is_read_back_by_a_parser(measure: Any, seed: int) -> None:
    dice = random.Random(seed)

    def value(depth: int) -> Any:
        words = ['a "b" c', "tab\tline\nüx\\", "", "#no = comment"]
        kinds = [lambda: dice.choice(words), lambda: dice.randint(-9, 9), lambda: dice.random() < 0.5]
        kinds += [lambda: float(f"{dice.lognormvariate(0, 20):.4g}"), lambda: [dice.randint(0, 9), 1]]
        if depth:
            kinds += [lambda: {name(): value(depth - 1) for _ in range(dice.randint(0, 4))}] * 3
        return dice.choice(kinds)()

    def name() -> str:
        return dice.choice(["plain", "with-dash", "with space", "dots.in", "7", "ü", 'q"'])

    table = {"top": {name(): value(3) for _ in range(5)}}
    assert msgspec.toml.decode(measure.toml(table).encode()) == table


def test_the_markdown_has_a_row_for_each_arm(measure: Any, root: Path) -> None:
    text = measure.markdown(measurement(measure, root))
    assert [row.split("|")[1].strip() for row in text.splitlines() if row.startswith("| ")] == [
        "without",
        "draw",
        "all",
    ]


def test_rounds_of_an_earlier_measurement_count(measure: Any, root: Path) -> None:
    before = measurement(measure, root, rounds=2)
    file = root / "rounds.json"
    file.write_text(json.dumps([before.as_json(), {"case": "another", "rounds": [{"as-shipped": {}}]}]))
    rounds = list(measure.earlier_rounds(file, "toy", before.arms))
    assert [set(found) for found in rounds] == [set(before.arms)] * 2
    again = measurement(measure, root, rounds=2)
    again.rounds = rounds
    assert again.as_json()["measured"] == before.as_json()["measured"]
    assert list(measure.earlier_rounds(file, "toy", {"as-shipped": []})) == []
    assert list(measure.earlier_rounds(None, "toy", before.arms)) == []
