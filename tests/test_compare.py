"""Two records side by side: what is said of their speeds, and what of each difference."""

from __future__ import annotations

import json
import math
import tarfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

from floorit import cli
from floorit.analyse.ledger import Line
from floorit.compare import comparison, limit, speed
from floorit.compare.speed import RUN_TO_RUN, Pace
from floorit.errors import UsageError
from floorit.runfile import load
from floorit.stats import Estimate

RECORDS = Path(__file__).parent / "records"
STEPS = 400


def steps(mean: float, spread: float = 0.01, count: int = STEPS, seed: int = 0) -> np.ndarray:
    """Independent steps around a mean."""
    return mean * np.random.default_rng(seed).normal(1.0, spread, count)


def alike(mean: float, generator: np.random.Generator, between: float) -> np.ndarray:
    """Steps of a process of its own pace, of which each is like the one before."""
    noise, value = np.empty(STEPS), 0.0
    for at, shock in enumerate(generator.normal(0.0, 0.02, STEPS)):
        value = 0.7 * value + shock
        noise[at] = value
    return mean * math.exp(generator.normal(0.0, between)) * np.exp(noise)


# -- speed ------------------------------------------------------------------------------------------------------


def test_half_the_iterations_with_twice_the_batch_is_no_loss_of_speed() -> None:
    """7.45 iterations a second at batch 4, 3.64 at batch 8: 29.8 and 29.1 samples a second."""
    found = speed.compare(Pace(seconds=steps(1 / 7.45), samples=4), Pace(seconds=steps(1 / 3.64, seed=1), samples=8))
    assert found is not None
    assert found.unit == "samples"
    assert found.ratio.value == pytest.approx(29.1 / 29.8, rel=0.005)
    assert found.verdict == "unclear"
    assert not limit.is_exceeded(limit.parse("slower=1%"), found)


def test_without_samples_steps_are_compared() -> None:
    found = speed.compare(Pace(seconds=steps(0.1), samples=None), Pace(seconds=steps(0.05), samples=8))
    assert found is not None
    assert (found.unit, found.verdict) == ("steps", "faster")
    assert found.ratio.value == pytest.approx(2.0, rel=0.005)
    assert found.a.value == pytest.approx(10.0, rel=0.005)


def test_nothing_under_what_two_runs_differ_by_is_claimed_however_alike_the_steps_are() -> None:
    slightly = speed.compare(Pace(seconds=steps(0.1, 1e-5), samples=1), Pace(seconds=steps(0.096, 1e-5), samples=1))
    clearly = speed.compare(Pace(seconds=steps(0.1, 1e-5), samples=1), Pace(seconds=steps(0.094, 1e-5), samples=1))
    assert slightly is not None
    assert clearly is not None
    assert slightly.within.low > 1.04
    assert (slightly.verdict, clearly.verdict) == ("unclear", "faster")


def test_of_a_short_run_nothing_is_claimed() -> None:
    long, short = Pace(seconds=steps(0.1), samples=1), Pace(seconds=steps(0.2, count=40), samples=1)
    found = speed.compare(long, short)
    assert found is not None
    assert found.ratio.high < 0.6
    assert found.verdict == "unclear"
    assert not limit.is_exceeded(limit.parse("slower=5%"), found)


def test_one_step_has_no_interval() -> None:
    assert speed.compare(Pace(seconds=steps(0.1, count=1), samples=1), Pace(seconds=steps(0.1), samples=1)) is None


def test_steps_that_grow_add_as_much_as_the_halves_differ_by() -> None:
    grows = np.concatenate([np.full(200, 0.1), np.full(200, 0.2)])
    found = speed.compare(Pace(seconds=grows, samples=1), Pace(seconds=steps(0.1), samples=1))
    assert found is not None
    assert found.is_disturbed
    assert found.ratio.low < found.ratio.value / 2
    assert found.verdict == "unclear"


def test_a_run_that_shared_its_cores_may_have_been_as_much_faster() -> None:
    alone, shared = Pace(seconds=steps(0.1), samples=1), Pace(seconds=steps(0.15), samples=1, slowed=2.0)
    found = speed.compare(alone, shared)
    assert found is not None
    assert found.verdict == "unclear"  # B, by itself, might have been up to twice as fast
    assert found.ratio.high > 1.3
    assert found.ratio.low == pytest.approx(found.ratio.value / (1 + RUN_TO_RUN), rel=0.01)
    again = speed.compare(shared, alone)
    assert again is not None
    assert again.ratio.low == pytest.approx(1 / found.ratio.high, rel=1e-6)


def test_the_interval_covers_as_often_as_it_claims_where_processes_differ_as_they_were_seen_to() -> None:
    """Pairs of processes whose log-paces differ by 2.5 %; by their steps alone the interval would be far too narrow."""
    generator, truth = np.random.default_rng(7), 1.25
    covers, covers_within, tries = 0, 0, 300
    for _ in range(tries):
        a, b = (alike(mean, generator, 0.025 / math.sqrt(2)) for mean in (0.1, 0.1 / truth))
        found = speed.compare(Pace(seconds=a, samples=2), Pace(seconds=b, samples=2))
        assert found is not None
        covers += found.ratio.low <= truth <= found.ratio.high
        covers_within += found.within.low <= truth <= found.within.high
    assert covers >= 0.92 * tries
    assert covers_within < 0.8 * tries


# -- --fail-if ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slower", "exceeded"),
    [(1.04, False), (1.09, False), (1.12, True), (2.0, True), (0.5, False)],
)
def test_a_limit_is_exceeded_where_the_near_end_of_the_interval_is_beyond_it(slower: float, exceeded: bool) -> None:
    """5 % is allowed and 5 % may be chance: up to about a tenth nothing fails."""
    found = speed.compare(Pace(seconds=steps(0.1, 1e-4), samples=1), Pace(seconds=steps(0.1 * slower, 1e-4), samples=1))
    assert found is not None
    assert limit.is_exceeded(limit.parse("slower=5%"), found) is exceeded


@pytest.mark.parametrize("text", ["faster=5%", "slower", "slower=", "slower=-1%", "slower=100%", "slower=a"])
def test_a_limit_that_makes_no_sense_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="slower=5%"):
        limit.parse(text)


# -- records ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same program, limited by its data and by the GPU."""
    made = {}
    for kind in ("data", "compute"):
        made[kind] = tmp_path_factory.mktemp(kind)
        with tarfile.open(RECORDS / f"{kind}.tar.xz") as archive:
            archive.extractall(made[kind], filter="data")
    return made


@pytest.fixture(scope="module")
def sides(folders: dict[str, Path]) -> tuple[comparison.Side, comparison.Side]:
    return comparison.read(folders["data"]), comparison.read(folders["compute"])


def test_the_ledgers_differences_add_up_to_that_of_the_step(sides: tuple[comparison.Side, ...]) -> None:
    found = comparison.compare(*sides)
    assert sum(phase.difference for phase in found.ledger) == pytest.approx(found.step.b - found.step.a)
    for side, seconds in zip(sides, (found.step.a, found.step.b), strict=True):
        assert side.report.step is not None
        assert seconds == side.report.step.mean == pytest.approx(float(side.pace.seconds.mean()))


def test_two_programs_are_said_to_be_two(sides: tuple[comparison.Side, ...]) -> None:
    one, same = (
        msgspec.structs.replace(
            side,
            report=msgspec.structs.replace(
                side.report, program=msgspec.structs.replace(side.report.program, command=["python", "a/train.py"])
            ),
        )
        for side in sides
    )
    program = msgspec.structs.replace(same.report.program, command=["python", "b/train.py", "a/train.py"])
    other = msgspec.structs.replace(same, report=msgspec.structs.replace(same.report, program=program))
    assert "a/train.py, B is of b/train.py" in comparison.compare(one, other).caveats[0]
    assert not [caveat for caveat in comparison.compare(one, same).caveats if "two programs" in caveat]
    line = Line(file="b/other.py", line=1, function="f", share=1.0)
    ledger = [msgspec.structs.replace(entry, where=[line]) for entry in other.report.ledger]
    apart = msgspec.structs.replace(other, report=msgspec.structs.replace(other.report, ledger=ledger))
    assert comparison.compare(one, apart).caveats[0].startswith("these are two programs, a/train.py and b/train.py")


def test_findings_that_are_gone_and_new_are_told_apart(sides: tuple[comparison.Side, ...]) -> None:
    found = {f.code: f for f in comparison.compare(*sides).findings}
    assert (found["input-bound"].a, found["input-bound"].b) == (0, None)
    assert (found["compute-bound"].a, found["compute-bound"].b) == (None, 0)


def test_a_run_against_itself_differs_in_nothing(sides: tuple[comparison.Side, ...]) -> None:
    found = comparison.compare(sides[0], sides[0])
    assert found.commands is None
    assert not [*found.settings, *found.environment, *found.fixes, *found.workers, *found.gpu]
    assert {phase.difference for phase in found.ledger} == {0.0}
    assert found.speed is not None
    assert (found.speed.ratio.value, found.speed.verdict) == (1.0, "unclear")


def with_batch(side: comparison.Side, samples: float) -> comparison.Side:
    """The same run with so many samples a step, and so many times as long steps as it has samples."""
    pace = Pace(seconds=side.pace.seconds * samples, samples=samples)
    return msgspec.structs.replace(side, pace=pace)


def test_where_batches_differ_it_is_said_and_times_are_of_a_sample(sides: tuple[comparison.Side, ...]) -> None:
    found = comparison.compare(with_batch(sides[0], 4), with_batch(sides[0], 8))
    assert found.per == "sample"
    assert any("4 and 8 samples a step" in caveat for caveat in found.caveats)
    assert found.speed is not None
    assert found.speed.ratio.value == pytest.approx(1.0)
    assert sides[0].report.step is not None
    assert found.step.a == pytest.approx(sides[0].report.step.mean / 4)


@pytest.mark.parametrize(("busy", "own", "slowed"), [(0.95, 0.5, 16 / (16 - 7.2)), (0.4, 0.1, 1.0), (0.95, 0.94, 1.0)])
def test_other_programs_count_where_few_cores_are_free(
    sides: tuple[comparison.Side, ...], folders: dict[str, Path], busy: float, own: float, slowed: float
) -> None:
    """Of 16 cores, `busy` of them by all programs and `own` by this one."""
    report, run = sides[0].report, load(folders["data"])
    assert report.machine is not None
    machine = msgspec.structs.replace(report.machine, cpu_share=Estimate(value=busy, low=busy, high=busy, n=9))
    run = msgspec.structs.replace(run, cpu_seconds=own * 16 * 100.0, seconds=100.0)
    others = comparison._others(run, msgspec.structs.replace(report, machine=machine))
    assert run.environment.cores == 16
    assert comparison._slowed(16, others) == pytest.approx(slowed)


def test_what_is_not_known_of_the_machine_is_said(sides: tuple[comparison.Side, ...]) -> None:
    unknown = [msgspec.structs.replace(side, others=None) for side in sides]
    assert any("not known" in caveat and "cores" in caveat for caveat in comparison.compare(*unknown).caveats)


def test_another_machine_is_said(sides: tuple[comparison.Side, ...]) -> None:
    side = sides[0]
    other = msgspec.structs.replace(side.report.environment, gpu="NVIDIA T4", torch="2.4.0")
    elsewhere = msgspec.structs.replace(side, report=msgspec.structs.replace(side.report, environment=other))
    found = comparison.compare(side, elsewhere)
    assert {change.name: change.b for change in found.environment} == {"gpu": "NVIDIA T4", "torch": "2.4.0"}
    assert any("not the same machine (gpu)" in caveat for caveat in found.caveats)


# -- the command ----------------------------------------------------------------------------------------------------


def test_as_json_and_with_a_limit(folders: dict[str, Path], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    words = ["compare", "--json", "--fail-if", "slower=5%"]
    assert cli.main([*words, str(folders["data"]), str(folders["compute"])]) == 1
    told = capsysbinary.readouterr()
    assert json.loads(told.out)["speed"]["verdict"] == "slower"
    assert b"slower than" in told.err
    assert cli.main([*words, str(folders["compute"]), str(folders["data"])]) == 0


def test_as_text_it_fits_a_pipe(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(folders["data"]), str(folders["compute"])]) == 0
    told = capsys.readouterr().out
    assert "slower: B is 0.7" in told
    assert "gone in B" in told
    assert max(map(len, told.splitlines())) <= 100
    assert "\033" not in told


def test_as_markdown_the_ledger_adds_up(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "--markdown", str(folders["data"]), str(folders["compute"])]) == 0
    ledger = capsys.readouterr().out.partition("time went, in ms\n")[2].partition("\n## ")[0]
    rows = [[cell.strip(" *") for cell in row.split("|")[1:-1]] for row in ledger.splitlines() if row.startswith("|")]
    *phases, whole = rows[2:]
    for column in (2, 3, 4):
        assert sum(float(row[column]) for row in phases) == pytest.approx(float(whole[column]), abs=0.01)
    assert whole[5] == f"{float(whole[3]) / float(whole[2]):.2f}x"


def test_what_is_no_run_is_said_in_a_line(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", str(folders["data"]), str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("floorit: ")
    assert told.count("\n") == 1
