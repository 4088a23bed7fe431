"""Settings that the code never reads, or reads and then overrides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.declared import Value
from floorit.record.aliases import TRAIN
from floorit.scan.configs import Config
from floorit.scan.effects import effects
from floorit.scan.guards import evaluates
from floorit.scan.options import Entry, plain
from floorit.scan.reads import Reads, declares
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import dotted, last_word

# Besides what `floorit run` knows as a setting (record.aliases): how often something is logged, saved or evaluated,
# what is kept, and what is computed twice. Whoever sets one of these expects the training to be faster, slower or
# longer; other names are of a model or of its data, and unread ones are no matter of speed.
_MATTERS = re.compile(
    r"(?:log|print|eval|evaluation|val|validation|display|report|summary|plot|vis)(?:ging)?_?"
    r"(?:every|interval|freq|frequency|period)(?:_\w+)?"
    r"|(?:use_)?cache(?:_images?|_data|_dataset|_ram|_in_ram)?"
    r"|(?:use_)?(?:gradient_|grad_|activation_)?(?:checkpointing|recompute)",
    re.IGNORECASE,
)
_KNOWN_TO_BE_UNREAD = re.compile(
    r"deprecat|unused|not used|no longer|ignored|legacy|compat|not implemented|todo|suppress", re.I
)
_LINES_OF_AN_OPTION = 4
_MADE_THERE = ("CfgNode", "CN", "Namespace", "SimpleNamespace", "edict", "EasyDict", "dict", "Config", "ConfigDict")


def _unread_options(scene: Scene) -> Iterator[Match]:
    source, reads = scene.source, scene.reads
    if source not in reads.training:
        return
    for entry in scene.project.entries.options_by_file.get(source.path, ()):
        if _is_setting(entry.key):
            lines = source.lines[entry.line - 1 : entry.line - 1 + _LINES_OF_AN_OPTION]
            if not _KNOWN_TO_BE_UNREAD.search(" ".join(lines)) and _is_unread(entry, reads):
                yield Match(entry.line, f"`{entry.name}` is read nowhere in the code")


def _unread_entries(config: Config, reads: Reads) -> Iterator[Match]:
    """Each key in the first of the files that have it."""
    if not reads.training or not _MAY_MATTER.search(config.text):
        return
    for entry in config.entries:
        same = reads.asked[entry.key] if _is_setting(entry.key) else []
        if not same or same[0] is not entry or _KNOWN_TO_BE_UNREAD.search(config.lines[entry.line - 1]):
            continue
        if _is_unread(entry, reads):
            others = f", here and in {len(same) - 1} more files" if len(same) > 1 else ""
            yield Match(entry.line, f"`{entry.key}` is read nowhere in the code{others}")


def _is_unread(entry: Entry, reads: Reads) -> bool:
    """Whether nothing reads it, and no constant that stands for it can be shown instead."""
    meant = declares(entry.key)
    fixed = reads.fixed.get(meant[0], ()) if meant is not None else ()
    return not any(_differs(entry.value, value) for value in fixed) and reads.is_unread(entry)


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
    for node, setting, value in effects(scene.project, scene.heat, scene.source):
        own = {source.path for source in scene.programs.beside(scene.source)}
        for entry in scene.reads.declared(setting):
            if entry.by == "option" and entry.path not in own:
                continue  # another program's
            if _differs(entry.value, value) and scene.reads.is_unread(entry, live=True):
                yield Match(node, f"fixed here to {value!r}: {_place(entry)} says {entry.value!r}, and is not read")
                break


def _otherwise(found: list[Entry], value: Value, scene: Scene) -> Entry | None:
    """An entry that says something else, of those that this program can be given."""
    own = {source.path for source in scene.reads.training}
    return next(
        (e for e in found if e.by != "field" and (e.by == "file" or e.path in own) and _differs(e.value, value)), None
    )


def _differs(said: Value, value: Value) -> bool:
    return said is not None and (type(said), said) != (type(value), value)


def _is_setting(key: str) -> bool:
    meant = declares(key)
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
