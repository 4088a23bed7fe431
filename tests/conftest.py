"""Runs each script in tests/scripts/ once bare and once recorded, whatever number of tests and workers ask for it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import browser
import pytest
from filelock import FileLock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = sys.executable
FLOORIT = str(Path(sys.executable).with_name("floorit"))
LONGEST = 180  # seconds a script may take on a busy machine
# How a rank ends, floorit or not, where torch's own shutdown of gloo lost a race: one bare run in about 90 on two
# busy cores (torch 2.13), now and then two in a row. Such a run says nothing of us and is made again.
_LOST_RACE = b"terminate called without an active exception"
_RACES = 4

# A shell has its background jobs ignore Ctrl-C, and whatever they start: programs under test must hear it all the same.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Truth:
    """A script, and what its .toml says must be found."""

    name: str
    path: Path
    expected: dict[str, Any]

    def command(self) -> list[str]:
        """What a person types after `floorit run`; bare, the same words with Python in front."""
        port = str(_free_port())
        launcher = [word.format(port=port) for word in self.expected.get("launcher", [])]
        first = [PYTHON if word == "python" else word for word in launcher]
        return [*first, str(self.path), *self.expected.get("arguments", [])]

    def __getitem__(self, key: str) -> Any:
        return self.expected[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.expected.get(key, default)


@dataclass(frozen=True)
class Ran:
    """How a run ended and what it left behind."""

    code: int
    stdout: bytes
    stderr: bytes
    report: dict[str, Any] | None
    planted: dict[str, list[float]] | None


def truths() -> list[Truth]:
    """Every script that says what must be found in it."""
    return [Truth(p.stem, p, tomllib.loads(p.with_suffix(".toml").read_text())) for p in sorted(SCRIPTS.glob("*.py"))]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(**extra: str) -> dict[str, str]:
    """Ours without what would make a run differ."""
    dropped = ("PYTHONPATH", "FLOORIT_RECORD", "COLUMNS", "PYTHONWARNINGS", "FORCE_COLOR")
    environ = {key: value for key, value in os.environ.items() if key not in dropped and not key.startswith("PYTEST")}
    environ["VIRTUAL_ENV"] = sys.prefix
    environ["OMP_NUM_THREADS"] = "1"
    return environ | extra


def recorded(words: list[str], folder: Path, cwd: Path, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command under floorit."""
    return execute([FLOORIT, "run", "--out", str(folder), "--quiet", "--", *words], cwd, **how)


def execute(words: list[str], cwd: Path, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    environment = clean_environment(**environ)
    return subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, env=environment, timeout=LONGEST)


def tried(folder: Path, words: list[str], script: Path, *arguments: str) -> dict[str, Any]:
    """What `floorit try` says of a script: trial.json."""
    command = [FLOORIT, "try", *words, "--out", str(folder / "try"), "--", PYTHON, str(script), *arguments]
    environment = clean_environment()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=LONGEST)
    assert ended.returncode == 0, ended.stderr
    return json.loads((folder / "try" / "trial.json").read_text())


def has_lost_race(code: int, stderr: bytes) -> bool:
    """Whether torch itself ended a job of several ranks, which is to be run again."""
    return code != 0 and _LOST_RACE in stderr


def report_of(folder: Path) -> dict[str, Any] | None:
    """The report in a run's folder."""
    path = folder / "report.json"
    return json.loads(path.read_text()) if path.exists() else None


class Runs:
    """Each script's two runs, made when first asked for and kept on disk for the other workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def bare(self, truth: Truth) -> Ran:
        """Without floorit."""
        return self._once(truth, "bare")

    def recorded(self, truth: Truth) -> Ran:
        """Under floorit."""
        return self._once(truth, "recorded")

    def _once(self, truth: Truth, mode: str) -> Ran:
        place = self.folder / f"{truth.name}-{mode}"
        with FileLock(f"{place}.lock"):
            kept = place / "ran.pickle"
            if not kept.exists():
                ran = self._run(truth, mode, place)
                for _ in range(_RACES):
                    if has_lost_race(ran.code, ran.stderr):
                        shutil.rmtree(place)
                        ran = self._run(truth, mode, place)
                kept.write_bytes(pickle.dumps(ran))
            return pickle.loads(kept.read_bytes())

    def _run(self, truth: Truth, mode: str, place: Path) -> Ran:
        command, planted, cwd = truth.command(), place / "planted.json", place / "cwd"
        cwd.mkdir(parents=True, exist_ok=True)  # there where a run could not be started: the next test is told why, too
        if mode == "bare":
            words = command if truth.get("launcher") else [PYTHON, *command]
            ended = execute(words, cwd, PLANTED_OUT=str(planted))
        else:
            ended = recorded(command, place / "run", cwd, PLANTED_OUT=str(planted))
        return Ran(
            code=ended.returncode,
            stdout=ended.stdout,
            stderr=ended.stderr,
            report=report_of(place / "run"),
            planted=json.loads(planted.read_text()) if planted.exists() else None,
        )


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs that all tests share."""
    base = tmp_path_factory.getbasetemp()
    return Runs((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "runs")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    """One browser for the tests of all pages."""
    running = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


def _parameter(truth: Truth, *more: str) -> Any:
    marks = [pytest.mark.xdist_group(truth.name)]
    if truth.get("acceptance"):
        marks.append(pytest.mark.acceptance)
    return pytest.param(truth, *more, id="-".join([truth.name, *more]), marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that take `truth` run for each script; those that take `planted` for each cost a script has timed."""
    if "planted" in metafunc.fixturenames:
        pairs = [(t, phase) for t in truths() for phase in t.get("planted", [])]
        metafunc.parametrize(("truth", "planted"), [_parameter(*pair) for pair in pairs])
    elif "truth" in metafunc.fixturenames:
        metafunc.parametrize("truth", [_parameter(truth) for truth in truths()])
