"""Calls that wait for the GPU in every step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.heat import Place
from floorit.scan.kinds import Kind
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import last_word, walk

_NUMPY = ("numpy.", "np.", "math.", "random.")
_COPIES = ("cpu", "numpy", "tolist")
_ENVIRONMENT = re.compile(r"(?:\w+_)?envs?", re.IGNORECASE)


def _items(scene: Scene) -> Iterator[Match]:
    for call, value in scene.methods("item", Place.STEP):
        is_tensor = not call.args and _may_be_on_device(scene, value)
        if is_tensor and not _is_read_before(scene, call) and not _is_needed_outside(scene, call):
            yield Match(call)


def _is_read_before(scene: Scene, call: ast.Call) -> bool:
    """`if loss.item() > 9: print(loss.item())`: the condition has waited for it."""
    before: ast.AST = call
    for here in scene.source.around(call):
        if isinstance(here, ast.If) and before is not here.test:
            read = (part for part in walk(here.test) if isinstance(part, ast.Call))
            if any(ast.dump(part) == ast.dump(call) for part in read):
                return True
        before = here
    return False


def _copies(scene: Scene) -> Iterator[Match]:
    """The innermost of `x.detach().cpu().numpy()`; what follows it is no wait of its own."""
    for call, value in scene.methods("cpu", Place.STEP):
        is_tensor = not call.args and _may_be_on_device(scene, value) and not _is_module(scene, value)
        if is_tensor and scene.heat.is_surely_in_step(scene.source, call) and not _is_needed_outside(scene, call):
            yield Match(call)


def _is_needed_outside(scene: Scene, call: ast.Call) -> bool:
    """`actions = policy(x).cpu().numpy()`, where an environment takes the actions."""
    statement = scene.source.statement(call)
    names = {last_word(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()
    return any(
        isinstance(step.func, ast.Attribute)
        and _ENVIRONMENT.fullmatch(last_word(step.func.value)) is not None
        and any(isinstance(part, ast.Name) and part.id in names for given in step.args for part in walk(given))
        for step in scene.source.methods.get("step", [])
    )


def _lists(scene: Scene) -> Iterator[Match]:
    for name in ("tolist", "numpy"):
        for call, value in scene.methods(name, Place.STEP):
            if scene.kinds.is_on_device(scene.source, value) and scene.heat.is_surely_in_step(scene.source, call):
                yield Match(call, f"`.{name}()` of a tensor on the GPU, in every step")


def _synchronizes(scene: Scene) -> Iterator[Match]:
    for call, _ in scene.methods("synchronize", Place.STEP):
        if scene.name(call.func) == "torch.cuda.synchronize":
            yield Match(call, edits=scene.taken_out(call))


def _empties(scene: Scene) -> Iterator[Match]:
    for call, _ in scene.methods("empty_cache", Place.STEP):
        is_meant = scene.name(call.func) == "torch.cuda.empty_cache"
        if is_meant and scene.heat.is_surely_in_step(scene.source, call):
            yield Match(call, edits=scene.taken_out(call))


def _may_be_on_device(scene: Scene, value: ast.expr) -> bool:
    """Whether nothing says that it lies elsewhere, or is no tensor."""
    if scene.kinds.of(scene.source, value) is Kind.HOST or scene.kinds.trains_on_host(scene.source):
        return False
    parts = [part for part in walk(value) if isinstance(part, (ast.Name, ast.Attribute))]
    return not any((scene.name(part) + ".").startswith(_NUMPY) or last_word(part) in _COPIES for part in parts)


def _is_module(scene: Scene, value: ast.expr) -> bool:
    owner = scene.project.class_of(scene.source, value)
    return (owner is not None and scene.project.is_module(owner)) or "model" in last_word(value).lower()


WAITS = "the host waits until the GPU has done all it was given, and then has nothing ready for it"

RULES = (
    Rule(
        code="item",
        message="`.item()` in every step",
        costs=WAITS,
        instead="keep the tensor (`.detach()`), add it up on the GPU, and read it every few dozen steps",
        finding="sync-bound",
        match=_items,
    ),
    Rule(
        code="cpu-copy",
        message="`.cpu()` in every step",
        costs=WAITS,
        instead="keep it on the GPU, or copy it every few dozen steps",
        finding="sync-bound",
        match=_copies,
    ),
    Rule(
        code="list-copy",
        message="a tensor on the GPU is made a list or an array in every step",
        costs=WAITS,
        instead="compute with the tensor itself, or copy it every few dozen steps",
        finding="sync-bound",
        is_tentative=True,
        match=_lists,
    ),
    Rule(
        code="synchronize",
        message="`torch.cuda.synchronize()` in every step",
        costs=WAITS,
        instead="take it out; time with CUDA events instead",
        unsafe="times that the program takes itself around it then mean something else",
        fix="sync-off",
        finding="sync-bound",
        match=_synchronizes,
    ),
    Rule(
        code="empty-cache",
        message="`torch.cuda.empty_cache()` in every step",
        costs="it waits for the GPU, and what it gives back must be asked of the driver again in the next step",
        instead="take it out",
        unsafe="a program that shares its GPU may count on the memory",
        fix="sync-off",
        finding="sync-bound",
        match=_empties,
    ),
)
