"""Long records: what is far behind is packed, and what is read, said and drawn of them stays the same."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import manyranks
import numpy as np
import pytest

from floorit import condense, packing, runfile
from floorit.analyse import course, iterations
from floorit.events import Process, RecordReader, read_record
from floorit.record import wire
from floorit.report import build, model
from floorit.tables import FETCH, LOOK, NAMED_ROW, ROW

STEPS = 4000
RECORDS = [
    pytest.param(path, id=path.name.partition(".")[0], marks=[pytest.mark.acceptance] if number % 14 else [])
    for number, path in enumerate(sorted((Path(__file__).parent / "records").glob("*.tar.xz")))
]
NOT_COUNTED = ("end", "time", "seconds", "fetch", "collate", "send", "nanoseconds")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is read is long."""
    for name, size in (("HEAD", 1 << 15), ("AT_ONCE", 1 << 15), ("TAIL", 1 << 13)):
        monkeypatch.setattr(condense, name, size)
    monkeypatch.setattr(condense, "_is_ours", lambda path: not path.with_suffix(".pack").exists())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "run"
    manyranks.write(folder, ranks=1, steps=STEPS, late=None)
    return folder


@pytest.fixture
def folder(plain: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "run"))


def condensed(folder: Path) -> condense.Condenser:
    """A record of which all that may be packed is."""
    condenser = condense.Condenser(folder / runfile.RECORD)
    while any(file.is_due() for file in condenser._files.values()) or not condenser._files:
        condenser.look()
    return condenser


def only(folder: Path) -> Process:
    [process] = read_record(folder / runfile.RECORD).processes.values()
    return process


def recording(folder: Path) -> Path:
    [path] = (folder / runfile.RECORD).glob("*.rec")
    return path


def assert_same(one: Process, other: Process) -> None:
    """Counts are the same, and sums, and moments; every duration is to a hundredth or so of what is usual."""
    for name in ("rows", "named", "device", "fetches"):
        before, after = getattr(one, name), getattr(other, name)
        assert len(before) == len(after)
        for column in before.dtype.names:
            if column not in NOT_COUNTED:
                assert (before[column] == after[column]).all(), (name, column)
    np.testing.assert_allclose(one.rows["end"], other.rows["end"], rtol=0, atol=2e-4)
    sums = [process.rows["seconds"].sum(axis=0, dtype=np.float64) for process in (one, other)]
    np.testing.assert_allclose(*sums, rtol=1e-5, atol=2e-4)
    assert [(s.phase, s.iterator, s.user, s.stack) for s in one.samples] == [
        (s.phase, s.iterator, s.user, s.stack) for s in other.samples
    ]
    assert len(one.stretches) == len(other.stretches)


# -- packs --------------------------------------------------------------------------------------------------------


def test_sums_and_ends_do_not_drift_and_rows_close() -> None:
    dice = np.random.default_rng(1)
    table = np.zeros(50_000, ROW)
    table["seconds"] = dice.gamma(2, 1e-3, (len(table), len(wire.PHASES)))
    table["seconds"][::7, wire.CHECKPOINT] = 0
    table["seconds"][1000, wire.EVAL] = 300.0
    table["end"] = 1e5 + np.cumsum(table["seconds"].sum(axis=1, dtype=np.float64))
    table["end"][20_000:] += 12.5  # a part of the log was lost
    table["samples"] = dice.integers(0, 2**32, len(table), np.uint32)
    table["ready"] = 0xFFFF
    read = packing.unpacked(packing.packed(table), ROW)
    tick = 2e-3 / packing.FINE
    for name in set(ROW.names or ()) - {"end", "seconds"}:
        assert (read[name] == table[name]).all()
    assert np.abs(read["seconds"] - table["seconds"]).max() < 3 * tick
    drift = np.cumsum(read["seconds"], axis=0, dtype=np.float64) - np.cumsum(table["seconds"], axis=0, dtype=np.float64)
    assert np.abs(drift).max() < 2 * tick
    assert np.abs(read["end"] - table["end"]).max() < len(wire.PHASES) * tick
    apart = np.diff(read["end"]) - read["seconds"][1:].sum(axis=1, dtype=np.float64)
    assert apart[19_999] == pytest.approx(12.5, abs=1e-5)
    assert np.abs(np.delete(apart, 19_999)).max() < 2e-5  # as exact as the 300 seconds in the table


def test_what_was_watched_is_kept_to_the_nanosecond() -> None:
    dice = np.random.default_rng(2)
    spans = np.zeros(1000, packing.SPAN)
    spans["nanoseconds"] = dice.integers(1, 10**7, len(spans))
    spans["time"] = 10**15 + np.cumsum(spans["nanoseconds"])
    assert (packing.unpacked(packing.packed(spans, exactly=True), packing.SPAN) == spans).all()


@pytest.mark.parametrize("kind", packing.KINDS.values(), ids=packing.KINDS)
def test_nothing_is_packed_as_nothing(kind: np.dtype[Any]) -> None:
    assert len(packing.unpacked(packing.packed(np.zeros(0, kind)), kind)) == 0


def test_a_batch_a_name_and_a_look_come_back() -> None:
    fetches = np.array([(5.5, 77, 32, 1, 0.25, 0.125, 0.0), (5.75, 78, 32, 0, 0.25, 0.0, 0.5)], FETCH)
    named = np.array([(2**31, 3, 4, 2**20, 1.5), (2**31 + 1, 3, 5, 1, 0.0)], NAMED_ROW)
    looks = np.array([(10**15, 4, 5, 6, 7), (10**15 + 2**20, 1, 2, 3, 4)], LOOK)
    for table in (fetches, named, looks):
        read = packing.unpacked(packing.packed(table), table.dtype)
        for column in table.dtype.names or ():
            np.testing.assert_allclose(read[column], table[column], rtol=1e-2 if column in NOT_COUNTED else 0)


# -- records ------------------------------------------------------------------------------------------------------


def test_a_record_takes_a_few_bytes_a_step_and_says_the_same(
    plain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condense, "AT_ONCE", 1 << 18)
    path = recording(folder)
    before = path.stat().st_size
    condensed(folder)
    packed = path.with_suffix(".pack").stat().st_size
    assert path.stat().st_size == before
    assert path.stat().st_blocks * 512 < before * 0.7  # the last is given back only when there is another
    assert packed / STEPS < 12  # of 216; each pack has a state in it, and these are small
    assert_same(only(plain), only(folder))


def test_when_the_program_is_over_there_is_one_file_without_a_hole(plain: Path, folder: Path) -> None:
    path = recording(folder)
    before = path.stat().st_size
    condensed(folder).finish()
    assert [file.name for file in (folder / runfile.RECORD).iterdir()] == [path.name]
    assert path.stat().st_size < before / 4
    assert_same(only(plain), only(folder))


def test_a_file_that_somebody_still_writes_to_is_left_as_it_is(plain: Path, folder: Path) -> None:
    path = recording(folder)
    running = path.with_name(f"node0-{os.getpid()}-1.rec")
    path.rename(running)
    condensed(folder).finish()
    assert running.with_suffix(".pack").exists()
    assert_same(only(plain), only(folder))


def test_killed_at_any_moment_nothing_is_missing(plain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after whatever changes a file, another reads the record."""
    whole, seen = only(plain), []

    def looked_at(function: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*args: Any) -> Any:
            assert_same(whole, only(folder))
            result = function(*args)
            assert_same(whole, only(folder))
            seen.append(function)
            return result

        return looked

    monkeypatch.setattr(condense, "AT_ONCE", 1 << 17)
    for owner, name in ((condense, "_punch"), (os, "fsync"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, looked_at(getattr(owner, name)))
    monkeypatch.setattr(condense, "_is_punched", lambda path: True)
    condensed(folder).finish()
    assert len(seen) > 10


def test_a_torn_pack_is_passed_over(plain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full: what it stands for has not been given back."""
    monkeypatch.setattr(condense, "_punch", lambda *_: None)
    monkeypatch.setattr(condense, "_is_punched", lambda path: True)
    condensed(folder)
    packs = recording(folder).with_suffix(".pack")
    packs.write_bytes(packs.read_bytes()[:-100])
    assert_same(only(plain), only(folder))


def test_what_cannot_be_read_is_said_to_be_missing(plain: Path, folder: Path) -> None:
    condensed(folder)
    packs = recording(folder).with_suffix(".pack")
    first, *others = [payload for _, payload, _ in wire.frames(packs.read_bytes())]
    spoilt = [first[: packing.HEAD.size] + b"of another version", *others]
    packs.write_bytes(b"".join(wire.frame(wire.PACK_TAG, payload) for payload in spoilt))
    process = only(folder)
    assert [note["what"] for note in process.missing if "packed" in note["reason"]] == ["some of the steps"]
    assert 0.9 * STEPS < (process.rows["backwards"] > 0).sum() < STEPS


@pytest.mark.parametrize("seed", range(2))
def test_one_who_looks_on_sees_the_same_however_late(plain: Path, folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    path = recording(folder)
    data = path.read_bytes()
    path.write_bytes(b"")
    reader, condenser, written = RecordReader(folder / runfile.RECORD), condense.Condenser(folder / runfile.RECORD), 0
    while written < len(data):
        more = dice.choice((5_000, 50_000, 150_000))
        with path.open("ab") as file:
            file.write(data[written : written + more])
        written += more
        for _ in range(dice.randrange(8)):
            condenser.look()
        if dice.random() < 0.4:
            reader.read()
    reader.read()
    [process] = reader.processes.values()
    assert process.packed is not None
    assert_same(only(plain), process)


def test_the_usual_step_is_one_of_which_there_is_a_log(folder: Path) -> None:
    condensed(folder)
    reader = read_record(folder / runfile.RECORD)
    [process] = reader.processes.values()
    found = iterations.find(process)
    assert found is not None
    shown = course.usual(process, found, lambda begin, end: reader.spans_between(process, begin, end))
    assert isinstance(shown, course.Course)
    assert sum(bar.end - bar.begin for bar in shown.host) == pytest.approx(shown.seconds, rel=0.01)


def test_where_the_disk_takes_nothing_back_nothing_is_packed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condense, "_punch", lambda *_: (_ for _ in ()).throw(OSError(95, "not supported")))
    condenser = condense.Condenser(folder / runfile.RECORD)
    for _ in range(4):
        condenser.look()
    assert [file.suffix for file in (folder / runfile.RECORD).iterdir()] == [".rec"]


def test_a_fault_of_ours_does_not_end_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "packed", lambda *_, **__: 1 / 0)
    condenser = condense.Condenser(folder / runfile.RECORD)
    condenser.look()
    condenser.look()
    assert not any(file.is_due() for file in condenser._files.values())


@pytest.mark.parametrize("archive", RECORDS)
def test_the_report_is_the_same(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    before = json.loads(model.to_json(build.merge(tmp_path)[0]))
    condenser = condense.Condenser(tmp_path / runfile.RECORD)
    for _ in range(60):
        condenser.look()
    assert list(differences(before, json.loads(model.to_json(build.merge(tmp_path)[0])))) == []


def differences(one: Any, other: Any, at: str = "") -> Any:
    """Places at which two reports differ, numbers by more than a hundredth."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, f"{at}[{number}]")
    elif isinstance(one, float) and isinstance(other, float):
        if not math.isclose(one, other, rel_tol=1e-2, abs_tol=2e-6):
            yield at, one, other
    elif one != other:
        yield at, one, other


# -- a run --------------------------------------------------------------------------------------------------------

PROGRAM = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
data = TensorDataset(torch.randn(3000, 8), torch.randn(3000, 1))
for epoch in range(6):
    for x, y in DataLoader(data, batch_size=2):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
print(loss.item())
"""
RUN = """
import sys
from floorit import cli, condense
condense.HEAD, condense.AT_ONCE, condense.TAIL, condense.EVERY, condense.SHARE = 1 << 17, 1 << 17, 1 << 13, 0.0, 1.0
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.acceptance
def test_a_record_is_packed_while_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    bare = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    command = [sys.executable, "-c", RUN, "run", "--quiet", "--no-window", "--out", str(tmp_path / "run"), str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == bare.stdout
    told = json.loads((tmp_path / "run/report.json").read_text())
    assert told["run"]["steps"] == 9000
    process = only(tmp_path / "run")
    assert process.packed is not None
    again = build.merge(tmp_path / "run")[0]
    assert again.run is not None
    assert again.step is not None
    assert (again.run.steps, again.run.epochs) == (9000, 6)
    assert again.step.mean == pytest.approx(told["step"]["mean"], rel=1e-4)
