"""The five cases: finding them, making their data, and the command that runs one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TextIO

import msgspec

from floorit import language, truth
from floorit.errors import CaseError, UsageError
from floorit.truth import Scale, Truth

NAMES = ("detector", "bev", "deblur", "heatmap", "service")
DEFAULT = "heatmap"  # the quickest, and the clearest
# What the cases import, and what pip calls it.
_LIBRARIES = {"torch": "torch", "numpy": "numpy", "cv2": "opencv-python-headless", "yaml": "pyyaml"}
_REFRESH = 0.5  # seconds between two states of the progress line
_HERE = Path(__file__).parent


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One training program with known faults."""

    name: str
    folder: Path
    truth: Truth


def find(name: str) -> Case:
    """A case by its name."""
    if name not in NAMES:
        raise UsageError(f"there is no case {name!r}; there are {', '.join(NAMES)}")
    folder = _root() / name
    return Case(name=name, folder=folder, truth=truth.load(folder))


def _root() -> Path:
    """In the wheel they lie beside this file, in the repository beside src/."""
    places = (_HERE / "cases", _HERE.parents[1] / "cases")
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise CaseError("this installation has no cases; they are in floorit's wheel and in its repository")
    return found


def outside_of_libraries(case: Case) -> Case:
    """The case where a program of one's own would be: among the installed libraries it would be taken for one."""
    if not {"site-packages", "dist-packages"} & set(case.folder.parts):
        return case
    copy = cache() / "code" / case.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(case.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return msgspec.structs.replace(case, folder=copy)


def cache() -> Path:
    """Where data is kept between runs."""
    return Path(os.environ.get("FLOORIT_CASES") or Path.home() / ".cache" / "floorit-cases")


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """The interpreter that a case is run by, and whether its torch can use a GPU."""

    path: str
    missing: list[str]  # modules
    cuda: bool


_ASK = """
import importlib.util, json, sys
missing = [name for name in sys.argv[2:] if importlib.util.find_spec(name) is None]
cuda = False
if sys.argv[1] == "cuda" and "torch" not in missing:
    import torch
    cuda = torch.cuda.is_available()
print(json.dumps({"path": sys.executable, "missing": missing, "cuda": cuda}))
"""


def examine(interpreter: str, *, ask_cuda: bool) -> Python:
    """What an interpreter has of what the cases need."""
    words = [interpreter, "-c", _ASK, "cuda" if ask_cuda else "-", *_LIBRARIES]
    asked = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        return msgspec.json.decode(asked.stdout.strip().splitlines()[-1], type=Python)
    except (IndexError, msgspec.MsgspecError):
        raise CaseError(f"{interpreter} cannot be asked what it has: {asked.stderr.strip()[-200:]}") from None


def require(python: Python) -> None:
    """Say in one line what is missing, and how to get it."""
    if python.missing:
        packages = " ".join(_LIBRARIES[name] for name in python.missing)
        raise CaseError(
            f"the cases need {', '.join(python.missing)}, which {python.path} has not:"
            f" {python.path} -m pip install {packages}"
        )


def make_data(case: Case, scale: Scale, python: str, stream: TextIO) -> Path:
    """The case's data, made now unless it is there; shows progress."""
    folder = cache() / case.name / scale
    words = [python, str(case.folder / "make_data.py"), "--scale", scale, "--out", str(folder)]
    began = time.monotonic()
    with tempfile.TemporaryFile(mode="w+") as said:
        with subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT) as maker:
            _watch(maker, folder, stream, began)
        if maker.returncode:
            said.seek(0)
            raise CaseError(f"making the data of {case.name} failed: {_last_line(said.read())} ({' '.join(words)})")
    took = time.monotonic() - began
    made = f"floorit: data of {case.name} in {folder} ({_megabytes(folder)}, {took:.0f} s)"
    print(language.said(made), file=stream, flush=True)
    return folder


def _watch(maker: subprocess.Popen[bytes], folder: Path, stream: TextIO, began: float) -> None:
    """A line that grows on a terminal; in a pipe, one line if it takes long."""
    in_place, told = stream.isatty(), False
    while True:
        try:
            maker.wait(timeout=_REFRESH)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
            if in_place:
                making = language.said(f"floorit: making data: {seconds:.0f} s, {_megabytes(folder)}")
                stream.write(f"\r\033[K{making}")
                stream.flush()
            elif not told and seconds > 2:
                told = True
                print(language.said(f"floorit: making data in {folder}, once"), file=stream, flush=True)
        else:
            if in_place:
                stream.write("\r\033[K")
            return


def _megabytes(folder: Path) -> str:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue  # renamed meanwhile
    return f"{total / 1e6:.0f} MB"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def command(case: Case, scale: Scale, python: str, data: Path, out: Path) -> list[str]:
    """What runs the case as shipped."""
    script = str(case.folder / "train.py")
    return [python, script, "--scale", scale, "--data", str(data), "--out", str(out)]
