"""The steps one by one, and the sheet of them: they add up to the ledger."""

from __future__ import annotations

import csv
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from test_iterations import Rows

from floorit import cli
from floorit.analyse import iterations, ledger, series
from floorit.events import read_record
from floorit.record import wire
from floorit.report import sheet
from floorit.report.trained import of_record

RECORDS = Path(__file__).parent / "records"


def found(rows: Rows) -> tuple[series.Series, ledger.Ledger]:
    process = rows.process()
    steps = iterations.find(process)
    assert steps is not None
    return series.find(process, steps), ledger.draw(process, steps)


def test_steps_and_what_lies_between_them_stand_apart() -> None:
    rows = Rows().start().train(10).end_pass(seconds=0.3).evaluate(2, count=5, seconds=0.05).end_pass(2, seconds=0.2)
    steps, drawn = found(rows.train(10, iterator=3))
    assert steps.step[steps.is_step].tolist() == list(range(20))
    assert steps.seconds[steps.is_step] == pytest.approx(0.1)
    (after,) = np.flatnonzero(~steps.is_step)
    assert steps.step[after] == 9
    assert steps.phases[after, wire.EVAL] == pytest.approx(0.25)  # however its time was spent
    assert steps.seconds[after] == pytest.approx(0.3 + 0.25 + 0.2)
    whole = steps.whole_steps()
    assert whole.mean() == pytest.approx(drawn.mean)
    assert whole.max() == pytest.approx(0.1 + 0.75)


def test_what_follows_the_last_step_is_not_training() -> None:
    steps, drawn = found(Rows().start().train(20).end_pass(seconds=9.0))
    assert steps.seconds.sum() == pytest.approx(2.0)
    assert steps.whole_steps().mean() == pytest.approx(drawn.mean) == pytest.approx(0.1)


@pytest.fixture(scope="module", params=["validates_often", "steady_convolutions", "ddp_over_gloo"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp(request.param)
    with tarfile.open(RECORDS / f"{request.param}.tar.xz") as archive:
        archive.extractall(made, filter="data")
    return made


def test_the_sheet_adds_up_to_the_ledger_phase_by_phase(folder: Path) -> None:
    trained = of_record(read_record(folder / "record"))
    rows = list(csv.DictReader(io.StringIO(sheet.render(trained))))
    for one in trained:
        own = [row for row in rows if int(row["rank"]) == one.process.rank]
        steps = [row for row in own if row["part"] == "step"]
        assert [int(row["step"]) for row in steps] == list(range(one.iterations.count))
        counted = [row for row in own if not row["left_out"]]
        count = sum(row["part"] == "step" for row in counted)
        assert count == len(one.iterations.after_warmup)
        spent = {entry.phase: entry.seconds * count for entry in one.ledger.entries}
        spent["other"] = spent.get("other", 0.0) + spent.pop("unattributed")
        for phase in sheet.COLUMNS[sheet.COLUMNS.index("seconds") + 1 :]:
            assert sum(float(row[phase]) for row in counted) == pytest.approx(spent.get(phase, 0.0), abs=1e-5)
        assert sum(float(row["seconds"]) for row in counted) == pytest.approx(count * one.ledger.mean, abs=1e-5)


def test_the_sheet_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--csv", "--warmup", "7", str(folder)]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    warm = [row for row in rows if row["rank"] == "0" and row["part"] == "step" and row["left_out"] == "warm-up"]
    assert len(warm) == 7
