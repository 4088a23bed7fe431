"""How a model is spread over GPUs, and what is computed twice to save memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.entries import path_of
from floorit.scan.heat import Place
from floorit.scan.project import Class, Function, is_own
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import Source, argument, is_constant, last_word, walk

_DATA_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_ITS_NAME = re.compile(r"(?:use_|nn_)?(?:data_?)?parallel|(?:use_)?dp", re.IGNORECASE)
_DDP = "DistributedDataParallel"
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
_LAYER = re.compile(r"Linear|Conv[123]d|ConvTranspose[123]d|Embedding|\w*Norm\w*|LSTM|GRU|MultiheadAttention")
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_UNUSED = "find_unused_parameters"
_STRATEGY = "ddp_find_unused_parameters_true"


def _data_parallel(scene: Scene) -> Iterator[Match]:
    if not scene.programs.of(scene.source):
        return
    for call in scene.calls(Place.ONCE):
        if scene.name(call.func) not in _DATA_PARALLEL or not scene.settings.is_reached(scene.source, call):
            continue
        is_of_one = _is_over_one(scene, call) or _sees_one(scene, call) or _is_left(scene, call)
        if not is_of_one and not _is_asked_for(scene, call) and not _evaluates(scene, call):
            yield Match(call)
            return


def _is_over_one(scene: Scene, call: ast.Call) -> bool:
    """Whether it is given GPUs by a setting that names one: `--gpu_ids 0`. Over one it only passes on."""
    given = argument(call, "device_ids", 1)
    options = scene.project.entries.options.get(last_word(given), []) if given is not None else []
    if isinstance(given, (ast.List, ast.Tuple)):
        return len(given.elts) == 1
    if isinstance(given, ast.Name) and _is_made_of_one(scene, given):
        return True
    return bool(options) and all(isinstance(o.value, (str, int)) and "," not in str(o.value) for o in options)


def _is_made_of_one(scene: Scene, name: ast.Name) -> bool:
    """`device, gpus = prepare(config["n_gpu"])`, of which there is one."""
    made = scene.project.unpacked(scene.source, name, name.id)
    given = made.args if isinstance(made, ast.Call) else []
    return any(
        "gpu" in path_of(one)[-1].lower() and scene.settings.value(scene.source, one) == 1
        for one in given
        if path_of(one)
    )


def _sees_one(scene: Scene, call: ast.Call) -> bool:
    """Whether its programs let themselves see one GPU, by `os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu`, of which the
    default names one, and no command line of the project's pages and scripts more, but for DDP."""
    sources = scene.programs.beside(scene.source)
    sets = [
        (source, assignment)
        for source in sources
        if _VISIBLE in source.words
        for assignment in source.all(ast.Assign)
        if _sets_visible(assignment) and scene.settings.is_reached(source, assignment)
    ]
    others = list(_lead_to_ddp(scene, call))
    return bool(sets) and all(_names_one(scene, source, assignment.value, others) for source, assignment in sets)


def _lead_to_ddp(scene: Scene, call: ast.Call) -> Iterator[str]:
    """The settings that are asked for DDP in its place: `if args.distributed: DDP(model) else: DataParallel(model)`."""
    for here in scene.source.around(call):
        if isinstance(here, ast.If) and isinstance(here.test, ast.Attribute):
            parts = (part for statement in here.body for part in walk(statement) if isinstance(part, ast.Call))
            if any(last_word(part.func) in (_DDP, "DDP") for part in parts):
                yield here.test.attr


def _is_left(scene: Scene, call: ast.Call) -> bool:
    """Whether several GPUs are always somebody else's: of DDP, which all commands lead to, or of nobody."""
    return _stands_in_for_ddp(scene, call) or _refuses_several(scene)


def _refuses_several(scene: Scene) -> bool:
    """`if torch.cuda.device_count() > 1 and not args.distributed: return`, in the file that is run."""
    blocks = ((p.entry, one) for p in scene.programs.of(scene.source) for one in p.entry.all(ast.If))
    return any(
        isinstance(block.body[-1], (ast.Return, ast.Raise))
        and any(_asks_for_several(scene, source, part) for part in _ands(block.test))
        for source, block in blocks
    )


def _asks_for_several(scene: Scene, source: Source, test: ast.expr) -> bool:
    """`torch.cuda.device_count() > 1`, also by a name that is set to it."""
    if (
        not isinstance(test, ast.Compare)
        or not isinstance(test.ops[0], ast.Gt)
        or not is_constant(test.comparators[0], 1)
    ):
        return False
    left = test.left
    made = scene.project.assigned(source, left, left.id) if isinstance(left, ast.Name) else left
    return isinstance(made, ast.Call) and last_word(made.func) == "device_count"


def _ands(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _stands_in_for_ddp(scene: Scene, call: ast.Call) -> bool:
    """Whether it is the other choice than DDP, which all commands that come with its programs lead to."""
    blocks = (here for here in scene.source.around(call) if isinstance(here, ast.If))
    parts = (part for block in blocks for part in walk(block) if isinstance(part, ast.Call))
    entries = {program.entry.path.name for program in scene.programs.of(scene.source)}
    has_ddp = any(last_word(part.func) in (_DDP, "DDP") for part in parts)
    return has_ddp and all(map(scene.project.commands.launch, entries))


def _sets_visible(assignment: ast.Assign) -> bool:
    target = assignment.targets[0]
    return isinstance(target, ast.Subscript) and is_constant(target.slice, _VISIBLE)


def _names_one(scene: Scene, source: Source, node: ast.expr, others: list[str]) -> bool:
    while isinstance(node, ast.Call) and last_word(node.func) == "str" and node.args:
        node = node.args[0]
    options = scene.project.entries.options.get(last_word(node), [])
    own: list[object] = [option.value for option in options if option.path == source.path]
    values = own or [scene.settings.value(source, node)]
    given = scene.project.commands.given(last_word(node), others) if options else []
    return all(isinstance(value, (str, int)) and "," not in str(value) for value in (*values, *given))


def _evaluates(scene: Scene, call: ast.Call) -> bool:
    """`DataParallel(inception).eval()`; or in a model's own method, to load weights that were saved of such."""
    around = scene.source.parents.get(call)
    inside = scene.source.function(call)
    owner = scene.project.functions[inside].owner if inside is not None else None
    is_part = owner is not None and scene.project.is_module(owner)
    return is_part or (isinstance(around, ast.Attribute) and around.attr == "eval")


def _is_asked_for(scene: Scene, call: ast.Call) -> bool:
    """`if mode == Mode.DATA_PARALLEL:`, `if args.parallel and …:`, `if len(gpus) > 1:` of a parameter."""
    tests = [here.test for here in scene.source.around(call) if isinstance(here, ast.If)]
    parts = [part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
    asked = [part.comparators[0] if isinstance(part, ast.Compare) else part for part in parts]
    by_name = (one for one in asked if _ITS_NAME.fullmatch(last_word(one) or str(getattr(one, "value", ""))))
    if any(scene.settings.value(scene.source, one) is not True for one in by_name):
        return True
    return any(_counts_settings(scene, part) for part in parts if isinstance(part, ast.Compare))


def _counts_settings(scene: Scene, test: ast.Compare) -> bool:
    """`len(gpus) > 1` of a parameter, `cfg.n_gpu > 1`: as many as somebody has asked for; not as there are."""
    if not is_constant(test.comparators[0], 1, 2) or not isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.NotEq)):
        return False
    counted = test.left
    if isinstance(counted, ast.Call) and last_word(counted.func) == "len" and counted.args:
        inside = scene.source.function(counted)
        given = inside.args if inside is not None else None
        names = {one.arg for one in (*given.args, *given.kwonlyargs)} if given is not None else set()
        return last_word(counted.args[0]) in names
    return isinstance(counted, ast.Attribute) and "device_count" not in _set_to(scene, counted)


def _set_to(scene: Scene, attribute: ast.Attribute) -> str:
    """All that the project sets an attribute of that name to, as text."""
    assignments = (
        one
        for source in scene.project.sources
        if attribute.attr in source.words
        for one in source.all(ast.Assign)
        if any(last_word(target) == attribute.attr for target in one.targets)
    )
    return " ".join(ast.unparse(one.value) for one in assignments)


def _find_unused(scene: Scene) -> Iterator[Match]:
    if not scene.programs.of(scene.source) or scene.source.words.isdisjoint((_UNUSED, _STRATEGY)):
        return
    found = [call for call in scene.calls() if _looks_for_unused(scene, call)]
    if found and (scene.asked or not _may_be_needed(scene)):
        yield from map(Match, found)


def _looks_for_unused(scene: Scene, call: ast.Call) -> bool:
    last = last_word(call.func)
    if last in (_DDP, "DDP", "DistributedDataParallelKwargs", "DDPStrategy", "DDPPlugin"):
        return scene.settings.value(scene.source, argument(call, _UNUSED)) is True
    return last == "Trainer" and is_constant(argument(call, "strategy"), _STRATEGY)


def _may_be_needed(scene: Scene) -> bool:
    """Whether a model has a layer that it never uses, or only if it is told so, which then gets no gradient."""
    sources = scene.programs.beside(scene.source)
    classes = [one for one in scene.project.classes.values() if one.source in sources and scene.project.is_module(one)]
    models = (one for one in classes if "forward" in one.methods and not scene.tables.leave_out(one))
    return any(_leaves_a_layer(scene, one) for one in models)


def _leaves_a_layer(scene: Scene, owner: Class) -> bool:
    layers = {name for name, made in owner.attributes.items() if _is_layer(scene, owner.source, made)}
    kin = {one for heir in scene.project.descendants(owner) for one in scene.project.family(heir)}
    methods = [method for one in kin for method in one.methods.values()]
    used = [(method, node) for method in methods for node in _own_reads(method) if node.attr in layers]
    always = {node.attr for method, node in used if not _is_by_argument(method, node)}
    return bool(layers - always)


def _is_layer(scene: Scene, source: Source, made: ast.expr) -> bool:
    """`nn.Linear(4, 1)`, `nn.Linear(4, n) if n > 0 else nn.Identity()`, a module of the project"""
    made = made.body if isinstance(made, ast.IfExp) else made
    if not isinstance(made, ast.Call):
        return False
    own = scene.project.find(source, source.name(made.func))
    is_torch = source.name(made.func).startswith("torch.nn.") and bool(_LAYER.fullmatch(last_word(made.func)))
    return is_torch or (isinstance(own, Class) and scene.project.is_module(own))


def _own_reads(method: Function) -> Iterator[ast.Attribute]:
    """`self.name`, read in a method."""
    for node in walk(method.node):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and is_own(node):
            yield node


def _is_by_argument(method: Function, node: ast.AST) -> bool:
    """Whether it stands under an `if` of what the method is given."""
    tests = [here.test for here in method.source.around(node) if isinstance(here, (ast.If, ast.IfExp))]
    asked = [test.operand if isinstance(test, ast.UnaryOp) else test for test in tests]
    return any(isinstance(test, ast.Name) and test.id in method.parameters for test in asked)


def _reentrant(scene: Scene) -> Iterator[Match]:
    if not scene.programs.of(scene.source):
        return
    for call in scene.calls():
        if scene.name(call.func) not in _CHECKPOINTS or any(keyword.arg is None for keyword in call.keywords):
            continue
        given = argument(call, "use_reentrant")
        if (given is None or is_constant(given, True)) and scene.settings.is_reached(scene.source, call):
            yield Match(call)


RULES = (
    Rule(
        code="data-parallel",
        message="`nn.DataParallel`",
        costs="in every step one process copies the model to all GPUs and gathers outputs on one, under one lock",
        instead="`DistributedDataParallel`, one process for each GPU (`torchrun`)",
        unsafe="there is only ever one GPU",
        risk="order",
        finding="comm-bound",
        match=_data_parallel,
    ),
    Rule(
        code="find-unused",
        message="DDP looks for unused parameters",
        costs="the whole graph is walked in every step, and a bitmap of it reduced over all ranks",
        instead="leave it out: an error says so if it is needed; `static_graph=True` if the graph never changes",
        unsafe="some parameters get no gradient in some steps",
        fix="static-graph",
        finding="comm-bound",
        match=_find_unused,
    ),
    Rule(
        code="checkpoint-reentrant",
        message="the reentrant kind of activation checkpointing",
        costs="it computes each part again whole, where the other stops at the last tensor that is needed",
        instead="`use_reentrant=False`",
        unsafe="torch is older than 1.11",
        risk="rounding",
        finding="recompute-bound",
        is_tentative=True,
        match=_reentrant,
    ),
)
