"""Copies from the host's memory to the GPU that need not be made, or need not be waited for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.edits import Edit, replace, set_argument
from floorit.scan.kinds import Kind
from floorit.scan.loaders import Loader
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import COMPREHENSIONS, Source, argument, has_stars, is_constant, last_word, walk

_FILLED = frozenset("zeros ones full empty eye arange linspace logspace".split())
_RANDOM = frozenset("rand randn randint randperm normal".split())
_WRITTEN = frozenset("tensor as_tensor FloatTensor LongTensor Tensor".split())
_SAME_EVERYWHERE = frozenset("zeros ones full eye".split())  # to the last bit, on every device
_CASTS = frozenset("float long int bool double unsqueeze view reshape repeat expand".split())
_DEVICE = re.compile(r"(?:\w+_)?(?:device|gpu|gpu_id|rank)", re.IGNORECASE)
_JOINS = ("cat", "stack", "concat", "vstack", "hstack")
_MOVES = ("to", "cuda")
_HOPS = 3  # from the training loop to a function that is handed its batch


# -- tensors that are made in the host's memory -----------------------------------------------------------------------


def _made_on_host(scene: Scene) -> Iterator[Match]:
    for call, maker in _moved(scene):
        name = last_word(maker.func)
        if len(maker.args) == 1 and is_constant(maker.args[0], 0):
            continue  # nothing to copy
        if name in _FILLED:
            yield Match(call, edits=_made_there(scene, call, maker))
        elif name in _WRITTEN and maker.args and _is_written_out(maker.args[0]):
            yield Match(call, instead="make it once, before the loop (`register_buffer` in a module)")
        elif name == "from_numpy" and maker.args and _is_computed_here(scene, maker.args[0]):
            yield Match(call, instead="compute it with torch on the GPU, or once, before the loop")
    for call in _written_to_device(scene):
        yield Match(
            call,
            "a tensor is made of Python's numbers and copied to the GPU in every step",
            "make it once, before the loop (`register_buffer` in a module), or fill it there (`torch.full`)",
        )


def _written_to_device(scene: Scene) -> Iterator[ast.Call]:
    """`torch.tensor([0, 1], device=device)`, `x.new_tensor([0, 1])`"""
    for call in scene.source.calling("tensor", "as_tensor", "new_tensor"):
        if not call.args:
            continue
        given = call.args[0]
        if not _is_written_out(given) and not _is_computed_here(scene, given):
            continue
        if _puts_on_device(scene, call) and scene.heat.is_surely_in_step(scene.source, call):
            yield call


def _puts_on_device(scene: Scene, call: ast.Call) -> bool:
    if scene.name(call.func) in ("torch.tensor", "torch.as_tensor"):
        where = argument(call, "device")
        return where is not None and not is_constant(where, "cpu", None)
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "new_tensor":
        return False
    return argument(call, "device") is None and scene.kinds.may_be_on_device(scene.source, call.func.value)


def _random_on_host(scene: Scene) -> Iterator[Match]:
    yield from (Match(call) for call, maker in _moved(scene) if last_word(maker.func) in _RANDOM)


def _moved(scene: Scene) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Calls in every step that move what another call has just made in the host's memory, and that call."""
    for call in scene.source.calling(*_MOVES):
        if not isinstance(call.func, ast.Attribute):
            continue
        maker = _maker(scene, call.func.value)
        if maker is None or argument(maker, "device") is not None or has_stars(maker):
            continue
        if scene.kinds.of(scene.source, call) is Kind.DEVICE and scene.heat.is_surely_in_step(scene.source, call):
            yield call, maker


def _maker(scene: Scene, node: ast.expr) -> ast.Call | None:
    """The call of torch that begins `torch.zeros(3).float()` or `(torch.arange(h) / h)`."""
    if isinstance(node, ast.BinOp):
        return _maker(scene, node.left) or _maker(scene, node.right)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if scene.name(node.func).startswith("torch."):
        return node
    return _maker(scene, node.func.value) if node.func.attr not in _MOVES or not _has_place(node) else None


def _has_place(call: ast.Call) -> bool:
    """Whether it moves and does not only cast."""
    return last_word(call.func) == "cuda" or any(_DEVICE.fullmatch(last_word(given)) for given in call.args)


def _is_written_out(node: ast.expr) -> bool:
    """Whether it is numbers in the text of the program, or a list of what is at hand."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(isinstance(part, ast.Name) or _is_written_out(part) for part in node.elts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and _is_written_out(node.operand))


def _is_computed_here(scene: Scene, node: ast.expr) -> bool:
    """Whether a model computes it by numpy: no batch is made in a model."""
    inside = scene.source.function(node)
    function = scene.project.functions.get(inside) if inside is not None else None
    if function is None or function.owner is None or not scene.project.is_module(function.owner):
        return False
    made = scene.project.assigned(scene.source, node, node.id) if isinstance(node, ast.Name) else node
    return made is not None and any(
        scene.name(part.func).startswith("numpy.") for part in walk(made) if isinstance(part, ast.Call)
    )


def _made_there(scene: Scene, call: ast.Call, maker: ast.Call) -> tuple[Edit, ...]:
    """`torch.zeros(3).to(device)` becomes `torch.zeros(3, device=device)`, where that gives the same numbers."""
    assert isinstance(call.func, ast.Attribute)
    name, where = last_word(maker.func), _place(call)
    counts = name == "arange" and len(maker.args) == 1
    if where is None or not (name in _SAME_EVERYWHERE or counts) or not _only_casts(call.func.value, maker):
        return ()
    if call.lineno != call.end_lineno:
        return ()
    text = scene.source.text
    base, made = ast.get_source_segment(text, call.func.value), ast.get_source_segment(text, maker)
    if base is None or made is None or not base.startswith(made) or not (maker.args or maker.keywords):
        return ()
    given = made[:-1].rstrip().removesuffix(",")
    return (replace(call, f"{given}, device={where}){base[len(made) :]}"),)


def _place(call: ast.Call) -> str | None:
    """Where a call moves a tensor, as source; None if it does something else as well."""
    if last_word(call.func) == "cuda":
        return '"cuda"' if not call.args and not call.keywords else None
    if len(call.args) != 1 or call.keywords:
        return None
    where = call.args[0]
    return ast.unparse(where) if _DEVICE.fullmatch(last_word(where)) else None


def _only_casts(node: ast.expr, maker: ast.Call) -> bool:
    while node is not maker:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _CASTS:
            return False
        node = node.func.value
    return True


# -- batches --------------------------------------------------------------------------------------------------------


def _blocking(scene: Scene) -> Iterator[Match]:
    for call, _ in _batch_copies(scene):
        given = argument(call, "non_blocking", 1)
        waits = given is None or scene.settings.value(scene.source, given) is False
        if waits and _is_pinned(scene):
            yield Match(call, edits=(set_argument(call, "non_blocking", "True"),) if given is None else ())


def _in_vain(scene: Scene) -> Iterator[Match]:
    seen: set[ast.AST] = set()
    for call, loop in _batch_copies(scene):
        if is_constant(argument(call, "non_blocking"), True) and loop not in seen and _pins_nothing(scene):
            seen.add(loop)
            yield Match(call)
    for call in (*scene.source.methods.get("cuda", []), *scene.source.methods.get("to", [])):
        if is_constant(argument(call, "non_blocking"), True) and _is_joined_on_host(scene, call):
            yield Match(
                call,
                "`non_blocking=True`, but the batch was put together in memory that is not pinned",
                "move its parts, each with `non_blocking=True`, and put them together on the GPU",
            )


def _is_joined_on_host(scene: Scene, call: ast.Call) -> bool:
    """`images = torch.cat([images[0], images[1]])` of a batch, and then `images.cuda(non_blocking=True)`."""
    assert isinstance(call.func, ast.Attribute)
    loop, name = scene.heat.training_loop(scene.source, call), call.func.value
    if not isinstance(loop, ast.For) or not isinstance(name, ast.Name) or not scene.heat.is_in_step(scene.source, call):
        return False
    before = [one for one in walk(loop) if isinstance(one, ast.Assign) and one.lineno < call.lineno]
    made = [one.value for one in before if isinstance(one.value, ast.Call) and name.id in _set_by(one)]
    joined = made[-1] if made and scene.name(made[-1].func) in ("torch.cat", "torch.stack") else None
    parts = joined.args[0].elts if joined is not None and isinstance(joined.args[0], (ast.List, ast.Tuple)) else []
    moved = {part for one in before if isinstance(one.value, ast.Call) and _moves(one.value) for part in _set_by(one)}
    names = batch_names(loop) - moved
    return bool(parts) and all(
        isinstance(part, (ast.Name, ast.Subscript)) and first_name(part) in names for part in parts
    )


def _batch_copies(scene: Scene) -> Iterator[tuple[ast.Call, ast.For]]:
    """What moves a part of the batch that a training loop was handed, and that loop."""
    if any(name.partition(".")[0] in ("accelerate", "lightning", "ignite") for name in scene.source.imports.values()):
        return  # they move batches themselves
    for call in scene.source.calling(*_MOVES):
        if not isinstance(call.func, ast.Attribute) or not _moves(call):
            continue
        if isinstance(call.func.value, ast.Name) and scene.project.methods_of(call.func.attr):
            continue  # a whole batch, which may be of a class with a method of its own
        is_made_here = isinstance(call.func.value, ast.Call)  # labels.long(), which lies elsewhere
        if not is_made_here and scene.heat.is_in_step(scene.source, call):
            loop = _loop_of_batch(scene, scene.source, call, first_name(call.func.value))
            if loop is not None:
                yield call, loop


def _loop_of_batch(scene: Scene, source: Source, node: ast.AST, name: str, hops: int = _HOPS) -> ast.For | None:
    """The training loop whose batch is called so at a node, there or in a function that is handed it."""
    whole = _taken_from(source, node, name)
    loop = scene.heat.training_loop(source, node)
    if loop is not None:
        if not isinstance(loop, ast.For) or whole not in batch_names(loop) or _is_put_together(source, loop, whole):
            return None
        return loop
    inside = source.function(node)
    function = scene.project.functions[inside] if inside is not None else None
    if function is None or whole not in function.parameters or not hops:
        return None
    for caller, call in scene.heat.callers.get(function, ()):
        given = argument(call, whole, function.parameters.index(whole))
        if isinstance(given, ast.Name) and (found := _loop_of_batch(scene, caller, call, given.id, hops - 1)):
            return found
    return None


def _is_put_together(source: Source, loop: ast.AST, name: str) -> bool:
    """`images = torch.cat(images)`: what comes out lies elsewhere than its parts."""
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr in _JOINS and name in _set_by(source.statement(call))
        for call in walk(loop)
        if isinstance(call, ast.Call)
    )


def _set_by(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}


def _taken_from(source: Source, node: ast.AST, name: str) -> str:
    """`batch` for `value` in `{key: value.to(device) for key, value in batch.items()}`; else the name itself."""
    for here in source.around(node):
        for part in here.generators if isinstance(here, COMPREHENSIONS) else ():
            if name in {target.id for target in walk(part.target) if isinstance(target, ast.Name)}:
                return first_name(part.iter)
    return name


def _moves(call: ast.Call) -> bool:
    return not has_stars(call) and (
        last_word(call.func) == "cuda"
        or any(_DEVICE.fullmatch(last_word(given)) or _is_cuda(given) for given in call.args[:1])
        or argument(call, "device") is not None
    )


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).startswith("cuda")


def batch_names(loop: ast.For) -> set[str]:
    """The names that a loop gives to its batch and, where those are taken apart first, to its parts."""
    if isinstance(loop.iter, ast.Call) and last_word(loop.iter.func) in ("range", "count", "trange"):
        return set()
    names = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and _is_part(statement.value, names):
            names |= {part.id for part in walk(statement.targets[0]) if isinstance(part, ast.Name)}
    return names


def _is_part(node: ast.expr, names: set[str]) -> bool:
    """`batch`, `batch["image"]`, `batch["image"], batch["mask"]`"""
    if isinstance(node, ast.Tuple):
        return all(_is_part(part, names) for part in node.elts)
    return isinstance(node, (ast.Name, ast.Subscript)) and first_name(node) in names


def first_name(node: ast.expr) -> str:
    """`batch` of `batch["image"].float()`"""
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_pinned(scene: Scene) -> bool:
    """Whether every loader that may feed the file's training pins the memory of its batches."""
    loaders = [loader for loader in _loaders(scene) if loader.trains]
    given = [(loader.source, loader.given("pin_memory")) for loader in loaders]
    return bool(given) and all(scene.settings.value(source, value) is True for source, value in given)


def _pins_nothing(scene: Scene) -> bool:
    """Whether there are loaders, and none of them can pin; nor another in a file that could not be read."""
    loaders = _loaders(scene)
    return (
        bool(loaders)
        and scene.project.is_whole
        and not any("pin_memory" in loader.source.words or has_stars(loader.call) for loader in loaders)
    )


def _loaders(scene: Scene) -> list[Loader]:
    """Those that the file's programs make."""
    return [loader for source in scene.programs.beside(scene.source) for loader in scene.loaders.of(source)]


_COPY_WAITS = "it is made in the host's memory, and its copy to the GPU waits until the GPU has come that far"

RULES = (
    Rule(
        code="cpu-tensor-in-step",
        message="a tensor is made on the CPU and copied to the GPU in every step",
        costs=_COPY_WAITS,
        instead="make it on the GPU: `device=`",
        finding="sync-bound",
        match=_made_on_host,
    ),
    Rule(
        code="cpu-random-in-step",
        message="random numbers are drawn on the CPU and copied to the GPU in every step",
        costs=_COPY_WAITS,
        instead="draw them on the GPU: `device=`",
        unsafe="the GPU draws other numbers from the same seed",
        risk="training",
        finding="sync-bound",
        is_tentative=True,
        match=_random_on_host,
    ),
    Rule(
        code="blocking-copy",
        message="the batch lies in pinned memory, yet its copy to the GPU is waited for",
        costs="Python stands still while the batch is copied, instead of asking for the forward pass meanwhile",
        instead="`non_blocking=True`",
        fix="async-copy",
        finding="transfer-bound",
        match=_blocking,
    ),
    Rule(
        code="nonblocking-without-pin",
        message="`non_blocking=True`, but no loader pins memory: the copy is waited for all the same",
        costs="a copy from memory that is not pinned goes through a buffer of the driver, and Python waits for it",
        instead="`pin_memory=True` for the loader",
        fix="pin",
        finding="transfer-bound",
        is_tentative=True,
        match=_in_vain,
    ),
)
