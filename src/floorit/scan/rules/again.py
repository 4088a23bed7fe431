"""What is computed in every step although the batch has it already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floorit.declared import Control
from floorit.scan.heat import Place
from floorit.scan.project import Function
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import dotted, walk


def _computed(scene: Scene) -> Iterator[Match]:
    """`heatmaps = draw(batch["keypoints"])`, where each sample is a dictionary with heatmaps and keypoints in it."""
    made = [(call, names) for call in scene.calls(Place.STEP) if (names := _names(scene, call))]
    held = _held(scene) if made else set()
    for call, names in made:
        if names <= held and _is_made_of_others(call, names, held):
            shown = ", ".join(f"`{name}`" for name in sorted(names))
            yield Match(
                call, f"what the batch has as {shown} is computed in every step", controls=_choices(scene, call)
            )


def _names(scene: Scene, call: ast.Call) -> set[str]:
    """What the result of a call of the project's own is called; nothing where not all of it goes by names."""
    statement = scene.source.parents.get(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return set()
    if not scene.project.called(scene.source, call):
        return set()
    target = statement.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return names if len(names) == len(parts) else set()


def _held(scene: Scene) -> set[str]:
    """The keys of the dictionaries that datasets make of their samples, and those that put batches together."""
    return {key for function in scene.project.functions.values() for key in _keys(scene, function)}


def _keys(scene: Scene, function: Function) -> Iterator[str]:
    for value in function.returns:
        if scene.heat.of(function.source, value) is not Place.SAMPLE:
            continue
        if isinstance(value, ast.Name):
            yield from _stored(function, value.id)
        made = scene.project.assigned(function.source, value, value.id) if isinstance(value, ast.Name) else value
        if isinstance(made, ast.Dict):
            yield from (str(key.value) for key in made.keys if isinstance(key, ast.Constant))


def _stored(function: Function, name: str) -> Iterator[str]:
    """`sample["mask"] = mask`"""
    stores = (node for node in walk(function.node) if isinstance(node, ast.Subscript) and dotted(node.value) == name)
    for node in stores:
        if isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def _is_made_of_others(call: ast.Call, names: set[str], held: set[str]) -> bool:
    """Whether all that it is given is settings and other parts of the batch: nothing that a model has made, not what it
    stands for itself, and not the batch as a whole, in which it may be."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    parts = [_mentioned(node) & held for node in given if not _is_setting(node)]
    return bool(parts) and all(parts) and names.isdisjoint(set().union(*parts))


def _mentioned(node: ast.expr) -> set[str]:
    """Names and keys in an expression."""
    names = {part.id for part in walk(node) if isinstance(part, ast.Name)}
    return names | {part.value for part in walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _is_setting(node: ast.expr) -> bool:
    """A constant, or an attribute: `self.radius`, `cfg.model.stride`."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Attribute) and bool(dotted(node)))


def _choices(scene: Scene, call: ast.Call) -> list[Control]:
    """The settings that a branch around it is chosen by."""
    branch = next((node for node in scene.source.around(call) if isinstance(node, ast.If)), None)
    return scene.origins.of(scene.source, branch.test) if branch is not None else []


RULES = (
    Rule(
        code="batch-has-it",
        message="what is computed in every step is in the batch",
        costs="the step waits for what was done when the data was made",
        instead="take it from the batch, or leave it out of the data",
        unsafe="the two differ, as where what it is made of was changed after it was made",
        finding="python-bound",
        is_tentative=True,
        match=_computed,
    ),
)
