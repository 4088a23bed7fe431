"""In which precision a program computes, and with which kernels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.devices import moves
from floorit.scan.heat import Heat, Place
from floorit.scan.programs import Program
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.rules.anchors import anchors, is_in_place_of, model_moved, optimizer_made, optimizers_made
from floorit.scan.settings import Unknown
from floorit.scan.source import Source, argument, has_stars, is_constant, last_word, walk

_HALF = re.compile(
    r".*autocast.*|.*grad_?scaler.*|.*bf_?16.*|.*bfloat_?16.*|.*fp_?16.*|.*float_?16.*|.*fp8.*|.*mixed_?precision.*"
    r"|(?:use_|to_|is_)?half(?:_precision)?|(?:.*[_-])?amp(?:[_-].*)?|apex|deepspeed|precision_plugin|Fabric",
    re.IGNORECASE,
)
_TF32 = ("torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32")
_COMPILES = re.compile(r"compile_\w+|\w+_compile|dynamo\w*|jit|make_graphed_callables|CUDAGraph")
# What has large products: other models gain little from doing them in fewer bits.
_PRODUCTS = re.compile(
    r"(?:Conv|ConvTranspose)[23]d|MultiheadAttention|Transformer(?:Encoder|Decoder)?(?:Layer)?"
    r"|scaled_dot_product_attention|timm|transformers|AutoModel\w*|resnet\d*\w*|vgg\d+\w*|densenet\d+\w*|vit_\w+",
)
# Frameworks whose precision is set in files of their own, or on their command line.
_ELSEWHERE = re.compile(r"Accelerator|TrainingArguments|LightningModule|mmcv|mmengine|detectron2|LightningCLI|hydra")
# Where the model is small, or waits for an environment.
_SMALL = re.compile(r"\w*MNIST|gym|gymnasium|atari\w*|ale_py|envpool|pettingzoo|stable_baselines3|procgen|isaacgym")
# What torch.compile does not go through, or compiles anew in every step.
_UNCOMPILED = re.compile(
    r"DataParallel\w*|create_graph|gradgradcheck|torchsparse|spconv|MinkowskiEngine|torch_scatter|dgl"
)
# Operations of CUDA that a program builds or brings along: they mostly take float32 alone.
_OWN_KERNELS = re.compile(
    r"cpp_extension|load_inline|inplace_abn|InPlaceABN\w*|pointnet2\w*|DCNv\d|DeformConv|MinkowskiEngine|spconv|torchsparse"
    r"|cupy|pycuda|chamfer\w*|knn_cuda|tinycudann|diff_gaussian_rasterization|nvdiffrast\w*|pytorch3d"
)
_BUILDS = ("CUDAExtension", "CppExtension", "create_extension")
_SETUPS = ("setup.py", "build.py")
_COMPLEX = ("cfloat", "cdouble", "complex64", "complex128", "view_as_complex")
_FUSABLE = ("Adam", "AdamW", "SGD")
_STEPS = re.compile(r"opt|optim\w*|\w+_opt|\w*optim\w*|scaler", re.IGNORECASE)


def _no_autocast(scene: Scene) -> Iterator[Match]:
    for program, node in anchors(scene, model_moved, optimizer_made):
        is_float32 = not program.names(_HALF) and not program.names(_ELSEWHERE)
        is_apt = program.names(_PRODUCTS) and not program.names(_SMALL) and not _has_own_kernels(scene, program)
        if is_float32 and is_apt:
            yield Match(node)
    for call in _switched_off(scene):
        yield Match(call, "half precision is off unless it is asked for", "turn it on by default", is_left_out=True)


def _has_own_kernels(scene: Scene, program: Program) -> bool:
    return program.names(_OWN_KERNELS) or program.has("BCELoss", "binary_cross_entropy") or program.has(*_built(scene))


def _built(scene: Scene) -> tuple[str, ...]:
    """The names of the extensions that the project's setups build."""
    calls = (c for s in scene.project.sources if s.path.name in _SETUPS for c in s.calling(*_BUILDS))
    given = (argument(call, "name", 0) for call in calls)
    texts = (str(name.value) for name in given if isinstance(name, ast.Constant))
    return tuple(sorted({text.split(".")[-1] for text in texts}))


def _no_tf32(scene: Scene) -> Iterator[Match]:
    """Where it is switched off for good; not around a few operations."""
    if not any(program.uses_gpu for program in scene.programs.of(scene.source)):
        return
    for assignment in scene.source.all(ast.Assign):
        is_set = scene.name(assignment.targets[0]) in _TF32
        is_off = is_set and scene.settings.value(scene.source, assignment.value) is False
        if is_off and _is_in_force(scene, assignment) and not _is_put_back(scene, assignment):
            yield Match(assignment)
    for call in scene.calls(Place.ONCE):
        is_set = scene.name(call.func) == "torch.set_float32_matmul_precision"
        if is_set and is_constant(argument(call, "precision", 0), "highest") and _is_in_force(scene, call):
            yield Match(call)


def _no_compile(scene: Scene) -> Iterator[Match]:
    for program, node in anchors(scene, model_moved, optimizer_made):
        is_apt = program.names(_PRODUCTS) and not program.names(_SMALL) and not program.names(_UNCOMPILED)
        if is_apt and not _compiles(program) and not program.names(_ELSEWHERE) and not _takes_any_size(scene, program):
            yield Match(node)


def _takes_any_size(scene: Scene, program: Program) -> bool:
    """Whether batches are of one sample: pictures then mostly come as large as they are."""
    loaders = (loader for source in program.sources for loader in scene.loaders.of(source) if loader.trains)
    return any(scene.settings.value(loader.source, loader.given("batch_size")) == 1 for loader in loaders)


def _compiles(program: Program) -> bool:
    """Also as an option that is off: the program's author knows of it."""
    if program.names(_COMPILES):
        return True
    return any(
        not source.name(call.func).startswith(("re.", "regex."))
        for source in program.sources
        for call in source.calling("compile")
    )


def _not_fused(scene: Scene) -> Iterator[Match]:
    for program, node in anchors(scene, optimizer_made):
        assert isinstance(node, ast.Call)
        is_plain = not has_stars(node) and all(argument(node, name) is None for name in ("fused", "foreach"))
        is_meant = last_word(node.func) in _FUSABLE and not _may_be_another(scene, node)
        is_sure = scene.asked or not _may_refuse(scene, program)
        is_meant = is_meant and is_sure and not program.names(_ELSEWHERE)
        if is_plain and is_meant and not _is_never_stepped(scene, program, node):
            yield Match(node)


def _may_refuse(scene: Scene, program: Program) -> bool:
    """Whether a model has parameters that a fused optimizer does not take: complex ones, or some on the CPU."""
    if program.has(*_COMPLEX) and any(_makes_complex(source) for source in program.sources):
        return True
    moved = ((s, call, moves(call)) for s in program.sources for call in s.methods.get("to", ()))
    return any(
        where is not None and _is_part_of_model(scene, s, call) and scene.devices.is_cpu(s, where)
        for s, call, where in moved
    )


def _makes_complex(source: Source) -> bool:
    made = source.calling("Parameter")
    return any(last_word(part) in _COMPLEX for call in made for part in walk(call))


def _is_part_of_model(scene: Scene, source: Source, node: ast.AST) -> bool:
    """Whether a model moves it while it is made."""
    inside = source.function(node)
    function = scene.project.functions[inside] if inside is not None else None
    owner = function.owner if function is not None and function.name == "__init__" else None
    return owner is not None and scene.project.is_module(owner)


def _is_never_stepped(scene: Scene, program: Program, made: ast.Call) -> bool:
    """Whether all steps of what has its name are in branches that are not taken by default."""
    statement = scene.source.statement(made)
    name = last_word(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    sources = [source for source in program.sources if name in source.words] if name else []
    steps = [(source, call) for source in sources for call in source.methods.get("step", [])]
    own = [(source, call) for source, call in steps if name in _stepped(call)]
    return bool(own) and not any(scene.settings.is_reached(source, call, hops=0) for source, call in own)


def _stepped(call: ast.Call) -> set[str]:
    """The names of what a call of `step` is of, or is given."""
    assert isinstance(call.func, ast.Attribute)
    return {last_word(call.func.value), *map(last_word, call.args[:1])}


def _may_be_another(scene: Scene, made: ast.Call) -> bool:
    """Whether another optimizer is made in its place, by a choice of which the default is not known."""
    others = optimizers_made(scene.heat, scene.source)
    return any(
        is_in_place_of(scene, other, made) and scene.settings.is_reached(scene.source, other) for other in others
    )


def _extent(scene: Scene) -> Iterator[Match]:
    for block in _autocasts(scene):
        if any(_is_step(scene, call) and _is_directly_in(scene, call, block) for call in scene.calls(Place.STEP)):
            yield Match(block)


def _scaler(scene: Scene) -> Iterator[Match]:
    """Only where every autocast of the program says bfloat16."""
    for call in scene.source.calling("GradScaler"):
        if not scene.name(call.func).startswith("torch."):
            continue
        enabled = argument(call, "enabled")
        is_on = enabled is None or scene.settings.value(scene.source, enabled) is True
        if is_on and not has_stars(call) and any(map(_is_all_bfloat16, scene.programs.of(scene.source))):
            yield Match(call)


# -- autocast ---------------------------------------------------------------------------------------------------


def _autocasts(scene: Scene) -> Iterator[ast.With]:
    """Blocks under autocast that is not known to be off."""
    for block in scene.source.all(ast.With):
        for item in block.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and last_word(call.func) == "autocast":
                worth = scene.settings.value(scene.source, argument(call, "enabled"))
                if isinstance(worth, Unknown) or worth:
                    yield block


def _is_step(scene: Scene, call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    return function.attr == "backward" or (
        function.attr == "step" and bool(_STEPS.fullmatch(last_word(function.value)))
    )


def _is_directly_in(scene: Scene, call: ast.Call, block: ast.With) -> bool:
    return scene.source.function(call) is scene.source.function(block) and block in scene.source.around(call)


def _is_all_bfloat16(program: Program) -> bool:
    kinds = [
        last_word(given) if (given := argument(call, "dtype", 1)) is not None else ""
        for source in program.sources
        for call in _calls_of_autocast(source)
        if not is_constant(argument(call, "enabled"), False)
    ]
    return bool(kinds) and all(kind == "bfloat16" for kind in kinds)


def _switched_off(scene: Scene) -> Iterator[ast.Call]:
    """The first autocast of a program in which none is on by default."""
    for program in scene.programs.of(scene.source):
        found = program.first(_optional_autocast) if program.uses_gpu and not program.names(_ELSEWHERE) else None
        if found is not None and found[0] is scene.source and _is_all_off(scene, program):
            assert isinstance(found[1], ast.Call)
            yield found[1]
            return


def _optional_autocast(heat: Heat, source: Source) -> ast.AST | None:
    """One in a step that is not off for good."""
    for call in _calls_of_autocast(source):
        if not is_constant(argument(call, "enabled"), False) and heat.of(source, call) is Place.STEP:
            return call
    return None


def _is_all_off(scene: Scene, program: Program) -> bool:
    return all(_is_off(scene, source, call) for source in program.sources for call in _calls_of_autocast(source))


def _calls_of_autocast(source: Source) -> Iterator[ast.Call]:
    yield from source.calling("autocast")


def _is_off(scene: Scene, source: Source, call: ast.Call) -> bool:
    enabled = argument(call, "enabled")
    is_false = enabled is not None and scene.settings.value(source, enabled) is False
    return is_false or not scene.settings.is_reached(source, call)


def _is_in_force(scene: Scene, node: ast.AST) -> bool:
    return scene.heat.of(scene.source, node) is Place.ONCE and scene.settings.is_reached(scene.source, node)


def _is_put_back(scene: Scene, assignment: ast.Assign) -> bool:
    """Whether the same switch is set again in the same function."""
    inside, name = scene.source.function(assignment), scene.name(assignment.targets[0])
    others = (a for a in scene.source.all(ast.Assign) if a is not assignment and scene.name(a.targets[0]) == name)
    return any(scene.source.function(other) is inside for other in others)


RULES = (
    Rule(
        code="no-autocast",
        message="all of training is in float32",
        costs="tensor cores do products of half precision several times as fast, and activations take half the memory",
        instead='forward and loss under `torch.autocast("cuda", dtype=torch.bfloat16)`; or, closer to float32, '
        '`torch.set_float32_matmul_precision("high")`',
        unsafe="training is known to need float32",
        risk="rounding",
        fix="amp",
        finding="compute-bound",
        match=_no_autocast,
    ),
    Rule(
        code="no-tf32",
        message="training is in float32 by default, its products not on tensor cores",
        costs="float32 products take several times as long without them",
        instead='`torch.set_float32_matmul_precision("high")`, or half precision by default',
        unsafe="training is known to need float32",
        risk="rounding",
        fix="tf32",
        finding="compute-bound",
        match=_no_tf32,
    ),
    Rule(
        code="autocast-extent",
        message="autocast goes around the backward pass or the optimizer, too",
        costs="what they compute themselves is cast to and fro; backward runs in the precision of its forward anyway",
        instead="only forward and loss under autocast",
        risk="rounding",
        finding="compute-bound",
        match=_extent,
    ),
    Rule(
        code="scaler-with-bf16",
        message="gradients are scaled although autocast is bfloat16",
        costs="bfloat16 needs no scaling; unscaling, and asking whether all is finite, makes every step wait",
        instead="no GradScaler, or `GradScaler(enabled=False)`",
        risk="rounding",
        finding="sync-bound",
        match=_scaler,
    ),
    Rule(
        code="not-fused",
        message="advice: the optimizer is not fused",
        costs="it takes several small kernels for each group of parameters, where one could do",
        instead="`fused=True`; a few percent where the optimizer counts at all",
        unsafe="it is given tensors on other devices",
        risk="rounding",
        fix="fused",
        finding="launch-bound",
        match=_not_fused,
    ),
    Rule(
        code="no-compile",
        message="advice: the model is not compiled",
        costs="every small operation is a kernel of its own, launched by Python",
        instead="try `model = torch.compile(model)` (`floorit try`); some models gain half, some lose",
        unsafe="shapes vary from step to step, or the model is Python that can't be traced",
        risk="rounding",
        fix="compile",
        finding="launch-bound",
        is_tentative=True,
        match=_no_compile,
    ),
)
