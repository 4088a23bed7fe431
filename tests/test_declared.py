"""What files and arguments declare: keys by their meaning, plain values, the right lines, and nothing else kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from floorit.declared import edit, files
from floorit.declared.gather import gather
from floorit.events import Process
from floorit.record.aliases import LARGEST, meaning


def process(*paths: Path, arguments: list[dict[str, Any]] | None = None, argv: list[str] | None = None) -> Process:
    """One that has noted these."""
    made = Process()
    made.facts = {"argv": argv or []}
    for path in paths:
        state = path.stat()
        made.configs.append({"path": str(path), "size": state.st_size, "modified": state.st_mtime_ns})
    made.arguments = arguments or []
    return made


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# -- keys -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "setting", "scope"),
    [
        ("num_workers", "num_workers", "train"),
        ("train.num_workers", "num_workers", "train"),
        ("DATASET.NUM_WORKERS", "num_workers", "train"),
        ("dataLoader.numWorkers", "num_workers", "train"),
        ("dataloader-num-workers", "num_workers", "train"),
        ("val.batch_size", "batch_size", "eval"),
        ("val_batch_size", "batch_size", "eval"),
        ("train.val_batch_size", "batch_size", "eval"),
        ("val.train_batch_size", "batch_size", "train"),
        ("per_device_train_batch_size", "batch_size", "train"),
        ("per_device_eval_batch_size", "batch_size", "eval"),
        ("cudnn.benchmark", "cudnn.benchmark", "train"),
        ("trainer.benchmark", "cudnn.benchmark", "train"),
        ("cudnn_benchmark", "cudnn.benchmark", "train"),
        ("fp16.enabled", "autocast", "train"),
        ("amp.enabled", "autocast", "train"),
        ("gradient_accumulation_steps", "accumulation", "train"),
    ],
)
def test_a_key_means_a_setting(key: str, setting: str, scope: str) -> None:
    found = meaning(key)
    assert found is not None
    assert found[:2] == (setting, scope)


@pytest.mark.parametrize(
    "key",
    [
        "benchmark",
        "data.benchmark",
        "api_key",
        "sample",
        "example",
        "enabled",
        "export.half",
        "serve.batch_size",
        "",
        ".",
    ],
)
def test_a_key_that_means_none(key: str) -> None:
    assert meaning(key) is None


# -- formats ----------------------------------------------------------------------------------------------------

YAML = """\
data: &data
  workers: 4   # of the loader
  path: /data
train:
  <<: *data
  lr: 1e-3
  amp: on
  layers: [1, 2]
  precision: 'bf16-mixed'
"""
JSON = '{\n\t"data": {\n\t\t"workers": 4, "name": "a: b"\n\t},\n\t"amp": false, "url": "http:\\/\\/x", "lr": 1e-3\n}\n'
TOML = """\
workers = 4
[train]
amp = false  # [not.a.table]
optim = {lr = 1e-3}
[train.data]
pin_memory = true
"""
INI = "[train]\nworkers: 4\nlr = 1e-3\n; amp = true\n[val]\nworkers = 2\n"
PYTHON = """\
import os
workers = 4
data = dict(
    samples_per_gpu=2,
    train=dict(type='X'),
)
train = {'lr': 1e-3,
         'amp': os.environ.get('AMP')}
seed: int = 7
fp16 = None
"""


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (".yaml", YAML, {"data.workers": (4, 2), "train.lr": (1e-3, 6), "train.amp": (True, 7)}),
        (".yml", YAML, {"train.precision": ("bf16-mixed", 9), "data.path": ("/data", 3)}),
        (".json", JSON, {"data.workers": (4, 3), "amp": (False, 5), "lr": (1e-3, 5), "data.name": ("a: b", 3)}),
        (".toml", TOML, {"workers": (4, 1), "train.amp": (False, 3), "train.optim.lr": (1e-3, 4)}),
        (".toml", TOML, {"train.data.pin_memory": (True, 6)}),
        (".ini", INI, {"train.workers": (4, 2), "train.lr": (1e-3, 3), "val.workers": (2, 6)}),
        (".py", PYTHON, {"workers": (4, 2), "data.samples_per_gpu": (2, 4), "train.lr": (1e-3, 7)}),
        (".py", PYTHON, {"seed": (7, 9), "fp16": (None, 10)}),
    ],
)
def test_values_and_lines(suffix: str, text: str, expected: dict[str, tuple[Any, int]]) -> None:
    found = {entry.key: (entry.value, entry.line) for entry in files.entries(text, suffix)}
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", "a: [1, 2"),
        (".yaml", "a: b: c"),
        (".yaml", "\0\1\2"),
        (".json", "{"),
        (".toml", "a = = 1"),
        (".ini", "no section = 1"),
        (".py", "def ("),
        (".py", "x = \0"),
        (".yaml", "[" * 5000),
        (".json", '{"a":' * 5000),
    ],
)
def test_what_is_broken_is_said_to_be(suffix: str, text: str) -> None:
    with pytest.raises(files.Unreadable):
        files.entries(text, suffix)


def test_a_few_lines_that_stand_for_billions_do_no_harm() -> None:
    lines = ["a0: &a0 {workers: 1}"] + [
        f"a{i}: &a{i} {{x: *a{i - 1}, y: *a{i - 1}, z: *a{i - 1}}}" for i in range(1, 40)
    ]
    assert len(files.entries("\n".join(lines), ".yaml")) == files.MOST_ENTRIES


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    there = tmp_path / "there"
    files.entries(f"import pathlib\npathlib.Path({str(there)!r}).touch()\n", ".py")
    files.entries(f"a: !!python/object/apply:os.mkdir [{str(there)!r}]\n", ".yaml")
    assert not there.exists()


# -- gathering --------------------------------------------------------------------------------------------------


def test_only_settings_are_kept(tmp_path: Path) -> None:
    text = "api_key: s3cret\npassword: 1234\nworkers: 4\ncompile: " + "s3cret" * 10 + "\n"
    told = gather([process(written(tmp_path, "c.yaml", text))])
    assert [(d.setting, d.value, d.at) for d in told.declarations] == [("num_workers", 4, f"{tmp_path}/c.yaml:3")]
    assert "s3cret" not in repr(told)


def test_a_file_is_read_once_for_all_ranks(tmp_path: Path) -> None:
    path = written(tmp_path, "c.yaml", "workers: 4\n")
    assert len(gather([process(path), process(path)]).declarations) == 1


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    gone, binary, broken, changed, grown = (tmp_path / f"{name}.yaml" for name in ("a", "b", "c", "d", "e"))
    binary.write_bytes(b"\xff\xfe\x00workers: 4")
    for path, text in ((gone, ""), (broken, "a: [" * 3), (changed, "workers: 4"), (grown, "a: 1")):
        path.write_text(text)
    noted = process(gone, binary, broken, changed, grown)
    gone.unlink()
    changed.write_text("workers: 40")
    grown.write_text("a" * (LARGEST + 1))
    told = gather([noted])
    assert told.declarations == []
    assert set(told.unread) == {str(path) for path in (gone, binary, broken, changed, grown)}
    assert "changed" in told.unread[str(changed)]


def test_a_mapping_below_fp16_asks_for_it(tmp_path: Path) -> None:
    asked = written(tmp_path, "a.py", "fp16 = dict(loss_scale=512.0)\n")
    refused = written(tmp_path, "b.json", '{"fp16": {"enabled": false, "loss_scale": 0}}')
    values = [[d.value for d in gather([process(path)]).declarations] for path in (asked, refused)]
    assert values == [[True], [False]]


def test_arguments_given_and_by_default() -> None:
    noted = [
        {"key": "workers", "option": "--workers", "value": 8, "given": True},
        {"key": "batch_size", "option": "--batch-size", "value": 32, "given": False},
        {"key": "amp", "option": "--amp", "value": False, "given": False},
    ]
    found = gather([process(arguments=noted, argv=["python", "x.py", "--workers", "9"])]).declarations
    assert [(d.setting, d.value, d.by) for d in found] == [
        ("num_workers", 8, "argument"),
        ("batch_size", 32, "default"),
    ]


@pytest.mark.parametrize(
    ("argv", "is_read"),
    [
        (["python", "train.py", "config/small.py", "--name=x"], True),
        (["python", "train.py", "--config=config/small.py"], True),
        (["python", "-m", "tools.train", "config/small.py"], True),
        (["python", "config/small.py"], False),  # that is the program itself
        (["python", "config/small.py", "-m", "resnet"], False),  # whatever its options are
        (["python", "train.py", "config/gone.py"], False),
        (["python", "train.py"], False),
    ],
)
def test_settings_in_python_that_a_command_names(tmp_path: Path, argv: list[str], is_read: bool) -> None:
    (tmp_path / "config").mkdir()
    path = written(tmp_path / "config", "small.py", "max_iters = 5000\nbatch_size = 64\n")
    made = process(argv=argv)
    made.facts["cwd"] = str(tmp_path)
    told = gather([made])
    assert {(d.setting, d.value, d.at) for d in told.declarations} == (
        {("max_steps", 5000, f"{path}:1"), ("batch_size", 64, f"{path}:2")} if is_read else set()
    )


def test_one_that_was_changed_since_the_program_began_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path, "small.py", "batch_size = 64\n")
    made = process(argv=["python", "train.py", str(path)])
    made.facts["wall"] = path.stat().st_mtime - 5
    assert gather([made]).declarations == []


def test_words_of_a_program_without_argparse() -> None:
    words = [
        "python",
        "x.py",
        "--workers=8",
        "data.batch_size=4",
        "+trainer.precision=bf16",
        "--no-amp",
        "--lr",
        "1e-3",
    ]
    words += ["-j", "5", "--api-key=1", "--compile"]
    found = gather([process(argv=words)]).declarations
    assert [(d.setting, d.value) for d in found] == [
        ("num_workers", 8),
        ("batch_size", 4),
        ("autocast", "bf16"),
        ("autocast", False),
        ("optimizer.lr", 1e-3),
        ("torch.compile", True),
    ]
    assert {d.by for d in found} == {"argument"}


# -- a value, changed in the text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "text", "line", "setting", "value", "wanted"),
    [
        (".yaml", "a: 1  # x\nworkers:   8   # of\n", 2, "num_workers", 2, "a: 1  # x\nworkers:   2   # of\n"),
        (".yaml", "cudnn_benchmark: No\r\nb: 1\r\n", 1, "cudnn.benchmark", True, "cudnn_benchmark: Yes\r\nb: 1\r\n"),
        (".yaml", "t: {batch: 16, workers: 8}\n", 1, "num_workers", 12, "t: {batch: 16, workers: 12}\n"),
        (".yaml", "w: \u00e9\nworkers: '8'", 2, "num_workers", 4, "w: \u00e9\nworkers: '4'"),
        (".json", '{\n\t"pin_memory": false,\n\t"x": 1}', 2, "pin_memory", True, '{\n\t"pin_memory": true,\n\t"x": 1}'),
        (".toml", "[data]\nworkers = 8 # of\n", 2, "num_workers", 2, "[data]\nworkers = 2 # of\n"),
        (".ini", "[data]\nworkers: 8\n", 2, "num_workers", 2, "[data]\nworkers: 2\n"),
        (".py", "d = dict(\n  workers=8, batch=2)\n", 2, "num_workers", 2, "d = dict(\n  workers=2, batch=2)\n"),
    ],
)
def test_a_value_is_changed_and_nothing_else(suffix, text, line, setting, value, wanted):
    assert edit.with_value(text, suffix, line, setting, value) == wanted


@pytest.mark.parametrize(
    ("suffix", "text", "line"),
    [
        (".yaml", "a: &w 8\nworkers: *w\n", 2),  # the value stands elsewhere, and others have it too
        (".yaml", "workers: 8\n", 2),
        (".yaml", "workers: [8\n", 1),
        (".py", "workers = cores()\n", 1),
        (".toml", "workers = 8\n[data]\nx = 1\n", 3),
    ],
)
def test_what_cannot_be_changed_alone_is_not(suffix, text, line):
    assert edit.with_value(text, suffix, line, "num_workers", 2) is None
