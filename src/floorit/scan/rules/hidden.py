"""Waits for the GPU that are not written as such: for text, for a condition, for the size of a result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.heat import Place
from floorit.scan.project import OF_TENSORS
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.rules.blocking import WAITS
from floorit.scan.source import Source, is_constant, last_word

_BARS = ("set_postfix", "set_postfix_str", "set_description", "set_description_str")
_LEVELS = ("info", "warning", "error", "critical", "log")
_LOGGER = re.compile(r"_?log(?:ger|ging)?", re.IGNORECASE)
_SEQUENCES = (ast.Tuple, ast.List, ast.Set)
_EXTREMES = ("max", "min")
_NUMBERS = ("bool", "float", "int")
_COMPARES = ("torch.equal", "torch.allclose")
_HOPS = 5  # from a name to what it is set to, which may have the same name in it
_MEASURED = ("torch.nonzero", "torch.argwhere", "torch.unique", "torch.masked_select", "torch.unique_consecutive")
_MEASURED_METHODS = ("nonzero", "argwhere", "unique", "masked_select", "unique_consecutive")
_RESHAPES = frozenset("view reshape repeat expand expand_as unsqueeze squeeze flatten contiguous".split())
# What makes a mask of tensors.
_TESTS = frozenset("isnan isinf isfinite logical_and logical_or logical_not eq ne gt lt ge le bool".split())


# -- text ---------------------------------------------------------------------------------------------------------


def _prints(scene: Scene) -> Iterator[Match]:
    """A text is made whatever becomes of it; only that of an error is not."""
    for node in _made_text(scene):
        is_error = isinstance(scene.source.statement(node), (ast.Raise, ast.Assert))
        if not is_error and scene.heat.is_surely_in_step(scene.source, node):
            yield Match(node)


def _made_text(scene: Scene) -> Iterator[ast.expr]:
    for value in scene.source.all(ast.FormattedValue):
        if scene.heat.is_in_step(scene.source, value) and scene.kinds.is_on_device(scene.source, value.value):
            yield value
    for call in scene.calls(Place.STEP):
        if _makes_text(scene, call) and any(_has_tensor(scene, given) for given in _given(call)):
            yield call
    for operation in scene.source.all(ast.BinOp):
        is_text = isinstance(operation.op, ast.Mod) and _is_text(operation.left)
        if is_text and scene.heat.is_in_step(scene.source, operation) and _has_tensor(scene, operation.right):
            yield operation


def _makes_text(scene: Scene, call: ast.Call) -> bool:
    name = scene.name(call.func)
    if name in ("print", "str", "repr", "tqdm.write", "tqdm.tqdm.write"):
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "format":
        return _is_text(call.func.value)
    if call.func.attr in _BARS:
        return True
    return call.func.attr in _LEVELS and bool(_LOGGER.fullmatch(last_word(call.func.value)))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _has_tensor(scene: Scene, node: ast.expr) -> bool:
    """Whether it is a tensor, or a tuple or dictionary that has one."""
    if isinstance(node, ast.Starred):
        return _has_tensor(scene, node.value)
    if isinstance(node, _SEQUENCES):
        return any(_has_tensor(scene, part) for part in node.elts)
    if isinstance(node, ast.Dict):
        return any(_has_tensor(scene, part) for part in node.values)
    return scene.kinds.is_on_device(scene.source, node)


def _is_text(node: ast.AST) -> bool:
    """A string, also one put together: `"%s" + "%g" * 3`."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# -- conditions ---------------------------------------------------------------------------------------------------


def _truths(scene: Scene) -> Iterator[Match]:
    for node in _judged(scene):
        yield Match(node)


def _judged(scene: Scene) -> Iterator[ast.expr]:
    """What Python must know the value of."""
    for test in _tests(scene):
        if scene.heat.is_in_step(scene.source, test):
            yield from _tensors_in(scene, test)
    yield from (c for c in scene.calls(Place.STEP) if _reads(scene, c) and not _is_spared(scene, c))


def _is_spared(scene: Scene, call: ast.Call) -> bool:
    """`a is b or torch.equal(a, b)`: where they are the same, as they mostly are, nothing is compared."""
    around = scene.source.parents.get(call)
    return isinstance(around, ast.BoolOp) and isinstance(around.op, ast.Or) and any(map(_is_identity, around.values))


def _is_identity(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is) and not is_constant(node.comparators[0], None)
    )


def _reads(scene: Scene, call: ast.Call) -> bool:
    """Whether a call is one of Python's own that needs a number, or one of torch's that returns it."""
    name = scene.name(call.func)
    if name in _EXTREMES:
        return len(call.args) > 1 and any(_is_one(scene, given) for given in call.args)
    if name in _NUMBERS or name in _COMPARES:
        return bool(call.args) and scene.kinds.is_on_device(scene.source, call.args[0])
    return False


def _tests(scene: Scene) -> Iterator[ast.expr]:
    yield from (node.test for node in scene.source.all(ast.If))
    yield from (node.test for node in scene.source.all(ast.While))
    yield from (node.test for node in scene.source.all(ast.IfExp))
    yield from (node.test for node in scene.source.all(ast.Assert))


def _tensors_in(scene: Scene, test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        yield from _tensors_in(scene, test.values[0])  # the others are asked for only now and then
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _tensors_in(scene, test.operand)
    elif _is_one(scene, test):
        yield test


def _is_one(scene: Scene, node: ast.expr) -> bool:
    """Whether it is one tensor and not several: the result of a comparison, of an operation, of a function of torch."""
    if isinstance(node, ast.Name):
        made = scene.project.assigned(scene.source, node, node.id)
        if made is None or isinstance(made, ast.Name) or not scene.kinds.is_on_device(scene.source, node):
            return False
        return _is_one(scene, made)
    if not scene.kinds.is_on_device(scene.source, node):
        return False
    if isinstance(node, ast.Call):
        return _is_of_torch(scene, node)
    return isinstance(node, (ast.Compare, ast.BinOp))


def _is_of_torch(scene: Scene, call: ast.Call) -> bool:
    if scene.name(call.func).startswith("torch."):
        return True
    return isinstance(call.func, ast.Attribute) and (call.func.attr in OF_TENSORS or call.func.attr in _TESTS)


# -- sizes --------------------------------------------------------------------------------------------------------


def _sizes(scene: Scene) -> Iterator[Match]:
    surely = (node for node in _measured(scene) if scene.heat.is_surely_in_step(scene.source, node))
    for node in surely:
        if isinstance(node, ast.Subscript):
            yield Match(node, "a tensor on the GPU is indexed with a mask in every step")
        else:
            yield Match(node)


def _measured(scene: Scene) -> Iterator[ast.expr]:
    for call in scene.calls(Place.STEP):
        value = _measured_by(scene, call)
        if value is not None and scene.kinds.may_be_on_device(scene.source, value):
            yield call
    for subscript in scene.source.all(ast.Subscript):
        may_be = isinstance(subscript.ctx, ast.Load) and not isinstance(subscript.slice, (ast.Constant, ast.Slice))
        if may_be and scene.heat.is_in_step(scene.source, subscript) and _is_masked(scene, subscript):
            yield subscript


def _measured_by(scene: Scene, call: ast.Call) -> ast.expr | None:
    """What a call returns some of, depending on its values."""
    name = scene.name(call.func)
    if name in _MEASURED or (name == "torch.where" and len(call.args) == 1 and not call.keywords):
        return call.args[0] if call.args else None
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _MEASURED_METHODS
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _is_masked(scene: Scene, subscript: ast.Subscript) -> bool:
    indices = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    return any(_is_mask(scene, scene.source, index) for index in indices) and scene.kinds.may_be_on_device(
        scene.source, subscript.value
    )


def _is_mask(scene: Scene, source: Source, node: ast.expr, hops: int = _HOPS) -> bool:
    if isinstance(node, ast.Name):
        made = scene.project.assigned(source, node, node.id) if hops > 0 else None
        return made is not None and not isinstance(made, ast.Name) and _is_mask(scene, source, made, hops - 1)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(scene, source, node.operand, hops)
    if isinstance(node, ast.BinOp):
        parts = (_is_mask(scene, source, part, hops) for part in (node.left, node.right))
        if isinstance(node.op, ast.Mult):
            return all(parts)
        return isinstance(node.op, (ast.BitAnd, ast.BitOr)) and any(parts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("all", "any"):
        has_dimension = bool(node.args or node.keywords)
        return has_dimension and _is_mask(scene, source, node.func.value, hops)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RESHAPES:
        return _is_mask(scene, source, node.func.value, hops)
    is_test = isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last_word(node.func) in _TESTS)
    return (is_test and scene.kinds.is_on_device(source, node)) or _returns_mask(scene, source, node, hops)


def _returns_mask(scene: Scene, source: Source, node: ast.expr, hops: int) -> bool:
    """`hardest(losses, labels)`, a function of the project that returns `(labels > 0) | (losses > 9)`."""
    found = scene.project.called(source, node) if isinstance(node, ast.Call) and hops > 0 else []
    is_function = len(found) == 1 and found[0].owner is None and bool(found[0].returns)
    return is_function and all(_is_mask(scene, found[0].source, one, hops - 1) for one in found[0].returns)


RULES = (
    Rule(
        code="print-tensor",
        message="a tensor on the GPU is made text in every step",
        costs=WAITS,
        instead="print every few dozen steps; hand the bar or the logger a number that was read then",
        finding="sync-bound",
        match=_prints,
    ),
    Rule(
        code="tensor-truth",
        message="Python asks for the value of a tensor on the GPU in every step",
        costs=WAITS,
        instead="decide on the GPU (`torch.where`, `clamp`), check every few dozen steps, or take the check out",
        finding="sync-bound",
        match=_truths,
    ),
    Rule(
        code="nonzero",
        message="the size of a result depends on values on the GPU, in every step",
        costs=WAITS,
        instead="keep the whole tensor and weigh it: `torch.where`, `masked_fill`, `(loss * mask).sum() / mask.sum()`",
        finding="sync-bound",
        match=_sizes,
    ),
)
