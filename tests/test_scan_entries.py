"""What an option, a field or a file gives a setting, and what an expression is by default."""

import ast
from pathlib import Path

import pytest

from floorit.declared import Value
from floorit.scan import files
from floorit.scan.project import Project
from floorit.scan.scan import scan
from floorit.scan.source import read


def project(folder: Path, **texts: str) -> Project:
    """Files by name, `train_py` being train.py."""
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Project([read(path) for path in files.python([folder])], files.configs([folder]))


def value(made: Project, expression: str) -> Value:
    """Of the first place in train.py that reads so."""
    source = next(source for source in made.sources if source.path.name == "train.py")
    nodes = source.all(ast.Attribute, ast.Subscript, ast.Call, ast.Name, ast.UnaryOp)
    return made.entries.value_of(source, next(node for node in nodes if ast.unparse(node) == expression))


@pytest.mark.parametrize(
    ("definition", "expression", "is_by_default"),
    [
        ("parser.add_argument('--log-every', type=int, default=1)", "args.log_every", 1),
        ("parser.add_argument('-l', '--log-every', type=int, default='5')", "opt.log_every", 5),
        ("parser.add_argument('--log-every', dest='every', default=3)", "args.every", 3),
        ("parser.add_argument('--amp', action='store_true')", "self.args.amp", False),
        ("parser.add_argument('--no-amp', action='store_false', dest='amp')", "not args.amp", False),
        ("parser.add_argument('--workers', type=int)", "args.workers", None),
        ("parser.add_argument('--workers', default=os.cpu_count())", "args.workers", None),
        ("parser.add_argument('--workers', default=4); parser.set_defaults(workers=8)", "args.workers", None),
        ("flags.DEFINE_integer('log_every', 2, 'steps')", "FLAGS.log_every", 2),
        ("@dataclass\nclass Config:\n    log_every: int = field(default=7)", "cfg.log_every", 7),
        ("@dataclass\nclass Config:\n    log_every: int = 7", "model.log_every", None),
        ("pass", "cfg.get('log_every', 9)", 9),
        ("pass", "getattr(args, 'log_every', 9)", 9),
    ],
)
def test_an_option_is_its_default(tmp_path: Path, definition: str, expression: str, is_by_default: Value) -> None:
    assert value(project(tmp_path, train_py=f"{definition}\nprint({expression})\n"), expression) == is_by_default


def test_a_file_that_the_code_names_gives_values_by_their_path(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="cfg = load('base.yaml')\nprint(cfg.log.interval, cfg['evaluation']['interval'], cfg.interval)\n",
        base_yaml="log: {interval: 1}\nevaluation:\n  interval: 15\n",
        other_yaml="log: {interval: 8}\n",
    )
    assert (value(made, "cfg.log.interval"), value(made, "cfg['evaluation']['interval']")) == (1, 15)
    assert value(made, "cfg.interval") is None
    assert [(entry.path.name, entry.line) for entry in made.entries.named("interval")] == [
        ("base.yaml", 1),
        ("base.yaml", 3),
    ]


def test_files_that_disagree_say_nothing_and_one_named_in_another_counts(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="print(cfg.lr, cfg.every, hyp['cache'], cfg.threads)\n",
        configs__a_yaml="lr: 0.1\nevery: 1\nhyp: data/scratch.json\nthreads: 1\n",
        configs__b_yaml="lr: 0.2\nevery: 1\nthreads: null\n",
        data__scratch_json='{"cache": true}',
    )
    assert [value(made, e) for e in ("cfg.lr", "cfg.every", "hyp['cache']", "cfg.threads")] == [None, 1, True, None]


def test_of_one_file_what_is_nearest_to_its_top_counts(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="open('opt.toml')\nprint(opt.every)\n",
        opt_toml="[all]\nevery = 1\n[variants.seldom]\nevery = 20\n",
    )
    assert value(made, "opt.every") == 1


def test_a_name_is_followed_to_what_it_is_set_to(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="""
parser.add_argument("--log-every", default=1)
LIMIT = 3
def train(args, given, changed):
    every = args.log_every
    changing = args.log_every
    changing += 1
    print(every, changing, LIMIT, given)
""",
    )
    assert [value(made, name) for name in ("every", "changing", "LIMIT", "given")] == [1, None, 3, None]


def test_what_the_program_sets_itself_outdoes_the_default(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="""
parser.add_argument("--workers", default=8)
parser.add_argument("--amp", default=True)
parser.add_argument("--every", default=1)
args = parser.parse_args()
args.workers = 0
args.amp = args.amp and torch.cuda.is_available()
if args.quick:
    args.every = 10
print(args.workers, args.amp, args.every)
""",
        test_py="args.every = 5\n",
    )
    assert [value(made, f"args.{name}") for name in ("workers", "amp", "every")] == [0, None, 1]


def test_options_of_another_program_do_not_count(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="parser.add_argument('--workers', default=8)\nprint(args.workers)\n",
        export_py="parser.add_argument('--workers', default=0)\n",
    )
    assert value(made, "args.workers") == 8


def test_folders_above_the_project_say_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "configs" / "project"
    folder.mkdir(parents=True)
    made = project(folder, train_py="print(cfg.every)\n", other_yaml="every: 1\n", conf__base_yaml="every: 2\n")
    assert [entry.path.name for entry in made.entries.named("every")] == ["base.yaml"]


def test_files_of_tools_and_data_are_left_alone(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        train_py="open('mkdocs.yml'), open('large.json')\nprint(cfg.every)\n",
        mkdocs_yml="every: 1\n",
        large_json='{"every": 1, "x": "' + "x" * 200_000 + '"}',
        elsewhere__annotations_json='{"every": 1}',
    )
    assert made.entries.named("every") == []


def test_what_an_interval_of_1_guards_runs_in_every_step_of_the_detector() -> None:
    found = scan([Path(__file__).parents[1] / "cases" / "detector"]).findings
    lines = {(Path(finding.file).name, finding.line, finding.code) for finding in found}
    assert {("train.py", 141, "item"), ("general.py", 79, "item"), ("plots.py", 15, "cpu-copy")} <= lines
