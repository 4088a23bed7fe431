"""Lines that hand the loop over to a library, as `trainer.fit(model)` does: what happens below needs another line.

Such a line leads to more than one part of a step. Where the program's innermost line is one, the look is shown at the
library's own innermost line; if that in turn hands over to another library, at that one's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from floorit.events import Place, Sample

# The parts of a step that one line leads to only where the loop is below it.
_PARTS = {
    "data_wait": "loader",
    "epoch_gap": "loader",
    "forward": "model",
    "loss": "model",
    "backward": "gradients",
    "recompute": "gradients",
    "optimizer": "optimizer",
}
FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers")
_INSTALLED = ("/site-packages/", "/dist-packages/")

Looks = dict[str, list[Sample]]  # by phase
Name = tuple[str, str]  # file, function
_Key = tuple[str, int]  # file, line


def resolve(looks: Looks) -> Looks:
    """The looks with the line that each is to be shown at as the user's."""
    drivers = _drivers(looks)
    return {phase: [_shown(sample, drivers) for sample in samples] for phase, samples in looks.items()}


def leading(looks: Looks) -> set[Name]:
    """Functions below which several parts of a step are: the loop, and what calls it."""
    parts: dict[Name, set[str]] = {}
    for phase, part in _PARTS.items():
        for sample in looks.get(phase, ()):
            for place in sample.stack:
                parts.setdefault((place.file, place.function), set()).add(part)
    return {name for name, led_to in parts.items() if len(led_to) > 1}


def package(file: str) -> str | None:
    """The installed package that a file is part of; None: it is the program's own."""
    for folder in _INSTALLED:
        _, found, inside = file.partition(folder)
        if found:
            return inside.partition("/")[0].removesuffix(".py")
    return None


def framework(samples: Iterable[Sample]) -> str | None:
    """The framework whose code was seen below a line of the program's, of those whose settings fixes can change."""
    seen = {package(place.file) for sample in samples for place in sample.stack if place.is_library}
    return next((name for name in FRAMEWORKS if name in seen), None)


def _drivers(looks: Looks) -> set[_Key]:
    """Lines from which a library is called that goes on to several parts of a step."""
    parts: dict[_Key, set[str]] = {}
    for phase, part in _PARTS.items():
        for sample in looks.get(phase, ()):
            for place in _handing_over(sample.stack):
                parts.setdefault((place.file, place.line), set()).add(part)
    return {key for key, led_to in parts.items() if len(led_to) > 1}


def _handing_over(stack: tuple[Place, ...]) -> Iterable[Place]:
    """The lines of a stack that call code of another library."""
    for inner, outer in pairwise(stack):
        if inner.is_library and package(inner.file) != package(outer.file):
            yield outer


def _shown(sample: Sample, drivers: set[_Key]) -> Sample:
    stack = sample.stack
    at = next((i for i, place in enumerate(stack) if place.is_users), len(stack))
    while at and (at == len(stack) or (stack[at].file, stack[at].line) in drivers):
        called = package(stack[at - 1].file)
        at = next(i for i, place in enumerate(stack) if package(place.file) == called)
    is_other = at < len(stack) and stack[at] is not sample.user
    return msgspec.structs.replace(sample, user=stack[at]) if is_other else sample
