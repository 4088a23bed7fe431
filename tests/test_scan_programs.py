"""Which files run together as a program, what a setting is worth by default, and which loaders feed training."""

import ast
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from floorit.scan.devices import Devices
from floorit.scan.heat import Heat
from floorit.scan.loaders import Loaders
from floorit.scan.programs import Program, Programs
from floorit.scan.project import Project
from floorit.scan.scan import scan
from floorit.scan.settings import UNKNOWN, Settings
from floorit.scan.source import read

LOOP = "for x in data:\n    model(x).backward()\n    optimizer.step()\n"
TRAIN = f"def train(data, model, optimizer):\n    {LOOP.replace(chr(10), chr(10) + '    ').rstrip()}\n"


class Read:
    """A little project."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self.sources = {name: read(folder / name) for name in files}
        self.names = {source: name for name, source in self.sources.items()}
        self.project = Project(list(self.sources.values()))
        self.heat = Heat(self.project)
        self.settings = Settings(self.project, self.heat)
        self.programs = Programs(self.project, self.heat, self.settings, Devices(self.project, self.heat))
        self.loaders = Loaders(self.project, self.heat, self.settings, self.programs)

    def reach(self, program: Program) -> set[str]:
        return {self.names[source] for source in program.sources}

    def last_value(self, name: str = "main.py") -> object:
        """Of the last statement, which is an expression."""
        source = self.sources[name]
        statement = source.tree.body[-1]
        assert isinstance(statement, ast.Expr)
        return self.settings.value(source, statement.value)


Reader = Callable[[dict[str, str]], Read]


@pytest.fixture(name="project")
def of_files(tmp_path: Path) -> Reader:
    return lambda files: Read(tmp_path, files)


def test_a_program_is_a_file_that_is_run_with_what_it_imports(project: Reader) -> None:
    seen = project(
        {
            "tools/main.py": "from engine import train\nimport models\ntrain()\n",
            "tools/test.py": "from engine import train\n",
            "tools/other.py": "x = 1\n",
            "lib/engine.py": "from . import steps\n" + TRAIN,
            "lib/steps.py": "",
            "lib/config/models.py": "",
            "lib/config/__init__.py": "",
            "lib/models/__init__.py": "",
        }
    )
    (program,) = seen.programs.all
    assert seen.reach(program) == {"tools/main.py", "lib/engine.py", "lib/steps.py", "lib/models/__init__.py"}
    assert program.is_sure
    assert seen.programs.of(seen.sources["tools/other.py"]) == []


def test_a_file_that_imports_by_a_made_up_name_may_reach_all(project: Reader) -> None:
    seen = project(
        {
            "main.py": "import importlib\nif __name__ == '__main__':\n    importlib.import_module('models.' + name)\n",
            "models/one.py": TRAIN,
            "models/two.py": "",
        }
    )
    (program,) = seen.programs.all
    assert not program.is_sure
    assert seen.reach(program) == set(seen.sources)


@pytest.mark.parametrize(
    ("loop", "several"),
    [
        ("for epoch in range(10):\n    train()\n", True),
        ("for epoch in range(args.epochs):\n    train()\n", True),
        ("for epoch in range(args.once):\n    train()\n", False),
        ("train()\n", False),
    ],
)
def test_passes_over_the_data(project: Reader, loop: str, several: bool) -> None:
    options = "parser.add_argument('--epochs', default=9)\nparser.add_argument('--once', default=1)\n"
    seen = project({"main.py": f"{options}{TRAIN}{loop}"})
    assert seen.programs.all[0].takes_several_passes is several


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("a = 4\na", 4),
        ("a = 4\na = 5\na", UNKNOWN),
        ("p.add_argument('--num-workers', type=int, default=4)\nargs.num_workers", 4),
        ("p.add_argument('-j', '--workers', default=2)\nargs.workers", 2),
        ("p.add_argument('--amp', action='store_true')\nargs.amp", False),
        ("p.add_argument('--amp', action='store_true')\nnot args.amp", True),
        ("p.add_argument('--no-amp', dest='amp', action='store_false')\nargs.amp", True),
        ("p.add_argument('--seed', type=int)\nargs.seed is not None", False),
        ("p.add_argument('--seed', required=True)\nargs.seed", UNKNOWN),
        ("class Args:\n    deterministic: bool = True\nArgs().deterministic", True),
        ("_C = CN()\n_C.WORKERS = 4\ncfg.WORKERS", 4),
        ("import torch\ntorch.backends.cudnn.benchmark = True\nargs.benchmark", UNKNOWN),
        ("cfg.get('close_tf32', False)", False),
        ("cfg.get('close_tf32')", None),
        ("p.add_argument('--close', default=True)\ngetattr(args, 'close', False)", True),
        ("p.add_argument('--a', default=1)\nargs.a > 0 and args.b", UNKNOWN),
        ("p.add_argument('--a', default=0)\nargs.a > 0 and args.b", False),
        ("p.add_argument('--a', default=1)\nargs.a > 0 or args.b", True),
        ("p.add_argument('--a', default='')\na = [] if not args.a else args.a.split()\nlen(a)", 0),
        ("p.add_argument('--a', default='x')\na = [] if not args.a else args.a.split()\nlen(a)", UNKNOWN),
        ("p.add_argument('--gpus', default='0,1')\nlen(args.gpus)", UNKNOWN),
        ("a = []\na.append(1)\nlen(a)", UNKNOWN),
        ("def f(b=None):\n    return b\na = [] if f() is None else f()\nlen(a)", UNKNOWN),
        ("p.add_argument('--do_train', action='store_true')\nargs.do_train", True),
        ("p.add_argument('--train', type=bool, default=False)\nargs.train", True),
        ("p.add_argument('--train_again', action='store_true')\nargs.train_again", False),
    ],
)
def test_what_a_setting_is_worth_by_default(project: Reader, text: str, value: object) -> None:
    assert project({"main.py": text + "\n"}).last_value() is value


def test_a_parameter_is_worth_what_every_caller_gives(project: Reader) -> None:
    text = "def make(n=2, m=3):\n    return [n, m]\nmake(4)\nmake(n=4, m=5)\n"
    seen = project({"main.py": text})
    source = seen.sources["main.py"]
    (pair,) = source.all(ast.List)
    assert [seen.settings.value(source, part) for part in pair.elts] == [4, UNKNOWN]


def test_a_line_behind_an_option_that_is_off_is_not_reached(project: Reader) -> None:
    text = (
        "p.add_argument('--seed', type=int)\n"
        "def fix():\n    mark(1)\n"
        "def never():\n    mark(2)\n"
        "if args.seed is not None:\n    fix()\n    mark(3)\n"
        "else:\n    mark(4)\n"
        "mark(5)\n"
    )
    seen = project({"main.py": text})
    source = seen.sources["main.py"]
    marks = [call for call in source.all(ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "mark"]
    reached = {call.args[0].value for call in marks if seen.settings.is_reached(source, call)}  # type: ignore[attr-defined]
    assert reached == {4, 5}


@pytest.mark.parametrize(
    ("made", "trains"),
    [
        ("train_loader = DataLoader(data)", True),
        ("val_loader = DataLoader(data, shuffle=True)", False),
        ("loader = DataLoader(val_set, shuffle=True)", False),
        ("loaders = dict(train=DataLoader(data), test=1)", True),
        ("loaders = dict(test=DataLoader(data, shuffle=True))", False),
        ("loader = DataLoader(data, shuffle=True)", True),
        ("loader = DataLoader(data, shuffle=False)", False),
        ("loader = DataLoader(data)", False),
        ("data = DataLoader(things)", True),  # the loop goes through it
        ("loader = DataLoader(MNIST(train=False), shuffle=True)", False),
        ("def val_dataloader():\n    return DataLoader(data, shuffle=True)", False),
        ("if split == 'test':\n    loader = DataLoader(data, shuffle=True)", False),
    ],
)
def test_which_loaders_feed_training(project: Reader, made: str, trains: bool) -> None:
    seen = project({"main.py": f"from torch.utils.data import DataLoader\n{made}\n{LOOP}"})
    (loader,) = seen.loaders.of(seen.sources["main.py"])
    assert loader.trains is trains


def test_callers_of_callers_are_asked_once_each(tmp_path: Path) -> None:
    """Eight functions, each called from six places in the next: six to the power of eight ways to the last."""
    lines = ["import torch", "", "", "def f0(flag=False):", "    if flag:", "        torch.cuda.synchronize()"]
    for number in range(1, 9):
        lines += ["", "", f"def f{number}(flag=False):", *[f"    f{number - 1}(flag)"] * 6]
    lines += ["", "", "model = torch.nn.Linear(4, 1).cuda()", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"]
    lines += ["for step in range(4):", "    model(torch.randn(8, 4).cuda()).mean().backward()", "    optimizer.step()"]
    (tmp_path / "train.py").write_text("\n".join([*lines, "    f8(False)", ""]))
    with mock.patch.object(Settings, "value", autospec=True, side_effect=Settings.value) as value:
        assert [f.code for f in scan([tmp_path]).findings if f.code == "synchronize"] == []
    assert 0 < value.call_count < 1000
