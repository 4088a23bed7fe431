"""The rates that a device reaches, measured once in the program's own interpreter and kept for the next time."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
from pathlib import Path

import msgspec

from floorit import rating
from floorit.events import Rates

TIMEOUT = 120.0  # seconds; it takes some five, and torch's own start


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured, and with which torch."""

    executable: str  # the interpreter that has it
    torch: str
    device: str  # as torch calls it
    name: str  # of the GPU; of a CPU with its threads


def known(device: Device, precisions: list[str]) -> Rates | str:
    """The rates in these precisions, measured if they are not kept; or why they are not known."""
    file = _file(device)
    kept = _load(file)
    missing = [p for p in precisions if kept is None or p not in kept.flops]
    if kept is not None and not missing:
        return kept
    found = _measure(device, missing)
    if isinstance(found, str):
        return found
    if kept is not None:
        found = msgspec.structs.replace(found, flops={**kept.flops, **found.flops})
    _save(file, found)
    return found


def folder() -> Path:
    """Where they are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "floorit" / "rates"


def _file(device: Device) -> Path:
    return folder() / (re.sub(r"[^A-Za-z0-9.+-]+", "-", f"{device.name}-torch-{device.torch}") + ".json")


def _load(file: Path) -> Rates | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Rates)
    except (OSError, msgspec.MsgspecError):
        return None  # it is measured again


def _save(file: Path, rates: Rates) -> None:
    partial = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(rates), indent=1))
        partial.replace(file)
    except OSError:
        pass  # then the next run measures them again


def _measure(device: Device, precisions: list[str]) -> Rates | str:
    is_gpu = device.device.startswith("cuda")
    asked = {"device": device.device, "name": device.name if is_gpu else None, "precisions": precisions}
    command = [device.executable, rating.__file__, json.dumps(asked)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except OSError as error:
        return f"{device.executable} cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"measuring the device's rates was not over after {TIMEOUT:.0f} s"
    if ended.returncode:
        last = ended.stderr.strip().splitlines()[-1:] or [f"exit code {ended.returncode}"]
        return f"measuring the device's rates failed: {last[0]}"
    try:
        said = json.loads(ended.stdout.strip().splitlines()[-1])
        today = datetime.date.today().isoformat()
        facts = {"device": device.name, "torch": device.torch, "date": today}
        return msgspec.convert({**facts, **said}, Rates)
    except (ValueError, IndexError, TypeError):
        return "measuring the device's rates gave no result"
