"""Switches for debugging and reproducing that are left on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.edits import remove
from floorit.scan.guards import When
from floorit.scan.heat import Place
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.settings import Unknown
from floorit.scan.source import argument, has_stars, is_constant, last_word

_CONVOLVES = re.compile(
    r"(?:Conv|ConvTranspose|LazyConv)[123]d|timm|resnet\w*|unet\w*|mmdet\w*|mmcv|LSTM|GRU"
    r"|segmentation_models_pytorch",
    re.IGNORECASE,
)
_IMAGES = re.compile(r"Conv[23]d|resnet\d+\w*")
_ONE_SIZE = re.compile(r"(?:Random|Center)?(?:Resized)?Crop|Resize|(?:image|img|crop|patch|input)_?size", re.IGNORECASE)
# What settles it otherwise: the switch itself, determinism, sizes that vary, frameworks that set it, small models.
_DECIDED = re.compile(
    r".*benchmark.*|.*deterministic.*|.*multi_?scale.*|RandomResize|ResizeShortestEdge|scales|nested_tensor\w*|pad_sequence|Lightning\w*|mmcv|mmengine|detectron2|\w*MNIST|gym\w*"
)
_ANY_LENGTH = re.compile(r"(?:\w+_)?lengths|pad_sequence|pack_padded_sequence")  # each would be searched for anew
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_PROFILERS = (
    "torch.profiler.profile",
    "torch.autograd.profiler.profile",
    "torch.autograd.profiler.emit_nvtx",
    "torch.cuda.profiler.profile",
)
_TRAINERS = ("Trainer", "Fabric")


def _anomaly(scene: Scene) -> Iterator[Match]:
    for call in scene.source.calling("set_detect_anomaly", "detect_anomaly", *_TRAINERS):
        name = scene.name(call.func)
        if name in ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"):
            mode = argument(call, "mode", 0)
            if _is_on(scene, mode) and _is_in_force(scene, call):
                yield Match(call, edits=scene.taken_out(call) if isinstance(mode, ast.Constant) else ())
        elif name in ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"):
            if _is_in_force(scene, call):
                yield Match(call)
        elif _is_trainer(scene, call) and _is_on(scene, argument(call, "detect_anomaly")):
            yield Match(call)


def _deterministic(scene: Scene) -> Iterator[Match]:
    node = next(_asked_for(scene), None)  # a program has it in several lines, for one reason
    if node is not None and _has_convolutions(scene):
        yield Match(node)


def _asked_for(scene: Scene) -> Iterator[ast.AST]:
    """Lines that ask for deterministic algorithms."""
    for assignment in _setting(scene, "deterministic"):
        if _is_on(scene, assignment.value) and _is_in_force(scene, assignment):
            yield assignment
    for call in scene.source.calling("use_deterministic_algorithms", *_TRAINERS):
        if scene.name(call.func) == "torch.use_deterministic_algorithms":
            is_on = _is_on(scene, argument(call, "mode", 0))
        else:
            is_on = _is_trainer(scene, call) and _is_on(scene, argument(call, "deterministic"))
        if is_on and _is_in_force(scene, call):
            yield call


def _benchmark_off(scene: Scene) -> Iterator[Match]:
    off = [assignment for assignment in _setting(scene, "benchmark") if is_constant(assignment.value, False)]
    if not off or not _has_convolutions(scene) or next(_asked_for(scene), None) is not None:
        return
    if any(program.names(_ANY_LENGTH) for program in scene.programs.of(scene.source)):
        return
    for assignment in off:
        if _is_in_force(scene, assignment):
            yield Match(assignment)
            return


def _launch_blocking(scene: Scene) -> Iterator[Match]:
    if _BLOCKING not in scene.source.words or not scene.programs.of(scene.source):
        return
    for assignment in scene.source.all(ast.Assign):
        target = assignment.targets[0]
        if (
            isinstance(target, ast.Subscript)
            and scene.name(target.value) == "os.environ"
            and is_constant(target.slice, _BLOCKING)
            and is_constant(assignment.value, "1")
            and _is_in_force(scene, assignment)
        ):
            yield Match(assignment, edits=(remove(assignment),))
    for call in scene.calls():
        is_set = scene.name(call.func) in ("os.environ.setdefault", "os.putenv") and len(call.args) == 2
        is_on = is_set and is_constant(call.args[0], _BLOCKING) and is_constant(call.args[1], "1")
        if is_on and _is_in_force(scene, call):
            yield Match(call, edits=scene.taken_out(call))


def _profiler(scene: Scene) -> Iterator[Match]:
    for block in scene.source.all(ast.With):
        for item in block.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and scene.name(call.func) in _PROFILERS and not has_stars(call):
                is_whole = argument(call, "schedule") is None and not _is_off(scene, argument(call, "enabled", 0))
                if is_whole and _holds_training(scene, block) and _is_in_force(scene, call):
                    yield Match(call)
    for call in scene.source.calling(*_TRAINERS):
        given = argument(call, "profiler")
        if _is_trainer(scene, call) and is_constant(given, "advanced", "pytorch") and _is_in_force(scene, call):
            yield Match(call)


def _sleeps(scene: Scene) -> Iterator[Match]:
    for call in scene.calls(Place.STEP):
        is_meant = scene.name(call.func) == "time.sleep" and not _is_polling(scene, call)
        if is_meant and (scene.asked or scene.heat.is_surely_in_step(scene.source, call)):
            yield Match(call, edits=scene.taken_out(call))


def _is_polling(scene: Scene, call: ast.Call) -> bool:
    """Whether it waits for something, in a `while` that does not train."""
    return any(isinstance(here, ast.While) and here not in scene.heat.loops for here in scene.source.around(call))


def _holds_training(scene: Scene, block: ast.With) -> bool:
    """Whether a loop that trains is inside, or in a function that is called there."""
    source = scene.source
    if any(loop in scene.heat.loops and block in source.around(loop) for loop in source.all(ast.For, ast.While)):
        return True
    return any(
        block in source.around(call) and any(map(scene.heat.holds_loop, scene.project.called(source, call)))
        for call in source.all(ast.Call)
    )


def _has_convolutions(scene: Scene) -> bool:
    programs = scene.programs.of(scene.source)
    return any(program.uses_gpu and program.names(_CONVOLVES) for program in programs)


def _setting(scene: Scene, name: str) -> Iterator[ast.Assign]:
    """Where cuDNN's switch of a name is set."""
    for assignment in scene.source.all(ast.Assign) if name in scene.source.words else ():
        if any(scene.name(target) == f"torch.backends.cudnn.{name}" for target in assignment.targets):
            yield assignment


def _is_trainer(scene: Scene, call: ast.Call) -> bool:
    name = scene.name(call.func)
    return name.split(".")[-1] in _TRAINERS and "lightning" in name


def _is_on(scene: Scene, value: ast.expr | None) -> bool:
    return scene.settings.value(scene.source, value) is True


def _is_off(scene: Scene, value: ast.expr | None) -> bool:
    """Whether it may be: an expression that can't be read is an option to switch it on."""
    if value is None:
        return False
    worth = scene.settings.value(scene.source, value)
    return isinstance(worth, Unknown) or not worth


def _is_in_force(scene: Scene, node: ast.AST) -> bool:
    """Whether a program that trains comes to it without being asked to."""
    if not scene.programs.of(scene.source) or not scene.settings.is_reached(scene.source, node):
        return False
    is_asked_for = _is_chosen(scene, node) or _is_parameter(scene, node)
    if is_asked_for or scene.heat.of(scene.source, node) is Place.EVALUATION:
        return False
    return all(when is When.ALWAYS for when in scene.heat.conditions(scene.source, node, scene.source.tree))


def _is_parameter(scene: Scene, node: ast.AST) -> bool:
    """Whether it waits for a parameter of its function, and what that is can't be told."""
    inside = scene.source.function(node)
    names = {given.arg for given in (*inside.args.args, *inside.args.kwonlyargs)} if inside is not None else set()
    tests = (here.test for here in scene.source.around(node) if isinstance(here, ast.If))
    asked = [test for test in tests if isinstance(test, ast.Name) and test.id in names]
    return any(isinstance(scene.settings.value(scene.source, test), Unknown) for test in asked)


def _is_chosen(scene: Scene, node: ast.AST) -> bool:
    """Whether its function is one of several in a dictionary, from which something else takes those that it needs."""
    inside = scene.source.function(node)
    if inside is None or isinstance(inside, ast.Lambda) or scene.heat.callers.get(scene.project.functions[inside]):
        return False
    tables = (table.values for table in scene.source.all(ast.Dict))
    return any(last_word(value) == inside.name for values in tables for value in values)


RULES = (
    Rule(
        code="anomaly",
        message="anomaly detection is on",
        costs="every operation notes where it was called, and each gradient is searched for NaN while the GPU waits",
        instead="take it out, or behind an option that is off by default",
        fix="anomaly",
        finding="debug-left-on",
        match=_anomaly,
    ),
    Rule(
        code="deterministic",
        message="deterministic algorithms are asked for",
        costs="the fastest convolutions and reductions are ruled out",
        instead="make it an option that is off by default",
        unsafe="runs must repeat bit for bit",
        risk="rounding",
        fix="deterministic",
        finding="compute-bound",
        match=_deterministic,
    ),
    Rule(
        code="benchmark-off",
        message="cuDNN is told not to look for the fastest convolution",
        costs="it takes one by a rule of thumb, which may be slower by a third",
        instead="`torch.backends.cudnn.benchmark = True`",
        unsafe="input sizes vary: each new one is searched for anew",
        risk="rounding",
        fix="cudnn-benchmark",
        finding="compute-bound",
        is_tentative=True,
        match=_benchmark_off,
    ),
    Rule(
        code="launch-blocking",
        message="every kernel is waited for (CUDA_LAUNCH_BLOCKING)",
        costs="host and GPU take turns, where they could work side by side",
        instead="take it out",
        fix="launch-blocking",
        finding="debug-left-on",
        match=_launch_blocking,
    ),
    Rule(
        code="profiler-left-on",
        message="a profiler is on for the whole of training",
        costs="every operation and kernel is noted, in memory too, for as long as the program runs",
        instead="give it a `schedule` of a few steps, or take it out",
        finding="debug-left-on",
        match=_profiler,
    ),
    Rule(
        code="sleeps",
        message="`time.sleep()` in every step",
        costs="the host does nothing for that long, and the GPU soon has nothing to do either",
        instead="take it out",
        unsafe="the pause is wanted: a limit on rate or heat",
        finding="python-bound",
        match=_sleeps,
    ),
)
