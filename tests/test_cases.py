"""The five cases: what their truth.toml says of them is so."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from conftest import FLOORIT, LONGEST, PYTHON, clean_environment
from filelock import FileLock

from floorit import demo, truth
from floorit.analyse.ledger import ORDER
from floorit.report import beside, model

CASES = Path(__file__).parents[1] / "cases"
THERE = sorted(path.parent.name for path in CASES.glob(f"*/{truth.NAME}"))
STEPS = 3
ROUNDING = 1e-3  # relative: how far losses may drift in so few steps where only rounding differs
MOST_LINES = 1000  # of a case in all
# DESIGN section 9; adding one is a deliberate edit here.
CODES = {
    "input-bound", "transfer-bound", "python-bound", "launch-bound", "sync-bound", "loss-bound", "compute-bound",
    "recompute-bound", "optimizer-bound", "comm-bound", "logging-bound", "eval-bound", "checkpoint-bound", "epoch-gap",
    "oversubscribed", "batch-too-small", "setting-ignored", "debug-left-on", "out-of-memory", "healthy",
}  # fmt: skip
# Imports what all cases import, once, then runs each command in a fork: most of a short run would else be imports
# (the first step of an optimizer imports torch._dynamo).
FORKS = """
import json, os, runpy, sys
import torch, torch._dynamo, numpy, cv2, yaml

for words, said in json.load(sys.stdin):
    pid = os.fork()
    if not pid:
        out = os.open(said, os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(out, 1), os.dup2(out, 2)
        sys.argv, sys.path[0] = words, os.path.dirname(words[0])
        runpy.run_path(words[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""

# As the write-ups start them, at the size of the CPU scale: the same training, so the same losses.
STARTED = {
    "detector": ["train.py", "--img-size", "96", "96", "--batch-size", "32", "--weights", "", "--device", "0",
                 "--cfg", "cfg/training/yolov7-tiny-320.yaml", "--hyp", "data/hyp.scratch.tiny.yaml", "--noautoanchor",
                 "--project", "runs/phase2", "--name", "group_a_mosaic_on"],
    "bev": ["tools/train.py", str(CASES / "bev/configs/baseline/lss_swin_nuscenes_cpu.py"), "--gpu-ids", "0",
            "--options", f"runner.max_iters={STEPS}", "evaluation.metric=mIoU"],
    "deblur": ["src/train.py", "--cfg", str(CASES / "deblur/configs/deblur/vrt_spike_cpu.yaml")],
    "heatmap": ["scripts/training/train.py"],
}  # fmt: skip
# What 000 pastes to look inside: its minimal test of training, and its look at a sample.
PASTED = """
import sys, torch, yaml
sys.path.insert(0, {case!r})
from models.yolo import Model
from utils.datasets import LoadImagesAndLabels
from utils.loss import ComputeLossOTA

model = Model({case!r} + "/cfg/training/yolov7-tiny-320.yaml")
compute_loss = ComputeLossOTA(model)
loss, _ = compute_loss(model(torch.randn(2, 3, 64, 64)), torch.zeros(1000, 6).to(model.device))
loss.backward()

hyp = yaml.safe_load(open({case!r} + "/data/hyp.scratch.tiny.yaml"))
dataset = LoadImagesAndLabels({images!r}, 320, 384, augment=True, hyp=hyp)
image, labels, path = dataset[5]
again = dataset[0, 5]
assert image.shape == (3, 320, 320) and image.equal(again[0]) and labels.equal(again[1]) and path == again[2]
imgs, targets, paths, _ = dataset.collate_fn([dataset[5], dataset[6]])
assert len(imgs) == len(paths) == 2
"""

each_case = pytest.mark.parametrize("name", THERE)


def known(name: str) -> truth.Truth:
    return truth.load(CASES / name)


Key = tuple[str, str]  # a case, and one of its arms
Arms = dict[Key, list[str]]  # a script of the case, and its options


def train(commands: Arms, folder: Path) -> dict[Key, tuple[int, str]]:
    """Run a script of a case with each of these options; the exit codes, and what was said."""
    said = {key: folder / f"{'-'.join(key)}.txt" for key in commands}
    todo = [
        [[str(CASES / key[0] / script), *words, "--out", str(folder / "-".join(key))], str(said[key])]
        for key, (script, *words) in commands.items()
    ]
    ended = subprocess.run(
        [PYTHON, "-c", FORKS],
        input=json.dumps(todo),
        capture_output=True,
        text=True,
        env=clean_environment(),
        cwd=folder,
        timeout=LONGEST * 5,
    )
    assert ended.returncode == 0, ended.stderr
    codes = map(int, ended.stdout.split())
    return {key: (code, said[key].read_text()) for key, code in zip(commands, codes, strict=True)}


def options(name: str, data: Data, off: list[str]) -> list[str]:
    """Of a few steps with these faults off."""
    size = ["--scale", "cpu", "--steps", str(STEPS), "--data", str(data.of(name)[0])]
    return [*size, *(word for fault in off for word in ("--fault-free", fault))]


def losses(key: Key, ran: dict[Key, tuple[int, str]], folder: Path) -> list[float]:
    """Of one run."""
    code, said = ran[key]
    assert code == 0, f"{key}: {said[-2000:]}"
    summary = json.loads((folder / "-".join(key) / "summary.json").read_text())
    assert len(summary["losses"]) == summary["steps"] == STEPS, key
    return summary["losses"]


def together(name: str) -> dict[str, list[str]]:
    """Sets of faults that may be off at once: those that change nothing, then also those that change the rounding."""
    faults = [fault for fault in known(name).faults if "cpu" in fault.scales]
    same = [fault.name for fault in faults if fault.results == "same"]
    rounding = [fault.name for fault in faults if fault.results == "rounding"]
    arms = {"shipped": [], "same": same}
    return arms | ({"rounding": same + rounding} if rounding else {})


class Data:
    """Each case's data of the CPU scale, made once for all tests and workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def of(self, name: str) -> tuple[Path, str]:
        """Where it is, and its hash."""
        place, kept = self.folder / name, self.folder / f"{name}.sha256"
        with FileLock(f"{place}.lock"):
            if not kept.exists():
                made(name, "make_data.py", "--scale", "cpu", "--out", str(place))
                digest = f"import make_data, pathlib; print(make_data.digest(pathlib.Path({str(place)!r})))"
                kept.write_text(made(name, "-c", digest))
        return place, kept.read_text()


def made(name: str, *words: str) -> str:
    """What Python says last when it is run in a case's folder."""
    ended = subprocess.run(
        [PYTHON, *words], capture_output=True, text=True, env=clean_environment(), cwd=CASES / name, timeout=LONGEST
    )
    assert ended.returncode == 0, ended.stderr
    return (ended.stdout.split() or [""])[-1]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    base = tmp_path_factory.getbasetemp()
    return Data((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cases")


# -- what is written --------------------------------------------------------------------------------------------


def test_there_are_five() -> None:
    assert sorted(demo.NAMES) == THERE
    assert demo.DEFAULT in demo.NAMES


@each_case
def test_the_truth_is_in_order(name: str) -> None:
    told = known(name)
    names = [fault.name for fault in told.faults]
    assert told.case == name
    assert told.data_sha256
    assert set(told.verdict) == set(truth.SCALES)
    assert len(set(names)) == len(names)
    assert "all" not in names
    for fault in told.faults:
        assert fault.finding in CODES, fault.name
        assert set(fault.phases) <= set(ORDER), fault.name
        assert fault.phases or fault.gain == "memory", fault.name
        assert (fault.why is None) == (fault.results == "same"), f"{fault.name}: say why, or that it is the same"
    assert {fault.regime for fault in told.faults} <= {None, *told.regimes}
    for regime in (None, *told.regimes):
        for scale in truth.SCALES:
            findings = {fault.finding for fault in told.at(scale, regime)}
            assert set(told.expected(scale, regime)) <= findings, f"no fault gives the verdict: {scale}, {regime}"


@each_case
def test_each_fault_stands_where_it_is_said_to(name: str) -> None:
    for fault in known(name).faults:
        line = (CASES / name / fault.file).read_text().splitlines()[fault.line - 1]
        assert fault.text in line, f"{fault.name}: {fault.file}:{fault.line} is {line!r}"


@each_case
def test_what_was_measured_is_of_faults_that_there_are(name: str) -> None:
    told = known(name)
    for key, measured in told.measured.items():
        there_are = {fault.name for fault in told.at(measured.scale, measured.regime)}
        asked_for = _asked_for(measured.command)
        assert asked_for <= there_are, key
        assert set(measured.faults) == (asked_for or there_are), key
        assert (measured.all_off is None) == bool(asked_for), key


def _asked_for(command: str) -> set[str]:
    """The faults that a measurement was kept to; none: it was of all."""
    words = shlex.split(command)
    return {after for word, after in pairwise(words) if word == "--only"}


@each_case
def test_the_source_does_not_know_of_us(name: str) -> None:
    """No `floorit` but in the cache's name, no sleep; as long as a project of its kind may be."""
    sources = sorted((CASES / name).rglob("*.py"))
    for path in sources:
        text = path.read_text()
        ast.parse(text, feature_version=(3, 10))
        rest = text.replace("FLOORIT_CASES", "").replace("floorit-cases", "").lower()
        assert "floorit" not in rest, path
        assert "sleep(" not in rest, path
    assert sum(len(path.read_text().splitlines()) for path in sources) <= MOST_LINES


# -- what runs --------------------------------------------------------------------------------------------------


@each_case
def test_the_data_is_the_same_on_every_machine(name: str, data: Data) -> None:
    assert data.of(name)[1] == known(name).data_sha256


def test_faults_off_together_change_the_losses_only_as_they_may(data: Data, tmp_path: Path) -> None:
    """And an unknown fault is refused. All in one process, as most of the time goes into imports. Each alone: below."""
    commands = {
        (name, arm): [*started(name, arm), *options(name, data, off)]
        for name in THERE
        for arm, off in together(name).items()
    }
    refused = {(name, "nonsense"): ["train.py", "--fault-free", "nonsense"] for name in THERE}
    pasted = {("detector", "pasted"): [str(write_pasted(data, tmp_path))]}
    ran = train(commands | refused | pasted, tmp_path)
    found = {key: losses(key, ran, tmp_path) for key in commands}
    for name, arm in found:
        loosely = {"rel": ROUNDING} if arm == "rounding" else {"rel": 0, "abs": 0}
        assert found[name, arm] == pytest.approx(found[name, "shipped"], **loosely), (name, arm)
    for name, _ in refused:
        code, said = ran[name, "nonsense"]
        assert code == 2, said
        assert all(fault.name in said for fault in known(name).faults), said
    assert ran["detector", "pasted"][0] == 0, ran["detector", "pasted"][1]


def started(name: str, arm: str) -> list[str]:
    """The write-up's own command where losses must be the same anyhow, else the plain one."""
    return STARTED.get(name, ["train.py"]) if arm == "same" else ["train.py"]


def write_pasted(data: Data, folder: Path) -> Path:
    script = folder / "pasted.py"
    images = data.of("detector")[0] / "images" / "train2017"
    script.write_text(PASTED.format(case=str(CASES / "detector"), images=str(images)))
    return script


@pytest.mark.acceptance
@each_case
def test_the_hash_is_what_make_data_prints(name: str) -> None:
    assert made(name, "make_data.py", "--hash") == known(name).data_sha256


@pytest.mark.acceptance
@each_case
def test_each_switch_changes_the_losses_only_as_it_may(name: str, data: Data, tmp_path: Path) -> None:
    faults = known(name).faults
    arms = {"shipped": [], "again": [], **{fault.name: [fault.name] for fault in faults}, "all": ["all"]}
    ran = train({(name, arm): ["train.py", *options(name, data, off)] for arm, off in arms.items()}, tmp_path)
    found = {arm: losses((name, arm), ran, tmp_path) for arm in arms}
    assert found["again"] == found["shipped"]
    for fault in faults:
        if fault.results == "same":
            assert found[fault.name] == found["shipped"], fault.name
        elif fault.results == "rounding":
            assert found[fault.name] == pytest.approx(found["shipped"], rel=ROUNDING), fault.name


def test_heatmap_shows_what_its_configuration_says_in_vain(data: Data, tmp_path: Path) -> None:
    script = [
        PYTHON,
        str(CASES / "heatmap" / "train.py"),
        *options("heatmap", data, []),
        "--out",
        str(tmp_path / "out"),
    ]
    words = [FLOORIT, "run", "--quiet", "--out", str(tmp_path / "run"), "--", *script]
    ended = subprocess.run(
        words, capture_output=True, text=True, env=clean_environment(), cwd=tmp_path, timeout=LONGEST
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = msgspec.json.decode((tmp_path / "run" / "report.json").read_bytes(), type=model.Report)
    ignored = {setting.name: (setting.declared, setting.actual) for setting in report.settings if setting.ignored}
    assert ignored == {"num_workers": (4, 2), "prefetch_factor": (4, 2), "cudnn.benchmark": (True, False)}
    found = next(finding for finding in report.findings if finding.code == "setting-ignored")
    places = {(Path(line.file).name, line.line) for line in found.where}
    fault = next(fault for fault in known("heatmap").faults if fault.name == "cudnn")
    assert {("train.py", fault.line), ("fiducial_cpu.yaml", 8), ("fiducial_cpu.yaml", 24)} <= places


REGIMES = [(name, regime) for name in THERE for regime in (None, *known(name).regimes)]


@pytest.mark.acceptance
@pytest.mark.parametrize(("name", "regime"), REGIMES)
def test_the_report_gives_the_verdict_and_the_place(name: str, regime: str | None, data: Data, tmp_path: Path) -> None:
    compared = recorded(name, regime, data, tmp_path)
    dominant = [row for row in compared.rows if row.fault.finding in compared.expected]
    said = {row.fault.name: (row.found, row.placed) for row in compared.rows}
    assert compared.agrees, said
    assert any(row.placed for row in dominant), said


def recorded(name: str, regime: str | None, data: Data, folder: Path) -> beside.Beside:
    """The case as shipped, or in another regime, under `floorit run`, beside its truth."""
    more = known(name).regimes[regime].options if regime else []
    script = [PYTHON, str(CASES / name / "train.py"), "--scale", "cpu", *more, "--data", str(data.of(name)[0])]
    words = [FLOORIT, "run", "--quiet", "--out", str(folder / "run"), "--", *script, "--out", str(folder / "out")]
    environ = clean_environment()
    environ.pop("OMP_NUM_THREADS")  # as a person would run it
    ended = subprocess.run(words, capture_output=True, text=True, env=environ, cwd=folder, timeout=LONGEST * 2)
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = msgspec.json.decode((folder / "run" / "report.json").read_bytes(), type=model.Report)
    return beside.compare(report, known(name), CASES / name, "cpu", regime)


@pytest.mark.acceptance
def test_deblur_trains_on_two_ranks(data: Data, tmp_path: Path) -> None:
    """As its write-up does; what ranks wait for each other is no phase of either."""
    script = [str(CASES / "deblur" / "train.py"), "--scale", "cpu", "--data", str(data.of("deblur")[0])]
    words = [FLOORIT, "run", "--quiet", "--no-window", "--steps", "12", "--out", str(tmp_path / "run"), "--"]
    launched = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *script]
    ended = subprocess.run(
        [*words, *launched, "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=LONGEST * 2,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = msgspec.json.decode((tmp_path / "run" / "report.json").read_bytes(), type=model.Report)
    assert report.run is not None
    assert (report.run.ranks, [rank.rank for rank in report.ranks]) == (2, [0, 1])
    assert report.step is not None
    assert sum(entry.seconds for entry in report.ledger) == pytest.approx(report.step.mean, rel=0.01)
    assert report.findings[0].code == "recompute-bound"


@pytest.mark.acceptance
def test_service_can_be_driven_out_of_host_memory(data: Data, tmp_path: Path) -> None:
    script = [PYTHON, str(CASES / "service" / "train.py"), "--scale", "cpu", "--data", str(data.of("service")[0])]
    more = ["--cache", "ram", "--imgsz", "1024", "--ram-limit", "0.1", "--out", str(tmp_path / "out")]
    words = [FLOORIT, "run", "--quiet", "--out", str(tmp_path / "run"), "--", *script, *more]
    ended = subprocess.run(words, capture_output=True, text=True, env=clean_environment(), timeout=LONGEST)
    assert ended.returncode == 1
    assert "out of system memory" in ended.stdout + ended.stderr
    report = msgspec.json.decode((tmp_path / "run" / "report.json").read_bytes(), type=model.Report)
    assert report.findings[0].code == "out-of-memory"
    assert report.out_of_memory is not None
    assert report.findings[0].where[0].file.endswith("yolo/dataset.py")


@pytest.mark.acceptance
def test_the_demo_shows_the_truth_beside_the_report(data: Data, tmp_path: Path) -> None:
    words = [FLOORIT, "demo", "--scale", "cpu", "--out", str(tmp_path / "run")]
    environ = clean_environment(FLOORIT_CASES=str(tmp_path))
    ended = subprocess.run(words, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=LONGEST)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "where a step's time went" in ended.stderr
    assert "the findings are as expected" in ended.stderr
    for fault in known(demo.DEFAULT).at("cpu"):
        assert f"{fault.file}:{fault.line}" in ended.stderr


@pytest.mark.acceptance
def test_the_demo_works_from_a_wheel(tmp_path: Path) -> None:
    """Installed into an environment of its own, beside the libraries of this one."""
    subprocess.run([PYTHON, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=LONGEST)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(CASES.parent)]
    installed = subprocess.run(pip, capture_output=True, text=True, timeout=LONGEST)
    if installed.returncode:
        pytest.skip(f"floorit cannot be installed: {installed.stderr[-300:]}")
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (packages / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    environ = clean_environment(FLOORIT_CASES=str(tmp_path / "cache"), VIRTUAL_ENV=str(tmp_path / "venv"))
    words = [str(python), "-m", "floorit", "demo", "--scale", "cpu"]
    ended = subprocess.run(words, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=LONGEST)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert "the findings are as expected" in ended.stderr
    assert "at its line" in ended.stderr or "at its function" in ended.stderr
