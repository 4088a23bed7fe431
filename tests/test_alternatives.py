"""Other ways to do an operation on images: what they cost by themselves, and what they would gain."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
import simulation
from conftest import PYTHON, execute
from simulation import Program

from floorit import imagebench, imagecosts
from floorit.analyse import alternatives, operations
from floorit.analyse.alternatives import Measured, MeasuredOperation, MeasuredWay
from floorit.analyse.input import Workers
from floorit.events import RecordReader
from floorit.report import images
from floorit.stats import Estimate

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: nothing of it can be timed")
Image = pytest.importorskip("PIL.Image", reason="PIL is not installed: nothing of it can be timed")

SHAPE, SMALLER = [600, 800, 3], [200, 260, 3]
PICTURE = {
    "shape": SHAPE,
    "dtype": "uint8",
    "result": SMALLER,
    "matrix": None,
    "threads": 1,
    "files": [],
    "reduce": None,
}
RESIZE = {"name": "cv2.resize", "flag": 2, "setting": "cubic"} | PICTURE
WARP = RESIZE | {"name": "cv2.warpAffine", "matrix": [[0.5, 0.1, 3.0], [-0.1, 0.5, 40.0]], "flag": 18}
COLOUR = RESIZE | {"name": "cv2.cvtColor", "flag": cv2.COLOR_BGR2HSV, "setting": "BGR2HSV", "result": SHAPE}
PIL_RESIZE = RESIZE | {"name": "PIL.Image.Image.resize", "dtype": "RGB", "setting": "bicubic", "flag": 3}
PIL_DECODE = RESIZE | {"name": "PIL.ImageFile.ImageFile.load", "shape": None, "dtype": "RGB", "result": SHAPE}


def measured(folder: Path, *asked: dict[str, Any], files: list[str] | None = None, **environ: str) -> dict[str, Any]:
    """What the script says, run as it is run after a program."""
    plan = {"seconds": 0.2 * (len(asked) + 1), "operations": asked, "files": files or []}
    ended = execute([PYTHON, imagebench.__file__], folder, json.dumps(plan).encode(), **environ)
    assert ended.returncode == 0, ended.stderr.decode()
    said: dict[str, Any] = json.loads(ended.stdout)
    msgspec.json.decode(ended.stdout, type=Measured)
    return said


def medians(operation: dict[str, Any]) -> dict[str, float]:
    return {way["what"]: way["seconds"]["value"] for way in operation["alternatives"]}


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("a.jpg", "b.jpg"):
        (folder / name).write_bytes(imagebench._synthetic(SHAPE))
    return [str(folder / name) for name in ("a.jpg", "b.jpg")]


@pytest.fixture(scope="module")
def found(jpegs, tmp_path_factory) -> dict[str, Any]:
    """One run of the script for all tests that look at it."""
    read = RESIZE | {"name": "cv2.imread", "flag": None, "setting": None, "shape": None, "result": SHAPE}
    read |= {"files": jpegs, "reduce": 2}
    folder = tmp_path_factory.mktemp("measured")
    unknown = RESIZE | {"name": "cv2.LUT"}
    said = measured(folder, RESIZE, WARP, COLOUR, PIL_RESIZE, read, PIL_DECODE, unknown, files=jpegs)
    names = ("resize", "warp", "colour", "pil", "read", "decode", "unknown")
    return {**dict(zip(names, said["operations"], strict=True)), "files": said}


def test_the_present_way_costs_what_it_costs(found):
    picture = imagebench._picture(RESIZE)
    cv2.setNumThreads(1)
    spent = []
    for _ in range(30):
        began = time.thread_time()
        cv2.resize(picture, (260, 200), interpolation=cv2.INTER_CUBIC)
        spent.append(time.thread_time() - began)
    assert found["resize"]["present"]["value"] == pytest.approx(sorted(spent)[15], rel=1.0)
    assert (
        found["resize"]["present"]["low"] <= found["resize"]["present"]["value"] <= found["resize"]["present"]["high"]
    )
    assert found["resize"]["present"]["n"] >= imagebench.FEWEST_ROUNDS


@pytest.mark.parametrize("which", ["resize", "warp", "pil"])
def test_interpolations_are_ordered_as_they_must_be(found, which):
    costs = medians(found[which])
    last = max(costs, key=lambda what: costs[what])
    assert costs["nearest"] == min(costs.values())
    assert costs["nearest"] < found[which]["present"]["value"]
    assert last == "lanczos"
    assert {way["risk"] for way in found[which]["alternatives"] if "thread" not in way["what"]} == {"training"}


def test_colour_is_tried_on_the_other_type(found):
    assert "on float32" in medians(found["colour"])
    assert found["colour"]["alternatives"][0]["risk"] == "rounding"


def test_decoders_are_tried_on_the_programs_own_files(found):
    assert found["read"]["on"] == "2 of the files it read"
    costs = medians(found["read"])
    assert {"PIL", "cv2, reduced to 1/2", "PIL, draft at 1/2"} <= set(costs)
    assert costs["PIL, draft at 1/2"] < costs["PIL"]
    assert found["decode"]["on"].startswith("a made-up JPEG of ")
    assert set(medians(found["decode"])) >= {"cv2.imdecode"}
    risks = {way["what"]: way["risk"] for way in found["read"]["alternatives"]}
    assert (risks["PIL"], risks["cv2, reduced to 1/2"]) == ("rounding", "training")


def test_files_are_read_from_memory_and_from_storage_or_it_is_said_why_not(found, jpegs):
    said = found["files"]
    assert said["file_bytes"] == len(Path(jpegs[0]).read_bytes())
    assert said["file_warm"]["value"] > 0
    assert ("file_cold" in said) != ("file_missing" in said)


def test_what_is_not_known_says_so(found):
    assert found["unknown"] == {"missing": "no other way to do it is known to this version"}


def test_without_its_library_an_operation_is_absent_with_the_reason(tmp_path):
    (tmp_path / "cv2.py").write_text("raise ImportError('no OpenCV here')")
    said = measured(tmp_path, RESIZE, PIL_DECODE, PYTHONPATH=str(tmp_path))
    gone, decoded = said["operations"]
    assert gone == {"missing": "no OpenCV here"}
    assert not [what for what in medians(decoded) if "cv2" in what]
    assert said["file_missing"]


def test_every_decoder_gives_the_same_picture():
    content = imagebench._synthetic(SHAPE)
    for to_pil in (False, True):
        known = imagebench._decoders(to_pil, None, True)
        pictures = [numpy.asarray(decode(content)).astype(float) for _, decode in known.values()]
        for other in pictures[1:]:
            assert abs(pictures[0] - other).mean() < 2  # levels of 256: other rounding, same channels


@pytest.mark.parametrize("size", [15_000, 60_000, 150_000])
def test_a_picture_that_stands_for_another_has_about_its_bytes(size):
    assert len(imagebench._synthetic([400, 500, 3], size)) == pytest.approx(size, rel=0.5)


def test_reduced_decoding_is_asked_for_only_where_the_picture_is_then_made_small():
    def asked(side: int) -> int | None:
        decoded = ["cv2.imread", None, 1, 0.5, [[None, "uint8", [400, 400, 3], 1]], None, None]
        smaller = ["cv2.resize", 3, 1, 0.1, [[[400, 400, 3], "uint8", [side, side, 3], 1]], None, None]
        watched = operations.find([note(decoded, smaller)], 0.0)
        assert watched is not None
        first = alternatives.asked(watched)[0]
        assert first["files"] == ["/a.jpg"]
        return first["reduce"]

    assert [asked(300), asked(200), asked(60)] == [None, 2, 4]


def note(*calls: list[Any]) -> dict[str, Any]:
    made = {"pid": 1, "at": 1.0, "samples": 1, "seconds": 1.0, "read": None}
    return made | {"calls": list(calls), "threads": {"cv2": 1}, "files": {"cv2.imread": ["/a.jpg"]}}


# -- what it would gain ---------------------------------------------------------------------------------------------

STARVED = Program(host={"forward": 0.01, "backward": 0.02}, batch=0.2, workers=2)
FED = STARVED.but(batch=0.02)


def exactly(seconds: float) -> Estimate:
    return Estimate(value=seconds, low=seconds, high=seconds, n=9)


def loader(program: Program) -> Workers:
    """With one operation that takes half of the time to make a batch."""
    call = ["cv2.resize", 3, 1, 0.5, [[[40, 40, 3], "uint8", [20, 20, 3], 1]], None, None]
    watched = operations.find([note(call)], 0.0)
    assert watched is not None
    bare = simulation.workers(program, simulation.seconds(program))
    return msgspec.structs.replace(
        bare, operations=watched.operations, watched_batches=1, watched_sample_seconds=program.batch
    )


WAYS = Measured(
    operations=[
        MeasuredOperation(
            name="cv2.resize",
            flag=3,
            present=exactly(0.010),
            alternatives=[
                MeasuredWay(what="nearest", risk="training", seconds=exactly(0.002), against=exactly(0.010)),
                MeasuredWay(what="2 threads", risk="exact", seconds=exactly(0.006), against=exactly(0.012)),
            ],
        )
    ]
)


def test_a_step_gains_what_the_changed_program_does() -> None:
    weighed = alternatives.with_measured(loader(STARVED), WAYS, simulation.needs(STARVED))
    nearest, threads = weighed.operations[0].alternatives
    changed = STARVED.but(batch=0.2 * (1 - 0.5 * 0.8))
    assert nearest.sample_seconds == pytest.approx(changed.batch)
    assert nearest.speedup is not None
    assert nearest.speedup.value == pytest.approx(simulation.seconds(STARVED) / simulation.seconds(changed), rel=0.02)
    assert (threads.ratio, threads.speedup, threads.sample_seconds) == (0.5, None, None)  # workers share the cores
    assert "nearest 2 ms" in images.lines(weighed)[-1]


def test_what_is_slower_loses_within_its_interval() -> None:
    slower = MeasuredWay(what="lanczos", risk="training", seconds=exactly(0.020), against=exactly(0.010))
    operation = msgspec.structs.replace(WAYS.operations[0], alternatives=[slower])
    needs = msgspec.structs.replace(simulation.needs(STARVED), spread=0.1)
    weighed = alternatives.with_measured(loader(STARVED), Measured(operations=[operation]), needs)
    speedup = weighed.operations[0].alternatives[0].speedup
    assert speedup is not None
    assert speedup.low <= speedup.value <= speedup.high
    assert speedup.value == pytest.approx(1 / 1.5, rel=0.02)


def test_nothing_is_gained_where_the_loader_is_not_the_limit() -> None:
    weighed = alternatives.with_measured(loader(FED), WAYS, simulation.needs(FED))
    assert weighed.operations[0].alternatives[0].speedup is None


def test_without_a_measurement_there_are_no_figures_and_no_guesses() -> None:
    needs = simulation.needs(STARVED)
    for given, reason in ((None, alternatives.NOT_ASKED), (Measured(reason="it failed"), "it failed")):
        (operation,) = alternatives.with_measured(loader(STARVED), given, needs).operations
        assert (operation.alternatives, operation.measured, operation.missing) == ([], None, reason)


def test_a_record_without_operations_asks_for_nothing(tmp_path):
    assert imagecosts.plan(RecordReader(tmp_path)) is None


def test_what_cannot_be_measured_is_told_and_costs_nothing_else():
    plan = imagecosts.Plan(python="/no/python/here", cwd=None, operations=[RESIZE], files=[])
    assert "could not be measured" in (imagecosts.measure(plan).reason or "")


def test_quartiles_are_those_of_the_times():
    said = imagebench.summary([5.0, 1.0, 3.0, 2.0, 4.0])
    assert said == {"value": 3.0, "low": 2.0, "high": 4.0, "n": 5}
