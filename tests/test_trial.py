"""`floorit try`: what is compared, how a trial ends, what is said of it, and that nothing is left behind."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import yaml
from conftest import FLOORIT, PYTHON, clean_environment

from floorit import cli, commandline
from floorit.errors import OutputError, UsageError
from floorit.fixes import ALL, asked
from floorit.fixes.values import Value
from floorit.record import wire
from floorit.report import terminal
from floorit.stats import Estimate
from floorit.trial import arms, configs, store, verdict
from floorit.trial.arms import AS_IS, Arm
from floorit.trial.attempt import Result, to_json
from floorit.trial.runner import Runner
from floorit.trial.state import Round, State
from floorit.trial.table import reasons, render
from floorit.trial.trial import Override, Pair, Trial, pair

COMMAND = ["train.py", "--workers", "1", "--lr=0.1", "data.size=8"]


# -- what is asked for -----------------------------------------------------------------------------------------------


def test_fixes_are_read_with_their_values():
    texts = ["workers=8", "amp=bf16", "deterministic=off", "pin=on"]
    assert asked.parse(texts) == {"workers": 8, "amp": "bf16", "deterministic": False, "pin": True}
    assert asked.written(asked.parse(texts)) == texts


@pytest.mark.parametrize("texts", [["wokers=8"], ["workers=2", "workers=4"], ["workers=2,4"], ["workers="]])
def test_fixes_that_make_no_sense_are_refused(texts):
    with pytest.raises(UsageError):
        asked.parse(texts)


def names(fixes: list[str], vary: list[str], **how: Any) -> list[str]:
    made = arms.make(COMMAND, fixes, vary, each=how.get("each", False), risk=how.get("risk"))
    assert made[0] == Arm(name=AS_IS, command=COMMAND)
    return [arm.name for arm in made[1:]]


def test_changes_are_tried_together_or_each_by_itself():
    both = ["workers=2,4", "amp=bf16"]
    assert names(both, []) == ["workers=2 amp=bf16", "workers=4 amp=bf16"]
    assert names(both, [], each=True) == ["workers=2", "workers=4", "amp=bf16"]
    assert names(["pin"], ["--lr {1,2}"]) == ["pin=on --lr 1", "pin=on --lr 2"]
    assert names([], ["--lr {1,2}", "--fast"], each=True) == ["--lr 1", "--lr 2", "--fast"]
    with pytest.raises(UsageError):
        names([], [])


def test_what_follows_a_bare_flag_stays():
    command = ["train.py", "--workers", "--data", "/d"]
    assert arms.substitute(command, ["--workers", "2"]) == ["train.py", "--workers", "2", "--data", "/d"]


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--workers", "4"], ["train.py", "--workers", "4", "--lr=0.1", "data.size=8"]),
        (["--lr", "3"], ["train.py", "--workers", "1", "--lr=3", "data.size=8"]),
        (["data.size=9"], ["train.py", "--workers", "1", "--lr=0.1", "data.size=9"]),
        (["--fast"], [*COMMAND, "--fast"]),
        (["--new", "a", "b"], [*COMMAND, "--new", "a", "b"]),
        (
            ["--workers", "2", "--prefetch", "4"],
            ["train.py", "--workers", "2", "--lr=0.1", "data.size=8", "--prefetch", "4"],
        ),
        (["data.size=9", "data.kind=b"], ["train.py", "--workers", "1", "--lr=0.1", "data.size=9", "data.kind=b"]),
        (["--shift", "-1", "--lr", "-2"], ["train.py", "--workers", "1", "--lr=-2", "data.size=8", "--shift", "-1"]),
    ],
)
def test_an_argument_takes_the_place_of_its_own_and_else_comes_last(words, changed):
    assert arms.substitute(COMMAND, words) == changed


def test_the_risk_is_that_of_the_riskiest():
    assert arms.riskiest({"pin": None}) == "exact"
    assert arms.riskiest({"pin": None, "amp": "bf16"}) == "rounding"
    assert arms.riskiest({"amp": "bf16", "workers": 2}) == "order"
    (_, arm) = arms.make(COMMAND, [], ["--lr 1"], each=False, risk=None)
    assert arm.risk == "training"
    (_, arm) = arms.make(COMMAND, [], ["--lr 1"], each=False, risk="exact")
    assert arm.risk == "exact"


def test_an_entry_of_a_file_is_changed_in_a_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = "# mine\nlr: 0.1\naugment:\n  mosaic: 1.0\n  flip: 0.5\n"
    Path("hyp.yaml").write_text(own)
    command = [PYTHON, "-c", "import sys; print(open(sys.argv[1].split('=')[1]).read()); sys.exit(1)", "--cfg=hyp.yaml"]
    made = arms.make(command, [], ["hyp.yaml:augment.mosaic={0.0,0.5}"], each=False, risk=None)
    assert [arm.name for arm in made[1:]] == ["hyp.yaml:augment.mosaic=0.0", "hyp.yaml:augment.mosaic=0.5"]
    said = Path(Runner(tmp_path / "try", None, lambda: None)(made[2]).said or "").read_text()
    assert yaml.safe_load(said) == {"lr": 0.1, "augment": {"mosaic": 0.5, "flip": 0.5}}
    assert Path("hyp.yaml").read_text() == own


@pytest.mark.parametrize("own", [None, "7"])
def test_trials_hash_texts_alike(tmp_path, monkeypatch, own):
    """Else a program that goes through a set trains in another order each time; what the user asks for stays."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    command = [PYTHON, "-c", "import os, sys; print(os.environ['PYTHONHASHSEED'], hash('cat')); sys.exit(1)"]
    arm = arms.make(command, ["pin"], [], each=False, risk=None)[0]
    run = Runner(tmp_path / "try", None, lambda: None)
    first, again = (Path(run(arm).said or "").read_text() for _ in range(2))
    assert first == again
    assert first.startswith("1 " if own is None else "7 ")


DRAWS = """
import random
drawn = [random.random()]
import numpy
drawn.append(numpy.random.rand())
import torch
drawn.append(torch.rand(()).item())
random.seed(5), numpy.random.seed(5), torch.manual_seed(5)
print(drawn, "then", random.random(), numpy.random.rand(), torch.rand(()).item())
raise SystemExit(1)
"""


def test_what_a_program_draws_unseeded_is_the_same_in_trials(tmp_path):
    first, again = (Path(run(tmp_path, DRAWS).said or "").read_text() for _ in range(2))
    assert first == again
    plain, once_more = (
        subprocess.run([PYTHON, "-c", DRAWS], capture_output=True, text=True, check=False).stdout for _ in range(2)
    )
    assert plain != once_more
    assert first.partition("then")[2] == plain.partition("then")[2]  # what it seeds itself is its own


@pytest.mark.parametrize(
    ("typed", "meant"), [("1e-3", 0.001), ("0.5", 0.5), ("true", True), ("off", False), ("*.png", "*.png"), ("a", "a")]
)
def test_a_value_is_meant_as_in_a_file(tmp_path, monkeypatch, typed, meant):
    monkeypatch.chdir(tmp_path)
    Path("hyp.yaml").write_text("lr: 1\n")
    found = configs.entry(f"hyp.yaml:lr={typed}", ["train.py", "hyp.yaml"])
    assert found.value == meant


@pytest.mark.parametrize("text", ["hyp.yaml:mosiac=0", "hyp.yaml:lr.deep=0", "other.yaml:lr=0"])
def test_an_entry_that_is_not_there_or_a_file_that_is_not_named_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    for name in ("hyp.yaml", "other.yaml"):
        Path(name).write_text("lr: 0.1\n")
    with pytest.raises(UsageError):
        arms.make(["train.py", "hyp.yaml"], [], [text], each=False, risk=None)


def test_what_became_of_a_fix_is_read_from_the_record(tmp_path):
    told = wire.note("process", pid=1, host="h")
    more = {"pid": 1, "acted": 0, "opposed": False, "asked": None, "place": None}
    told += wire.note("override", code="pin", value=True, state="not met", reason="no GPU", **more)
    script = f"import os; open(os.environ['FLOORIT_RECORD'] + '/a.rec', 'wb').write({told!r})"
    found = run(tmp_path, script, fixes={"pin": True, "fused": True}).overrides
    assert found == [Override(code="pin", value=True, state="not met", reason="no GPU")]


def test_no_fix_is_in_the_way_of_what_keeps_losses(tmp_path):
    values = {fix.code: fix.takes.default for fix in ALL if fix.takes is not None}
    fixes: dict[str, Value] = {**values, "workers": 2, "context": "spawn", "bucket-mb": 50, "amp": "fp16"}
    found = run(tmp_path, "import torch\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()", fixes=fixes)
    assert found.losses == [[2.0]]
    assert {override.code for override in found.overrides} == set(fixes)
    assert not [o for o in found.overrides if "could not be installed" in (o.reason or "")]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("20", 20), ("1.5m", 90)])
def test_a_budget_is_a_time(text, seconds):
    assert commandline.seconds(text) == seconds


@pytest.mark.parametrize(
    ("given", "own", "command"),
    [
        ("try --fix workers=8 --each train.py --fix x", "try --fix=workers=8 --each", "train.py --fix x"),
        ("try --fix=pin --vary --fast -- bash run.sh", "try --fix=pin --vary=--fast", "bash run.sh"),
        ("try --budget 5m --steps 9 --out d -m pkg", "try --budget=5m --steps=9 --out=d", "-m pkg"),
        ("run --steps 9 train.py -- --x", "run --steps=9", "train.py -- --x"),
    ],
)
def test_our_words_end_where_the_command_begins(given, own, command):
    assert commandline.split(given.split()) == (own.split(), command.split())


def test_a_try_of_nothing_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    assert cli.main(["try", "train.py"]) == 2
    assert cli.main(["try", "--fix", "wokers=2", "train.py"]) == 2
    assert cli.main(["try", "--fix", "workers=2"]) == 2
    assert [line.split("[")[-1] for line in capsys.readouterr().err.splitlines()] == ["usage]"] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


# -- trials that do not run well -------------------------------------------------------------------------------------


def run(folder: Path, script: str, limit: float = 60.0, fixes: dict[str, Value] | None = None) -> Trial:
    path = folder / "train.py"
    path.write_text(script)
    runner = Runner(folder / "try", None, lambda: None)
    runner.limit = limit
    return runner(Arm(name="b", command=[PYTHON, str(path)], fixes=fixes or {}))


def test_a_crash_is_a_result_with_the_programs_own_words(tmp_path):
    trial = run(tmp_path, "print('hello')\nraise ValueError('no such backbone')")
    assert (trial.state, trial.exit_code) == ("failed", 1)
    assert trial.last[-1] == "ValueError: no such backbone"
    assert "hello" in Path(trial.said or "").read_text()
    assert not list((tmp_path / "try").rglob("record"))


def test_a_program_that_never_trains_is_no_trial(tmp_path):
    assert run(tmp_path, "pass").state == "untrained"


def test_a_trial_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    started = time.monotonic()
    trial = run(
        tmp_path,
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n",
        limit=2.0,
    )
    assert trial.state == "hung"
    assert time.monotonic() - started < 30
    assert _is_gone(int(trial.last[0]))


def test_what_a_trial_leaves_running_is_ended(tmp_path):
    trial = run(
        tmp_path,
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "sys.exit(3)\n",
    )
    assert trial.exit_code == 3
    assert _is_gone(int(trial.last[0]))


def _is_gone(pid: int) -> bool:
    for _ in range(50):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


# -- what is said ----------------------------------------------------------------------------------------------------


def trial(arm: str, pace: float, *, losses: float | None = 1.0, count: int = 30, warmup: int = 3, **more: Any) -> Trial:
    """One whose steps take `pace` seconds, after a slower start."""
    lengths = [3 * pace] * warmup + [pace] * (count - warmup)
    starts = [sum(lengths[:at]) for at in range(count)]
    course = [[losses * (0.9**at + 1) for at in range(count)]] if losses is not None else []
    facts: dict[str, Any] = {"state": "ran", "seconds": 10 + starts[-1], "starts": starts, "warmup": warmup}
    return Trial(arm=arm, losses=course, **{**facts, **more})


def state(b: Trial | list[Trial], **arm: Any) -> State:
    """Six pairs, and a machine with 1 % of noise."""
    wobble = (1.0, 1.01, 0.995, 1.0, 1.005, 0.99)
    many = b if isinstance(b, list) else [b] * len(wobble)
    made = State(cwd="", arms=[Arm(name=AS_IS, command=["x"]), Arm(name="b", command=["x"], **arm)], steps=20)
    made.pilot = trial(AS_IS, 0.1)
    made.alike = [Round(trials=[trial(AS_IS, 0.1), trial(AS_IS, 0.1005)])] * 2
    for factor, one in zip(wobble, many, strict=True):
        made.rounds.append(Round(trials=[trial(AS_IS, 0.1 * factor), one]))
    return made


def said(made: State) -> verdict.Outcome:
    (outcome,) = verdict.outcomes(made, lambda arm: Estimate(value=1.75, low=1.5, high=2.0, n=9))
    return outcome


def test_a_faster_arm_with_the_same_losses():
    outcome = said(state(trial("b", 0.05)))
    assert outcome.verdict == "faster"
    assert outcome.parity.status == "same"
    assert outcome.speedup is not None
    assert outcome.speedup.low < 2 < outcome.speedup.high
    assert outcome.speedup.n == 6


@pytest.mark.parametrize(("pace", "word"), [(0.1, "not faster"), (0.12, "not faster")])
def test_an_arm_that_gains_nothing(pace, word):
    outcome = said(state(trial("b", pace)))
    assert outcome.verdict == word
    assert ("slower" in outcome.reason) == (pace > 0.1)


def test_an_arm_whose_pairs_disagree_is_unclear():
    assert said(state([trial("b", pace) for pace in (0.05, 0.2, 0.08, 0.1, 0.15, 0.06)])).verdict == "unclear"


def test_faster_with_other_losses_is_changed_results():
    outcome = said(state(trial("b", 0.05, losses=1.001)))
    assert outcome.verdict == "changed results"
    assert outcome.speedup is not None  # it is told all the same


def test_faster_without_losses_says_that_it_is_unverified():
    outcome = said(state(trial("b", 0.05, losses=None)))
    assert (outcome.verdict, outcome.parity.status) == ("faster", "unverified")
    assert "unverified" in outcome.reason


def test_losses_that_are_no_numbers_are_a_failure():
    good = trial("b", 0.05)
    broken = msgspec.structs.replace(good, losses=[[*good.losses[0][:10], None, *good.losses[0][11:]]])
    assert said(state(broken)).verdict == "failed"


def test_a_trial_that_crashed_is_a_failure_with_its_words():
    crashed = Trial(
        arm="b", state="failed", seconds=3.0, reason="the GPU ran out of memory", last=["boom"], said="x.txt"
    )
    made = state(trial("b", 0.05))
    made.rounds[0] = Round(trials=[trial(AS_IS, 0.1), crashed])
    outcome = said(made)
    assert (outcome.verdict, outcome.reason) == ("failed", "the GPU ran out of memory")
    assert outcome.failure == verdict.Failure(reason="the GPU ran out of memory", last=["boom"], said="x.txt")


@pytest.mark.parametrize(
    ("overrides", "word"),
    [
        ([Override(code="pin", state="in force")], "faster"),
        ([Override(code="pin", state="not met", reason="no CUDA")], "does not apply"),
        ([Override(code="pin", state="failed", reason="it raised")], "failed"),
        ([], "failed"),  # nothing was heard of it: then nothing was shown
    ],
)
def test_a_fix_that_was_not_in_force_proves_nothing(overrides, word):
    assert said(state(trial("b", 0.05, overrides=overrides), fixes={"pin": None})).verdict == word


def test_a_fix_that_met_nothing_says_so_in_words():
    idle = trial("b", 0.05, overrides=[Override(code="pin", state="not met")])
    assert said(state(idle, fixes={"pin": None})).reason == "pin: the program never did what it would change"


def test_what_both_sides_have_does_not_hide_that_a_fix_met_nothing():
    """A search tries one more fix on a program that has others."""
    told = [Override(code="workers", state="in force"), Override(code="pin", state="not met", reason="no CUDA")]
    made = state(trial("b", 0.05, overrides=told), fixes={"workers": 2, "pin": True})
    assert said(made).verdict == "faster"
    made.arms[0] = msgspec.structs.replace(made.base, fixes={"workers": 2})
    assert said(made).verdict == "does not apply"


def test_steps_that_a_scaler_skipped_are_told() -> None:
    outcome = said(state(trial("b", 0.05, skipped=0.25)))
    assert (outcome.skipped.a, outcome.skipped.b) == (None, 0.25)
    told = "steps that the GradScaler skipped: as it is it has no GradScaler, 25.0% with it"
    assert told in reasons(outcome)
    assert not any("GradScaler" in line for line in reasons(said(state(trial("b", 0.05, skipped=0.0)))))


def test_both_are_measured_over_the_same_steps():
    """What one does every tenth step is in both, or in neither, however many steps each was given."""
    lengths = [0.1 + (0.5 if at % 10 == 9 else 0.0) for at in range(60)]
    starts = [sum(lengths[:at]) for at in range(60)]
    long = Trial(arm=AS_IS, state="ran", seconds=20.0, starts=starts, warmup=2)
    short = Trial(arm="b", state="ran", seconds=20.0, starts=starts[:35], warmup=7)
    found = pair(long, short, "ab")
    assert isinstance(found, Pair)
    assert found.log_ratio == 0.0
    assert found.steps == 34 - 7


def test_other_batches_are_compared_by_the_sample():
    found = pair(trial(AS_IS, 0.1, samples=8.0), trial("b", 0.1, samples=16.0), "ab")
    assert isinstance(found, Pair)
    assert found.a / found.b == pytest.approx(2.0)


def test_what_compiling_costs_stands_apart_with_the_steps_after_which_it_pays():
    """60 seconds more at the start, 0.05 s less a step."""
    slow = trial("b", 0.05)
    slow = trial("b", 0.05, seconds=slow.seconds + 60)
    outcome = said(state(slow))
    assert outcome.verdict == "faster"
    assert outcome.startup.pays_after == pytest.approx(60 / 0.05, rel=0.02)


def test_trial_json_has_the_names_of_the_contract():
    outcome = said(state(trial("b", 0.05)))
    result = Result(command=["x"], outcomes=[outcome], steps=20, trials=17, seconds=99.0, interrupted=False, folder="f")
    whole = json.loads(to_json(result))
    for name in ("fixes", "pairs", "noise", "speedup", "predicted", "verdict", "parity", "memory"):
        assert name in whole
    assert set(whole["pairs"][0]) >= {"a", "b", "order"}
    assert set(whole["speedup"]) == set(whole["predicted"]) == {"value", "low", "high", "n"}
    assert whole["others"] == []


def test_the_table_says_it_all():
    outcome = said(state(trial("b", 0.05)))
    result = Result(
        command=["x"],
        outcomes=[outcome],
        steps=20,
        trials=17,
        seconds=99.0,
        interrupted=False,
        folder="f",
    )
    heard = io.StringIO()
    terminal.draw(render(result), heard)
    gain = outcome.speedup
    assert gain is not None
    row = next(line for line in heard.getvalue().splitlines() if line.startswith("b "))
    measured = f"{gain.value:.2f} ({gain.low:.2f} to {gain.high:.2f})"
    assert all(word in row for word in ("faster", measured, "1.75", "the same"))


def test_a_try_goes_on_only_with_the_same_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = arms.make(COMMAND, ["workers=2"], [], each=False, risk=None)
    begun = store.resume(tmp_path, made, None)
    begun.pilot = trial(AS_IS, 0.1)
    store.save(tmp_path, begun)
    assert store.resume(tmp_path, made, None) == begun
    with pytest.raises(OutputError):
        store.resume(tmp_path, arms.make(COMMAND, ["workers=4"], [], each=False, risk=None), None)


# -- the whole -------------------------------------------------------------------------------------------------------

PROGRAM = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--work", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.01)
given = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=given.lr)
inputs = torch.randn(64, 16)
much = torch.randn(300, 300)
for step in range(10**9):
    for _ in range(given.work):
        much @ much
    loss = model(inputs).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        torch.save(model.state_dict(), "last.pt")
"""


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(PROGRAM)
    command = [FLOORIT, "try", "--steps", "40", "--out", "try", *words, "--", PYTHON, "train.py"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=clean_environment())


@pytest.mark.acceptance
def test_a_true_change_is_found_and_the_users_files_are_left_alone(tmp_path):
    child = begin(tmp_path, "--vary", "--work {5}", "--budget", "4m", "--risk", "exact")
    _, heard = child.communicate(timeout=600)
    assert child.returncode == 0, heard
    whole = json.loads((tmp_path / "try" / "trial.json").read_text())
    assert whole["verdict"] == "faster", heard
    assert 1.5 < whole["speedup"]["value"] < 2.2
    assert whole["parity"]["status"] == "same"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py", "try"]
    assert not list((tmp_path / "try" / "trials").rglob("*.rec"))


@pytest.mark.acceptance
def test_ctrl_c_says_what_there_is_and_a_second_call_goes_on(tmp_path):
    with begin(tmp_path, "--vary", "--lr {0.02}", "--budget", "10m") as child:
        assert child.stderr is not None
        for line in child.stderr:
            if "round 2" in line:
                break
        child.send_signal(signal.SIGINT)
        heard = child.stderr.read()
    assert child.returncode == 130
    assert "interrupted" in heard
    first = json.loads((tmp_path / "try" / "trial.json").read_text())
    assert len(first["pairs"]) == 1
    assert not [p for p in psutil.process_iter(["environ"]) if str(tmp_path) in str(p.info["environ"])]
    again = begin(tmp_path, "--vary", "--lr {0.02}", "--budget", "30s")
    again.communicate(timeout=600)
    second = json.loads((tmp_path / "try" / "trial.json").read_text())
    assert second["pairs"][0] == first["pairs"][0]
