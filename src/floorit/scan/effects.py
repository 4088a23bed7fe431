"""Where a constant in the code decides a setting."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floorit.declared import Value
from floorit.scan.heat import Heat, Place
from floorit.scan.options import is_certain, plain
from floorit.scan.project import Project
from floorit.scan.source import Source, argument, last_word

# What is set or given -> the setting, by its name in record.aliases.
_FLAGS = {
    "torch.backends.cudnn.benchmark": "cudnn.benchmark",
    "torch.backends.cudnn.deterministic": "cudnn.deterministic",
    "torch.backends.cuda.matmul.allow_tf32": "matmul.allow_tf32",
}
_WORDS = frozenset(name.rpartition(".")[2] for name in _FLAGS)
_ARGUMENTS = {
    "DataLoader": {name: name for name in ("batch_size", "pin_memory", "persistent_workers", "prefetch_factor")},
    "autocast": {"enabled": "autocast"},
    "GradScaler": {"enabled": "autocast"},
}
_IN_MAPPINGS = {"num_workers": "num_workers"}  # in the call itself it is a matter of the rules for loaders


def effects(project: Project, heat: Heat, source: Source) -> Iterator[tuple[ast.AST, str, Value]]:
    """Of a file: what gives a setting a constant, which setting, and the constant."""
    for statement in source.all(ast.Assign):
        if last_word(statement.targets[0]) not in _WORDS:
            continue
        setting = _FLAGS.get(source.name(statement.targets[0]))
        value = plain(statement.value)
        if setting is not None and value is not None and is_certain(source, statement):
            yield statement, setting, value
    found: dict[tuple[ast.AST, str], Value] = {}
    for call in source.calling(*_ARGUMENTS):
        arguments = _ARGUMENTS.get(last_word(call.func))
        if arguments is None or heat.of(source, call) is Place.EVALUATION:
            continue
        for name, setting in arguments.items():
            found[call, setting] = plain(argument(call, name))
        for made in _splatted(project, source, call):
            for name, setting in (*arguments.items(), *_IN_MAPPINGS.items()):
                found[made, setting] = plain(argument(made, name))
    yield from ((node, setting, value) for (node, setting), value in found.items() if value is not None)


def _splatted(project: Project, source: Source, call: ast.Call) -> Iterator[ast.Call]:
    """The `dict(…)` that a call is given as `**args`."""
    for keyword in call.keywords:
        made: ast.expr | None = keyword.value if keyword.arg is None else None
        seen: set[str] = set()
        while isinstance(made, ast.Name) and made.id not in seen:
            seen.add(made.id)
            made = project.assigned(source, made, made.id)
            if isinstance(made, ast.Call) and last_word(made.func) == "dict" and not made.keywords and made.args:
                made = made.args[0]
        if isinstance(made, ast.Call) and last_word(made.func) == "dict":
            yield made
