"""The model's parts: which are chosen, whose each moment is, and what whole runs say of stages of known cost."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
import torch
from conftest import FLOORIT, PYTHON, execute
from test_analyse_gpu import BASE, MS, WALL, Made
from torch import nn

from floorit import events
from floorit.analyse import iterations, ledger, parts, precision, trace
from floorit.record import parts as chooser
from floorit.record import wire

SCRIPT = str(Path(__file__).parent / "parts" / "planted.py")
STAGES = {"small": "stages.0", "large": "stages.1", "again": "again", "twice": "twice"}
UNNAMED = {"small": "Stage", "large": "Stage 2", "again": "Stage 3", "twice": "Stage 4"}  # where no model holds them
NODE = "autograd::engine::evaluate_function: "
TRAINER, ENGINE = 11, 12  # threads


def test_parts_have_what_their_modules_compute():
    """Paths of a model inside of a wrapper; what is no part's is the rest's."""
    of = [
        parts.Part(name=name, forward_seconds=1.0, backward_seconds=1.0, recompute_seconds=0.0, share=0.1)
        for name in ("stem", "stages.1", "stages.10", "rest")
    ]
    counted = {
        "DistributedDataParallel.module.stem": 1.0,
        "DistributedDataParallel.module.stages.1": 2.0,
        "DistributedDataParallel.module.stages.1.layers.0": 4.0,
        "DistributedDataParallel.module.stages.10.mlp": 8.0,
        "DistributedDataParallel.module.stages.2": 16.0,
        "": 32.0,
    }
    assert [part.flops for part in parts.with_flops(of, counted)] == [1.0, 6.0, 8.0, 48.0]


# -- whose work it is ----------------------------------------------------------------------------------------------


class Steps(Made):
    """A window of steps of 10 ms with operators in it."""

    def __init__(self, on_gpu=False, names=("a", "b")):
        super().__init__()
        self.operators, self.on_gpu, self.kept = [], on_gpu, []
        self.parts = [{"name": name, "class": "Stage", "count": 1, "parameters": 10} for name in names]

    def _operator(self, name, begin, end, lane, **args):
        shift = (WALL - BASE) / 1e3
        event = {"ph": "X", "cat": "cpu_op", "name": name, "tid": lane, "args": args}
        self.operators.append({**event, "ts": begin * 1e3 + shift, "dur": (end - begin) * 1e3})
        return self

    def part(self, number, begin, end, lane=TRAINER):
        return self._operator(wire.PART + str(number), begin, end, lane)

    def operator(self, sequence, begin, end, lane=TRAINER):
        return self._operator("aten::linear", begin, end, lane, **{"Sequence number": sequence, "Fwd thread id": 0})

    def node(self, sequence, begin, end, lane=TRAINER, thread=1):
        args = {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": thread}
        return self._operator(NODE + "LinearBackward", begin, end, lane, **args)

    def arrow(self, lane, to):
        """The engine's thread learns which thread has number 1: from the first operator of the backward pass."""
        shift, number = (WALL - BASE) / 1e3, {"id": 5, "cat": "fwdbwd", "name": "fwdbwd"}
        self._operator("LinearBackward", to, to + 0.01, ENGINE, **{"Sequence number": 9, "Fwd thread id": 1})
        self.operators.append({**number, "ph": "s", "tid": lane, "ts": 0.0})
        self.operators.append({**number, "ph": "f", "tid": ENGINE, "ts": to * 1e3 + shift})
        return self

    def kernel_by(self, launched, length, lane=TRAINER, name="some_kernel", operator=None):
        """A kernel that runs much later than it is launched."""
        self.kernel(launched + 100, launched + 100 + length, launched, name)
        self.calls[-1]["tid"] = lane
        if operator is not None:
            self.work[-1]["args"]["External id"] = operator
        return self

    def trace(self):
        seen = [*self.work, *self.calls, *self.operators]
        return trace.parse(json.dumps({"traceEvents": seen, "baseTimeNanoseconds": BASE}).encode())

    def window(self):
        return {**super().window(), "parts": self.parts, "left_out": 0, "on_gpu": self.on_gpu, "kept": self.kept}

    def examine(self, calls=None, **seconds):
        process = self.process()
        if calls is not None:
            process.calls = {"measured": self.window()["measured"]}
            calls = [(number, self.began + round(b * MS), self.began + round(e * MS)) for number, b, e in calls]
        entries = [
            ledger.Entry(phase=phase, seconds=value, share=0.0, gpu_seconds=None, where=[])
            for phase, value in seconds.items()
        ]
        usual = ledger.Ledger(mean=0.010, entries=entries, looks={})
        return parts.examine(process, iterations.find(process), self.window(), self.trace(), usual, calls)


def _rows(found):
    assert not isinstance(found, str), found
    return {
        part.name: tuple(
            None if s is None else round(s * 1e3, 3)
            for s in (part.forward_seconds, part.backward_seconds, part.recompute_seconds)
        )
        for part in found.parts
    }


def _passes(made):
    """Part a for 1 ms, b for 2 ms, an operator of nobody's; then their nodes: 4 ms of b, 3 ms of a."""
    made.part(0, 0, 1).operator(7, 0.1, 0.9)
    made.part(1, 1, 3).operator(8, 1.1, 2.9)
    made.operator(9, 3, 3.5)
    made.node(9, 4.1, 4.2).node(8, 4.2, 7.2).node(None, 7.2, 8.2).node(7, 8.2, 10)
    return made.host((wire.FORWARD, 3.6), (wire.LOSS, 4), (wire.BACKWARD, 10))


def test_the_hosts_time_is_whose_mark_or_node_it_is_in():
    found = _passes(Steps()).examine(forward=0.0036, backward=0.006)
    assert _rows(found) == {"a": (1, 1.8, 0), "b": (2, 4, 0), "rest": (0.6, 0.2, 0)}
    assert [part.share for part in found.parts] == pytest.approx([0.28, 0.6, 0.08])


def test_the_hosts_time_is_scaled_to_what_a_usual_step_takes():
    found = _passes(Steps()).examine(forward=0.0018, backward=0.003)
    assert _rows(found) == {"a": (0.5, 0.9, 0), "b": (1, 2, 0), "rest": (0.3, 0.1, 0)}


def test_a_pass_that_was_not_watched_is_in_the_rest():
    found = _passes(Steps()).examine(forward=0.0036, backward=0.006, recompute=0.002)
    assert _rows(found)["rest"] == (0.6, 0.2, 2)
    assert _rows(_passes(Steps()).examine([], forward=0.0036, backward=0.006))["a"] == (1, 1.8, 0)


def test_forward_times_are_those_of_calls_that_were_timed_without_operators():
    found = _passes(Steps()).examine([(0, 0.0, 2.0), (1, 2.0, 2.5)], forward=0.0036, backward=0.006)
    assert _rows(found) == {"a": (2, 1.8, 0), "b": (0.5, 4, 0), "rest": (1.1, 0.2, 0)}


def test_kernels_are_whose_launch_it_was_whenever_they_run():
    made = _passes(Steps(on_gpu=True))
    made.kernel_by(0.5, 20).kernel_by(2, 30).kernel_by(3.2, 5).kernel_by(5, 7).kernel_by(7.5, 1).kernel_by(9, 2)
    made.kernel_by(7.7, 50, name="ncclDevKernel_AllReduce").kernel_by(3.8, 99)  # the last is the loss's
    made.kept = [(made.began + MS, 0, 600), (made.began + 2 * MS, 1, 200), (made.began - MS, 1, 5000)]
    found = made.examine(forward=1.0, backward=1.0)
    assert _rows(found) == {"a": (20, 2, 0), "b": (30, 8, 0), "rest": (5, 50, 0)}
    assert [part.activation_bytes for part in found.parts] == [600, 200, None]


def test_the_operator_counts_and_not_cudas_own_clock():
    made = _passes(Steps(on_gpu=True))
    made.operators[1]["args"]["External id"] = 70  # the operator of part a
    made.kernel_by(1.5, 20, operator=70).kernel_by(1.6, 4, lane=99).kernel_by(2, 1)
    assert _rows(made.examine()) == {"a": (20, 0, 0), "b": (1, 0, 0), "rest": (4, 0, 0)}


def test_an_engine_of_its_own_finds_the_thread_that_made_its_nodes():
    made = Steps(on_gpu=True).part(0, 0, 1).operator(7, 0.1, 0.9).part(1, 1, 3).operator(9, 1.1, 2.9)
    made.operator(7, 3.5, 3.6, lane=ENGINE)  # of nobody's: it has the same number in another thread
    made.node(9, 4, 6, ENGINE).node(7, 6, 7, ENGINE).arrow(TRAINER, to=4.5)
    made.host((wire.FORWARD, 3.8), (wire.BACKWARD, 10))
    made.kernel_by(5, 3, ENGINE).kernel_by(6.5, 4, ENGINE)
    assert _rows(made.examine()) == {"a": (0, 4, 0), "b": (0, 3, 0), "rest": (0, 0, 0)}


def test_what_is_computed_again_is_its_own_column():
    made = Steps().part(0, 0, 1).operator(7, 0.1, 0.9).part(1, 1, 3).operator(8, 1.1, 2.9)
    made.node(8, 4, 7).part(1, 4.5, 6)  # called again inside of its own node
    made.node(7, 7, 9).operator(9, 7.5, 8).node(9, 8.2, 8.8)  # computed and gone back through, all inside of a node
    spans = (wire.FORWARD, 3), (wire.BACKWARD, 4.5), (wire.RECOMPUTE, 6), (wire.BACKWARD, 7.5), (wire.RECOMPUTE, 8)
    found = made.host(*spans, (wire.BACKWARD, 9)).examine(forward=0.003, backward=0.004, recompute=0.002)
    assert _rows(found) == {"a": (1, 1.5, 0.5), "b": (2, 1.5, 1.5), "rest": (0, 1, 0)}


def test_a_node_belongs_to_the_last_operator_up_to_its_number():
    made = Steps().part(0, 0, 1).operator(7, 0.1, 0.5).operator(9, 0.6, 0.9)  # the latter has made nothing
    made.part(1, 1, 3).operator(9, 1.1, 2.9)  # this has, and a second one
    made.node(10, 4, 5).node(9, 5, 6).node(8, 6, 9).host((wire.FORWARD, 3), (wire.BACKWARD, 10))
    assert _rows(made.examine(forward=0.003, backward=0.007))["b"] == (2, 2, 0)


def test_a_part_that_is_never_called_is_not_zero():
    found = _passes(Steps(names=("a", "b", "c"))).examine(forward=0.0036, backward=0.006)
    assert _rows(found)["c"] == (None, None, None)
    assert found.parts[2].share is None


def test_what_cannot_be_told_is_said():
    assert "no part" in Steps().operator(1, 0, 1).host((wire.FORWARD, 10)).examine()
    assert "backward" in Steps().part(0, 0, 1).host((wire.FORWARD, 10)).examine()


# -- types of numbers ----------------------------------------------------------------------------------------------


def test_kernels_compute_in_the_type_of_their_operators_first_floating_input():
    made = Steps(on_gpu=True)
    types = {
        1: ["c10::BFloat16", "float", "Scalar"],
        2: ["long int", "float"],
        3: ["TensorList", "Scalar"],
        4: ["", "c10::Half"],
    }
    for number, inputs in types.items():
        made._operator("aten::mm", number, number + 0.5, TRAINER, **{"External id": number, "Input type": inputs})
        made.kernel_by(number + 0.1, 10 * number, operator=number)
    made.copy(200, 900, 5).kernel_by(6, 50, name="ncclDevKernel_AllReduce")  # these compute nothing
    found = {of.dtype: of.share for of in precision.shares(made.trace())}
    assert found == pytest.approx({"float16": 0.4, "other": 0.3, "float32": 0.2, "bfloat16": 0.1})
    assert list(found) == ["float16", "other", "float32", "bfloat16"]


# -- which parts ---------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)


class Stage(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))


class Model(nn.Module):
    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


def _chosen(*models):
    found, left_out = chooser.choose(nn, list(models))
    return [part.facts(nn)["name"] for part in found] + [f"and {left_out} more"] * bool(left_out)


def test_parts_are_children_and_each_of_repeated_stages():
    flat = Model(stem=nn.Linear(2, 2), body=nn.Sequential(nn.Linear(2, 2), nn.ReLU()), head=nn.Linear(2, 2))
    assert _chosen(flat) == ["stem", "body", "head"]
    listed = Model(stem=nn.Linear(2, 2), stages=nn.ModuleList([Stage(2), Stage(3)]), head=nn.Linear(2, 2))
    assert _chosen(listed) == ["stem", "stages.0", "stages.1", "head"]
    assert _chosen(Model(module=listed)) == _chosen(listed)
    assert _chosen(Model(net=listed, loss=nn.MSELoss())) == [
        *("net.stem", "net.stages.0", "net.stages.1", "net.head", "loss"),
    ]
    deep = Model(encoder=Stage(3), decoder=Model(layers=nn.Sequential(Block(), Block())), head=nn.Linear(2, 2))
    assert _chosen(deep) == [*(f"encoder.blocks.{i}" for i in range(3)), "decoder.layers.0", "decoder.layers.1", "head"]
    assert _chosen(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) == ["0", "1"]


def test_stages_by_number_are_told_whole():
    """As they are in the video restoration transformer: seven of a class and a list."""
    numbered = {f"stage{i}": Stage(2) for i in range(1, 8)}
    model = Model(first=nn.Linear(2, 2), **numbered, stage8=nn.ModuleList(Block() for _ in range(6)))
    assert _chosen(model) == ["first", *numbered, "stage8"]
    [last] = [part.facts(nn) for part in chooser.choose(nn, [model])[0] if part.name == "stage8"]
    assert last == {"name": "stage8", "class": "ModuleList", "count": 6, "parameters": 6 * 12}


def test_there_are_not_too_many():
    many = nn.ModuleList(Block() for _ in range(chooser.MOST + 1))
    assert _chosen(Model(stem=nn.Linear(2, 2), layers=many)) == ["stem", "layers"]
    assert _chosen(nn.Sequential(*many, nn.ReLU()))[-1] == "and 2 more"
    assert len(_chosen(nn.Sequential(*many, nn.ReLU()))) == chooser.MOST + 1


def test_models_that_are_called_one_after_the_other_are_parts():
    net = Model(inner=Stage(2))
    assert _chosen(nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()) == ["Linear", "Linear 2", "ReLU"]
    assert _chosen(net, net.inner) == ["inner.blocks.0", "inner.blocks.1"]


@pytest.mark.parametrize(
    ("models", "has_graphs", "compilations", "said"),
    [
        ([nn.Sequential(nn.Linear(2, 2), nn.ReLU())], False, 0, None),
        ([nn.Linear(2, 2)], False, 0, "single part"),
        ([], False, 0, "no call"),
        ([nn.Sequential(nn.Linear(2, 2), nn.ReLU())], True, 0, "CUDA graph"),
        ([nn.Sequential(nn.Linear(2, 2), nn.ReLU())], False, 3, "torch.compile"),
        ([nn.Sequential(nn.Linear(2, 2, device="meta"), nn.Linear(2, 2))], False, 0, "cpu and meta"),
    ],
)
def test_where_parts_cannot_be_told_the_reason_is(models, has_graphs, compilations, said):
    reason = chooser.obstacle(torch, models, has_graphs, compilations)
    assert reason is None if said is None else said in reason


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_left_alone():
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert "TorchScript" in chooser.obstacle(torch, [model], False, 0)


# -- whole runs ----------------------------------------------------------------------------------------------------


class Recorded:
    """A run of the script, its own times beside the report's."""

    def __init__(self, folder, kind):
        folder.mkdir(exist_ok=True)
        self.out, own = folder / "out", folder / "times.json"
        command = [FLOORIT, "run", "--quiet", "--out", str(self.out), "--", PYTHON, SCRIPT]
        self.ran = execute(command, folder, KIND=kind, TIMES=str(own))
        assert self.ran.returncode == 0, self.ran.stderr.decode()
        self.stages = UNNAMED if kind == "methods" else STAGES
        self.report = json.loads((self.out / "report.json").read_text())
        self.own = json.loads(own.read_text())
        [self.process] = events.read_record(self.out / "record").run()

    def part(self, name):
        return next(part for part in self.report["parts"] if part["name"].endswith(name))

    def reasons(self):
        return [m["reason"] for m in self.report["missing"] if m["what"] == "parts"]

    def measured(self, phase):
        """Seconds a step that the script saw in the steps that floorit measured."""
        window = self.process.calls if phase == "forward" else self.process.parts
        begin, end = window["measured"]
        steps = {}
        for step, stage, which, began, ended in self.own:
            if which == phase and begin <= began and ended <= end:
                steps.setdefault(stage, {}).setdefault(step, []).append((ended - began) * 1e-9)
        return {stage: median(map(sum, steps[stage].values())) for stage in STAGES}

    def agrees(self, phase, *columns):
        own = self.measured(phase)
        told = {stage: sum(self.part(name)[column] for column in columns) for stage, name in self.stages.items()}
        for stage in STAGES:
            expected = own[stage] / sum(own.values())
            assert told[stage] / sum(told.values()) == pytest.approx(expected, rel=0.15), (phase, stage, told, own)

    def closes(self):
        """The parts and the rest are the ledger's passes."""
        for phase in ("forward", "backward", "recompute"):
            seconds = sum(entry["seconds"] for entry in self.report["ledger"] if entry["phase"] == phase)
            added = sum(part[f"{phase}_seconds"] or 0.0 for part in self.report["parts"])
            assert added == pytest.approx(seconds, rel=1e-6)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("plain"), "plain")


def test_parts_cost_what_the_script_measured(plain):
    plain.agrees("forward", "forward_seconds")
    plain.agrees("backward", "backward_seconds", "recompute_seconds")
    plain.closes()
    again = plain.part("again")
    assert again["recompute_seconds"] == pytest.approx(again["forward_seconds"], rel=0.6)
    assert not [part for part in plain.report["parts"] if part["recompute_seconds"] and part is not again]
    assert plain.part("unused")["forward_seconds"] is None
    assert plain.part("stages.1")["parameters"] == 8 * (256 * 256 + 256)
    rest = plain.report["parts"][-1]
    assert (rest["name"], rest["class"]) == ("rest", None)


def test_the_program_computes_what_it_would_and_no_step_of_the_windows_counts(plain, tmp_path):
    bare = execute([PYTHON, SCRIPT], tmp_path)
    assert plain.ran.stdout == bare.stdout
    assert plain.ran.stderr == bare.stderr
    counted = plain.report["step"]["seconds"]["n"]
    assert counted <= plain.report["run"]["steps"] - plain.report["run"]["warmup_steps"] - 2 * 3


@pytest.mark.acceptance
@pytest.mark.parametrize("kind", ["reentrant", "inside", "ddp", "methods"])
def test_parts_are_told_in_other_models_too(tmp_path, kind):
    ran = Recorded(tmp_path, kind)
    ran.agrees("forward", "forward_seconds")
    ran.agrees("backward", "backward_seconds", "recompute_seconds")
    ran.closes()
    assert ran.part(ran.stages["again"])["recompute_seconds"] > 0


@pytest.mark.acceptance
def test_compiled_models_are_left_alone(tmp_path):
    ran = Recorded(tmp_path, "compiled")
    assert ran.report["parts"] == []
    assert "torch.compile" in ran.reasons()[0]
