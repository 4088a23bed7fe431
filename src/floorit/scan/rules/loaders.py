"""Settings of the DataLoaders that feed training."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.edits import Edit, set_argument
from floorit.scan.guards import evaluates
from floorit.scan.heat import Heat
from floorit.scan.loaders import Loader, is_data, is_in_loop
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.rules.transfers import batch_names, first_name
from floorit.scan.source import Source, argument, dotted, is_constant, last_word, walk

_MANY = 16  # workers: beyond it the one process that receives their batches is seldom kept waiting by them
_IN_MEMORY = "TensorDataset"
_MAKES_ANEW = ("numpy", "float", "double", "type", "index_select")
_WORKERS = re.compile(
    r"(?:n_?|num_?|data_?|loader_?|dataloader_?|train_?)*(?:workers|cpu_workers)(?:_per_\w+)?", re.IGNORECASE
)
_PLACES = re.compile(r"cuda|.*device.*|.*gpu.*", re.IGNORECASE)


def _training(scene: Scene) -> Iterator[Loader]:
    yield from (loader for loader in scene.loaders.of(scene.source) if loader.trains)


def _no_workers(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        has_none = _is_number(loader.workers) and loader.workers == 0
        is_short = loader.is_short or (loader.has_few_labels and not scene.asked)
        if has_none and loader.does_work and not is_short and not _repeats(scene, loader):
            given = loader.given("num_workers")
            if is_constant(given, 0) and _has_others(scene, loader):
                continue
            is_setting = given is not None and not isinstance(given, ast.Constant)
            yield Match(loader.call, "a training loader that has no workers by default" if is_setting else "")


def _has_others(scene: Scene, loader: Loader) -> bool:
    """Whether another loader beside it has workers: that this one has none was meant."""
    inside = scene.source.function(loader.call)
    others = (one for one in _training(scene) if scene.source.function(one.call) is inside)
    return any(one.workers != 0 for one in others)


def _repeats(scene: Scene, loader: Loader) -> bool:
    """Whether each worker would go through all there is: a stream that does not ask which of them it is in."""
    streams = [one for one in loader.classes if any("IterableDataset" in name for name in scene.project.ancestors(one))]
    return any("get_worker_info" not in one.source.words for one in streams)


def _too_many(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        given = loader.given("num_workers")
        if given is None:
            continue
        if isinstance(loader.workers, int) and loader.workers > _MANY:
            yield Match(loader.call, f"{loader.workers} workers, whatever the machine")
        elif _is_of_cores(scene, given):
            yield Match(loader.call)


def _fixed(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        given = loader.given("num_workers")
        if isinstance(given, ast.Constant) and isinstance(given.value, int) and 0 < given.value <= _MANY:
            name = _setting(scene, loader)
            if name:
                yield Match(loader.call, f"`num_workers={given.value}` although there is a setting `{name}`")


def _no_persistent(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        given = loader.given("num_workers")
        if not (_has_workers(scene, loader) or _is_of_cores(scene, given)) or not loader.lacks("persistent_workers"):
            continue
        if (
            not _is_made_anew(scene, loader.call)
            and not _is_begun_once(scene, loader)
            and not _is_changed(scene, loader)
            and not loader.is_shared
            and any(program.takes_several_passes for program in loader.programs)
        ):
            yield Match(loader.call, edits=(set_argument(loader.call, "persistent_workers", "True"),))


def _is_made_anew(scene: Scene, call: ast.Call) -> bool:
    """Whether the loader is made in a loop, itself or another by the same name."""
    source = scene.source
    made = source.parents.get(call)
    names = {dotted(target) for target in made.targets} - {""} if isinstance(made, ast.Assign) else set()
    others = [
        other.value
        for other in source.all(ast.Assign)
        if isinstance(other.value, ast.Call)
        and last_word(other.value.func) == last_word(call.func)
        and source.function(other) is source.function(call)
        and not names.isdisjoint(map(dotted, other.targets))
    ]
    if any(isinstance(here, (ast.For, ast.While)) for one in (call, *others) for here in source.around(one)):
        return True
    inside = source.function(call)
    callers = scene.heat.callers.get(scene.project.functions[inside], []) if inside is not None else []
    around = [[loop for _, loop in scene.heat.loops_around(where, one)] for where, one in callers]
    return any(map(_counts_epochs, (loop for loops in around for loop in loops))) or (bool(around) and all(around))


def _counts_epochs(loop: ast.AST) -> bool:
    """`for epoch in …:`"""
    return isinstance(loop, ast.For) and "epoch" in last_word(loop.target).lower()


def _is_begun_once(scene: Scene, loader: Loader) -> bool:
    """`batches = iter(loader)` before all loops, and nothing else that goes through it."""
    made = scene.source.parents.get(loader.call)
    target = dotted(made.targets[0]) if isinstance(made, ast.Assign) else ""
    read = [node for node in scene.source.all(ast.Name) if node.id == target and isinstance(node.ctx, ast.Load)]
    begun = [name for name in read if _is_begun(scene.source.parents.get(name))]
    others = [name for name in read if name not in begun and not _is_asked_size(scene.source.parents.get(name))]
    return bool(begun) and not others and not any(is_in_loop(scene.source, name) for name in begun)


def _is_begun(around: ast.AST | None) -> bool:
    return isinstance(around, ast.Call) and last_word(around.func) in ("iter", "enumerate", "cycle")


def _is_asked_size(around: ast.AST | None) -> bool:
    return isinstance(around, ast.Attribute) or (isinstance(around, ast.Call) and last_word(around.func) == "len")


def _short_prefetch(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        if is_constant(loader.given("prefetch_factor"), 1):
            yield Match(loader.call)


def _no_pin(scene: Scene) -> Iterator[Match]:
    for loader in _training(scene):
        given = loader.given("pin_memory")
        is_off = loader.lacks("pin_memory") or scene.settings.value(scene.source, given) is False
        if given is not None and _PLACES.fullmatch(last_word(given)):
            continue  # pinned wherever there is a GPU
        if not is_off or not any(program.uses_gpu for program in loader.programs) or _is_on_device(scene, loader):
            continue
        if loader.has_nothing_to_pin:
            continue
        if loader.workers == 0:
            continue  # it would be one more copy in the training process
        if any(program.first(_made_anew) is not None for program in loader.programs):
            continue
        yield Match(loader.call, edits=_pinned(scene, loader, given))


def _made_anew(heat: Heat, source: Source) -> ast.AST | None:
    """Where batches are made arrays, or cast, before they are moved: they lie elsewhere then."""
    for call in (call for name in _MAKES_ANEW for call in source.methods.get(name, [])):
        loop = heat.training_loop(source, call)
        assert isinstance(call.func, ast.Attribute)
        name = first_name(call.func.value)
        if isinstance(loop, ast.For) and name in batch_names(loop) and not _is_moved_before(source, call, name):
            return call
    return None


def _is_moved_before(source: Source, call: ast.Call, name: str) -> bool:
    """Whether what has a name in the same function is moved above a call, or in it."""
    moves = (move for attribute in ("to", "cuda") for move in source.methods.get(attribute, []))
    return any(
        move.lineno < call.lineno or move in walk(call.func)
        for move in moves
        if isinstance(move.func, ast.Attribute)
        and first_name(move.func.value) == name
        and source.function(move) is source.function(call)
    )


def _pinned(scene: Scene, loader: Loader, given: ast.expr | None) -> tuple[Edit, ...]:
    """None where a person must look first: at an option, or at data that may already be on the GPU."""
    is_plain = given is None or isinstance(given, ast.Constant)
    is_elsewhere = given is not None and argument(loader.call, "pin_memory") is None
    if not is_plain or not loader.made or is_elsewhere:
        return ()
    return (set_argument(loader.call, "pin_memory", "True"),)


def _has_workers(scene: Scene, loader: Loader) -> bool:
    """Whether there are some, whichever of its settings counts."""
    given = loader.given("num_workers")
    known = scene.project.entries.values_of(scene.source, given) if given is not None else []
    values: list[object] = [*known] or [loader.workers]
    return all(_is_number(value) and value != 0 for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_of_cores(scene: Scene, node: ast.AST | None) -> bool:
    """`os.cpu_count()`, or so many times that."""
    if isinstance(node, ast.Name):
        node = scene.project.set_once(scene.source, node, node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_of_cores(scene, node.left) or _is_of_cores(scene, node.right)
    return isinstance(node, ast.Call) and last_word(node.func) == "cpu_count"


def _setting(scene: Scene, loader: Loader) -> str:
    """One of the loader's programs that is meant for the number of workers."""
    paths = {s.path for program in loader.programs if program.is_sure for s in program.sources} | {scene.source.path}
    for name, options in scene.project.entries.options.items():
        if _WORKERS.fullmatch(name) and any(option.path in paths for option in options):
            return name
    return ""


def _is_changed(scene: Scene, loader: Loader) -> bool:
    """Whether the dataset is told something between epochs, which workers that are kept would not hear of."""
    if any("set_epoch" in owner.methods for owner in loader.classes):
        return True
    if any(_sets_dataset(one) and is_in_loop(scene.source, one) for one in scene.source.all(ast.Assign)):
        return True
    return any(map(scene.loaders.tells_dataset, scene.programs.beside(loader.source)))


def _sets_dataset(assignment: ast.Assign) -> bool:
    """`train_set.adjust = False`"""
    target = assignment.targets[0]
    owner = last_word(target.value) if isinstance(target, ast.Attribute) else ""
    return is_data(owner) and not evaluates(owner)


def _is_on_device(scene: Scene, loader: Loader) -> bool:
    """Whether samples, or what they are taken from, may already lie on the GPU, where nothing can be pinned."""
    for _, made in loader.made:
        if last_word(made.func) == _IN_MEMORY or any(map(_moves, walk(made))):
            return True
    functions = [*loader.collates, *(method for owner in loader.classes for method in owner.methods.values())]
    return any(_moves(call) for function in functions for call in function.calls)


def _moves(node: ast.AST) -> bool:
    """`.cuda()`, `.to(device)`, `device=device`."""
    if not isinstance(node, ast.Call):
        return False
    where = argument(node, "device", 0 if last_word(node.func) == "to" else None)
    return last_word(node.func) == "cuda" or (where is not None and bool(_PLACES.fullmatch(_place(where))))


def _place(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else last_word(node)


RULES = (
    Rule(
        code="no-workers",
        message="a training loader without workers",
        costs="batches are made by the training process itself, while the GPU has nothing to do",
        instead="`num_workers=4` to begin with; `floorit run` says how many are needed",
        unsafe="an IterableDataset does not share out its samples among workers",
        risk="order",
        fix="workers",
        finding="input-bound",
        match=_no_workers,
    ),
    Rule(
        code="too-many-workers",
        message="as many workers as the machine has cores, or more",
        costs="workers compete with the training process, and with those of other ranks, for cores and memory",
        instead="a setting, by default no more than the loop needs: `floorit run` says how many",
        risk="order",
        fix="workers",
        finding="oversubscribed",
        match=_too_many,
    ),
    Rule(
        code="fixed-workers",
        message="a fixed number of workers although there is a setting",
        costs="asking for more workers does nothing here",
        instead="pass the setting on",
        risk="order",
        fix="workers",
        finding="setting-ignored",
        is_tentative=True,
        match=_fixed,
    ),
    Rule(
        code="no-persistent",
        message="workers are started anew for every epoch",
        costs="each epoch begins with starting them, and with an empty queue",
        instead="`persistent_workers=True`",
        unsafe="the dataset is changed between epochs: workers keep the copy that they began with",
        risk="order",
        fix="persistent",
        finding="epoch-gap",
        match=_no_persistent,
    ),
    Rule(
        code="short-prefetch",
        message="each worker makes one batch ahead",
        costs="one slow batch is enough to make the loop wait",
        instead="leave `prefetch_factor` at 2, or more where batches come unevenly",
        unsafe="memory is short",
        fix="prefetch",
        finding="input-bound",
        match=_short_prefetch,
    ),
    Rule(
        code="no-pin",
        message="batches for the GPU are not pinned",
        costs="copies from pageable memory are slower and hold up the host, with `non_blocking=True` too",
        instead="`pin_memory=True`",
        fix="pin",
        finding="transfer-bound",
        match=_no_pin,
    ),
)
