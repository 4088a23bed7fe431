"""Training that slows down is told, with the step; training that only varies is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PYTHON, recorded, report_of

from floorit.analyse import slowdown
from floorit.analyse.ledger import Ledger
from floorit.analyse.series import Series
from floorit.record import wire

PROGRAM = Path(__file__).parent / "slows_down.py"
LEDGER = Ledger(mean=0.01, entries=[], looks={})


def _series(seconds: Any, phase: int = wire.FORWARD, warmup: int = 0) -> Series:
    count = len(seconds)
    phases = np.zeros((count, len(wire.PHASES)))
    phases[:, wire.BACKWARD] = 0.005
    phases[:, phase] = seconds - 0.005
    none = np.zeros(count, bool)
    return Series(
        step=np.arange(count),
        is_step=~none,
        begin=np.cumsum(seconds),
        phases=phases,
        samples=np.ones(count, np.int64),
        iterator=np.ones(count, np.int64),
        is_warmup=np.arange(count) < warmup,
        is_watched=none,
        is_divided=none,
    )


def _noise(random: np.random.Generator, count: int) -> Any:
    """As steps are: each a little different, neighbours alike, now and then one that takes long."""
    slow = np.zeros(count)
    for at in range(1, count):
        slow[at] = 0.8 * slow[at - 1] + random.normal(0, 0.01)
    outliers = np.where(random.random(count) < 0.03, random.uniform(1, 5, count), 0.0)
    return 0.02 * np.exp(slow + random.normal(0, 0.03, count)) * (1 + outliers)


@pytest.mark.parametrize("count", [100, 1000, 10_000])
def test_a_fifth_half_way_is_found_with_its_step(count: int) -> None:
    random, covered = np.random.default_rng(count), []
    for _ in range(20):
        seconds = _noise(random, count) * np.where(np.arange(count) < count // 2, 1.0, 1.2)
        found = slowdown.find(_series(seconds, wire.DATA_WAIT), LEDGER)
        assert found is not None
        assert found.ratio.value == pytest.approx(1.2, abs=max(1.2 / count**0.5, 0.02))
        covered.append(found.ratio.low < 1.2 < found.ratio.high)
        assert abs(found.step - count // 2) <= max(0.02 * count, 6)
        assert found.phase == "data_wait"
        assert not found.goes_on
    assert sum(covered) >= 17


def test_one_that_comes_late_is_found_where_it_is() -> None:
    """Then ranks among those before it are above the middle, too."""
    random, began, count = np.random.default_rng(7), 14_117, 20_000
    for _ in range(20):
        seconds = 0.02 * random.lognormal(0, 0.05, count) * np.where(np.arange(count) < began, 1.0, 1.2)
        found = slowdown.find(_series(seconds), LEDGER)
        assert found is not None
        assert found.step == pytest.approx(began + 1, abs=10)


def test_what_only_varies_is_not_told() -> None:
    random = np.random.default_rng(1)
    told = [slowdown.find(_series(_noise(random, 600)), LEDGER) for _ in range(100)]
    assert sum(found is not None for found in told) <= 2


def test_one_that_grows_all_the_time_goes_on() -> None:
    seconds = _noise(np.random.default_rng(2), 2000) * np.linspace(1.0, 2.0, 2000)
    found = slowdown.find(_series(seconds), LEDGER)
    assert found is not None
    assert found.goes_on


def test_steps_are_counted_with_warm_up() -> None:
    seconds = np.full(400, 0.01)
    seconds[300:] = 0.02
    found = slowdown.find(_series(seconds, warmup=100), LEDGER)
    assert found is not None
    assert found.step == 301
    assert (found.before, found.after) == pytest.approx((0.01, 0.02))


@pytest.mark.parametrize("seconds", [np.full(50, 0.01), np.linspace(0.02, 0.01, 500), np.full(500, 0.01)])
def test_few_steps_faster_ones_and_equal_ones_are_none(seconds: Any) -> None:
    assert slowdown.find(_series(seconds), LEDGER) is None


@pytest.mark.acceptance
def test_a_program_that_slows_down_is_told_so(tmp_path: Path) -> None:
    ended = recorded([PYTHON, str(PROGRAM)], tmp_path / "run", tmp_path)
    report = report_of(tmp_path / "run")
    assert ended.returncode == 0, ended.stderr
    assert report is not None
    found = report["slowdown"]
    assert abs(found["step"] - 200) <= 12
    assert found["phase"] == "other"
    assert "history = " in PROGRAM.read_text().splitlines()[found["where"][0]["line"] - 1]
