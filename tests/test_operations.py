"""Operations on images where batches are made: counted, timed, and left as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import PYTHON, execute, recorded

from floorit.analyse import operations
from floorit.report.build import build

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: nothing of it can be watched")
pytest.importorskip("PIL", reason="PIL is not installed: nothing of it can be watched")

WATCHED = (2, 4, 8)  # of a worker's batches, the first being 1
BATCH = 4

PROGRAM = """
import json, pickle, sys, time, traceback, types
import numpy as np
import torch
import cv2  # after torch, when the recorder is already there
from cv2 import resize
from PIL import Image
from torch.utils.data import DataLoader, Dataset

workers = int(sys.argv[1])
torch.set_num_threads(1)
cv2.setNumThreads(0)
KEPT = {cv2.resize: "kept"}
WARP = np.float32([[0.7, 0.2, 3], [-0.2, 0.7, 40]])


class Data(Dataset):
    def __init__(self):
        self.spent, self.batch, self.held = {}, 0, None

    def __len__(self):
        return 32 if workers else 40

    def timed(self, name, function, *given, **more):
        began = time.perf_counter()
        value = function(*given, **more)
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - began
        return value

    def __getitem__(self, index):
        if index % 4 == 0:
            self.spent, self.batch = {}, self.batch + 1
        picture = self.timed("cv2.imread", cv2.imread, "a.jpg")
        small = self.timed("cv2.resize", resize, picture, (400, 320), interpolation=cv2.INTER_CUBIC)
        for _ in range(1 + index % 2):
            small = self.timed("cv2.warpAffine", cv2.warpAffine, small, WARP, (400, 320), flags=cv2.INTER_CUBIC)
        opened = Image.open("a.jpg")
        self.timed("PIL.ImageFile.ImageFile.load", opened.load)
        other = self.timed("PIL.Image.Image.resize", opened.resize, (400, 300), Image.LANCZOS)
        array = self.timed("numpy.load", np.load, "b.npy")
        if index % 4 == 3:
            with open("spent-%d.json" % self.batch, "w") as file:
                json.dump(self.spent, file)
        if self.batch in (4, 5):  # a watched one, and one after it
            self.look()
        return torch.tensor([float(small.sum()), float(np.asarray(other).sum()), float(array.sum())])

    def look(self):
        self.held = self.held or cv2.warpAffine
        self.held(np.zeros((4, 4), np.uint8), WARP, (4, 4))
        said = [KEPT[cv2.resize], cv2.resize == resize, repr(cv2.remap)[:18], cv2.resize.__name__, cv2.resize.__doc__]
        said += [isinstance(cv2.remap, types.BuiltinFunctionType), pickle.loads(pickle.dumps(cv2.warpAffine)).__name__]
        for wrong in (lambda: cv2.resize(None, (1, 1)), lambda: np.load("none.npy"), lambda: Image.open("none")):
            try:
                wrong()
            except Exception:
                said.append(traceback.format_exc())
        print(said, flush=True)


noise = np.random.default_rng(0)
cv2.imwrite("a.jpg", noise.integers(0, 255, (500, 640, 3), dtype=np.uint8))
np.save("b.npy", noise.random((500, 500)))
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-12)
for inputs in DataLoader(Data(), batch_size=4, num_workers=workers):
    print(inputs.sum().item(), flush=True)
    model(inputs).mean().backward()
    optimizer.step()
"""


def run(folder: Path, workers: int) -> tuple[dict[str, Any], bytes]:
    (folder / "train.py").write_text(PROGRAM)
    ended = recorded(["train.py", str(workers)], folder / "out", folder)
    assert ended.returncode == 0, ended.stderr.decode()
    report = msgspec.to_builtins(build(folder / "out", warmup=0))  # what is warm-up of so few steps is chance
    assert not [m for m in report["missing"] if "image operations" in m["what"]]
    return report["workers"], ended.stdout


def by_name(workers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The ways of calling each function that take most time."""
    return {operation["name"]: operation for operation in reversed(workers["operations"])}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], bytes]:
    """One run with a worker, for all tests that look at it."""
    folder = tmp_path_factory.mktemp("operations")
    return folder, *run(folder, 1)


def test_calls_are_counted_exactly(worker):
    _, workers, _ = worker
    assert workers["watched_batches"] == len(WATCHED)
    found = by_name(workers)
    assert {name: found[name]["calls"] for name in ("cv2.imread", "cv2.resize", "cv2.warpAffine", "numpy.load")} == {
        "cv2.imread": 1.0,
        "cv2.resize": 1.0,
        "cv2.warpAffine": 1.5,
        "numpy.load": 1.0,
    }
    assert "numpy.fromfile" not in found  # numpy.load's own


@pytest.mark.parametrize(
    "name", ["cv2.imread", "cv2.resize", "PIL.ImageFile.ImageFile.load", "PIL.Image.Image.resize", "numpy.load"]
)
def test_seconds_are_those_of_an_independent_timer(worker, name):
    folder, workers, _ = worker
    spent = [json.loads((folder / f"spent-{batch}.json").read_text())[name] / BATCH for batch in WATCHED]
    # Of three batches the interval is all of them. In the shortest the process was least pushed off its core.
    assert by_name(workers)[name]["seconds"]["low"] == pytest.approx(min(spent), rel=0.1)


def test_sizes_and_settings_are_those_in_force(worker):
    folder, workers, _ = worker
    found = by_name(workers)
    resized = found["cv2.resize"]
    assert (resized["shape"], resized["dtype"], resized["result"]) == ([500, 640, 3], "uint8", [320, 400, 3])
    assert (resized["setting"], resized["threads"]) == ("cubic", 1)
    assert found["PIL.Image.Image.resize"]["setting"] == "lanczos"
    assert found["PIL.ImageFile.ImageFile.load"]["result"] == [500, 640, 3]
    assert found["cv2.imread"]["where"]["file"] == str(folder / "train.py")
    assert sum(operation["share"] for operation in workers["operations"]) <= 1


@pytest.mark.acceptance
def test_without_workers_it_is_the_same(tmp_path):
    workers, _ = run(tmp_path, 0)
    found = by_name(workers)
    assert workers["watched_batches"] == 1  # here every eighth batch is timed, and of those the second is watched
    assert found["cv2.resize"]["calls"] == 1.0


def test_the_program_sees_what_it_saw_before(worker):
    folder, _, said = worker
    ended = execute([PYTHON, "train.py", "1"], folder)
    assert ended.returncode == 0, ended.stderr.decode()
    assert said == ended.stdout


def note(samples: int, seconds: float, read: list[int], *calls: list[Any], at: float = 1.0) -> dict[str, Any]:
    made = {"pid": 1, "at": at, "samples": samples, "seconds": seconds, "read": read}
    return made | {"calls": list(calls), "threads": {"cv2": 1, "torch": 1}, "files": {}}


def resize(seconds: float, *sizes: tuple[int, int]) -> list[Any]:
    """A call of cv2.resize as a record tells it; `sizes` are (side, calls)."""
    told = [[[side, side, 3], "uint8", [8, 8, 3], count] for side, count in sizes]
    return ["cv2.resize", 3, sum(count for _, count in sizes), seconds, told, None, None]


def test_the_usual_size_is_the_median_by_calls():
    found = operations.find([note(4, 1.0, [0, 0], resize(0.5, (10, 1), (1000, 1), (200, 2)))], 0.0)
    assert found is not None
    (operation,) = found.operations
    assert operation.shape == [200, 200, 3]
    assert (operation.share, operation.calls, operation.seconds.value) == (0.5, 1.0, 0.125)
    assert operation.setting == "area"


def test_warm_up_is_left_out_where_there_is_more():
    slow, fast = note(1, 9.0, [0, 0], at=1.0), note(1, 2.0, [0, 0], at=3.0)
    alone, both = operations.find([slow], 2.0), operations.find([slow, fast], 2.0)
    assert alone is not None
    assert both is not None
    assert (alone.sample_seconds, both.sample_seconds) == (9.0, 2.0)


def test_batches_from_storage_are_told_apart_from_those_from_memory():
    much = 1 << 24
    cold, warm, other = note(2, 8.0, [much, much]), note(2, 2.0, [much, 0]), note(2, 1.0, [100, 0])
    found = operations.find([cold, warm, other], 0.0)
    assert found is not None
    assert found.reading is not None
    assert (found.reading.cold_batches, found.reading.warm_batches) == (1, 1)
    assert found.reading.cold_sample_seconds is not None
    assert found.reading.cold_sample_seconds.value == 4.0
    assert found.reading.bytes_per_sample == much / 2


def test_a_batch_that_reads_next_to_nothing_says_nothing_of_the_disk():
    found = operations.find([note(2, 1.0, [100, 100])], 0.0)
    assert found is not None
    assert found.reading is None
    assert operations.find([], 0.0) is None
