"""Settings that the code never reads, or reads and then overrides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from floorit.declared import Value
from floorit.record.aliases import TRAIN, meaning
from floorit.scan.configs import Config
from floorit.scan.entries import is_certain
from floorit.scan.guards import evaluates
from floorit.scan.heat import Place
from floorit.scan.options import Entry, plain
from floorit.scan.reads import Reads
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import argument, dotted, last_word

# Besides what `floorit run` knows as a setting (record.aliases): how often something is logged, saved or evaluated,
# what is kept, and what is computed twice. Whoever sets one of these expects the training to be faster, slower or
# longer; other names are of a model or of its data, and unread ones are no matter of speed.
_MATTERS = re.compile(
    r"(?:log|print|save|eval|evaluation|val|validation|display|report|summary|ckpt|checkpoint|plot|vis)(?:ging)?_?"
    r"(?:every|interval|freq|frequency|period)(?:_\w+)?"
    r"|(?:use_)?cache(?:_images?|_data|_dataset|_ram|_in_ram)?"
    r"|(?:use_)?(?:gradient_|grad_|activation_)?(?:checkpointing|recompute)",
    re.IGNORECASE,
)
_KNOWN_TO_BE_UNREAD = re.compile(
    r"deprecat|unused|not used|no longer|ignored|legacy|compat|not implemented|todo|suppress", re.I
)
_LINES_OF_AN_OPTION = 4
# Where a setting takes effect -> the setting, by its name in record.aliases.
_FLAGS = {
    "torch.backends.cudnn.benchmark": "cudnn.benchmark",
    "torch.backends.cudnn.deterministic": "cudnn.deterministic",
    "torch.backends.cuda.matmul.allow_tf32": "matmul.allow_tf32",
}
_ARGUMENTS = {
    "DataLoader": {name: name for name in ("batch_size", "pin_memory", "persistent_workers", "prefetch_factor")},
    "autocast": {"enabled": "autocast"},
    "GradScaler": {"enabled": "autocast"},
}
_IN_MAPPINGS = {"num_workers": "num_workers"}  # in the call itself it is a matter of the rules for loaders
_MADE_THERE = ("CfgNode", "CN", "Namespace", "SimpleNamespace", "edict", "EasyDict", "dict", "Config", "ConfigDict")


def _unread_options(scene: Scene) -> Iterator[Match]:
    source, reads = scene.source, scene.reads
    if source not in reads.training:
        return
    for found in scene.project.entries.options.values():
        for entry in found:
            if entry.path == source.path and _matters(entry):
                lines = source.lines[entry.line - 1 : entry.line - 1 + _LINES_OF_AN_OPTION]
                if reads.is_unread(entry) and not _KNOWN_TO_BE_UNREAD.search(" ".join(lines)):
                    yield Match(entry.line, f"`{entry.name}` is read nowhere in the code")


def _unread_entries(config: Config, reads: Reads) -> Iterator[Match]:
    if not reads.training or not _MAY_MATTER.search(config.text):
        return
    for entry in config.entries:
        if entry.value in (None, False, 0, "") or _KNOWN_TO_BE_UNREAD.search(config.lines[entry.line - 1]):
            continue
        if _matters(entry) and reads.is_unread(entry):
            yield Match(entry.line, f"`{entry.key}` is read nowhere in the code")


def _overridden(scene: Scene) -> Iterator[Match]:
    if scene.source in scene.reads.training:
        yield from _written(scene)
        yield from _fixed(scene)


def _written(scene: Scene) -> Iterator[Match]:
    """`args.workers = 0`, whatever the command line says."""
    entries = scene.project.entries
    for name, places in entries.writes.items():
        for source, statement in places:
            if source is not scene.source or not _is_setting(name):
                continue
            target, value = statement.targets[0], plain(statement.value)
            if value is None or _is_made_there(scene, target) or _evaluates(scene, statement, target):
                continue
            other = _otherwise(entries.named(name), value, scene)
            if other is not None:
                yield Match(statement, f"`{dotted(target) or name}` is set to {value!r}, whatever {_place(other)} says")


def _fixed(scene: Scene) -> Iterator[Match]:
    """`cudnn.benchmark = False` where the configuration has an entry for it that nothing reads."""
    for node, setting, value in _effects(scene):
        for entry in _of_setting(scene, setting):
            if _differs(entry.value, value) and scene.reads.is_unread(entry, live=True):
                yield Match(node, f"fixed here to {value!r}: {_place(entry)} says {entry.value!r}, and is not read")
                break


def _effects(scene: Scene) -> Iterator[tuple[ast.AST, str, Value]]:
    """Where a constant decides a setting."""
    source = scene.source
    for statement in source.all(ast.Assign):
        setting = _FLAGS.get(source.name(statement.targets[0]))
        value = plain(statement.value)
        if setting is not None and value is not None and is_certain(source, statement):
            yield statement, setting, value
    found: dict[tuple[ast.AST, str], Value] = {}
    for call in source.all(ast.Call):
        last = last_word(call.func)
        if last not in _ARGUMENTS or scene.heat.of(source, call) is Place.EVALUATION:
            continue
        for name, setting in _ARGUMENTS[last].items():
            found[call, setting] = plain(argument(call, name))
        for made in _splatted(scene, call):
            for name, setting in (*_ARGUMENTS[last].items(), *_IN_MAPPINGS.items()):
                found[made, setting] = plain(argument(made, name))
    yield from ((node, setting, value) for (node, setting), value in found.items() if value is not None)


def _splatted(scene: Scene, call: ast.Call) -> Iterator[ast.Call]:
    """The `dict(…)` that a call is given as `**args`."""
    for keyword in call.keywords:
        made: ast.expr | None = keyword.value if keyword.arg is None else None
        while isinstance(made, ast.Name):
            made = scene.project.assigned(scene.source, made, made.id)
            if isinstance(made, ast.Call) and last_word(made.func) == "dict" and not made.keywords and made.args:
                made = made.args[0]
        if isinstance(made, ast.Call) and last_word(made.func) == "dict":
            yield made


def _of_setting(scene: Scene, setting: str) -> Iterator[Entry]:
    entries = scene.project.entries
    candidates: Iterable[Entry] = (e for found in entries.options.values() for e in found if e.by == "option")
    for entry in (*candidates, *(e for c in entries.configs for e in c.entries)):
        if _meaning(entry.key) == (setting, TRAIN):
            yield entry


def _otherwise(found: list[Entry], value: Value, scene: Scene) -> Entry | None:
    """An entry that says something else, of those that this program can be given."""
    own = {source.path for source in scene.reads.training}
    return next(
        (e for e in found if e.by != "field" and (e.by == "file" or e.path in own) and _differs(e.value, value)), None
    )


def _differs(said: Value, value: Value) -> bool:
    return said is not None and (type(said), said) != (type(value), value)


def _matters(entry: Entry) -> bool:
    return _is_setting(entry.key)


def _meaning(key: str) -> tuple[str, str] | None:
    """The setting that a key declares, and whether that is for training or evaluation."""
    meant: tuple[str, str, str] | None = meaning(key)
    return meant[:2] if meant is not None else None


def _is_setting(key: str) -> bool:
    meant = _meaning(key)
    if meant is not None:
        return meant[1] == TRAIN
    return bool(_MATTERS.fullmatch(key.rpartition(".")[2]))


def _is_made_there(scene: Scene, target: ast.AST) -> bool:
    """Whether the settings are those of a mapping that the same code makes: this is where they are defined."""
    assert isinstance(target, (ast.Attribute, ast.Subscript))
    owner = target.value
    if not isinstance(owner, ast.Name):
        return False
    made = scene.project.assigned(scene.source, owner, owner.id)
    if isinstance(made, (ast.Dict, ast.Constant)):
        return True
    return isinstance(made, ast.Call) and last_word(made.func) in _MADE_THERE


def _evaluates(scene: Scene, statement: ast.stmt, target: ast.AST) -> bool:
    inside = scene.source.function(statement)
    name = "" if inside is None or isinstance(inside, ast.Lambda) else inside.name
    assert isinstance(target, (ast.Attribute, ast.Subscript))
    return any(evaluates(word) for word in (name, last_word(target.value), scene.source.path.stem))


def _place(entry: Entry) -> str:
    return f"--{entry.name.replace('_', '-')}" if entry.by == "option" else f"{entry.path.name}:{entry.line}"


_MAY_MATTER = re.compile(
    r"worker|batch|bs|gpu|prefetch|pin_mem|drop_last|shuffle|bench|determinis|tf32|precision|amp|autocast|fp16|float16|half"
    r"|bf16|compile|channels_last|accum|epoch|step|iter|lr|learning_rate|fused|foreach|anomaly|unused_param|graph|bucket"
    r"|threads|every|interval|freq|period|cache|recompute|checkpointing",
    re.IGNORECASE,
)

_ASKED = "what it asks for does not happen; whoever changes it measures nothing"

RULES = (
    Rule(
        code="unread-entry",
        message="a setting that is read nowhere",
        costs=_ASKED,
        instead="read it where it should take effect, or take it out",
        unsafe="a library reads it",
        risk="training",
        finding="setting-ignored",
        match=_unread_options,
        match_config=_unread_entries,
    ),
    Rule(
        code="overridden-entry",
        message="a setting that the code overrides",
        costs=_ASKED,
        instead="use the setting here, or take it out",
        unsafe="the constant is meant, and the setting is for something else",
        risk="training",
        finding="setting-ignored",
        match=_overridden,
    ),
)
