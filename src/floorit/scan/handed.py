"""Settings that are handed on as a whole: to code of the project, or to something that is not seen here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from floorit.scan.entries import HOLDER, path_of
from floorit.scan.project import Class, Project, is_own
from floorit.scan.source import Source, dotted, last_word, walk

ALL = ""  # the word for settings as a whole, others being those of a section
# Calls that show settings, keep them or make another mapping of them, and read none by name.
_HARMLESS = frozenset(
    "print pprint pformat str repr len isinstance hasattr getattr setattr vars dict list sorted set tuple items keys"
    " values copy deepcopy asdict Namespace SimpleNamespace EasyDict edict Munch Box AttrDict update append format join"
    " info debug warning log dump dumps safe_dump to_yaml to_container create merge to_object resolve write write_text"
    " add_text add_hparams log_params log_hyperparams save_hyperparameters init init_trackers watch save open load"
    " safe_load set_struct makedirs exists zip enumerate parse_args type id get_default ljust rjust upper lower".split()
)
# Modules that know of no settings: what they are given is a value.
_KNOWS_NONE = re.compile(
    r"(?:torch|torchvision|cv2|numpy|np|os|math|time|PIL|matplotlib|shutil|pathlib|re|sys|random)\."
)
_WRAPS = frozenset("vars dict asdict copy deepcopy to_container to_object".split())
_OF_A_MODEL = re.compile(r"(?:.*_)?params")
_LOADS = ("parse_args", "parse_known_args", "safe_load", "full_load", "load", "loads", "fromfile", "cli", "from_file")
_HOPS = 5  # from a name to what it is set to: `args = vars(args)`
# Bases that make nothing of what they are given.
_INERT = frozenset("Module object Dataset IterableDataset ABC LightningModule LightningDataModule Enum dict".split())


class To(Enum):
    """Where settings go."""

    HERE = "the same file"
    PROJECT = "another file of the project"
    UNSEEN = "something that is not seen"


def handed_on(project: Project, source: Source, names: frozenset[str]) -> Iterator[tuple[str, To]]:
    """What a file hands on, by the word of its section, and where to; `names` are those of the project's functions."""
    for call in source.all(ast.Call):
        words = [word for given in _given(call) if (word := _settings(project, source, given)) is not None]
        if words:
            to = _goes_to(project, source, call, names)
            if to is not None:
                yield from ((word, to) for word in words)
        if _reads_by_variable(call):
            yield ALL, To.UNSEEN
    for loop in source.all(ast.For):
        if _goes_through(loop.iter) and not all(map(_is_harmless, _calls(loop.body))):
            yield ALL, To.UNSEEN


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    for keyword in call.keywords:
        yield keyword.value


def _settings(project: Project, source: Source, node: ast.AST, hops: int = _HOPS) -> str | None:
    """The word of the section that an expression is, ALL for settings as a whole, None for anything else."""
    while isinstance(node, ast.Call) and last_word(node.func) in _WRAPS:
        if node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    if is_own(node) and HOLDER.fullmatch(node.attr):
        owner = next((project.classes[here] for here in source.around(node) if isinstance(here, ast.ClassDef)), None)
        made = owner.attributes.get(node.attr) if owner is not None else None
        return ALL if _are_settings(project, source, made, hops) else None
    path = path_of(node)
    if path or not isinstance(node, ast.Name):
        return path[-1] if path else None
    made = project.assigned(source, node, node.id)
    if HOLDER.fullmatch(node.id) and not _OF_A_MODEL.fullmatch(node.id):
        is_class = isinstance(project.find(source, source.name(node)), Class)
        is_whole = _are_settings(project, source, made, hops) and not _takes_all(source, node)
        return ALL if is_whole and not is_class else None
    path = path_of(made) if made is not None else ()
    return path[-1] if path else None


def _are_settings(project: Project, source: Source, made: ast.expr | None, hops: int) -> bool:
    """Whether what a name is set to may be the program's settings; they come from a parser, a file or a parameter."""
    if hops == 0:
        return True
    if isinstance(made, ast.Call) and last_word(made.func) in _WRAPS:
        return bool(made.args) and _settings(project, source, made.args[0], hops - 1) == ALL
    if isinstance(made, ast.Call):
        return last_word(made.func) in _LOADS or bool(project.called(source, made))
    return not isinstance(made, (ast.Dict, ast.List, ast.Constant))


def _reads_by_variable(call: ast.Call) -> bool:
    """`getattr(args, name)`"""
    if last_word(call.func) != "getattr" or len(call.args) < 2 or isinstance(call.args[1], ast.Constant):
        return False
    return bool(HOLDER.fullmatch(last_word(call.args[0])))


def _takes_all(source: Source, node: ast.AST) -> bool:
    """Whether a name is a function's `*args` or `**params`."""
    inside = source.function(node)
    if inside is None or not isinstance(node, ast.Name):
        return False
    return any(given is not None and given.arg == node.id for given in (inside.args.vararg, inside.args.kwarg))


def _goes_to(project: Project, source: Source, call: ast.Call, names: frozenset[str]) -> To | None:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__":
        return To.PROJECT if _is_all_ours(project, source, call) else To.UNSEEN
    found = project.called(source, call)
    if found:
        return To.HERE if all(function.source is source for function in found) else To.PROJECT
    if isinstance(project.find(source, source.name(call.func)), Class):
        return To.PROJECT  # made without an __init__ of its own
    has_splat = any(keyword.arg is None for keyword in call.keywords)
    if _is_harmless(call) or (_KNOWS_NONE.match(source.name(call.func)) and not has_splat):
        return None
    if last_word(call.func) in names or not _is_foreign(source, call.func):
        return To.PROJECT
    return To.UNSEEN


def _is_all_ours(project: Project, source: Source, call: ast.Call) -> bool:
    """Whether what a class inherits from is of the project, or makes nothing of what it is given."""
    owner = next((project.classes[here] for here in source.around(call) if isinstance(here, ast.ClassDef)), None)
    if owner is None:
        return False
    outside = [name for one in project.family(owner) for name in one.bases if project.find(one.source, name) is None]
    return all(name.split(".")[-1] in _INERT for name in outside)


def _is_foreign(source: Source, function: ast.AST) -> bool:
    """Whether what is called is imported, or a method of we don't know what; else it is a variable."""
    if isinstance(function, ast.Name):
        return function.id in source.imports
    return isinstance(function, ast.Attribute)


def _is_harmless(call: ast.Call) -> bool:
    return last_word(call.func) in _HARMLESS


def _goes_through(node: ast.AST) -> bool:
    """`cfg.items()`, `vars(args).items()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "items":
        return False
    owner = node.func.value
    if isinstance(owner, ast.Call) and last_word(owner.func) in _WRAPS and owner.args:
        owner = owner.args[0]
    return bool(HOLDER.fullmatch(last_word(owner))) and dotted(owner) != ""


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    return (node for statement in body for node in walk(statement) if isinstance(node, ast.Call))
