"""Killed, out of disk, interrupted, misused: the record still opens, and the program never notices."""

import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import has_lost_race

from floorit.errors import RecordError
from floorit.events import read_record
from floorit.record import wire
from floorit.replay import BATCH

FLOORIT = str(Path(sys.executable).with_name("floorit"))
LONGEST = 120  # seconds a run may take on a busy machine

TRAIN = """
import sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
steps = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(64, 16), torch.randn(64, 1)), batch_size=8)
done = 0
print("training", flush=True)
while done < steps:
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == steps:
            break
print("loss", loss.item())
"""
FOREVER = "1000000000"

RANKS = TRAIN.replace("torch.manual_seed(0)", 'torch.distributed.init_process_group("gloo")').replace(
    "optimizer = ", "model = torch.nn.parallel.DistributedDataParallel(model)\noptimizer = "
)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def _environment(**extra):
    dropped = ("PYTHONPATH", "FLOORIT_RECORD", "PYTHONWARNINGS")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "VIRTUAL_ENV": sys.prefix, "OMP_NUM_THREADS": "1", **extra}


def _floorit(*words, cwd):
    return subprocess.run(
        [FLOORIT, *map(str, words)], cwd=cwd, env=_environment(), capture_output=True, text=True, timeout=LONGEST
    )


def _start(*words, cwd, **how):
    """A program that prints `training` once it does."""
    process = subprocess.Popen(list(map(str, words)), cwd=cwd, env=_environment(), stdout=subprocess.PIPE, **how)
    assert process.stdout.readline() == b"training\n"
    return process


def _end(process):
    process.stdout.close()
    return process.wait(timeout=LONGEST)


def _wait_for(condition, seconds=LONGEST):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def _has_rows(record):
    """Whether any row has reached the disk."""
    return any(len(process.rows) for process in read_record(record).run())


def _ledger(report):
    return [(e["phase"], e["seconds"], e["share"]) for e in report["ledger"]]


# -- killed with -9 -----------------------------------------------------------------------------------------------


def _kill_round(script, out, delay):
    """Kill a recorded program; the seconds between the end of the last row on disk and the kill."""
    program = _start(FLOORIT, "run", "--quiet", "--out", out, script, FOREVER, cwd=script.parent)
    [pid] = _children(program.pid)
    _wait_for(lambda: _has_rows(out / "record"))
    time.sleep(delay)  # not for work: the moment is the point
    killed = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    _end(program)
    assert program.returncode == -signal.SIGKILL  # floorit ends as the program did
    [process] = read_record(out / "record").run()
    _check_rows(process)
    assert (out / "report.json").exists()
    return killed - process.rows["end"][-1]


def _check_rows(process):
    """Each row begins where the one before ended, and its phases fill it."""
    lengths = process.rows["end"] - process.starts()
    assert (lengths > 0).all()
    assert process.rows["seconds"].sum(axis=1) == pytest.approx(lengths, abs=1e-5, rel=1e-4)


def _children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


@pytest.mark.skipif(sys.platform != "linux", reason="the clock is one for all processes on Linux only")
@pytest.mark.parametrize("rounds", [pytest.param(3, id="3"), pytest.param(50, id="50", marks=pytest.mark.acceptance)])
def test_killed_at_any_moment_all_but_the_last_second_is_there(script, tmp_path, rounds):
    dice = random.Random(rounds)
    lost = [_kill_round(script, tmp_path / f"run{n}", dice.uniform(0, 1.5)) for n in range(rounds)]
    assert max(lost) < 1.0, lost


def test_floorit_itself_killed_leaves_a_program_that_trains_and_a_record_that_opens(script, tmp_path):
    program = _start(FLOORIT, "run", "--quiet", "--out", tmp_path / "run", script, FOREVER, cwd=tmp_path)
    [pid] = _children(program.pid)
    program.kill()
    program.wait()
    try:
        _wait_for(lambda: _has_rows(tmp_path / "run" / "record"))
        before = _row_count(tmp_path / "run")
        _wait_for(lambda: _row_count(tmp_path / "run") > before)
    finally:
        os.kill(pid, signal.SIGKILL)
        program.stdout.close()
    ended = _floorit("report", "--json", tmp_path / "run", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["run"]["steps"] > 0


def _row_count(out):
    return sum(len(process.rows) for process in read_record(out / "record").run())


# -- torn and broken files ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that ended by itself."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "train.py").write_text(TRAIN)
    ended = _floorit("run", "--quiet", "--out", folder / "run", "train.py", 300, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "run"


@pytest.fixture
def copy(finished, tmp_path):
    """A record of one file that may be spoilt, and that file."""
    shutil.copytree(finished, tmp_path / "copy")
    [path] = (tmp_path / "copy" / "record").glob("*.rec")
    return path


def _rows(path, told=False):
    """All rows, or those of iterations: not what lies beside a part that is lost."""
    rows = [row for process in read_record(path.parent).processes.values() for row in process.rows]
    return [row.tobytes() for row in rows if not told or row["opened"] == BATCH]


def test_cut_off_anywhere_near_its_end_the_file_opens(copy):
    data, whole = copy.read_bytes(), _rows(copy)
    ends = [end for _, _, end in wire.frames(data)]
    for length in (*range(ends[-4], len(data), 61), *range(len(data) - 200, len(data))):
        copy.write_bytes(data[:length])
        rows = _rows(copy)
        assert rows == whole[: len(rows)]


def test_with_bytes_flipped_nothing_is_read_that_was_not_written(copy):
    data, whole = copy.read_bytes(), set(_rows(copy))
    dice = random.Random(3)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 20)):
            broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        copy.write_bytes(broken)
        assert set(_rows(copy, told=True)) <= whole


def test_with_a_hole_in_it_the_frames_on_both_sides_are_read(copy):
    data, whole = copy.read_bytes(), _rows(copy)
    offsets = [0] + [end for _, _, end in wire.frames(data)]
    middle = len(offsets) // 2
    copy.write_bytes(data[: offsets[middle]] + b"\0" * 100 + data[offsets[middle] :])
    assert _rows(copy) == whole


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.999])
def test_a_report_can_be_made_of_any_part_of_a_record(copy, keep):
    data = copy.read_bytes()
    copy.write_bytes(data[: int(len(data) * keep)])
    ended = _floorit("report", copy.parents[1], cwd=copy.parent)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0, ended.stderr


def test_whole_frames_that_hold_nonsense_are_passed_over(copy):
    whole = _rows(copy)
    nonsense = [b"", b"[]", b"null", b'{"kind": "place"}', b'{"kind": "samples", "looks": [[1]]}', b"{", b"\xff\xfe"]
    nonsense += [b'{"kind": "iterator"}', b'{"kind": "lines", "taken": 3}', b'{"kind": {}}']
    nonsense += [b'{"kind": "loader", "id": []}', b'{"kind": "place", "pid": [], "id": 1, "file": 1, "line": 1}']
    with copy.open("ab") as file:
        for payload in nonsense:
            file.write(wire.frame(wire.JSON_TAG, payload))
        file.write(wire.frame(wire.LOG_TAG, b"short"))
    assert _rows(copy) == whole


class _Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_reading_runs_nothing_that_is_in_the_file(copy, tmp_path):
    mark = tmp_path / "it ran"
    bomb = pickle.dumps(_Bomb(mark))
    with copy.open("ab") as file:
        for tag in wire.TAGS:
            file.write(wire.frame(tag, bomb))
        file.write(wire.note("process", __reduce__=["os.system", f"touch '{mark}'"]))
    (copy.parent / "more.rec").write_bytes(bomb)
    read_record(copy.parent)
    assert not mark.exists()


def test_a_folder_without_a_record_is_said_to_be_one(tmp_path):
    with pytest.raises(RecordError):
        read_record(tmp_path / "nothing")
    ended = _floorit("report", tmp_path, cwd=tmp_path)
    _one_line(ended, 66, "record")


# -- places that cannot be written --------------------------------------------------------------------------------


def _said(ended):
    """What floorit itself said."""
    return [line for line in ended.stderr.splitlines() if line.strip()]


def _one_line(ended, code, slug=None):
    [line] = _said(ended)
    assert line.startswith("floorit: ")
    assert "Traceback" not in line
    assert slug is None or f"[{slug}]" in line
    assert ended.returncode == code
    return line


def _bare(script, steps):
    ended = subprocess.run([sys.executable, script, str(steps)], env=_environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system with room for almost nothing."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_said_once_and_the_program_trains(script, tiny_disk):
    ended = _floorit("run", "--quiet", "--out", tiny_disk / "run", script, 1500, cwd=script.parent)
    assert ended.returncode == 0
    assert ended.stdout == _bare(script, 1500)
    assert "No space left" in _one_line(ended, 0)


def test_a_disk_that_is_full_from_the_start(script, tiny_disk):
    (tiny_disk / "filler").write_bytes(b"x" * 60_000)
    with pytest.raises(OSError, match="No space left"):
        (tiny_disk / "more").write_bytes(b"x" * 60_000)
    ended = _floorit("run", "--quiet", "--out", tiny_disk / "run", script, 20, cwd=script.parent)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == _bare(script, 20)


def test_a_file_where_the_folder_should_be(script, tmp_path):
    (tmp_path / "file").write_text("in the way")
    ended = _floorit("run", "--quiet", "--out", tmp_path / "file" / "run", script, 20, cwd=tmp_path)
    assert ended.stdout == _bare(script, 20)
    line = _one_line(ended, 0)
    assert str(tmp_path / "file" / "run") in line
    elsewhere = Path(re.search(r"recording to (\S+)", line)[1])
    assert (elsewhere / "report.json").exists()
    shutil.rmtree(elsewhere)


def test_the_folder_deleted_while_it_runs(script, tmp_path):
    program = _start(
        FLOORIT, "run", "--quiet", "--out", tmp_path / "run", script, 4000, cwd=tmp_path, stderr=subprocess.PIPE
    )
    _wait_for(lambda: _has_rows(tmp_path / "run" / "record"))
    shutil.rmtree(tmp_path / "run")
    stdout, stderr = program.communicate(timeout=LONGEST)
    assert program.returncode == 0
    assert stdout.startswith(b"loss ")
    assert b"Traceback" not in stderr, stderr.decode()
    assert len([line for line in stderr.splitlines() if line.strip()]) in (1, 2)  # record gone, report not written


# -- how a program ends -------------------------------------------------------------------------------------------


def test_interrupted_from_the_keyboard_the_report_is_written(script, tmp_path):
    program = _start(
        FLOORIT, "run", "--quiet", "--out", tmp_path / "run", script, FOREVER,
        cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    _wait_for(lambda: _has_rows(tmp_path / "run" / "record"))
    os.killpg(program.pid, signal.SIGINT)
    _, stderr = program.communicate(timeout=LONGEST)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert program.returncode in (-signal.SIGINT, 130)
    assert report["program"]["exit_code"] == 130
    assert report["run"]["steps"] > 0
    assert stderr.count(b"Traceback") == 1  # the program's own KeyboardInterrupt
    assert b"floorit/record" not in stderr


def test_steps_ends_the_program_well(script, tmp_path):
    ended = _floorit("run", "--quiet", "--steps", 50, "--out", tmp_path / "run", script, FOREVER, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    run = json.loads((tmp_path / "run" / "report.json").read_text())["run"]
    assert run["steps"] - run["warmup_steps"] >= 50
    (process,) = read_record(tmp_path / "run" / "record").run()
    assert run["steps"] == int(process.rows["backwards"].sum())  # the batch at which it ended is no step


def test_steps_ends_every_rank_after_the_same_step(tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    launcher = ["python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "ranks.py", FOREVER]
    launcher[0] = sys.executable
    for folder in (tmp_path / "run", tmp_path / "again"):
        ended = _floorit("run", "--quiet", "--steps", 50, "--out", folder, "--", *launcher, cwd=tmp_path)
        if not has_lost_race(ended.returncode, ended.stderr.encode()):
            break
    assert ended.returncode == 0, ended.stderr
    run = json.loads((folder / "report.json").read_text())["run"]
    assert run["ranks"] == 2
    assert run["steps"] - run["warmup_steps"] >= 50
    trained = [p for p in read_record(folder / "record").run() if len(p.rows) > 10]
    assert len({int(p.rows["backwards"].sum()) for p in trained}) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [("print('hello')", "No Python process that imports torch"), ("import torch; print('hello')", "never trained")],
)
def test_a_program_that_never_trains_is_said_to(tmp_path, source, expected):
    (tmp_path / "idle.py").write_text(source)
    ended = _floorit("run", "--out", "run", "idle.py", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "hello\n")
    assert expected in ended.stderr
    assert "Traceback" not in ended.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert expected in report["summary"]
    assert report["step"] is None


def test_the_report_drawn_again_is_the_same(finished):
    first = json.loads((finished / "report.json").read_text())
    ended = _floorit("report", "--json", finished, cwd=finished)
    assert ended.returncode == 0, ended.stderr
    again = json.loads(ended.stdout)
    assert _ledger(again) == _ledger(first)
    assert again["step"] == first["step"]
    assert np.isclose(sum(seconds for _, seconds, _ in _ledger(first)), first["step"]["mean"])


def test_the_report_drawn_again_can_be_read(finished):
    ended = _floorit("report", finished, cwd=finished)
    assert ended.returncode == 0
    assert "backward" in ended.stdout


# -- misuse -------------------------------------------------------------------------------------------------------


def test_a_script_that_is_not_there(tmp_path):
    assert "nonexistent.py" in _one_line(_floorit("run", "nonexistent.py", cwd=tmp_path), 127, "command-not-found")
    assert not list(tmp_path.iterdir())


def test_a_command_that_is_not_there(tmp_path):
    line = _one_line(_floorit("run", "no-such-command", "x", cwd=tmp_path), 127, "command-not-found")
    assert "no-such-command" in line


def test_no_command(tmp_path):
    _one_line(_floorit("run", cwd=tmp_path), 2, "usage")


def test_a_folder_that_holds_a_record_is_not_written_over(finished):
    before = sorted((p.name, p.stat().st_mtime_ns) for p in finished.rglob("*"))
    ended = _floorit("run", "--out", finished, "train.py", 5, cwd=finished.parent)
    _one_line(ended, 73, "output")
    assert ended.stdout == ""
    assert sorted((p.name, p.stat().st_mtime_ns) for p in finished.rglob("*")) == before
