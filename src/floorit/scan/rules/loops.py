"""Python loops over the parts of a batch or of a picture, which tensors do in one operation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.heat import Place
from floorit.scan.kinds import Kind
from floorit.scan.project import OF_TENSORS, Class
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import dotted, last_word, walk

# What a batch has several of, by the names of counts: of samples, of what is looked for in them, of pixels.
_SAMPLES = re.compile(r"b|bs|bsz|bsize|batch|batch_?size|n_?batch|num_?(?:samples|images|imgs)", re.IGNORECASE)
_OBJECTS = re.compile(
    r"(?:num|n)_?(?:joints|keypoints|kpts|landmarks|classes|class|cls|boxes|objs|objects|gts?|targets|rois|anchors)",
    re.IGNORECASE,
)
_COUNTERS = re.compile(
    r"b|bs|bid|b_?(?:i|id|idx|ind|index)|(?:batch|bs|img|image|sample)_?(?:i|id|idx|ind|index|num)", re.IGNORECASE
)
_PIXELS = re.compile(r"(?:\w+_)?(?:h|w|height|width|rows|cols|columns|hh|ww)", re.IGNORECASE)
_CHANGES = ("mul_", "add_", "sub_", "lerp_", "copy_", "addcmul_")
_FEW = 16  # turns: a loop of fewer is over channels, corners or levels


class _Loop:
    """One that may be over the parts of something, and the name that says which part it is at."""

    def __init__(self, node: ast.For, counter: str) -> None:
        self.node = node
        self.counter = counter


def _in_steps(scene: Scene) -> Iterator[Match]:
    covered: set[ast.AST] = set()
    for node in scene.source.all(ast.For):
        if node in scene.heat.loops or covered.intersection(scene.source.around(node)) or _names_parameters(node.iter):
            continue
        if scene.heat.of(scene.source, node.iter) is not Place.STEP:
            continue
        loop = _over_parts(scene, node)
        if loop is None or not (_computes(scene, loop) or _visits_pixels(node)):
            continue
        if not _carries(loop.node) and not _goes_through_layers(scene, loop) and not _calls_own_operation(scene, node):
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
        for part in walk(node)
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
        if scene.heat.of(scene.source, node.iter) is Place.SAMPLE and _visits_pixels(node):
            covered.add(node)
            yield Match(node)


# -- what a loop is over ------------------------------------------------------------------------------------------


def _over_parts(scene: Scene, node: ast.For) -> _Loop | None:
    """A loop through the samples of a batch or the objects in it, as the count or the counter is called, or through two
    dimensions of a tensor: of other things, layers, heads, views, there are few."""
    iterated, target = node.iter, node.target
    if not isinstance(iterated, ast.Call) or scene.name(iterated.func) != "range" or not isinstance(target, ast.Name):
        return None
    is_whole = len(iterated.args) == 1 or (len(iterated.args) == 2 and _is_zero(iterated.args[0]))
    count = last_word(iterated.args[-1])
    is_named = _SAMPLES.fullmatch(count) or _OBJECTS.fullmatch(count) or _COUNTERS.fullmatch(target.id)
    is_meant = is_whole and (is_named or _visits_each(node, [inner for inner in _inside(node) if _is_range(inner)]))
    return _Loop(node, target.id) if is_meant else None


# -- and what is done in it ---------------------------------------------------------------------------------------


def _computes(scene: Scene, loop: _Loop) -> bool:
    """Whether it takes a part of a tensor each time round, and computes with it."""
    return any(_takes_part(scene, loop, node) for node in _inside(loop.node))


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


def _visits_pixels(node: ast.For) -> bool:
    """Whether a loop over rows has one over columns in it, and what is done there is done to one pixel."""
    return _is_long_range(node) and _visits_each(node, [inner for inner in _inside(node) if _is_long_range(inner)])


def _visits_each(node: ast.For, inner: list[ast.AST]) -> bool:
    """Whether a loop, and one of those in it, go through two dimensions of the same thing."""
    return any(
        isinstance(node.target, ast.Name)
        and isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and any(isinstance(p, ast.Subscript) and {node.target.id, loop.target.id} <= _indices(p) for p in _inside(loop))
        for loop in inner
    )


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and last_word(node.iter.func) == "range"


def _is_long_range(node: ast.AST) -> bool:
    """Of as many turns as a picture has rows, as far as the names tell."""
    call = node.iter if isinstance(node, ast.For) else None
    if not isinstance(call, ast.Call) or last_word(call.func) != "range" or len(call.args) not in (1, 2):
        return False
    end = call.args[0] if len(call.args) == 1 else call.args[1]
    if isinstance(end, ast.Constant):
        return isinstance(end.value, int) and end.value >= _FEW
    words = [last_word(part) for part in walk(end) if isinstance(part, (ast.Name, ast.Attribute))]
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


def _calls_own_operation(scene: Scene, node: ast.For) -> bool:
    """Whether a turn calls an operation that the project has written itself, for one sample: `Pooling.apply(x[i])`."""
    calls = [part for part in _inside(node) if isinstance(part, ast.Call)]
    called = [function for call in calls for function in scene.project.called(scene.source, call)]
    applied = [(scene.source, call) for call in calls]
    applied += [(function.source, call) for function in called for call in function.calls]
    owners = (
        scene.project.find(source, source.name(call.func.value))
        for source, call in applied
        if isinstance(call.func, ast.Attribute) and call.func.attr == "apply"
    )
    families = (scene.project.ancestors(owner) for owner in owners if isinstance(owner, Class))
    return any(name.split(".")[-1] == "Function" for names in families for name in names)


def _inside(node: ast.For) -> Iterator[ast.AST]:
    for statement in node.body:
        yield from walk(statement)


def _indices(node: ast.Subscript) -> set[str]:
    """Names that say which one is meant."""
    if any(isinstance(part, ast.Slice) and (part.lower or part.upper) for part in walk(node.slice)):
        return set()
    return {part.id for part in walk(node.slice) if isinstance(part, ast.Name)}


def _first_index(node: ast.Subscript) -> str:
    """The name by which a subscript takes one part of a dimension."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return next((index.id for index in indices if isinstance(index, ast.Name)), "")


def _names(target: ast.AST) -> list[str]:
    """Those that it sets."""
    return [part.id for part in walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _read(node: ast.AST) -> set[str]:
    """Names that it reads."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


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
