"""Gradients and graphs that are kept, filled or made for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floorit.scan.edits import drop_argument
from floorit.scan.guards import spares_gradients
from floorit.scan.heat import BACKWARD, Place
from floorit.scan.kinds import loss_of
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import FunctionNode, Source, argument, dotted, is_constant, last_word, walk

_SWITCHES = frozenset("no_grad inference_mode set_grad_enabled enable_grad".split())
_USES = frozenset("backward grad requires_grad requires_grad_ retain_grad jvp vjp".split())
_HOPS = 4


# -- zeros --------------------------------------------------------------------------------------------------------


def _keeps(scene: Scene) -> Iterator[Match]:
    for call, _ in scene.methods("zero_grad", Place.STEP):
        if is_constant(argument(call, "set_to_none"), False):
            yield Match(
                call, "`zero_grad(set_to_none=False)` in every step", edits=(drop_argument(call, "set_to_none"),)
            )
    for call, value in scene.methods("zero_", Place.STEP):
        if _is_gradient(value) and _goes_through_parameters(scene.source, call):
            yield Match(call, "gradients are filled with zeros one by one, in every step", "`optimizer.zero_grad()`")


def _is_gradient(node: ast.expr) -> bool:
    """`p.grad`, `p.grad.data`"""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _goes_through_parameters(source: Source, node: ast.AST) -> bool:
    loops = (here for here in source.around(node) if isinstance(here, ast.For))
    loop = next(loops, None)
    return loop is not None and any(
        isinstance(part, ast.Call) and last_word(part.func) in ("parameters", "named_parameters")
        for part in walk(loop.iter)
    )


# -- graphs -------------------------------------------------------------------------------------------------------


def _retains(scene: Scene) -> Iterator[Match]:
    for name in BACKWARD:
        for call, _ in scene.methods(name, Place.STEP):
            if is_constant(argument(call, "retain_graph"), True) and _is_only_pass(scene, call):
                yield Match(call)


def _is_only_pass(scene: Scene, call: ast.Call) -> bool:
    """Whether nothing near goes back through a graph once more."""
    if is_constant(argument(call, "create_graph"), True) or _is_repeated(scene, call):
        return False
    inside = scene.source.function(call)
    owner = scene.project.functions[inside].owner if inside is not None else None
    others = (other for other in scene.source.all(ast.Call) if other is not call)
    return not any(
        _goes_back(scene, other) for other in others if owner is None or owner.node in scene.source.around(other)
    )


def _is_repeated(scene: Scene, call: ast.Call) -> bool:
    """Whether it stands in a loop of its own, inside of the one that takes steps."""
    for here in scene.source.around(call):
        if here in scene.heat.loops:
            return isinstance(here, ast.For) and (
                isinstance(here.iter, (ast.List, ast.Tuple)) or _gives_loss(here, call)
            )
        if isinstance(here, (ast.For, ast.While)):
            return True
    return False


def _gives_loss(loop: ast.For, call: ast.Call) -> bool:
    """`for loss in losses:`"""
    loss = loss_of(call)
    return loss is not None and any(dotted(part) == dotted(loss) != "" for part in walk(loop.target))


def _goes_back(scene: Scene, call: ast.Call) -> bool:
    """Also `optimizer.step(loss)`, which does both."""
    if _is_backward(scene.source, call):
        return True
    return last_word(call.func) == "step" and any("loss" in last_word(given) for given in call.args)


def _is_backward(source: Source, call: ast.Call) -> bool:
    return last_word(call.func) in BACKWARD or source.name(call.func) == "torch.autograd.grad"


def _grows(scene: Scene) -> Iterator[Match]:
    """What keeps the losses of all steps, and with each the graph that it came from."""
    for loop, losses in _losses(scene).items():
        for node in walk(loop):
            kept = _kept(node)
            if kept is None or not scene.heat.is_in_step(scene.source, node):
                continue
            where, value = kept
            if dotted(value) in losses and where not in losses and _outlives(loop, where):
                yield Match(node)


def _losses(scene: Scene) -> dict[ast.AST, set[str]]:
    """Of each loop that trains, the names that its backward passes begin with."""
    found: dict[ast.AST, set[str]] = {}
    for call in scene.source.all(ast.Call):
        loss = loss_of(call)
        loop = scene.heat.training_loop(scene.source, call) if loss is not None else None
        if loss is not None and loop is not None and dotted(loss):
            found.setdefault(loop, set()).add(dotted(loss))
    return found


def _kept(node: ast.AST) -> tuple[str, ast.expr] | None:
    """What is kept where: `total += loss`, `losses.append(loss)`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return dotted(node.target), node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append" and node.args:
        return dotted(node.func.value), node.args[0]
    return None


def _outlives(loop: ast.AST, name: str) -> bool:
    """Whether a loop never begins anew with it, hands it to nothing that goes backward, and does not detach it."""
    if not name:
        return False
    emptied = {f"{name}.{method}" for method in ("clear", "detach_", "popleft", "pop")}
    for node in walk(loop):
        if isinstance(node, ast.Assign) and any(dotted(target) == name for target in node.targets):
            return False
        if isinstance(node, ast.Call) and dotted(node.func) in emptied:
            return False
        if isinstance(node, ast.Delete) and any(_begins_with(target, name) for target in node.targets):
            return False
    return True


def _begins_with(target: ast.expr, name: str) -> bool:
    """`name`, `name[:]`"""
    return dotted(target.value if isinstance(target, ast.Subscript) else target) == name


# -- evaluation ---------------------------------------------------------------------------------------------------


def _evaluates(scene: Scene) -> Iterator[Match]:
    """A model that was told to evaluate goes through a loader, and gradients are kept ready."""
    for call, model in scene.methods("eval"):
        name, inside = dotted(model), scene.source.function(call)
        if call.args or not name or name == "self" or isinstance(inside, ast.Lambda):
            continue
        loop = _loop_after(scene, call, name)
        if loop is None or _names_any(inside or scene.source.tree, _SWITCHES) or _names_any(loop, _USES):
            continue
        if _calls_what_goes_back(scene, loop):
            continue
        if not _is_volatile(loop) and (inside is None or not _is_spared(scene, inside, _HOPS)):
            yield Match(loop)


def _calls_what_goes_back(scene: Scene, loop: ast.For) -> bool:
    """Whether it needs gradients in what it calls: to attack the model, say."""
    calls = (part for part in walk(loop) if isinstance(part, ast.Call))
    called = [one for call in calls for one in scene.project.called(scene.source, call)]
    further = [one for first in called for call in first.calls for one in scene.project.called(first.source, call)]
    return any(_is_backward(one.source, call) for one in (*called, *further) for call in one.calls)


def _is_volatile(loop: ast.For) -> bool:
    """`Variable(x, volatile=True)`: how old versions of torch were told."""
    return any(isinstance(part, ast.keyword) and part.arg == "volatile" for part in walk(loop))


def _loop_after(scene: Scene, call: ast.Call, model: str) -> ast.For | None:
    """The first loop over a loader after it in which the model is called and not trained."""
    for statement in _statements_after(scene, call):
        if _is_back_in_training(statement, model):
            return None
        if isinstance(statement, ast.For) and _is_loader(statement.iter) and _calls(statement, model):
            return statement if statement not in scene.heat.loops else None
    return None


def _statements_after(scene: Scene, call: ast.Call) -> list[ast.stmt]:
    statement = scene.source.statement(call)
    body = getattr(scene.source.parents.get(statement), "body", [])
    return body[body.index(statement) + 1 :] if statement in body else []


def _is_back_in_training(statement: ast.stmt, model: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and (dotted(statement.value.func) == f"{model}.train")
    )


def _is_loader(node: ast.expr) -> bool:
    words = [last_word(part).lower() for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute))]
    return any("loader" in word or word.endswith(("_dl", "_iter", "batches")) for word in words)


def _calls(loop: ast.For, model: str) -> bool:
    return any(isinstance(part, ast.Call) and dotted(part.func) == model for part in walk(loop))


def _names_any(node: ast.AST, words: frozenset[str]) -> bool:
    return any(isinstance(part, (ast.Name, ast.Attribute)) and last_word(part) in words for part in walk(node))


def _is_spared(scene: Scene, inside: FunctionNode, hops: int) -> bool:
    """Whether gradients are switched off for it: by a decorator, or by who calls it."""
    function = scene.project.functions[inside]
    if any(spares_gradients(function.source, decorator) for decorator in function.decorators):
        return True
    for source, call in scene.heat.callers.get(function, ()):
        if any(isinstance(here, ast.With) and _spares(source, here) for here in source.around(call)):
            return True
        outside = source.function(call)
        if outside not in (None, inside) and hops > 0 and _is_spared(scene, outside, hops - 1):
            return True
    return False


def _spares(source: Source, block: ast.With) -> bool:
    return any(spares_gradients(source, item.context_expr) for item in block.items)


RULES = (
    Rule(
        code="zero-grad-keeps",
        message="gradients are filled with zeros in every step",
        costs="the GPU writes every gradient once more, and the backward pass adds to it instead of putting it there",
        instead="`zero_grad()`, which lets them go",
        unsafe="parameters without a gradient in a step are then left alone: weight decay and momentum move them now",
        risk="training",
        fix="set-to-none",
        finding="optimizer-bound",
        match=_keeps,
    ),
    Rule(
        code="retain-graph",
        message="`retain_graph=True` in every step, though nothing goes back through the graph again",
        costs="all that forward saved stays in memory until the next step has its own",
        instead="`backward()`",
        unsafe="where a state of one step goes into the next, detach it first",
        is_tentative=True,
        match=_retains,
    ),
    Rule(
        code="growing-losses",
        message="the losses of all steps are kept with the graphs that they came from",
        costs="memory grows with every step",
        instead="keep `loss.detach()`",
        unsafe="what is computed of them later can then not go backward",
        is_tentative=True,
        match=_grows,
    ),
    Rule(
        code="eval-with-grad",
        message="a model is evaluated with gradients kept ready",
        costs="forward saves for a backward pass that never comes: more memory, smaller batches, extra work",
        instead="`with torch.inference_mode():` around it, or `torch.no_grad()`",
        unsafe="what is evaluated must not go backward",
        finding="eval-bound",
        match=_evaluates,
    ),
)
