"""Operations on images where batches are made: how much of that time each takes, at which size, and how it is set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Literal

import msgspec
import numpy as np

from floorit.analyse.ledger import Line
from floorit.stats import Estimate, median

Risk = Literal["exact", "rounding", "training"]
MUCH_READ = 1 << 20  # bytes: a batch that reads less says nothing of the disk
COLD = 0.5  # of what a batch reads, from storage: more, and it is called cold
MOST_FILES = 16

# By the end of a function's name: what it does.
_KINDS = {
    "numpy.load": "reading",
    "numpy.fromfile": "reading",
    "read_file": "reading",
    "Image.open": "reading",
    "imread": "decoding",
    "imdecode": "decoding",
    "ImageFile.load": "decoding",
    "decode_jpeg": "decoding",
    "decode_png": "decoding",
    "decode_image": "decoding",
    "imencode": "encoding",
    "resize": "resizing",
    "warpAffine": "warping",
    "warpPerspective": "warping",
    "remap": "warping",
    "Image.transform": "warping",
    "cvtColor": "colour",
    "Image.convert": "colour",
    "LUT": "colour",
    "GaussianBlur": "blurring",
    "copyMakeBorder": "padding",
}
# Constants of the libraries, as their headers have them: they are part of their interface and do not change.
CV2_INTERPOLATIONS = ("nearest", "linear", "cubic", "area", "lanczos", "linear-exact", "nearest-exact")
PIL_INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_CV2_MASK = 7  # the other bits of a warp's flags are not its interpolation
_CV2_DEFAULT, _PIL_RESIZE_DEFAULT, _PIL_TRANSFORM_DEFAULT = 1, 3, 0
_CODES = {
    4: "BGR2RGB",
    6: "BGR2GRAY",
    7: "RGB2GRAY",
    8: "GRAY2BGR",
    36: "BGR2YCrCb",
    37: "RGB2YCrCb",
    40: "BGR2HSV",
    41: "RGB2HSV",
    44: "BGR2LAB",
    45: "RGB2LAB",
    54: "HSV2BGR",
    55: "HSV2RGB",
}


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another way to do the same, measured beside the present one."""

    what: str
    seconds: Estimate  # a call, on its core; with several threads, elapsed: its median and quartiles
    ratio: float  # of the present way's median, by the same clock
    risk: Risk  # what it does to the results
    sample_seconds: float | None = None  # making a sample, if all these calls cost that; None: not to be foretold
    speedup: Estimate | None = None  # of the step; None where the loader is not what limits it


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One function, called in one way."""

    name: str
    kind: str
    setting: str | None  # interpolation, conversion: in words
    flag: int | str | list[int] | None  # the same as it was given; None: it was not, or is something else
    calls: float  # a sample
    seconds: Estimate  # a sample, over the batches that were watched
    share: float  # of the time to make a batch
    shape: list[int] | None  # a usual picture: the median by size; None: from a file
    dtype: str | None
    result: list[int] | None
    matrix: list[list[float]] | None  # of the first warp
    threads: int | None  # that the library may use
    where: Line | None
    measured: Estimate | None = None  # a call, by itself after the run: the same
    measured_on: str | None = None  # pictures, where they are not made up at the usual size
    alternatives: list[Alternative] = []
    missing: str | None = None  # why there are no alternatives


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What making batches reads, and how long they take when it comes from storage and when from memory."""

    bytes_per_sample: float
    cold_batches: int  # that read mostly from storage
    warm_batches: int
    cold_sample_seconds: Estimate | None  # making a sample in them
    warm_sample_seconds: Estimate | None
    file_bytes: float | None = None  # a usual file of those measured after the run
    file_warm: Estimate | None = None  # seconds to read one that is in memory: median and quartiles
    file_cold: Estimate | None = None  # the same from storage
    missing: str | None = None  # why there is no file_cold


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen in the watched batches."""

    batches: int
    sample_seconds: float  # making a sample, collating included
    operations: list[Operation]
    reading: Reading | None  # None where next to nothing is read
    files: dict[str, list[str]]  # some of those that each function has read


def find(notes: Sequence[dict[str, Any]], begin: float) -> Watched | None:
    """Of the batches watched after warm-up, or of all where there is none; None where none was watched."""
    notes = [note for note in notes if note["at"] >= begin] or list(notes)
    made = sum(note["seconds"] for note in notes)
    samples = sum(note["samples"] for note in notes)
    if not made or not samples:
        return None
    keys = dict.fromkeys((call[0], _hashable(call[1])) for note in notes for call in note["calls"])
    found = [_operation(name, flag, notes, made, samples) for name, flag in keys]
    return Watched(
        batches=len(notes),
        sample_seconds=made / samples,
        operations=sorted(found, key=lambda operation: -operation.share),
        reading=_reading(notes),
        files={name: _files(name, notes) for name, _ in keys},
    )


def _files(name: str, notes: Sequence[dict[str, Any]]) -> list[str]:
    """The last ones."""
    return list(dict.fromkeys(path for note in notes for path in note["files"].get(name, ())))[-MOST_FILES:]


def _hashable(flag: Any) -> Any:
    return tuple(flag) if isinstance(flag, list) else flag


def _operation(name: str, flag: Any, notes: Sequence[dict[str, Any]], made: float, samples: float) -> Operation:
    own = [[call for call in note["calls"] if (call[0], _hashable(call[1])) == (name, flag)] for note in notes]
    calls = [call for several in own for call in several]
    pairs = zip(own, notes, strict=True)
    a_sample = median(np.array([sum(call[3] for call in several) / note["samples"] for several, note in pairs]))
    assert a_sample is not None
    shape, dtype, result = _usual(size for call in calls for size in call[4])
    places = Counter(tuple(call[6]) for call in calls if call[6])
    file, line, function = places.most_common(1)[0][0] if places else (None, 0, "")
    library = name.partition(".")[0]
    share = sum(call[3] for call in calls) / made
    return Operation(
        name=name,
        kind=next((kind for end, kind in _KINDS.items() if name.endswith(end)), "other"),
        setting=_setting(name, flag),
        flag=list(flag) if isinstance(flag, tuple) else flag,
        calls=sum(call[2] for call in calls) / samples,
        seconds=a_sample,
        share=share,
        shape=shape,
        dtype=dtype,
        result=result,
        matrix=next((call[5] for call in calls if call[5]), None),
        threads=notes[-1]["threads"].get("torch" if library == "torchvision" else library),
        where=Line(file=file, line=line, function=function, share=share) if file else None,
    )


def _usual(sizes: Iterable[list[Any]]) -> tuple[list[int] | None, str | None, list[int] | None]:
    """The size that half of the calls do not exceed, by the larger of what goes in and what comes out."""
    ordered = sorted(sizes, key=lambda size: max(prod(size[0] or [0]), prod(size[2] or [0])))
    half = sum(size[3] for size in ordered) / 2
    for shape, dtype, result, count in ordered:
        half -= count
        if half <= 0:
            return shape, None if dtype == "None" else dtype, result
    return None, None, None


def _setting(name: str, flag: Any) -> str | None:
    """How a call is set, in words; None where there is nothing to set, or it is not known."""
    if name in ("cv2.resize", "cv2.warpAffine", "cv2.warpPerspective", "cv2.remap"):
        return _named(CV2_INTERPOLATIONS, _CV2_DEFAULT if flag is None else flag & _CV2_MASK)
    if name.endswith("Image.resize"):
        return _named(PIL_INTERPOLATIONS, _PIL_RESIZE_DEFAULT if flag is None else flag)
    if name.endswith("Image.transform"):
        return _named(PIL_INTERPOLATIONS, _PIL_TRANSFORM_DEFAULT if flag is None else flag)
    if name == "cv2.cvtColor":
        return _CODES.get(flag, f"code {flag}")
    return flag if isinstance(flag, str) else None


def _named(names: Sequence[str], number: Any) -> str | None:
    return names[number] if isinstance(number, int) and 0 <= number < len(names) else None


def _reading(notes: Sequence[dict[str, Any]]) -> Reading | None:
    told = [note for note in notes if note["read"] is not None and max(note["read"]) > MUCH_READ]
    if not told:
        return None
    cold = [note for note in told if note["read"][1] > COLD * max(note["read"][0], 1)]
    warm = [note for note in told if note not in cold]
    return Reading(
        bytes_per_sample=sum(max(note["read"]) for note in told) / sum(note["samples"] for note in told),
        cold_batches=len(cold),
        warm_batches=len(warm),
        cold_sample_seconds=_making(cold),
        warm_sample_seconds=_making(warm),
    )


def _making(notes: Sequence[dict[str, Any]]) -> Estimate | None:
    return median(np.array([note["seconds"] / note["samples"] for note in notes]))
