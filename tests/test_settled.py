"""`floorit try` and `run --with` turn a program's own settings: in its command, in a file, and never in the user's."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import FLOORIT, PYTHON, clean_environment

from floorit import sandbox

SCRIPT = """
import argparse
import json
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--cfg", default="c.json")
parser.add_argument("--eval-every", type=int, default=2)
args = parser.parse_args()
cfg = json.load(open("c.json"))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
train = DataLoader(TensorDataset(torch.randn(640, 32)), batch_size=8)
held = DataLoader(TensorDataset(torch.randn(2000, 32)), batch_size=50)
evaluated = saved = 0
for i, (x,) in enumerate(train, 1):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % args.eval_every == 0:
        evaluated += 1
        with torch.no_grad():
            print(sum(model(x).square().mean().item() for x, in held), file=sys.stderr)
    if i % cfg["save_every"] == 0:
        saved += 1
        torch.save(model.state_dict(), "last.pt")
print(evaluated, saved)
"""
CONFIG = '{"save_every": 4}\n'
RECIPE = """
[fixes]
eval-every = 5
checkpoint-every = 2

[[settings]]
fix = "eval-every"
was = 2
value = 10
name = "eval_every"
option = "--eval-every"
file = "train.py"
line = 12

[[settings]]
fix = "checkpoint-every"
was = 4
value = 8
name = "save_every"
file = "c.json"
line = 1
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT.lstrip())
    (tmp_path / "c.json").write_text(CONFIG)
    (tmp_path / "floorit.toml").write_text(RECIPE.replace("line = 12", f"line = {line_of('--eval-every')}"))
    return tmp_path


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(SCRIPT.lstrip().splitlines(), 1) if text in line)


def execute(program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Floorit, in the program's folder."""
    return subprocess.run(
        [FLOORIT, *words], cwd=program, env=clean_environment(), capture_output=True, text=True, check=False
    )


def overrides_of(program: Path) -> dict[str, Any]:
    return {o["code"]: o for o in json.loads((program / "out" / "report.json").read_text())["overrides"]}


def needs_mounts() -> None:
    if not sandbox.can_show():
        pytest.skip("no mount namespace here")


def test_a_run_with_settings_has_them_and_the_files_stay(program: Path) -> None:
    needs_mounts()
    plain = subprocess.run([PYTHON, "train.py"], cwd=program, capture_output=True, text=True, check=True)
    assert plain.stdout.split() == ["40", "20"]
    ended = execute(program, "run", "--with", "floorit.toml", "--out", "out", "--quiet", PYTHON, "train.py")
    assert (ended.returncode, ended.stdout.split()) == (0, ["8", "10"]), ended.stderr
    assert (program / "c.json").read_text() == CONFIG
    told = overrides_of(program)
    assert {code: told[code]["state"] for code in told} == dict.fromkeys(["eval-every", "checkpoint-every"], "in force")
    assert "save_every: 4 -> 8, in " in told["checkpoint-every"]["reason"]
    assert "eval_every: 2 -> 10" in told["eval-every"]["reason"]


def test_a_file_that_the_command_names_needs_no_mounts(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from floorit import recipe
    from floorit.verbs import settled

    monkeypatch.chdir(program)
    monkeypatch.setattr(sandbox, "can_show", lambda: False)
    wanted = recipe.read(Path("floorit.toml"))
    made = settled.settle([PYTHON, "train.py", "--cfg", "c.json"], wanted).written(program / "out")
    *first, copy, option, value = made.words
    assert [*first[-1:], option, value] == ["--cfg", "--eval-every", "10"]
    assert json.loads(Path(copy).read_text()) == {"save_every": 8}
    with pytest.raises(settled.UsageError, match="nothing here can show the program other settings"):
        settled.settle([PYTHON, "train.py"], wanted)


def test_a_setting_that_is_another_by_now_is_refused_before_anything_runs(program: Path) -> None:
    (program / "c.json").write_text('{"save_every": 5}\n')
    ended = execute(program, "run", "--with", "floorit.toml", "--out", "out", PYTHON, "train.py")
    assert ended.returncode == 2
    assert "c.json:1 does not say `save_every: 4` any more: has the patch been applied?" in ended.stderr
    assert not (program / "last.pt").exists()
    assert not (program / "out").exists()


def test_a_try_turns_a_setting_and_notes_what_it_turned(program: Path) -> None:
    few = ["--steps", "30", "--budget", "1s"]
    ended = execute(program, "try", "--fix", "eval-every=5", *few, "--out", "t", "--quiet", PYTHON, "train.py")
    assert ended.returncode == 0, ended.stderr
    trial = json.loads((program / "t" / "trial.json").read_text())
    (override,) = trial["overrides"]
    assert (override["code"], override["state"]) == ("eval-every", "in force")
    (turned,) = override["turned"]
    assert (turned["control"]["name"], turned["value"]) == ("eval_every", 10)
    assert trial["parity"]["status"] == "same"
