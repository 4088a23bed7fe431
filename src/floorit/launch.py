"""Starts the user's command as they typed it, with the recorder on its path, and gives back how it ended."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import msgspec
import psutil

import floorit.record
from floorit.errors import CommandNotFound
from floorit.hardware import Environment
from floorit.record import wire
from floorit.runfile import RECORD

START = Path(floorit.record.__file__).parent / "start"
STATUS_BYTES = 512  # room for the recorder's last words, made beforehand
_RECORDED_IN = "FLOORIT_RECORD"  # of the environment: the folder of the record
_PATIENCE = 5.0  # seconds that a killed process is given to be gone
POLL = 0.2  # seconds between looks at the child
# What a scheduler or a person may send us and means for the program.
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
# Signals by which we end too, if the program did.
_MIRRORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")


def interpreter() -> str:
    """The Python that a script is meant for: the active environment's, else our own if it has torch, else PATH's."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        candidate = Path(prefix) / "bin" / "python" if prefix else None
        if candidate is not None and candidate.exists():
            return str(candidate)
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or shutil.which("python3") or sys.executable


def resolve(command: list[str]) -> list[str]:
    """The command as it is executed: a script or `-m module` gets its interpreter, anything else stays."""
    first = command[0]
    path = Path(first)
    is_script = path.suffix == ".py" and path.is_file()
    if first == "-m" or is_script or (path / "__main__.py").exists():
        return [interpreter(), *command]
    if shutil.which(first) is None:
        if path.suffix == ".py":
            raise CommandNotFound(f"there is no file {first} here")
        if path.is_file():
            raise CommandNotFound(f"{first} is not executable; try: floorit run bash {first}")
        raise CommandNotFound(f"no command {first!r} was found")
    return command


def make_record(folder: Path) -> None:
    """A place for the record of a run in `folder`."""
    record = folder / RECORD
    record.mkdir(parents=True, exist_ok=True)
    (record / "status").write_bytes(b"\0" * STATUS_BYTES)


def environment(record: Path, more: dict[str, str]) -> dict[str, str]:
    """Ours and `more`, with the recorder in front of the path that every Python below will look at."""
    environ = {**os.environ, **more}
    environ[_RECORDED_IN] = str(record.absolute())
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(START), os.environ.get("PYTHONPATH")]))
    return environ


def asking_for(fixes: Mapping[str, object]) -> dict[str, str]:
    """What in the environment of a program has these fixes applied inside of it: {code: value}."""
    return {wire.FIXES: json.dumps(fixes)} if fixes else {}


def with_torch(machine: Environment) -> Environment:
    """The machine with the versions that a script would be run with. CUDA is not initialised for it."""
    try:
        asked = subprocess.run([interpreter(), "-c", _VERSIONS], capture_output=True, timeout=120, check=False)
        versions = msgspec.json.decode(asked.stdout, type=dict[str, str | None])
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError):
        return machine
    return msgspec.structs.replace(machine, **versions)


_VERSIONS = """
import json, platform
found = {"python": platform.python_version()}
try:
    import torch
    cudnn = torch.backends.cudnn.version() if torch.version.cuda else None
    found.update(torch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn and str(cudnn))
except ImportError:
    pass
print(json.dumps(found))
"""


def run(
    command: list[str],
    record: Path,
    watch: Callable[[subprocess.Popen[bytes]], None],
    *,
    output: int | None = None,
    more: dict[str, str] | None = None,
    alone: bool = False,
) -> tuple[int, float]:
    """Run to the end, calling `watch` now and then; returns the exit code (negative: a signal) and the seconds.

    With `output`, what the program says goes there and it hears nothing; `more` is added to its environment.
    `alone` is in a session of its own: signals are for us, and whatever of it is left at the end is killed.
    """
    started = time.monotonic()
    heard = None if output is None else subprocess.DEVNULL
    environ = environment(record, more or {})
    try:
        child = subprocess.Popen(
            command, env=environ, stdin=heard, stdout=output, stderr=output, start_new_session=alone
        )
    except OSError as error:
        raise CommandNotFound(f"{command[0]} cannot be started: {error.strerror}") from None
    with _ending(child, environ) if alone else _passing_on(child):
        while True:
            try:
                code = child.wait(timeout=POLL)
                return code, time.monotonic() - started
            except subprocess.TimeoutExpired:
                watch(child)


@contextmanager
def _ending(child: subprocess.Popen[bytes], environ: dict[str, str]) -> Iterator[None]:
    """However this ends, nothing that the child started goes on running."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        _kill_strays(environ[_RECORDED_IN])


def _kill_strays(record: str) -> None:
    """Those in sessions of their own, as torchrun's ranks are; they have lost their parent by now."""
    strays = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(_RECORDED_IN) == record:
                process.kill()
                strays.append(process)
    psutil.wait_procs(strays, timeout=_PATIENCE)


@contextmanager
def _passing_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the program by itself: it is in our process group. Other signals are passed on."""

    def forward(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    def ignore(number: int, _: FrameType | None) -> None:
        return None

    previous = {signal.SIGINT: signal.signal(signal.SIGINT, ignore)}
    for name in _FORWARDED:
        number = getattr(signal, name)
        previous[number] = signal.signal(number, forward)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def shell_code(code: int) -> int:
    """The exit code as a shell shows it."""
    return code if code >= 0 else 128 - code


def leave_like(code: int) -> int:
    """End as the program did: by the same signal if it was one, else with its exit code."""
    if -code in [getattr(signal, name) for name in _MIRRORED]:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    return shell_code(code)
