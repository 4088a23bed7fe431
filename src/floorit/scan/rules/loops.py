"""Python loops over the parts of a batch or of a picture, which tensors do in one operation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.heat import Place
from floorit.scan.kinds import Kind
from floorit.scan.project import OF_TENSORS
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import argument, dotted, last_word

# What a batch has several of, by the names of counts: of samples, of what is looked for in them, of pixels.
_SAMPLES = re.compile(r"b|bs|bsz|bsize|batch|batch_?size|n_?batch|num_?(?:samples|images|imgs)", re.IGNORECASE)
_OBJECTS = re.compile(
    r"(?:num|n)_?(?:joints|keypoints|kpts|landmarks|classes|class|cls|boxes|objs|objects|gts?|targets|rois|anchors)",
    re.IGNORECASE,
)
_PIXELS = re.compile(r"(?:\w+_)?(?:h|w|height|width|rows|cols|columns|hh|ww)", re.IGNORECASE)
_CHANGES = ("mul_", "add_", "sub_", "lerp_", "copy_", "addcmul_")
_TAKES_APART = ("split", "chunk", "unbind", "values", "items", "tensor_split")
_FEW = 16  # turns: a loop of fewer is over channels, corners or levels


class _Loop:
    """One that may be over the parts of something, and the name that says which part it is at."""

    def __init__(self, node: ast.For, counter: str, parts: tuple[str, ...] = ()) -> None:
        self.node = node
        self.counter = counter
        self.parts = parts  # names of what it is handed each time round


def _in_steps(scene: Scene) -> Iterator[Match]:
    covered: set[ast.AST] = set()
    for node in scene.source.all(ast.For):
        if node in scene.heat.loops or covered.intersection(scene.source.around(node)) or _names_parameters(node.iter):
            continue
        if scene.heat.of(scene.source, node.iter) is not Place.STEP:
            continue
        loop = _over_parts(scene, node)
        if loop is None or not (_computes(scene, loop) or _visits_pixels(scene, node)):
            continue
        if not _carries(loop.node) and not _goes_through_layers(scene, loop):
            covered.add(node)
            yield Match(node)


def _over_parameters(scene: Scene) -> Iterator[Match]:
    """The first of several such loops that follow each other."""
    if scene.kinds.trains_on_host(scene.source):
        return
    found = [node for node in scene.source.all(ast.For) if _names_parameters(node.iter) and _is_update(node)]
    ends = {(scene.source.parents[node], node.end_lineno) for node in found}
    for node in found:
        follows = (scene.source.parents[node], node.lineno - 1) in ends
        if not follows and scene.heat.is_surely_in_step(scene.source, node.iter) and not _is_optimizer(scene, node):
            yield Match(node)


def _is_optimizer(scene: Scene, node: ast.AST) -> bool:
    """Whether it stands in an optimizer of the project's own, of which there are several to choose from."""
    owners = [scene.project.classes[here] for here in scene.source.around(node) if isinstance(here, ast.ClassDef)]
    return any(name.split(".")[-1] == "Optimizer" for owner in owners for name in scene.project.ancestors(owner))


def _is_update(node: ast.For) -> bool:
    return any(_updates(part) for part in _inside(node))


def _names_parameters(node: ast.expr) -> bool:
    """Whether a loop goes through all parameters of a model, or of two side by side."""
    return any(
        isinstance(part, ast.Call) and last_word(part.func) in ("parameters", "named_parameters", "state_dict")
        for part in ast.walk(node)
    )


def _updates(node: ast.AST) -> bool:
    """`a.mul_(d).add_(b, alpha=1 - d)`, `a.copy_(d * a + …)`, `a.data = d * a.data + …`"""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES and bool(node.args)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Mult, ast.Sub, ast.Add)) and _holds_values(node.target)
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and _holds_values(node.targets[0])


def _holds_values(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _in_samples(scene: Scene) -> Iterator[Match]:
    covered: set[ast.AST] = set()
    for node in scene.source.all(ast.For):
        if covered.intersection(scene.source.around(node)):
            continue
        if scene.heat.of(scene.source, node.iter) is Place.SAMPLE and _visits_pixels(scene, node):
            covered.add(node)
            yield Match(node)


# -- what a loop is over ------------------------------------------------------------------------------------------


def _over_parts(scene: Scene, node: ast.For) -> _Loop | None:
    """A loop over the first dimension of a tensor, or over tensors side by side."""
    iterated, target = node.iter, node.target
    if isinstance(iterated, ast.Call) and last_word(iterated.func) == "enumerate" and iterated.args:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
            return None
        if not scene.kinds.is_on_device(scene.source, iterated.args[0]) or _is_result(scene, iterated.args[0]):
            return None
        return _Loop(node, target.elts[0].id, tuple(_names(target.elts[1])))
    if isinstance(iterated, ast.Call) and last_word(iterated.func) == "zip":
        on_device = [given for given in iterated.args if scene.kinds.is_on_device(scene.source, given)]
        is_sure = on_device and not any(_is_result(scene, given) for given in on_device)
        return _Loop(node, "", tuple(_names(target))) if is_sure else None
    if isinstance(iterated, ast.Call) and scene.name(iterated.func) == "range" and isinstance(target, ast.Name):
        return _Loop(node, target.id) if _is_count(scene, iterated) else None
    return None


def _is_count(scene: Scene, call: ast.Call) -> bool:
    """Whether a range goes once through the samples of a batch or the objects in it."""
    if len(call.args) != 1 and not (len(call.args) == 2 and _is_zero(call.args[0])):
        return False
    return _counts_parts(scene, call.args[-1])


def _counts_parts(scene: Scene, count: ast.expr) -> bool:
    name = last_word(count)
    if name and (_SAMPLES.fullmatch(name) or _OBJECTS.fullmatch(name)):
        return True
    if isinstance(count, ast.Name):
        made = scene.project.assigned(scene.source, count, count.id)
        return (made is not None and _is_first_size(scene, made)) or _is_unpacked_first(scene, count)
    return _is_first_size(scene, count)


def _is_first_size(scene: Scene, node: ast.expr) -> bool:
    """`x.shape[0]`, `x.size(0)`, `len(x)` of a tensor."""
    if isinstance(node, ast.Subscript) and last_word(node.value) == "shape" and isinstance(node.value, ast.Attribute):
        return _is_zero(node.slice)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        where = argument(node, "dim", 0)
        return where is not None and _is_zero(where)
    if scene.name(node.func) == "len" and len(node.args) == 1:
        return scene.kinds.is_on_device(scene.source, node.args[0]) and not _is_result(scene, node.args[0])
    return False


def _is_unpacked_first(scene: Scene, count: ast.Name) -> bool:
    """`count, channels = x.shape[:2]`"""
    inside = scene.source.function(count)
    for assignment in scene.source.all(ast.Assign):
        target = assignment.targets[0]
        if not isinstance(target, ast.Tuple) or scene.source.function(assignment) is not inside:
            continue
        if isinstance(target.elts[0], ast.Name) and target.elts[0].id == count.id:
            value = assignment.value
            value = value.value if isinstance(value, ast.Subscript) else value
            value = value.func if isinstance(value, ast.Call) else value
            return last_word(value) in ("shape", "size")
    return False


def _is_result(scene: Scene, node: ast.expr) -> bool:
    """Whether it is what a model returned, which may be a list: of levels, of layers."""
    if _is_taken_apart(scene, node):
        return True
    made = scene.project.assigned(scene.source, node, node.id) if isinstance(node, ast.Name) else node
    if not isinstance(made, ast.Call):
        return not isinstance(made, (ast.BinOp, ast.Compare))
    is_method = isinstance(made.func, ast.Attribute) and made.func.attr in OF_TENSORS
    is_operation = scene.name(made.func).startswith("torch.") or is_method
    return not is_operation or last_word(made.func) in _TAKES_APART


def _is_taken_apart(scene: Scene, node: ast.expr) -> bool:
    """`views = out.chunk(2)`, wherever in the function."""
    inside = scene.source.function(node)
    return isinstance(node, ast.Name) and any(
        isinstance(one.value, ast.Call)
        and last_word(one.value.func) in _TAKES_APART
        and any(isinstance(target, ast.Name) and target.id == node.id for target in one.targets)
        and scene.source.function(one) is inside
        for one in scene.source.all(ast.Assign)
    )


# -- and what is done in it ---------------------------------------------------------------------------------------


def _computes(scene: Scene, loop: _Loop) -> bool:
    """Whether it takes a part of a tensor each time round, and computes with it."""
    return any(_takes_part(scene, loop, node) or _uses_part(scene, loop, node) for node in _inside(loop.node))


def _takes_part(scene: Scene, loop: _Loop, node: ast.AST) -> bool:
    if not isinstance(node, ast.Subscript) or not loop.counter or _first_index(node) != loop.counter:
        return False
    if dotted(node.value).startswith("self."):
        return False
    kind = scene.kinds.of(scene.source, node.value)
    return kind is Kind.DEVICE or (kind is Kind.GIVEN and _is_used_as_tensor(scene, node))


def _is_used_as_tensor(scene: Scene, node: ast.Subscript) -> bool:
    """Whether what is done with a part is done with tensors only: `x[:, i]`, `x[i] - y[i]`, `x[i].mean()`."""
    around = scene.source.parents.get(node)
    if isinstance(node.slice, ast.Tuple) or isinstance(around, ast.BinOp):
        return True
    is_method = isinstance(around, ast.Attribute) and around.attr in OF_TENSORS
    is_given = isinstance(around, ast.Call) and scene.name(around.func).startswith("torch.")
    return is_method or is_given


def _uses_part(scene: Scene, loop: _Loop, node: ast.AST) -> bool:
    if not loop.parts or not isinstance(node, (ast.BinOp, ast.Call)) or _read(node).isdisjoint(loop.parts):
        return False
    return scene.kinds.is_on_device(scene.source, node)


def _visits_pixels(scene: Scene, node: ast.For) -> bool:
    """Whether a loop over rows has one over columns in it, and what is done there is done to one pixel."""
    if not _is_long_range(node) or not isinstance(node.target, ast.Name):
        return False
    for inner in _inside(node):
        if not isinstance(inner, ast.For) or not _is_long_range(inner) or not isinstance(inner.target, ast.Name):
            continue
        counters = {node.target.id, inner.target.id}
        if any(isinstance(part, ast.Subscript) and counters <= _indices(part) for part in _inside(inner)):
            return True
    return False


def _is_long_range(node: ast.For) -> bool:
    """Of as many turns as a picture has rows, as far as the names tell."""
    call = node.iter
    if not isinstance(call, ast.Call) or last_word(call.func) != "range" or len(call.args) not in (1, 2):
        return False
    end = call.args[0] if len(call.args) == 1 else call.args[1]
    if isinstance(end, ast.Constant):
        return isinstance(end.value, int) and end.value >= _FEW
    words = [last_word(part) for part in ast.walk(end) if isinstance(part, (ast.Name, ast.Attribute))]
    return any(_PIXELS.fullmatch(word) or word in ("shape", "size") for word in words)


def _carries(node: ast.For) -> bool:
    """Whether a turn needs what the one before has left: a recurrence, which is no habit."""
    was_set: set[str] = set()
    came_in: set[str] = set()  # names that a turn reads before it has set them
    for statement in node.body:
        came_in |= _read(statement) - was_set
        if isinstance(statement, ast.Assign) and not _adds_up(statement) and came_in.intersection(_names(statement)):
            return True
        was_set.update(_names(statement))
    return False


def _adds_up(statement: ast.Assign) -> bool:
    """`total = total + …`, which can be summed at once."""
    value = statement.value
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and dotted(value.left) == dotted(statement.targets[0])
    )


def _goes_through_layers(scene: Scene, loop: _Loop) -> bool:
    """Whether each turn calls another part of a model: `self.heads[i](x)`."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Subscript)
        and loop.counter
        and loop.counter in _indices(part.func)
        for part in _inside(loop.node)
    )


def _inside(node: ast.For) -> Iterator[ast.AST]:
    for statement in node.body:
        yield from ast.walk(statement)


def _indices(node: ast.Subscript) -> set[str]:
    """Names that say which one is meant."""
    if any(isinstance(part, ast.Slice) and (part.lower or part.upper) for part in ast.walk(node.slice)):
        return set()
    return {part.id for part in ast.walk(node.slice) if isinstance(part, ast.Name)}


def _first_index(node: ast.Subscript) -> str:
    """The name by which a subscript takes one part of a dimension."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return next((index.id for index in indices if isinstance(index, ast.Name)), "")


def _names(target: ast.AST) -> list[str]:
    """Those that it sets."""
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _read(node: ast.AST) -> set[str]:
    """Names that it reads."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


RULES = (
    Rule(
        code="python-loop-in-step",
        message="a Python loop over the parts of a tensor, in every step",
        costs="the GPU is done with each small operation before Python has asked for the next",
        instead="do all parts in one operation: broadcast, index with a tensor, `torch.vmap`, pad and mask",
        unsafe="sums are then made in another order",
        risk="rounding",
        finding="python-bound",
        match=_in_steps,
    ),
    Rule(
        code="update-per-parameter",
        message="parameters are updated one by one in every step",
        costs="a few small operations for each of hundreds of tensors: the GPU waits for Python to ask for them",
        instead="all at once: `torch._foreach_lerp_` and its like, an optimizer of torch's, `AveragedModel`",
        finding="launch-bound",
        match=_over_parameters,
    ),
    Rule(
        code="python-loop-in-sample",
        message="a Python loop over the pixels of every sample",
        costs="a picture of 256 x 256 takes 65536 turns of the interpreter",
        instead="compute the whole array at once: `np.arange(h)[:, None]` against `np.arange(w)[None, :]`",
        unsafe="sums are then made in another order",
        risk="rounding",
        finding="input-bound",
        is_tentative=True,
        match=_in_samples,
    ),
)
