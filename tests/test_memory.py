"""Memory that runs out: planted on the host, made up for a GPU; what is said of it, and that nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import PYTHON, execute, recorded, report_of

from floorit import headroom
from floorit.analyse import memory
from floorit.diagnose import memory as findings
from floorit.events import Headroom, Process, read_record
from floorit.record import wire
from floorit.record.probes.memory import _Shortage

GIB = 1 << 30

PROGRAM = """
import os, resource, signal, sys, traceback
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
how, ending = sys.argv[1:]


class Data(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        if index == 100 and how in ("SIGKILL", "SIGBUS"):
            os.kill(os.getpid(), getattr(signal, how))
        if index == 100 and how == "array":
            np.empty(1 << 50)
        return torch.randn(8), torch.randn(1)


model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters())


def train(steps):
    for number, (inputs, targets) in enumerate(DataLoader(Data(), batch_size=4, num_workers=2)):
        loss = (model(inputs) - targets).square().mean()
        if number == steps:
            grown = torch.empty(1 << 50)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if how == "limit":
    mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (1 << 28), resource.RLIM_INFINITY))
    cache = [bytearray(1 << 24) for _ in range(100)]
try:
    train(20 if how == "tensor" else -1)
except Exception:
    if ending == "raise":
        raise
    traceback.print_exc()
    if ending == "exit":
        sys.exit(3)
    how = None
    train(-1)
"""
ASKS = PROGRAM.splitlines().index("            grown = torch.empty(1 << 50)") + 1
CACHES = PROGRAM.splitlines().index("    cache = [bytearray(1 << 24) for _ in range(100)]") + 1


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def run(script: Path, *words: str) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    """The program under floorit, and its report."""
    ended = recorded([str(script), *words], script.parent / "out", script.parent)
    report = report_of(script.parent / "out")
    assert report is not None
    assert not [m for m in report["missing"] if "probe" in m["reason"]]
    return ended, report


@pytest.mark.parametrize(("ending", "code"), [("raise", 1), pytest.param("exit", 3, marks=pytest.mark.acceptance)])
def test_a_tensor_too_large_for_the_host(script: Path, ending: str, code: int) -> None:
    bare = execute([PYTHON, str(script), "tensor", ending], script.parent)
    ended, report = run(script, "tensor", ending)
    assert (ended.returncode, bare.returncode) == (code, code)
    assert ended.stderr == bare.stderr
    first = report["findings"][0]
    assert first["code"] == "out-of-memory"
    assert (first["where"][0]["file"], first["where"][0]["line"]) == (str(script), ASKS)
    out = report["out_of_memory"]
    assert (out["where"], out["ended"], out["asked"], out["batch"], out["times"]) == ("host", True, 4 << 50, 4, 1)


def test_what_the_program_survives_is_not_its_verdict(script: Path) -> None:
    ended, report = run(script, "tensor", "go on")
    assert ended.returncode == 0
    assert report["findings"][0]["code"] != "out-of-memory"
    assert "out-of-memory" in [finding["code"] for finding in report["findings"]]
    assert not report["out_of_memory"]["ended"]


def test_an_array_too_large_in_a_worker(script: Path) -> None:
    _, report = run(script, "array", "raise")
    assert report["findings"][0]["code"] == "out-of-memory"
    out = report["out_of_memory"]
    assert (out["where"], out["phase"], out["asked"]) == ("host", "data_wait", 8 << 50)
    assert [fix["code"] for fix in report["findings"][0]["fixes"]][:2] == ["workers", "prefetch"]


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited by Linux")
def test_a_limit_of_addresses_before_anything_was_trained(script: Path) -> None:
    ended, report = run(script, "limit", "raise")
    assert ended.returncode == 1
    assert report["run"] is None
    [finding] = report["findings"]
    assert (finding["code"], finding["where"][0]["line"]) == ("out-of-memory", CACHES)
    assert report["out_of_memory"]["limit"] > 1 << 28


@pytest.mark.acceptance  # one that dies while it sends a batch ends the program in words that tell nothing
@pytest.mark.parametrize("name", ["SIGBUS", "SIGKILL"])
def test_a_worker_that_is_killed(script: Path, name: str) -> None:
    """Of a kill it counts whether the kernel did it; a bus error is what too small a /dev/shm ends in."""
    ended, report = run(script, name, "raise")
    assert ended.returncode == 1
    [process] = read_record(script.parent / "out" / "record").run()
    noted = [note for note in process.memory_errors if note["source"] == "exception"]
    said = {"SIGBUS": "Bus error", "SIGKILL": "Killed"}[name]
    number = getattr(signal, name)
    assert any(number in note["killed"] or said in " ".join(note["messages"]) for note in noted)
    is_first = report["findings"][0]["code"] == "out-of-memory"
    assert is_first == (name == "SIGBUS" or headroom.Watch().sum_up().kills is None)


def test_a_healthy_program_ran_out_of_nothing(script: Path) -> None:
    ended, report = run(script, "nothing", "raise")
    assert ended.returncode == 0
    assert report["out_of_memory"] is None


# -- what was noted, made up ----------------------------------------------------------------------------------------


class Record:
    """A record of one process, of which only the notes are known."""

    def __init__(self, *notes: dict[str, Any]) -> None:
        self.process = Process()
        self.process.add(wire.JSON_TAG, b'{"kind": "process", "pid": 1, "host": "here"}')
        self.process.memory_errors += notes

    def run(self) -> list[Process]:
        return [self.process]


def raised(*messages: str, types: tuple[str, ...] = ("RuntimeError",), **more: Any) -> dict[str, Any]:
    """An error as it is noted."""
    usual = {"at": 1.0, "backwards": 0, "phase": "forward", "place": None, "inputs": None, "autocast": False}
    more = {"allocator": None, "held": None, "limit": None, "killed": [], **more}
    return {"source": "exception", "types": list(types), "messages": list(messages), **usual, **more}


def found(*notes: dict[str, Any], code: int | None = 1, room: Headroom | None = None) -> memory.OutOfMemory | None:
    """What is made of notes."""
    record: Any = Record(*notes)
    return memory.find(record, code, room)


CUDA = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.00 GiB of which 2.00 GiB is free"
    ". Including non-PyTorch memory, this process has 76.50 GiB memory in use. Of the allocated memory 50.00 GiB is"
    " allocated by PyTorch, and 26.00 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is"
    " large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


def test_the_message_of_cuda_is_read_where_its_allocator_was_not_observed() -> None:
    out = found(raised(CUDA, types=("OutOfMemoryError",)))
    assert out is not None
    sizes = (out.asked, out.free, out.total, out.allocated, out.reserved, out.others)
    assert sizes == (20 * GIB, 2 * GIB, 79 * GIB, 50 * GIB, 76 * GIB, 1 * GIB)
    [finding] = findings.find(out)
    assert finding.fixes[0].code == "allocator-expandable"
    assert finding.evidence[0] == "20 GiB were asked for, in phase forward"


def observed(**more: Any) -> dict[str, Any]:
    """What CUDA's allocator told us."""
    sizes = {"asked": 2 * GIB, "allowed": 40 * GIB, "total": 80 * GIB, "free": 41 * GIB, "retries": 1}
    sizes |= {"allocated": 38 * GIB, "reserved": 39 * GIB, "split": GIB // 2}
    usual = raised(**more)
    return {**usual, "source": "allocator", **sizes, **more}


def codes(out: memory.OutOfMemory | None) -> list[str]:
    [finding] = findings.find(out)
    return [fix.code for fix in finding.fixes]


def test_a_limit_that_the_program_has_set_is_what_there_was() -> None:
    out = found(observed())
    assert out is not None
    assert (out.total, out.others) == (40 * GIB, 0)


def test_remedies_go_by_what_holds_the_memory() -> None:
    little = {"parameters": {"float32": 1 * GIB}, "gradients": {"float32": GIB}, "optimizer state": {"float32": GIB}}
    much = {what: {"float32": 10 * GIB} for what in little}
    assert codes(found(observed(held=little))) == ["batch-size", "accumulate", "amp", "recompute", "optimizer-8bit"]
    assert codes(found(observed(held=much)))[0] == "optimizer-8bit"
    assert "amp" not in codes(found(observed(held=little, autocast=True)))
    assert "amp" not in codes(found(observed(held={"parameters": {"bfloat16": GIB}})))
    assert codes(found(observed(split=8 * GIB)))[0] == "allocator-expandable"
    assert "allocator-expandable" not in codes(found(observed(split=8 * GIB, allocator="expandable_segments:True")))


def test_what_is_left_is_activations() -> None:
    [finding] = findings.find(found(observed(held={"parameters": {"float32": 8 * GIB}})))
    assert "of what tensors had: parameters 8 GiB (float32), activations and the rest 30 GiB" in finding.evidence


def test_a_time_that_torch_made_do_without_is_not_the_end() -> None:
    out = found(observed(), code=0)
    assert out is not None
    assert not out.ended


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ("unable to write to file </torch_12_34_5>: No space left on device (28)", "shared"),
        ("[Errno 28] No space left on device: 'last.pt'", None),
        ("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that ...", "shared"),
        ("DataLoader worker (pid 7) is killed by signal: Segmentation fault. ", None),
        ("DataLoader worker (pid 7) is killed by signal: Killed. ", "host"),
        ("OpenCV(5.0.0): error: (-4:Insufficient memory) Failed to allocate 9437184 bytes in function", "host"),
    ],
)
def test_what_an_error_says(message: str, where: str | None) -> None:
    out = found(raised(message))
    assert (out.where if out is not None else None) == where


@pytest.mark.parametrize(
    ("kills", "least", "is_named"), [(0, 1, False), (1, 9, True), (None, 1, True), (None, 9, False)]
)
def test_a_program_that_was_killed_ran_out_of_memory_only_if_something_says_so(
    kills: int | None, least: int, is_named: bool
) -> None:
    room = Headroom(memory=100 * GIB, available_least=least * GIB, kills=kills)
    assert (found(code=memory.KILLED, room=room) is not None) == is_named
    assert found(code=0, room=room) is None


def test_a_worker_that_somebody_killed_did_not_run_out_of_memory() -> None:
    killed = raised("DataLoader worker (pid 7) is killed by signal: Killed. ")
    assert found(killed, room=Headroom(kills=0)) is None
    out = found(killed, room=Headroom(kills=2))
    assert out is not None
    assert "the kernel" in out.what


# -- the observer of CUDA's allocator, with a torch that has none ---------------------------------------------------


class Cuda:
    """The few calls that are made when it runs out."""

    def __init__(self, fails: bool = False) -> None:
        self.is_tensor = torch.is_tensor
        self.fails = fails
        self._C = SimpleNamespace(_cuda_attach_out_of_memory_observer=self.attach, _cuda_memoryStats=self.stats)
        self.cuda = SimpleNamespace(get_device_properties=lambda device: SimpleNamespace(total_memory=80 * GIB))

    def attach(self, observer: Any) -> None:
        self.observer = observer

    def stats(self, device: int) -> dict[str, Any]:
        if self.fails:
            raise RuntimeError("no")
        sizes = {"allocated_bytes": 3, "reserved_bytes": 4, "inactive_split_bytes": 1}
        return {"num_alloc_retries": 2, **{name: {"all": {"current": n * GIB}} for name, n in sizes.items()}}


def shortage(cuda: Cuda) -> tuple[list[dict[str, Any]], list[str]]:
    """What is noted from now on, and what is said to be missing."""
    noted: list[dict[str, Any]] = []
    missing: list[str] = []
    session = SimpleNamespace(
        torch=cuda,
        log=SimpleNamespace(thread=get_ident(), backwards=5),
        readings=None,
        is_worker=False,
        remember=lambda kind, **fields: noted.append(fields),
        missing=lambda what, reason: missing.append(reason),
    )
    _Shortage(session).observe_cuda()
    return noted, missing


def test_cuda_tells_what_was_asked_for_and_where() -> None:
    cuda = Cuda()
    noted, _ = shortage(cuda)

    class Model(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            cuda.observer(0, 2 * GIB, 40 * GIB, 41 * GIB)
            return inputs

    Model()(torch.zeros(4, 3))
    Model().eval()(torch.zeros(4, 3))
    first, second = noted
    assert (first["phase"], second["phase"]) == ("forward", "eval")
    assert first["inputs"] == [[[4, 3], "float32"]]
    assert first["place"][0] == os.path.abspath(__file__)
    assert (first["asked"], first["allowed"], first["total"], first["free"]) == (2 * GIB, 40 * GIB, 80 * GIB, 41 * GIB)
    assert (first["allocated"], first["reserved"], first["split"], first["retries"]) == (3 * GIB, 4 * GIB, GIB, 2)


def test_an_observer_that_fails_raises_nothing() -> None:
    cuda = Cuda(fails=True)
    noted, missing = shortage(cuda)
    cuda.observer(0, 1, 2, 3)
    assert not noted
    assert len(missing) == 1
