"""The program's own settings behind a cost: which conditions pace a line, and where what they divide by is given."""

from pathlib import Path

import pytest

from floorit.analyse import controls
from floorit.declared import Control
from floorit.events import Place, Sample
from floorit.record import wire
from floorit.scan.finding import Finding, Paced, Result
from floorit.scan.scan import of_run

LOOP = """
for step, batch in enumerate(loader):
    model(batch).backward()
    optimizer.step()
"""
CONFIG = "log:\n  interval: 10\nplot_every: 3\n"


def read(folder: Path, text: str, **files: str) -> Result:
    """What reading a program says, as after its run; `cfg_yaml` is configs/cfg.yaml, which it has opened."""
    (folder / "configs").mkdir()
    paths = [folder / "train.py", *(folder / "configs" / name.replace("_", ".") for name in files)]
    for path, said in zip(paths, (text, *files.values()), strict=True):
        path.write_text(said)
    return of_run(map(str, paths))


# -- what paces a line


@pytest.mark.parametrize(
    ("before", "test", "given"),
    [
        ("", "step % cfg.plot_every == 0", ("plot_every", 3, "cfg.yaml", 3)),
        ("", "not step % cfg['plot_every']", ("plot_every", 3, "cfg.yaml", 3)),
        ("", "(step + 1) % cfg.log.interval == 0 and is_first", ("log.interval", 10, "cfg.yaml", 2)),
        ("every, other = cfg.plot_every, 1", "step % every == 0 or step == 7", ("plot_every", 3, "cfg.yaml", 3)),
        ("EVERY = 50", "step % EVERY == 0", ("EVERY", 50, "train.py", 1)),
        ("", "step % 20 == 0", ("", 20, "train.py", 5)),
        (
            "parser.add_argument('--print-freq', default=5)",
            "step % args.print_freq == 0",
            ("print_freq", 5, "train.py", 1),
        ),
        ("", "step % max(1, cfg.plot_every) == 0", ("plot_every", 3, "cfg.yaml", 3)),
        ("", "step % cfg.plot_every != 0", None),  # that is what is done most of the time
        ("", "'%s' % cfg.plot_every == 'x'", None),
        ("", "step % len(loader) == 0", None),
    ],
)
def test_a_condition_leads_to_the_setting(
    tmp_path: Path, before: str, test: str, given: tuple[str, object, str, int] | None
) -> None:
    text = f"{before}{LOOP}    if {test}:\n        print(step)\n        draw(batch)\n"
    found = read(tmp_path, text, cfg_yaml=CONFIG)
    assert not found.problems
    blocks = [(b.lines, [(c.name, c.value, Path(c.file).name, c.line) for c in b.controls]) for b in found.paced]
    assert blocks == ([((6, 7), [given])] if given is not None else [])


def test_a_setting_is_followed_through_objects_and_parameters(tmp_path: Path) -> None:
    text = """
class Trainer:
    def __init__(self, cfg, every=4):
        self.interval, self.every = cfg["log"]["interval"], every

    def log(self, step):
        if step % self.interval == 0:
            print(step)
        if step % self.every == 0:
            print(step)


def save(step, every):
    if step % every:
        return
    torch.save(step, "last.pt")


trainer = Trainer(load("configs/cfg.yaml"))
save(3, every=cfg.plot_every)
"""
    blocks = read(tmp_path, text, cfg_yaml=CONFIG).paced
    assert [(b.lines, [(c.name, c.value) for c in b.controls]) for b in blocks] == [
        ((8, 8), [("log.interval", 10)]),
        ((10, 10), [("every", 4)]),
        ((16, 16), [("plot_every", 3)]),
    ]


def test_switches_of_recomputing_are_known_by_their_names(tmp_path: Path) -> None:
    config = "MODEL:\n  use_checkpoint_attn: true\n  checkpoint: last.pt\nwith_cp: false\nuse_checkpoint: weights.pt\n"
    text = f"parser.add_argument('--gradient-checkpointing', action='store_true')\n{LOOP}"
    found = read(tmp_path, text, cfg_yaml=config).recomputing
    assert [(c.name, c.value) for c in found] == [
        ("use_checkpoint_attn", True),
        ("with_cp", False),
        ("gradient_checkpointing", False),
    ]


# -- what is behind a cost


def block(first: int, last: int, *names: str) -> Paced:
    found = [Control(name=name, value=1, file="/p/cfg.yaml", line=at) for at, name in enumerate(names, 1)]
    return Paced(file="/p/train.py", lines=(first, last), controls=found)


def look(*lines: int, file: str = "/p/train.py") -> Sample:
    stack = tuple(Place(file, line, "f", "user") for line in lines)
    return Sample(0.0, wire.OTHER, 0, stack[0], stack[0], stack=stack)


def found(
    paced: list[Paced], *command: str, lines: tuple[int, ...] = (), **looks: list[Sample]
) -> dict[str, list[str]]:
    of_source = [
        Finding(
            **dict.fromkeys(("message", "costs", "instead", "when", "unsafe", "text", "function"), ""),
            code="log-per-step",
            file="/p/train.py",
            line=line,
            column=1,
            lines=(line, line),
            risk="exact",
            fixable=False,
        )
        for line in lines
    ]
    switches = [Control(name="use_checkpoint", value=False, file="/p/cfg.yaml", line=9)]
    made = controls.find(looks, of_source, paced, switches, ["train.py", *command])
    return {code: [f"{c.name}={c.value} {c.option or c.line}" for c in some] for code, some in made.items()}


def test_each_cost_has_the_settings_around_its_looks_and_those_of_lines_that_log() -> None:
    paced = [
        block(10, 19, "plot_every"),
        block(20, 20, "log_every"),
        block(30, 30, "items_every"),
        block(40, 49, "val"),
    ]
    looks = {
        "logging": [look(80, 20)] + [look(90, 12)] * 2 + [look(12, file="/p/other.py")],
        "eval": [look(5, 44, 12)],
        "forward": [look(30)],
    }
    assert found(paced, lines=(30, 99), **looks) == {
        "log-every": ["plot_every=1 1", "log_every=1 1", "items_every=1 1"],
        "eval-every": ["val=1 1"],
    }


def test_a_function_of_the_loop_has_what_paces_it() -> None:
    paced = [block(10, 19, "metrics_every"), block(30, 30, "rarely")]
    assert found(paced, other=[look(12)] * 5) == {"python-bound": ["metrics_every=1 1"]}


def test_the_innermost_condition_counts() -> None:
    paced = [block(10, 40, "outer"), block(20, 21, "inner")]
    assert found(paced, checkpoint=[look(20)]) == {"checkpoint-every": ["inner=1 1"]}


def test_the_command_line_outdoes_a_file() -> None:
    given = found([block(10, 10, "log_every")], "--log-every=8", "--use-checkpoint", "--x", logging=[look(10)])
    assert given == {"log-every": ["log_every=8 --log-every"], "recompute": ["use_checkpoint=True --use-checkpoint"]}


def test_a_switch_that_is_off_is_not_named() -> None:
    assert found([], other=[look(1)]) == {}
