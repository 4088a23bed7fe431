"""A job of many ranks, read one file at a time: the report is the one that is made with all of them in memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import manyranks
import msgspec
import numpy as np
import pytest

from floorit import cores, events
from floorit.analyse import ranks
from floorit.analyse.ledger import Ledger
from floorit.record import wire
from floorit.report import build, merging, trained
from floorit.report.model import Report

RANKS, STEPS, LATE = 20, 500, 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many") / "run"
    manyranks.write(folder, ranks=RANKS, steps=STEPS, late=LATE)
    return folder


@pytest.fixture(scope="module")
def merged(folder: Path) -> tuple[Report, Any, events.RecordReader]:
    return build.merge(folder)


def test_the_late_rank_is_named_with_what_it_is_late_with(merged: tuple[Report, Any, Any]) -> None:
    report = merged[0]
    assert report.run is not None
    assert (report.run.ranks, report.run.steps, report.run.eval_passes) == (RANKS, STEPS, 1)
    assert [rank.rank for rank in report.ranks] == list(range(RANKS))
    late = report.late_rank
    assert late is not None
    assert (late.rank, late.phase, late.where[0].line) == (LATE, "data_wait", 4)
    assert late.seconds.value == pytest.approx(manyranks.LATE * 1e-9, rel=0.05)
    assert {rank.waits_for for rank in report.ranks} == {LATE, None}


def test_the_same_is_said_with_all_ranks_in_memory(folder: Path, merged: tuple[Report, Any, Any]) -> None:
    run, reader = build.load(folder)
    assert msgspec.json.encode(build.assemble(folder, run, reader)) == msgspec.json.encode(merged[0])


def test_of_ranks_beside_the_first_nothing_is_kept_that_grows_with_the_steps(
    merged: tuple[Report, Any, events.RecordReader],
) -> None:
    first, *others = merged[2].run()
    assert len(others) == RANKS - 1
    assert len(first.rows) >= STEPS
    assert sum(len(one.rows) + len(one.samples) + len(one.fetches) for one in others) == 0


def test_several_processes_read_what_one_does(
    folder: Path, merged: tuple[Report, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 5)
    monkeypatch.setattr(cores, "at_hand", lambda: 2)
    report, _, _ = build.merge(folder, spread=cores.spread)
    assert msgspec.json.encode(report) == msgspec.json.encode(merged[0])


def test_a_record_that_grows_is_read_as_the_whole_one_is(folder: Path, tmp_path: Path) -> None:
    """In parts of any length, as it is watched, and in blocks shorter than a frame."""
    whole = next(iter((folder / "record").glob("node1-1009-*.rec")))
    expected = events.RecordReader(folder / "record").read_file(whole)
    data, grown = whole.read_bytes(), tmp_path / whole.name
    reader = events.RecordReader(tmp_path)
    for begin, end in pairwise([0, 1, 5000, 5001, 40_000, len(data) // 2, len(data)]):
        with grown.open("ab") as file:
            file.write(data[begin:end])
        reader.read()
    [process] = reader.run()
    assert process.rows.tobytes() == expected.rows.tobytes()
    assert process.samples == expected.samples
    assert process.stretches == expected.stretches


def test_a_file_is_not_read_all_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(iter((folder / "record").glob("*.rec")))
    whole = events.RecordReader(folder / "record").read_file(path)
    monkeypatch.setattr(events, "AT_ONCE", 100)  # less than a frame
    again = events.RecordReader(folder / "record").read_file(path)
    assert again.rows.tobytes() == whole.rows.tobytes()


def test_what_is_torn_in_the_middle_of_a_file_ends_nothing(folder: Path, tmp_path: Path) -> None:
    path = next(iter((folder / "record").glob("*.rec")))
    data = path.read_bytes()
    (tmp_path / path.name).write_bytes(data[: len(data) // 2] + b"\0" * 70_000 + data[len(data) // 2 :])
    whole = events.RecordReader(folder / "record").read_file(path)
    torn = events.RecordReader(tmp_path).read_file(tmp_path / path.name)
    assert len(whole.rows) - 40 < len(torn.rows) <= len(whole.rows)
    assert torn.rows["end"][-1] == whole.rows["end"][-1]


def test_processes_come_by_rank_whatever_their_files_are_called(folder: Path) -> None:
    reader = events.RecordReader(folder / "record")
    numbers = [reader.read_file(path).rank for path in reader.files()]
    assert numbers == list(range(RANKS))


def test_the_first_rank_that_trained_is_the_one_that_is_kept(folder: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.mkdir()
    note = wire.note("process", pid=7, host="a", rank=None, started=1.0)  # as a launcher's
    (record / "a-7-0.rec").write_bytes(note + wire.note("missing", what="that", reason="this"))
    for path in (folder / "record").glob("node0-100[2-4]-*.rec"):
        (record / path.name).write_bytes(path.read_bytes())
    reader = events.open_record(record)
    found = merging.merge(reader)
    assert found.first is not None
    assert found.first.process.rank == 2
    assert [one.rank for one in found.peers] == [2, 3, 4]
    assert [process.rank for process in reader.run()] == [0, 2, 3, 4]
    assert reader.run()[0].missing == [{"what": "that", "reason": "this"}]


# -- side by side -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9])
def test_the_median_of_the_others_is_that(count: int) -> None:
    """Against the definition, ties included."""
    dice = np.random.default_rng(count)
    own = dice.integers(0, 6, (count, 700)).astype(float)
    members = [
        ranks.Member(
            rank=rank,
            warmup=0,
            slowed=np.zeros(700, bool),
            own=own[rank],
            waited=np.zeros(700),
            pace=0.1,
            reduces=True,
            ledger=Ledger(mean=1.0, entries=[], looks={}),
        )
        for rank in range(count)
    ]
    side = ranks._side_by_side(members, np.arange(700))
    for rank in range(count):
        assert (side.others(own[rank], count) == np.median(np.delete(own, rank, axis=0), axis=0)).all()
    assert (side.longest == own.max(axis=0)).all()
    assert (side.slowest == own.argmax(axis=0)).all()


def test_a_peer_of_a_process_that_trained(folder: Path) -> None:
    reader = events.RecordReader(folder / "record")
    one = trained.examine(reader.read_file(reader.files()[LATE]))
    assert one is not None
    peer = trained.peer(one)
    assert (peer.rank, peer.samples, peer.used_cuda) == (LATE, manyranks.BATCH, False)
    phases = [wire.PHASES.index(name) for name in ("backward", "grad_sync")]
    rows = one.process.rows["seconds"].astype(float)
    alone = np.delete(rows, phases, axis=1).sum()
    before = one.iterations.of_row < 0
    assert peer.member.own.sum() == pytest.approx(alone - np.delete(rows[before], phases, axis=1).sum())
