"""A program cannot tell that it is recorded: same output, same end, same random streams, same graphs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from conftest import FLOORIT, PYTHON, Runs, Truth, clean_environment, execute, recorded, report_of

from floorit.record import probes

# What two bare runs differ in as well.
VOLATILE = (
    (rb"\[\d+:\d+<[^\]]*\]", b"[tqdm]"),
    (rb"pid\(?s?\)?:? \d+", b"pid N"),
    (rb"0x[0-9a-f]{6,}", b"0xADDRESS"),
    (rb"^[WEI]\d{4} [\d:.]+ \d+ ", b"LOG "),
    (rb"127\.0\.0\.1:\d+", b"HOST"),
)
TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(480, 64), torch.randn(480, 1)), batch_size=8, shuffle=True)
    def train(epochs=1):
        for _ in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
        return loss.item()
"""


def steady(text: bytes) -> bytes:
    """Output without what differs between any two runs."""
    for pattern, replacement in VOLATILE:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def program(folder: Path, *parts: str) -> Path:
    """A program of the test's own, put together from parts."""
    path = folder / "train.py"
    path.write_text("\n".join(map(dedent, parts)))
    return path


class Pair:
    """The same words run bare and recorded, in the same folder."""

    def __init__(self, folder: Path, words: list[str], stdin: bytes = b"", **environ: str) -> None:
        self.folder = folder
        self.bare = execute(words, folder, stdin, **environ)
        self.recorded = recorded(words, folder / "floorit", folder, stdin=stdin, **environ)
        self.report = report_of(folder / "floorit")

    def same(self) -> None:
        """Assert that nothing tells them apart."""
        assert steady(self.recorded.stdout).decode() == steady(self.bare.stdout).decode()
        assert steady(self.recorded.stderr).decode() == steady(self.bare.stderr).decode()
        assert self.recorded.returncode == self.bare.returncode


# -- the scripts --------------------------------------------------------------------------------------------------


def test_script_prints_the_same(runs: Runs, truth: Truth) -> None:
    bare, ran = runs.bare(truth), runs.recorded(truth)
    assert ran.code == bare.code == truth.get("exit", 0)
    assert ran.stdout.decode() == bare.stdout.decode()
    assert steady(ran.stderr).decode() == steady(bare.stderr).decode()


# -- what a program can see ---------------------------------------------------------------------------------------


def test_surroundings_are_the_same(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        """
        import os, random, signal, sys, threading, hashlib
        print(sys.argv, os.getcwd(), __name__, __file__, __spec__, __doc__, sys.flags, sys.orig_argv)
        print(sys.path, sys.gettrace(), sys.getprofile(), sys.getswitchinterval(), sys.getrecursionlimit())
        print(sys.stdin.read(), sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.encoding, sys.executable)
        """,
        TRAIN,
        """
    import numpy
    def state():
        torch_hash = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
        numpy_hash = hashlib.sha256(repr(numpy.random.get_state()).encode()).hexdigest()
        return torch_hash, hashlib.sha256(repr(random.getstate()).encode()).hexdigest(), numpy_hash
    random.seed(1)
    numpy.random.seed(2)
    print(state(), random.random(), threading.active_count(), torch.cuda.is_initialized())
    batches = iter(loader)
    next(batches)
    print(state(), repr(train(3)), state(), threading.enumerate()[0].name, len(threading.enumerate()))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGPROF", "SIGALRM", "SIGCHLD"):
        print(name, signal.getsignal(getattr(signal, name)))
    print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__, sys.unraisablehook)
    print(torch.cuda.is_initialized(), torch.get_num_threads(), torch.is_grad_enabled(), torch.is_anomaly_enabled())
    print(torch.are_deterministic_algorithms_enabled(), torch.initial_seed(), torch.get_default_dtype())
    print([name for name in ("rich", "msgspec", "psutil", "pynvml", "floorit") if name in sys.modules])
    print(type(print), print is __builtins__.print, torch.nn.Module.__call__, torch.Tensor.backward, torch.save)
    print(torch.autograd.backward.__code__.co_filename, torch.autograd.backward.__code__.co_firstlineno)
    print(type(torch.Tensor.item), torch.optim.SGD.step, sorted(vars(DataLoader)))
    sys.exit(11)
""",
    )
    pair = Pair(tmp_path, [PYTHON, str(script), "--lr", "0.1", "a b"], stdin=b"typed in")
    pair.same()
    assert pair.bare.returncode == 11, pair.bare.stderr.decode()
    assert b"typed in" in pair.bare.stdout


def modules_of(pair_folder: Path, words: list[str]) -> tuple[set[str], set[str]]:
    """The modules loaded at the end of a bare and of a recorded run that write them to $MODULES."""
    Pair(pair_folder, words).same()
    found = [set(json.loads(text)) for text in (pair_folder / "modules").read_text().splitlines()]
    return found[0], found[1]


START_UP = {"_floorit", "sitecustomize", "importlib", "contextlib", "warnings", "types"}  # what the start-up hook needs
WRITE_MODULES = 'import json, sys; open("modules", "a").write(json.dumps(sorted(sys.modules)) + chr(10))'


def test_no_foreign_module_is_loaded(tmp_path: Path) -> None:
    script = program(tmp_path, TRAIN, "print(repr(train()))", WRITE_MODULES)
    bare, seen = modules_of(tmp_path, [PYTHON, str(script)])
    extra = {name for name in seen - bare if name.partition(".")[0] not in ("_floorit", "sitecustomize")}
    assert not extra


def test_program_without_torch_is_left_alone(tmp_path: Path) -> None:
    bare, seen = modules_of(tmp_path, [PYTHON, str(program(tmp_path, WRITE_MODULES))])
    extra = {name for name in seen - bare if name.partition(".")[0] not in START_UP}
    assert not extra
    report = report_of(tmp_path / "floorit")
    assert report is not None
    assert report["run"] is None
    assert "_floorit.session" not in seen
    assert not list((tmp_path / "floorit" / "record").glob("*.rec"))


@pytest.mark.acceptance
@pytest.mark.parametrize("flags", [["-u", "-O"], ["-I"], ["-X", "utf8"]], ids="".join)
def test_interpreter_flags(tmp_path: Path, flags: list[str]) -> None:
    script = program(tmp_path, "import sys", TRAIN, "print(sys.flags, sys.path, repr(train()))")
    Pair(tmp_path, [PYTHON, *flags, str(script)]).same()


@pytest.mark.acceptance
def test_program_from_stdin_and_from_the_command_line(tmp_path: Path) -> None:
    text = f"{dedent(TRAIN)}\nprint(repr(train()), __name__)"
    Pair(tmp_path, [PYTHON, "-c", text]).same()
    (tmp_path / "second").mkdir()
    Pair(tmp_path / "second", [PYTHON, "-"], stdin=text.encode()).same()


# -- the user's own sitecustomize ---------------------------------------------------------------------------------


def in_program(body: str) -> str:
    """A sitecustomize that does something in the program only: floorit is a Python process too."""
    guard = "import sys\nif not [word for word in sys.orig_argv[:2] if word.endswith('floorit')]:\n"
    return guard + "".join(f"    {line}\n" for line in body.splitlines())


SAY_WHOSE = "print(sitecustomize.__file__, sitecustomize.__spec__.name)"


@pytest.mark.parametrize("form", [pytest.param("file", marks=pytest.mark.acceptance), "package"])
def test_own_sitecustomize_runs_once(tmp_path: Path, form: str) -> None:
    place = tmp_path / "own"
    target = place / "sitecustomize.py" if form == "file" else place / "sitecustomize" / "__init__.py"
    target.parent.mkdir(parents=True)
    body = "import builtins\nbuiltins.ran = getattr(builtins, 'ran', 0) + 1\nprint('own', __name__)\n"
    target.write_text(in_program(body))
    if form == "package":
        (target.parent / "part.py").write_text("value = 42\n")
    last = "from sitecustomize.part import value; print(value)" if form == "package" else "pass"
    script = program(tmp_path, TRAIN, "print(repr(train()), ran)", "import sitecustomize", last, SAY_WHOSE)
    pair = Pair(tmp_path, [PYTHON, str(script)], PYTHONPATH=str(place))
    pair.same()
    assert pair.report is not None
    assert pair.report["run"]["steps"] == 60


@pytest.mark.acceptance
def test_own_sitecustomize_that_raises(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(in_program("raise ValueError('no')"))
    script = program(tmp_path, TRAIN, "print(repr(train()))")
    Pair(tmp_path, [PYTHON, str(script)], PYTHONPATH=str(tmp_path / "own")).same()


# -- warnings and tracebacks --------------------------------------------------------------------------------------

WARNS = """
    import warnings
    class Layer(nn.Module):
        def forward(self, x):
            for level in (1, 2, 3, 4):
                warnings.warn(f"forward {level}", stacklevel=level)
            return x
    def noisy(samples):
        warnings.warn("collate", stacklevel=3)
        return torch.stack([s[0] for s in samples]), torch.stack([s[1] for s in samples])
    model.append(Layer())
    loader = DataLoader(loader.dataset, batch_size=240, collate_fn=noisy)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scheduler.step()
    def closure():
        warnings.warn("closure", stacklevel=3)
        return model(torch.ones(1, 64)).sum()
    optimizer.step(closure)
    hook = model.register_full_backward_hook(lambda *_: warnings.warn("hook", stacklevel=3))
    print(repr(train()))
"""


def test_warnings_name_the_same_lines(tmp_path: Path) -> None:
    pair = Pair(tmp_path, [PYTHON, "-W", "always", str(program(tmp_path, TRAIN, WARNS))])
    pair.same()
    assert b"forward 3" in pair.bare.stderr


def test_warnings_as_errors_do_not_end_the_program(tmp_path: Path) -> None:
    pair = Pair(tmp_path, [PYTHON, "-W", "error", str(program(tmp_path, TRAIN, "print(repr(train()))"))])
    pair.same()
    if pair.bare.returncode == 0:
        assert pair.report is not None
        assert pair.report["run"]["steps"] == 60


TRACEBACKS = """
    import logging, sys, traceback
    from torch.utils.checkpoint import checkpoint
    class Bad:
        def __str__(self):
            raise ValueError("no text")
    class Once(nn.Module):
        calls = 0
        def forward(self, x):
            self.calls += 1
            if self.calls == 2:
                raise ValueError("second call")
            return x.sin()
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("in backward")
    def broken(_):
        raise ValueError("collate")
    def recompute(reentrant):
        checkpoint(Once(), torch.ones(3, requires_grad=True), use_reentrant=reentrant).sum().backward()
    def twice():
        loss = model(torch.ones(1, 64)).sum()
        loss.backward()
        loss.backward()
    def exit_in_closure():
        optimizer.step(lambda: broken(1))
    class Unsaved:
        def __reduce__(self):
            raise ValueError("cannot be pickled")
    class Stream:
        def write(self, text):
            raise ValueError("cannot be written")
    cases = [
        lambda: print(Bad()),
        lambda: print("x", file=Stream()),
        lambda: sys.stdout.write(3),
        lambda: recompute(False),
        lambda: recompute(True),
        lambda: Function.apply(torch.ones(2, requires_grad=True)).sum().backward(),
        lambda: torch.autograd.grad(Function.apply(torch.ones(2, requires_grad=True)).sum(), model[0].weight),
        lambda: next(iter(DataLoader(loader.dataset, collate_fn=broken))),
        lambda: next(iter(DataLoader(loader.dataset, batch_size=2, sampler=[10**9]))),
        twice,
        exit_in_closure,
        lambda: torch.save(Unsaved(), "never.pt"),
        lambda: model(torch.ones(1, 3)),
        lambda: nn.functional.mse_loss(model(torch.ones(1, 64)), None),
    ]
    print(repr(train()))
    for case in cases:
        try:
            case()
        except Exception:
            print(traceback.format_exc())
    log = logging.getLogger("bad")
    log.warning("%d", "not a number")
    print(repr(train()))
"""


@pytest.mark.parametrize(
    "last", ["pass", "sys.stdout.write(3)", pytest.param("recompute(False)", marks=pytest.mark.acceptance)]
)
def test_tracebacks_are_the_same(tmp_path: Path, last: str) -> None:
    pair = Pair(tmp_path, [PYTHON, str(program(tmp_path, TRAIN, TRACEBACKS, last))])
    pair.same()
    assert b"cannot be pickled" in pair.bare.stdout, pair.bare.stderr.decode()
    assert pair.report is not None
    assert pair.report["run"]["steps"] >= 120


# -- other processes ----------------------------------------------------------------------------------------------


def test_children_keep_working(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        TRAIN,
        """
    import multiprocessing, os, subprocess, sys
    def work(n):
        return float(torch.full((4,), float(n)).sum())
    if __name__ == "__main__":
        print(repr(train()))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(work, range(2)))
        print(repr(train()), flush=True)
        pid = os.fork()
        if pid == 0:
            print("child", repr(train()), flush=True)
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        print(repr(train()), flush=True)
        subprocess.run([sys.executable, "-c", "import torch; print(torch.ones(2).sum())"], check=True)
        subprocess.run([sys.executable, "-c", "print('no torch')"], check=True, env={})
""",
    )
    pair = Pair(tmp_path, [PYTHON, str(script)])
    pair.same()
    assert pair.bare.returncode == 0, pair.bare.stderr.decode()
    assert pair.report is not None
    assert pair.report["run"]["steps"] == 180


# -- signals ------------------------------------------------------------------------------------------------------

FOREVER = """
    import os, signal, sys
    def told(number, frame):
        print("told", number, flush=True)
        sys.exit(9)
    if "handler" in sys.argv:
        signal.signal(getattr(signal, sys.argv[-1]), told)
    def ready():
        with open("pid.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename("pid.part", "pid")
    try:
        train()
        print("ready", flush=True)
        ready()
        while True:
            train()
    finally:
        print("cleaned up", flush=True)
"""


def ended_by(folder: Path, words: list[str], number: int, to: str) -> tuple[int, bytes, bytes]:
    """Start a command, send a signal once it trains, and say how it ended."""
    (folder / "pid").unlink(missing_ok=True)
    child = subprocess.Popen(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (folder / "pid").exists():
            assert time.monotonic() < deadline
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        time.sleep(1.5)  # a program that is killed loses its last second
        if to == "group":
            os.killpg(child.pid, number)
        else:
            os.kill(child.pid if to == "command" else int((folder / "pid").read_text()), number)
        out, err = child.communicate(timeout=60)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    return child.returncode, out, err


@pytest.mark.parametrize(
    ("name", "to", "handler"),
    [
        ("SIGTERM", "command", "default"),
        pytest.param("SIGTERM", "command", "handler", marks=pytest.mark.acceptance),
        pytest.param("SIGTERM", "program", "default", marks=pytest.mark.acceptance),
        pytest.param("SIGINT", "program", "default", marks=pytest.mark.acceptance),
        ("SIGINT", "group", "default"),
        pytest.param("SIGINT", "group", "handler", marks=pytest.mark.acceptance),
    ],
)
def test_signals_end_it_the_same_way(tmp_path: Path, name: str, to: str, handler: str) -> None:
    words = [PYTHON, str(program(tmp_path, TRAIN, FOREVER)), handler, name]
    number = getattr(signal, name)
    bare = ended_by(tmp_path, words, number, "command" if to == "program" else to)
    quiet = [FLOORIT, "run", "--out", str(tmp_path / "floorit"), "--quiet", "--", *words]
    ran = ended_by(tmp_path, quiet, number, to)
    assert ran[:2] == bare[:2]
    assert ran[2].splitlines()[-1:] == bare[2].splitlines()[-1:]
    assert b"floorit" not in ran[2].replace(str(tmp_path).encode(), b"")
    report = report_of(tmp_path / "floorit")
    assert report is not None
    assert report["run"]["steps"] > 0
    assert report["ledger"]


def test_killed_program_leaves_a_record(tmp_path: Path) -> None:
    words = [
        FLOORIT,
        "run",
        "--out",
        str(tmp_path / "floorit"),
        "--quiet",
        PYTHON,
        str(program(tmp_path, TRAIN, FOREVER)),
        "x",
    ]
    code, out, _ = ended_by(tmp_path, words, signal.SIGKILL, "program")
    assert code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert out == b"ready\n"
    report = report_of(tmp_path / "floorit")
    assert report is not None
    assert report["program"]["exit_code"] == 128 + signal.SIGKILL


# -- probes that fail ---------------------------------------------------------------------------------------------

SABOTAGED = """
    import logging, tempfile
    print(repr(train(2)))
    logging.getLogger("x").error("still here")
    torch.save(model.state_dict(), tempfile.mkdtemp() + "/x.pt")
    print(sum(float(x.sum()) for x, _ in DataLoader(loader.dataset, batch_size=60, num_workers=1)))
    print(repr(train(2)))
"""


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[bytes]:
    """The program bare, once for all ways to break the recorder."""
    folder = tmp_path_factory.mktemp("unharmed")
    return execute([PYTHON, str(program(folder, TRAIN, SABOTAGED))], folder)


Unharmed = subprocess.CompletedProcess[bytes]


def sabotaged(folder: Path, unharmed: Unharmed, sabotage: str) -> tuple[dict[str, Any], bytes]:
    """Break the recorder by a sitecustomize, before torch is imported; what the report says, and stderr."""
    (folder / "own").mkdir()
    guard = 'import sys\nif "_floorit" in sys.modules:\n'
    body = "".join(f"    {line}\n" for line in dedent(sabotage).strip().splitlines())
    (folder / "own" / "sitecustomize.py").write_text(guard + body)
    words = [PYTHON, str(program(folder, TRAIN, SABOTAGED))]
    ran = recorded(words, folder / "floorit", folder, PYTHONPATH=str(folder / "own"))
    assert (ran.returncode, ran.stdout.decode()) == (unharmed.returncode, unharmed.stdout.decode()), ran.stderr.decode()
    report = report_of(folder / "floorit")
    assert report is not None
    return report, ran.stderr


def _some_always(cases: list[Any], always: int, name: Any = str) -> list[Any]:
    """Each case takes a whole run: the first few are tried with every change, the others by `make acceptance`."""
    marks = [() if number < always else (pytest.mark.acceptance,) for number in range(len(cases))]
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*v, marks=m, id=name(c)) for v, m, c in zip(values, marks, cases, strict=True)]


@pytest.mark.parametrize("probe", _some_always([name for name, _ in probes.ALL], 2))
def test_probe_that_cannot_be_installed_is_named(tmp_path: Path, unharmed: Unharmed, probe: str) -> None:
    report, stderr = sabotaged(
        tmp_path,
        unharmed,
        f"""
        import _floorit.probes as probes
        def install(session):
            raise RuntimeError("sabotage")
        probes.ALL = tuple((name, install if name == {probe!r} else real) for name, real in probes.ALL)
        """,
    )
    assert stderr == unharmed.stderr
    assert probe in [m["what"] for m in report["missing"]]


HOOKS = [
    ("log", "Log.at_border", 5),
    ("lines", "LineTrack.open", 5),
    ("probes.module", "_Calls._describe", 0),
    ("probes.loader", "_Batches._describe", 0),
    ("probes.loader", "_Batches.got", 30),
    ("probes.optimizer", "_Steps._describe", 0),
    ("sampler", "Sampler._look", 2),
    ("session", "Session.settle", 0),
]


@pytest.mark.parametrize(("module", "function", "after"), _some_always(HOOKS, 3, name=lambda hook: hook[1]))
def test_hook_that_fails_is_named(tmp_path: Path, unharmed: Unharmed, module: str, function: str, after: int) -> None:
    owner, _, name = function.partition(".")
    report, stderr = sabotaged(
        tmp_path,
        unharmed,
        f"""
        from _floorit.{module} import {owner} as owner
        real, calls = owner.{name}, [0]
        def broken(*args):
            calls[0] += 1
            if calls[0] > {after}:
                raise RuntimeError("sabotage")
            return real(*args)
        owner.{name} = broken
        """,
    )
    assert stderr == unharmed.stderr
    assert [m for m in report["missing"] if "sabotage" in m["reason"]]
    if report["step"] is not None:
        total = sum(entry["seconds"] for entry in report["ledger"])
        assert total == pytest.approx(report["step"]["mean"], rel=0.01)


def test_record_that_cannot_be_written_is_told(tmp_path: Path, unharmed: Unharmed) -> None:
    report, stderr = sabotaged(
        tmp_path,
        unharmed,
        """
        import _floorit.writer as writer
        class Full:
            def __getattr__(self, name):
                return getattr(os, name)
            def write(self, file, data):
                if len(data) > 400:
                    raise OSError(28, "No space left on device")
                return os.write(file, data)
        os = writer.os
        writer.os = Full()
        """,
    )
    own = [line for line in stderr.splitlines() if line and not line.startswith(b"floorit: ")]
    assert own == unharmed.stderr.splitlines()
    assert [m for m in report["missing"] if "No space left" in m["reason"]]
