"""At which line a finding about a whole program is shown: where it would be changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.heat import Heat, Place
from floorit.scan.programs import Finder, Program
from floorit.scan.rule import Scene
from floorit.scan.source import Source, argument, dotted, last_word

_MODEL = re.compile(
    r"(?:.*_)?(?:model|net|network|generator|discriminator|encoder|decoder|unet|agent|policy|q_network|actor|critic"
    r"|net_?[dg])\d*",
    re.IGNORECASE,
)
_OPTIMIZERS = ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Adamax")
_WRAPPERS = ("DistributedDataParallel", "DDP", "DataParallel")


def anchors(scene: Scene, *finders: Finder) -> Iterator[tuple[Program, ast.AST]]:
    """Programs on a GPU whose first line of that sort is in this file: one for each line."""
    if not any(scene.programs.has_place(scene.source, finder) for finder in finders):
        return
    seen: set[ast.AST] = set()
    for program in scene.programs.of(scene.source):
        if not program.uses_gpu:
            continue
        found = next((place for place in map(program.first, finders) if place is not None), None)
        if found is None or found[0] is not scene.source or not _is_part(scene, program):
            continue
        node = _by_default(scene, found[1])
        if node not in seen:
            seen.add(node)
            yield program, node


def _by_default(scene: Scene, node: ast.AST) -> ast.AST:
    """Of several optimizers by a setting, the one that the default leads to."""
    made = list(optimizers_made(scene.heat, scene.source))
    if node not in made:
        return node
    reached = [one for one in made if scene.settings.is_reached(scene.source, one)]
    first = next(iter(reached), node)
    first = next((one for one in reached if _replaces(scene, one, first)), first)
    others = [one for one in reached if is_in_place_of(scene, one, first)]
    return next((one for one in others if not scene.settings.choices(scene.source, one)), first)


def is_in_place_of(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether one of two optimizers is made where the other is not, and given the same name."""
    source, choices = scene.source, scene.settings.choices
    is_other = _is_beside(source, one, other) and not _replaces(scene, other, one)
    return is_other and not choices(source, other) <= choices(source, one)


def _replaces(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether a loop that trains makes one in the place of another that was made before it."""
    loops = [scene.heat.training_loop(scene.source, made) for made in (one, other)]
    return _is_beside(scene.source, one, other) and loops[0] is not None and loops[1] is None


def _is_beside(source: Source, one: ast.AST, other: ast.AST) -> bool:
    """Whether both are made in one function and given the same name."""
    return source.function(one) is source.function(other) and _given_to(source, one) == _given_to(source, other)


def _given_to(source: Source, node: ast.AST) -> str:
    """The name that is set to it; none where it is returned."""
    statement = source.statement(node)
    return dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def _is_part(scene: Scene, program: Program) -> bool:
    """Whether the file is surely part of the program, and not only one of those that it may import by their names."""
    return program.is_sure or scene.source is program.entry or scene.project.is_imported(scene.source)


def model_moved(heat: Heat, source: Source) -> ast.AST | None:
    """Where a file first moves a model to the GPU, or wraps it for several."""
    for call in source.all(ast.Call):
        if _moves_model(source, call) and heat.of(source, call) is Place.ONCE and heat.leads_to_training(source, call):
            return call
    return None


def _moves_model(source: Source, call: ast.Call) -> bool:
    function = call.func
    if last_word(function) in _WRAPPERS and call.args:
        return True
    if not isinstance(function, ast.Attribute) or function.attr not in ("to", "cuda"):
        return False
    if isinstance(function.value, ast.Call):  # model = Net().to(device)
        around = source.parents.get(call)
        return isinstance(around, ast.Assign) and bool(_MODEL.fullmatch(last_word(around.targets[0])))
    return bool(_MODEL.fullmatch(last_word(function.value)))


def optimizer_made(heat: Heat, source: Source) -> ast.AST | None:
    """Where a file first makes an optimizer."""
    return next(optimizers_made(heat, source), None)


def optimizers_made(heat: Heat, source: Source) -> Iterator[ast.Call]:
    """The calls that make one, but of a few tensors."""
    for call in source.calling(*_OPTIMIZERS):
        is_meant = last_word(call.func) in _OPTIMIZERS and source.name(call.func).startswith("torch.optim.")
        if is_meant and not _has_few_tensors(call) and _is_for_training(heat, source, call):
            yield call


def _is_for_training(heat: Heat, source: Source, call: ast.Call) -> bool:
    return heat.of(source, call) is not Place.EVALUATION and not heat.is_in_example(source, call)


def _has_few_tensors(call: ast.Call) -> bool:
    """`Adam([self.log_alpha])`: of tensors that are written out there is little to fuse."""
    given = argument(call, "params", 0)
    return isinstance(given, ast.List) and all(isinstance(part, (ast.Name, ast.Attribute)) for part in given.elts)
