"""Times operations on images and other ways to do them: a script of its own, run by the program's Python.

A plan comes on stdin and what was measured goes to stdout, both as JSON. Every way of an operation is timed in turn,
round after round, so that a machine that is slow for a while is so for all of them. What one thread does is timed on
its core, so that other programs do not count; what several do, by the clock on the wall. Files are only read.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

sys.path[:] = [folder for folder in sys.path if folder != os.path.dirname(os.path.abspath(__file__))]

MOST_ROUNDS, FEWEST_ROUNDS = 100, 5
MOST_FILES = 16
_INTERPOLATIONS = {"nearest": 0, "linear": 1, "area": 3, "cubic": 2, "lanczos": 4}
_OF_WARPS = ("nearest", "linear", "cubic", "lanczos")  # in a warp, OpenCV takes `area` for `linear`
_INTERPOLATION_BITS = 7
_PIL = {"nearest": 0, "box": 4, "bilinear": 2, "bicubic": 3, "lanczos": 1}
_OF_TRANSFORMS = ("nearest", "bilinear", "bicubic")
_THREADED = {"cv2." + name for name in ("resize", "warpAffine", "warpPerspective", "remap", "cvtColor", "GaussianBlur")}
_COLOUR, _REDUCED = 1, {2: 17, 4: 33, 8: 65}  # flags of cv2.imread
_QUALITY, _QUALITIES = 90, (20, 50, 75, 85, 90, 95, 98, 100)  # of a picture that stands for one whose file is not known
EXACT, ROUNDING, TRAINING = "exact", "rounding", "training"
AS_IT_IS = "as it is"

Asked = dict[str, Any]  # an operation of the plan
Decode = Callable[[bytes], Any]


class AbsentError(Exception):
    """An operation cannot be timed here, and why."""


class Way:
    """One way to do an operation: `call` gets the number of the round."""

    def __init__(self, what: str, risk: str, call: Callable[[int], object], threads: int | None = None) -> None:
        self.what, self.risk, self.call, self.threads = what, risk, call, threads
        self.elapsed: list[float] = []
        self.on_core: list[float] = []

    def run(self, number: int) -> None:
        """Time it once."""
        _use_threads(self, number)
        began, began_on_core = time.perf_counter(), time.thread_time()
        self.call(number)
        self.on_core.append(time.thread_time() - began_on_core)
        self.elapsed.append(time.perf_counter() - began)


def _use_threads(way: Way, number: int) -> None:
    """Set OpenCV's threads; the first call after that starts them, and is not timed."""
    cv2 = sys.modules.get("cv2")
    if cv2 is not None and way.threads and cv2.getNumThreads() != way.threads:
        cv2.setNumThreads(way.threads)
        way.call(number)


def measure(plan: dict[str, Any]) -> dict[str, Any]:
    """All of it, in about the seconds that the plan allows."""
    wanted = plan["operations"]
    each = plan["seconds"] / (len(wanted) + 1)
    return {"operations": [_operation(asked, each) for asked in wanted], **_reading(plan["files"], each)}


def _operation(asked: Asked, seconds: float) -> dict[str, Any]:
    try:
        ways, on = _ways(asked)
    except (AbsentError, ImportError) as reason:
        return {"missing": str(reason)}
    except Exception as error:  # a size or a flag that the library of this version does not take
        return {"missing": repr(error)}
    ways = [way for way in ways if _works(way)]
    if not ways or ways[0].what != AS_IT_IS:
        return {"missing": "it fails when it is called by itself"}
    _time(ways, seconds)
    present, *others = ways
    return {
        "present": summary(_alike(present, present)[0]),
        "on": on,
        "alternatives": [_beside(present, other) for other in others],
    }


def _beside(present: Way, other: Way) -> dict[str, Any]:
    seconds, against = (summary(times) for times in _alike(other, present))
    return {"what": other.what, "risk": other.risk, "seconds": seconds, "against": against}


def _alike(one: Way, other: Way) -> tuple[list[float], list[float]]:
    """The times of two ways by the same clock."""
    if max(one.threads or 1, other.threads or 1) > 1:
        return one.elapsed, other.elapsed
    return one.on_core, other.on_core


def _works(way: Way) -> bool:
    try:
        way.call(0)
    except Exception:
        return False
    return True


def _time(ways: list[Way], seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.perf_counter() > deadline:
            break
        first = number % len(ways)
        for way in ways[first:] + ways[:first]:
            way.run(number)


def summary(seconds: list[float]) -> dict[str, float]:
    """The median, the quartiles, and how many there were."""
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    return {"value": middle, "low": low, "high": high, "n": len(seconds)}


# -- the ways of each operation ---------------------------------------------------------------------------------------


def _ways(asked: Asked) -> tuple[list[Way], str | None]:
    name = asked["name"]
    for end, make in _MAKERS.items():
        if name.endswith(end):
            ways = make(asked)
            return ways + _with_other_threads(asked, ways[0]), None
    if asked["name"].endswith(_DECODES):
        return _decode(asked)
    raise AbsentError("no other way to do it is known to this version")


def _with_other_threads(asked: Asked, present: Way) -> list[Way]:
    """The present way with one thread instead of several, or the other way round."""
    now, cores = asked["threads"], len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if asked["name"] not in _THREADED or now is None or max(now, cores) < 2:
        return []
    other = 1 if now > 1 else cores
    return [Way("1 thread" if other == 1 else f"{other} threads", EXACT, present.call, other)]


def _picture(asked: Asked) -> Any:
    import numpy

    shape, dtype = asked["shape"], numpy.dtype(asked["dtype"])
    if not shape:
        raise AbsentError("the size of the picture is not known")
    noise: Any = numpy.random.default_rng(0).random(shape, dtype=numpy.float32)
    return noise.astype(dtype) if dtype.kind == "f" else (noise * 255).astype(dtype)


def _set_apart(asked: Asked, names: Sequence[str], call: Callable[[str], Callable[[int], object]]) -> list[Way]:
    """The present setting first, then every other one."""
    setting, threads = asked["setting"], asked["threads"]
    if setting not in names:
        raise AbsentError("its setting is not one of " + ", ".join(names))
    others = [Way(name, TRAINING, call(name), threads) for name in names if name != setting]
    return [Way(AS_IT_IS, EXACT, call(setting), threads), *others]


def _resize(asked: Asked) -> list[Way]:
    import cv2

    source, (height, width) = _picture(asked), asked["result"][:2]

    def call(name: str) -> Callable[[int], object]:
        return lambda _: cv2.resize(source, (width, height), interpolation=_INTERPOLATIONS[name])

    return _set_apart(asked, tuple(_INTERPOLATIONS), call)


def _warp(asked: Asked) -> list[Way]:
    import cv2
    import numpy

    source, (height, width) = _picture(asked), asked["result"][:2]
    if not asked["matrix"]:
        raise AbsentError("the matrix of the warp is not known")
    function = getattr(cv2, asked["name"].rpartition(".")[2])
    matrix, more = numpy.array(asked["matrix"]), (asked["flag"] or 0) & ~_INTERPOLATION_BITS

    def call(name: str) -> Callable[[int], object]:
        flags = more | _INTERPOLATIONS[name]
        return lambda _: function(source, matrix, (width, height), flags=flags)

    return _set_apart(asked, _OF_WARPS, call)


def _remap(asked: Asked) -> list[Way]:
    import cv2
    import numpy

    source, (height, width) = _picture(asked), asked["result"][:2]
    down, right = numpy.mgrid[: source.shape[0] - 1 : height * 1j, : source.shape[1] - 1 : width * 1j]
    right, down = right.astype(numpy.float32), down.astype(numpy.float32)

    def call(name: str) -> Callable[[int], object]:
        return lambda _: cv2.remap(source, right, down, _INTERPOLATIONS[name])

    return _set_apart(asked, _OF_WARPS, call)


def _colour(asked: Asked) -> list[Way]:
    import cv2
    import numpy

    dtypes = [asked["dtype"], *({"uint8", "float32"} - {asked["dtype"]})]

    def call(dtype: str) -> Callable[[int], object]:
        source = _picture({**asked, "dtype": dtype})
        return lambda _: cv2.cvtColor(source, asked["flag"])

    first, *others = [Way("on " + numpy.dtype(d).name, ROUNDING, call(d), asked["threads"]) for d in dtypes]
    first.what = AS_IT_IS
    return [first, *others]


def _blur(asked: Asked) -> list[Way]:
    import cv2

    source, size = _picture(asked), tuple(asked["flag"])
    return [Way(AS_IT_IS, EXACT, lambda _: cv2.GaussianBlur(source, size, 0), asked["threads"])]


def _pil_image(asked: Asked) -> Any:
    from PIL import Image

    if asked["dtype"] not in ("RGB", "L"):
        raise AbsentError(f"pictures of mode {asked['dtype']} are not tried")
    picture = _picture({**asked, "dtype": "uint8"})
    return Image.fromarray(picture if asked["dtype"] == "RGB" else picture[..., 0])


def _pil_resize(asked: Asked) -> list[Way]:
    source, (height, width) = _pil_image(asked), asked["result"][:2]

    def call(name: str) -> Callable[[int], object]:
        return lambda _: source.resize((width, height), _PIL[name])

    return _set_apart(asked, tuple(_PIL), call) + _resized_by_cv2(source, width, height)


def _resized_by_cv2(source: Any, width: int, height: int) -> list[Way]:
    try:
        import cv2
        import numpy
    except ImportError:
        return []

    def call(_: int) -> object:
        return cv2.resize(numpy.asarray(source), (width, height), interpolation=_INTERPOLATIONS["area"])

    return [Way("cv2.resize area", TRAINING, call, 1)]


def _pil_transform(asked: Asked) -> list[Way]:
    source, (height, width) = _pil_image(asked), asked["result"][:2]
    (tall, wide), affine = source.size[::-1], 0
    turned = (wide / width, 0.1, 0.0, 0.1, tall / height, 0.0)

    def call(name: str) -> Callable[[int], object]:
        return lambda _: source.transform((width, height), affine, turned, _PIL[name])

    return _set_apart(asked, _OF_TRANSFORMS, call)


# -- decoding -----------------------------------------------------------------------------------------------------

_DECODES = ("cv2.imread", "cv2.imdecode", "ImageFile.load")


def _decode(asked: Asked) -> tuple[list[Way], str]:
    """From the files that the program has read by this very function, else from one like them."""
    is_pil = asked["name"].startswith("PIL")
    if not is_pil and asked["flag"] not in (None, _COLOUR):
        raise AbsentError("only decoding to colour has other ways here")
    paths = [path for path in asked["files"] if os.path.isfile(path)][:MOST_FILES]
    is_buffer = asked["name"] == "cv2.imdecode" and asked["shape"]
    contents = [_read(path) for path in paths] or [
        _synthetic(asked["result"], max(asked["shape"]) if is_buffer else None)
    ]
    reads = asked["name"] == "cv2.imread" and bool(paths)  # then reading is part of it, and so of every other way
    is_jpeg = all(content[:2] == b"\xff\xd8" for content in contents)

    def way(what: str, risk: str, decode: Decode) -> Way:
        def call(number: int) -> object:
            number %= len(contents)
            return decode(_read(paths[number]) if reads else contents[number])

        return Way(what, risk, call, asked["threads"])

    known = _decoders(is_pil, asked["reduce"] if is_jpeg else None, is_jpeg)
    own = "PIL" if is_pil else "cv2.imdecode"
    if own not in known:
        raise AbsentError(f"{own.partition('.')[0]} cannot be imported")
    others = [way(what, risk, decode) for what, (risk, decode) in known.items() if what != own]
    on = f"{len(paths)} of the files it read" if paths else f"a made-up JPEG of {len(contents[0]):,} bytes"
    return [way(AS_IT_IS, EXACT, known[own][1]), *others], on


def _decoders(to_pil: bool, reduce: int | None, is_jpeg: bool) -> dict[str, tuple[str, Decode]]:
    """By name: what another one risks, and the function. All give what the program has now: PIL's image, or BGR."""
    found = {}
    for add in (_by_cv2, _by_pil, _by_torchvision):
        try:
            found.update(add(to_pil, reduce, is_jpeg))
        except ImportError:
            continue
    return found


def _by_cv2(to_pil: bool, reduce: int | None, is_jpeg: bool) -> dict[str, tuple[str, Decode]]:
    import cv2
    import numpy

    def decoding(flag: int) -> Decode:
        def decode(content: bytes) -> object:
            array: Any = cv2.imdecode(numpy.frombuffer(content, numpy.uint8), flag)
            return _pil_of(cv2.cvtColor(array, cv2.COLOR_BGR2RGB)) if to_pil else array

        return decode

    found = {"cv2.imdecode": (ROUNDING, decoding(_COLOUR))}
    if reduce:
        found[f"cv2, reduced to 1/{reduce}"] = (TRAINING, decoding(_REDUCED[reduce]))
    return found


def _by_pil(to_pil: bool, reduce: int | None, is_jpeg: bool) -> dict[str, tuple[str, Decode]]:
    import numpy
    from PIL import Image

    def decoding(draft: int | None) -> Decode:
        def decode(content: bytes) -> object:
            picture: Any = Image.open(io.BytesIO(content))
            if draft:
                picture.draft("RGB", (picture.width // draft, picture.height // draft))
            picture.load()
            if to_pil:
                return picture
            picture = picture if picture.mode == "RGB" else picture.convert("RGB")
            return numpy.ascontiguousarray(numpy.asarray(picture)[..., ::-1])

        return decode

    found = {"PIL": (ROUNDING, decoding(None))}
    if reduce:
        found[f"PIL, draft at 1/{reduce}"] = (TRAINING, decoding(reduce))
    return found


def _by_torchvision(to_pil: bool, reduce: int | None, is_jpeg: bool) -> dict[str, tuple[str, Decode]]:
    if importlib.util.find_spec("torchvision") is None:
        return {}  # without importing torch, which takes long
    import numpy
    import torch
    from torchvision.io import decode_jpeg

    torch.set_num_threads(1)

    def decode(content: bytes) -> object:
        array = decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8)).permute(1, 2, 0).numpy()
        return _pil_of(numpy.ascontiguousarray(array)) if to_pil else numpy.ascontiguousarray(array[..., ::-1])

    return {"torchvision.io.decode_jpeg": (ROUNDING, decode)} if is_jpeg else {}


def _pil_of(array: Any) -> object:
    from PIL import Image

    return Image.fromarray(array)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _synthetic(shape: list[int] | None, size: int | None = None) -> bytes:
    """A JPEG of noise on a coarse pattern; of the quality that brings it nearest to `size` bytes, if they are known."""
    import numpy
    from PIL import Image

    if not shape:
        raise AbsentError("neither a file nor the size of the picture is known")
    height, width = shape[:2]
    random = numpy.random.default_rng(0)
    coarse = random.integers(40, 200, (height // 16 + 1, width // 16 + 1, 3)).repeat(16, 0).repeat(16, 1)
    noisy = coarse[:height, :width] + random.integers(0, 24, (height, width, 3))
    picture = Image.fromarray(noisy.astype(numpy.uint8))

    def encoded(quality: int) -> bytes:
        made = io.BytesIO()
        picture.save(made, "JPEG", quality=quality)
        return made.getvalue()

    if size is None:
        return encoded(_QUALITY)
    return min(map(encoded, _QUALITIES), key=lambda content: abs(len(content) - size))


# By the end of a function's name; the first that fits counts.
_MAKERS: dict[str, Callable[[Asked], list[Way]]] = {
    "cv2.resize": _resize,
    "cv2.warpAffine": _warp,
    "cv2.warpPerspective": _warp,
    "cv2.remap": _remap,
    "cv2.cvtColor": _colour,
    "cv2.GaussianBlur": _blur,
    "Image.resize": _pil_resize,
    "Image.transform": _pil_transform,
}


# -- reading ------------------------------------------------------------------------------------------------------


def _reading(files: list[str], seconds: float) -> dict[str, Any]:
    """How long a file takes to be read from memory, and from storage."""
    paths = [path for path in files if os.path.isfile(path)][:MOST_FILES]
    if not paths:
        return {"file_missing": "no path of a file that was read is known"}
    sizes = [len(_read(path)) for path in paths]
    warm, deadline = [], time.perf_counter() + seconds / 2
    for number in range(MOST_ROUNDS):
        if number >= len(paths) and time.perf_counter() > deadline:
            break
        warm.append(_clocked(paths[number % len(paths)]))
    found = {"file_bytes": statistics.median(sizes), "file_warm": summary(warm)}
    cold = [spent for path, size in zip(paths, sizes, strict=True) if (spent := _cold(path, size)) is not None]
    if len(cold) < len(paths):
        return {**found, "file_missing": "files cannot be dropped from memory here: reading from storage is unknown"}
    return {**found, "file_cold": summary(cold)}


def _clocked(path: str) -> float:
    began = time.perf_counter()
    _read(path)
    return time.perf_counter() - began


def _cold(path: str, size: int) -> float | None:
    """Seconds to read a file that was dropped from memory; None where all of it did not come from storage."""
    try:
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)
        before = _from_storage()
        seconds = _clocked(path)
        return seconds if _from_storage() - before >= size else None
    except (AttributeError, OSError, ValueError):
        return None


def _from_storage() -> int:
    with open("/proc/self/io") as told:
        return int(dict(line.split(": ") for line in told.read().splitlines())["read_bytes"])


if __name__ == "__main__":
    json.dump(measure(json.load(sys.stdin)), sys.stdout)
