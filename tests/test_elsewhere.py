"""floorit in an environment of its own, programs of other interpreters, and every way to start one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "src" / "floorit" / "record"
FLOORIT = str(Path(sys.executable).with_name("floorit"))
LONGEST = 180  # seconds a run may take on a busy machine
OTHERS = ("3.10", "3.12", "3.13")
STEPS = 12

TRAIN = f"""
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range({STEPS}):
    loss = model(torch.randn(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained", flush=True)
"""


def _interpreter(version):
    """A Python of this version, if the machine has one."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(installed[-1]) if installed else shutil.which(f"python{version}")
    return found or pytest.skip(f"there is no Python {version} here")


def _environment(**extra):
    dropped = ("PYTHONPATH", "FLOORIT_RECORD", "PYTHONWARNINGS", "VIRTUAL_ENV", "CONDA_PREFIX")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**kept, "OMP_NUM_THREADS": "1", "PATH": path, **extra}


def _run(floorit, words, cwd, **environ):
    """Run a command under a floorit; its report."""
    command = [floorit, "run", "--quiet", "--out", "out", *words]
    ended = subprocess.run(
        command, cwd=cwd, env=_environment(**environ), capture_output=True, text=True, timeout=LONGEST
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("trained") >= 1
    return json.loads((cwd / "out" / "report.json").read_text())


@pytest.fixture
def project(tmp_path):
    """A program, in every form it can have."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "__main__.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text("cd .\npython train.py\n")
    (tmp_path / "bin").mkdir()
    console = tmp_path / "bin" / "train-it"
    console.write_text(f"#!{sys.executable}\n{TRAIN}")
    console.chmod(0o755)
    return tmp_path


_slow = pytest.mark.acceptance
_RANKS = ("--standalone", "--nproc-per-node", "2", "train.py")


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        pytest.param(["train.py"], 1, id="script"),
        pytest.param(["--", "python", "-u", "train.py"], 1, id="python-script"),
        pytest.param(["-m", "pkg"], 1, id="module"),
        pytest.param(["bash", "run.sh"], 1, id="shell-script"),
        pytest.param(["train-it"], 1, id="console-script"),
        pytest.param(["python", "-m", "pkg"], 1, id="python-module", marks=_slow),
        pytest.param(["pkg"], 1, id="folder", marks=_slow),
        pytest.param(["env", "X=1", "python", "-c", TRAIN], 1, id="env-and-code", marks=_slow),
        pytest.param(["torchrun", *_RANKS], 2, id="torchrun", marks=_slow),
        pytest.param(["python", "-m", "torch.distributed.run", *_RANKS], 2, id="distributed-run", marks=_slow),
    ],
)
def test_the_recording_reaches_the_program_however_it_is_started(project, words, ranks):
    path = os.pathsep.join([str(project / "bin"), _environment()["PATH"]])
    report = _run(FLOORIT, words, project, PATH=path)
    assert report["run"]["steps"] == STEPS
    assert report["run"]["ranks"] == ranks


@pytest.mark.parametrize("version", OTHERS)
def test_the_recorder_compiles_in_every_python_it_may_meet(version, tmp_path):
    ended = subprocess.run(
        [_interpreter(version), "-W", "error", "-m", "compileall", "-q", "-f", str(RECORD)],
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("version", OTHERS)
def test_without_torch_the_recorder_waits_and_does_nothing(version, tmp_path):
    """What it imports at start-up exists in every Python, and a program without torch is left alone."""
    environ = {**os.environ, "FLOORIT_RECORD": str(tmp_path), "PYTHONPATH": str(RECORD / "start")}
    code = "import sys, json; print(sorted(m for m in sys.modules if m.startswith('_floorit')), sys.path)"
    ended = subprocess.run(
        [_interpreter(version), "-W", "error", "-c", code], env=environ, capture_output=True, text=True, timeout=LONGEST
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "_floorit" in ended.stdout
    assert str(RECORD / "start") not in ended.stdout
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="session")
def own_environment(tmp_path_factory):
    """version -> the floorit of an environment that has floorit and no torch."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(version):
        folder = base / f"own-{version}"
        with FileLock(f"{folder}.lock"):
            if not (folder / "bin" / "floorit").exists():
                subprocess.run([_interpreter(version), "-m", "venv", str(folder)], check=True, timeout=LONGEST)
                pip = [str(folder / "bin" / "pip"), "install", "--quiet", str(ROOT)]
                ended = subprocess.run(pip, capture_output=True, text=True, timeout=LONGEST)
                if ended.returncode:
                    pytest.skip(f"floorit cannot be installed for {version}: {ended.stderr[-300:]}")
        return str(folder / "bin" / "floorit")

    return make


@pytest.mark.acceptance
@pytest.mark.parametrize("version", OTHERS)
def test_a_program_of_another_interpreter_is_recorded(own_environment, project, version):
    report = _run(own_environment(version), [sys.executable, "train.py"], project)
    assert report["run"]["steps"] == STEPS
    assert report["environment"]["python"] == sys.version.split()[0]
    assert report["environment"]["torch"] is not None


@pytest.mark.acceptance
@pytest.mark.parametrize("how", ["active environment", "PATH"])
def test_a_script_is_given_to_the_interpreter_that_has_torch(own_environment, project, how):
    extra = {"VIRTUAL_ENV": sys.prefix} if how == "active environment" else {}
    report = _run(own_environment("3.13"), ["train.py"], project, **extra)
    assert report["run"]["steps"] == STEPS


@pytest.mark.acceptance
def test_a_record_made_here_is_reported_by_another_python(own_environment, project):
    first = _run(FLOORIT, ["train.py"], project)
    words = [own_environment("3.10"), "report", "--json", "out"]
    ended = subprocess.run(words, cwd=project, env=_environment(), capture_output=True, text=True, timeout=LONGEST)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["ledger"] == first["ledger"]
