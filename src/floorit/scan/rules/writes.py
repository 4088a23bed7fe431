"""What a program writes in every step: log lines, pictures, files."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from floorit.scan.project import Class
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import argument, dotted, has_stars, is_constant, last_word

_PRINTS = ("print", "tqdm.write", "tqdm.tqdm.write", "tqdm.auto.tqdm.write", "rich.print")
_TRACKS = re.compile(r"wandb\.(?:run\.)?log|mlflow\.log_\w+|swanlab\.log|trackio\.log|comet_ml\.\w+\.log_\w+")
_WRITER = re.compile(r"(?:\w+_)?(?:writer|summary_?writer|tb|tensorboard|tb_?logger|sw|board)", re.IGNORECASE)
_ADDS = re.compile(r"add_(?:scalars?|images?|histogram|figure|text|video|embedding|graph|audio|pr_curve)")
_LOGGER = re.compile(r"_?(?:logger|logging|log)", re.IGNORECASE)
_TRACKER = re.compile(r"accelerator|fabric|wandb|run|wandb_run|experiment", re.IGNORECASE)
_LEVELS = ("info", "warning", "error")
_DRAWS = re.compile(
    r"(?:matplotlib\.pyplot|plt|pyplot|seaborn)\.(?:plot|imshow|savefig|show|figure|subplots|scatter|hist|bar|close|pause|imsave)"
    r"|cv2\.(?:imwrite|imshow)|torchvision\.utils\.save_image|imageio\.(?:v2\.|v3\.)?(?:imwrite|imsave|mimsave)"
    r"|skimage\.io\.imsave"
)
_SAVES = re.compile(
    r"torch\.save|pickle\.dump|joblib\.dump|json\.dump|numpy\.(?:save|savez|savez_compressed|savetxt)|yaml\.dump"
)


def _each(scene: Scene, is_meant: Callable[[Scene, ast.Call], bool]) -> Iterator[ast.Call]:
    """The first of neighbouring calls of a kind, of those that surely run in every step."""
    last: tuple[ast.AST | None, int] = (None, 0)
    meant = [call for call in scene.source.all(ast.Call) if is_meant(scene, call)]
    for call in sorted(meant, key=lambda call: call.lineno):
        if not scene.heat.is_surely_in_step(scene.source, call):
            continue
        statement = scene.source.statement(call)
        block = scene.source.parents.get(statement)
        if (block, statement.lineno - 1) != last:
            yield call
        last = (block, statement.end_lineno or statement.lineno)


def _logs(scene: Scene) -> Iterator[Match]:
    for call in _each(scene, _is_log):
        yield Match(call, f"`{_shown(call)}` in every step")


def _is_log(scene: Scene, call: ast.Call) -> bool:
    name = scene.name(call.func)
    if name in _PRINTS or _TRACKS.fullmatch(name):
        return bool(call.args or call.keywords) and not has_stars(call) and not _is_bar(call)
    if not isinstance(call.func, ast.Attribute):
        return False
    owner, method = last_word(call.func.value), call.func.attr
    if _ADDS.fullmatch(method):
        is_writer = any(one.fullmatch(owner) for one in (_WRITER, _LOGGER)) or owner == "experiment"
        return is_writer and not _is_switched_off(scene, call.func.value)
    if method in _LEVELS:
        return bool(_LOGGER.fullmatch(owner))
    return method in ("log", "print") and dotted(call.func.value) != "self" and bool(_TRACKER.fullmatch(owner))


def _is_switched_off(scene: Scene, writer: ast.expr) -> bool:
    """Whether it is one of the project's own, made with a setting that says no: `Board(path, cfg["tensorboard"])`."""
    source, made = scene.source, scene.project.set_once(scene.source, writer, last_word(writer))
    if isinstance(writer, ast.Attribute):
        owner = scene.project.class_of(source, writer.value)
        family = scene.project.family(owner) if owner is not None else ()
        maker = next((one for one in family if writer.attr in one.attributes), None)
        source, made = (maker.source, maker.attributes[writer.attr]) if maker is not None else (source, None)
    if not isinstance(made, ast.Call) or not isinstance(scene.project.find(source, source.name(made.func)), Class):
        return False
    given = (*made.args, *(keyword.value for keyword in made.keywords))
    return any(scene.settings.value(source, one) is False for one in given if not isinstance(one, ast.Constant))


def _is_bar(call: ast.Call) -> bool:
    """`print(…, end="\\r")`, which rewrites its line: little is written."""
    return is_constant(argument(call, "end"), "\r", "") or argument(call, "file") is not None


def _plots(scene: Scene) -> Iterator[Match]:
    for call in _each(scene, lambda scene, call: bool(_DRAWS.fullmatch(scene.name(call.func)))):
        yield Match(call, f"`{_shown(call)}` in every step")


def _saves(scene: Scene) -> Iterator[Match]:
    for call in _each(scene, _is_save):
        yield Match(call, f"`{_shown(call)}` in every step")


def _is_save(scene: Scene, call: ast.Call) -> bool:
    if _SAVES.fullmatch(scene.name(call.func)):
        return True
    return _is_flush(scene, call)


def _is_flush(scene: Scene, call: ast.Call) -> bool:
    """`file.flush()` after `file.write(…)` in the same block."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "flush":
        return False
    owner = dotted(call.func.value)
    block = getattr(scene.source.parents.get(scene.source.statement(call)), "body", None)
    if not owner or owner.startswith("sys.") or not isinstance(block, list):
        return False
    return any(
        isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and dotted(one.value.func) == f"{owner}.write"
        for one in block
    )


def _shown(call: ast.Call) -> str:
    return f"{dotted(call.func) or last_word(call.func)}(…)"


RULES = (
    Rule(
        code="log-per-step",
        message="a log line in every step",
        costs="Python formats and writes it while the GPU has nothing to do, and the values must be waited for",
        instead="log every few dozen steps, the mean of the steps between",
        finding="logging-bound",
        match=_logs,
    ),
    Rule(
        code="plot-per-step",
        message="a picture is drawn in every step",
        costs="drawing and encoding a picture takes longer than most steps",
        instead="draw every few hundred steps",
        finding="logging-bound",
        is_tentative=True,
        match=_plots,
    ),
    Rule(
        code="save-per-step",
        message="a file is written in every step",
        costs="training stands still until it is written",
        instead="write every few hundred steps, or once an epoch",
        unsafe="what restarts from the file restarts further back",
        finding="checkpoint-bound",
        match=_saves,
    ),
)
