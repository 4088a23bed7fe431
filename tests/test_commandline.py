"""What is answered to words that make no sense, and to a program that never trained."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import simulation

from floorit import cli, commandline
from floorit.analyse.input import watched_batches
from floorit.analyse.supply import Supply
from floorit.report import sentences
from floorit.stats import Estimate


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rnu train.py --lr 0.1", "floorit run train.py --lr 0.1"),
        ("train.py --lr 0.1", "floorit run train.py --lr 0.1"),
        ("python -m pkg.train", "floorit run python -m pkg.train"),
        ("reprot run1", "floorit report run1"),
        ("tuen train.py", "floorit tune train.py"),
    ],
)
def test_a_mistyped_verb_is_answered_with_what_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(typed.split()) == 2
    assert f"did you mean `{meant}`?" in capsys.readouterr().err


@pytest.mark.parametrize("name", commandline.VERBS)
def test_every_verb_has_its_help_and_something_that_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb = commandline.VERBS[name]
    assert callable(getattr(importlib.import_module(verb.module), verb.function))
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0
    assert "--lang" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert f"    {name} " in capsys.readouterr().out


def test_only_what_a_verb_needs_is_imported() -> None:
    """`floorit scan` must not wait for what reads records."""
    script = (
        "import sys, floorit.cli as c; c.commandline.parser('scan'); import floorit.scan.command; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not {"numpy", "psutil", "jinja2", "libcst", "floorit.events", "floorit.fixes"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("code", "summary", "said"),
    [
        (1, "No Python process that imports torch was seen", "ended with exit code 1 before it trained"),
        (1, "torch was imported but never trained", "ended with exit code 1 before it trained"),
        (0, "No Python process that imports torch was seen", "Is this the command that trains?"),
        (0, "torch was imported but never trained", "inference has none"),
    ],
)
def test_the_likely_reason_comes_first(code: int, summary: str, said: str) -> None:
    report: Any = SimpleNamespace(program=SimpleNamespace(exit_code=code), summary=summary)
    assert said in sentences.hint_untrained(report).partition(". ")[0].replace("trains? If it is", "trains?")


# -- the loader's figures


def test_of_a_dataset_that_returns_whole_batches_a_sample_is_one_of_them() -> None:
    """Two calls of 0.4 s that each return 64 samples and load one file of 0.1 s."""
    load = ["numpy.load", None, 1, 0.1, [], None, None]
    note = {
        "pid": 7,
        "at": 1.0,
        "seconds": 0.4,
        "samples": 1,
        "calls": [load],
        "files": {},
        "read": None,
        "threads": {},
    }
    loader = {"id": 1, "workers": 2}
    process: Any = SimpleNamespace(
        trained_iterators=lambda: [1], loaders_of=lambda _: [loader], iterators={1: {"pids": [7]}}, key=("host", 1)
    )
    shared: Any = SimpleNamespace(operations=[note, note])
    found = watched_batches(process, shared, in_item=64)
    assert found is not None
    assert found.sample_seconds == pytest.approx(0.4 / 64)
    [operation] = found.operations
    assert (operation.calls, operation.seconds.value) == pytest.approx((1 / 64, 0.1 / 64))
    assert operation.share == pytest.approx(0.25)


def supply(now: float, alone: float, limit: str = "cores") -> Supply:
    return Supply(now=now, alone=alone, rates=[], saturates_at=1, limit=limit, cores=2.0, cpu_known=True)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (supply(8.84, 796.0), "by itself could give about 796 samples/s; both together have cores for about 8.84"),
        (supply(9.0, 796.0, "receiving"), "by itself could give about 796 samples/s; beside the training about 9.00"),
        (supply(35.5, 35.5), "by itself could give about 35.5 samples/s"),
    ],
)
def test_what_the_loader_could_give_is_not_what_the_cores_leave_of_it(of: Supply, said: str) -> None:
    assert "; ".join(sentences._of_supply(of, 1)).endswith(said)


@pytest.mark.parametrize(("ranks", "said"), [(1, "the training takes 800"), (4, "each rank takes 200")])
def test_a_ranks_loader_stands_beside_what_the_rank_takes(ranks: int, said: str) -> None:
    pace = Estimate(value=800.0, low=800.0, high=800.0, n=10)
    workers = simulation.workers(simulation.Program(host={"forward": 0.01}, batch=0.01, workers=1), 0.01)
    workers = msgspec.structs.replace(workers, supply=supply(250.0, 250.0))
    run: Any = SimpleNamespace(samples_per_second=pace, ranks=ranks)
    assert sentences.of_data_path(workers, run)[0] == f"{said} samples/s"
