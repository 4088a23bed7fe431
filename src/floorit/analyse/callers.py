"""Which of the program's lines asked for the work that looks at the stack have seen."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from floorit.analyse.ledger import Line, lines
from floorit.events import Place, Sample

Looks = dict[str, list[Sample]]  # by phase
_EVALUATION = re.compile(r"(^|[_.])(eval|valid|test|estimate_loss)", re.IGNORECASE)  # in the name of a function
_TRAINING = ("forward", "loss", "backward", "recompute", "optimizer")


def checkpoint_calls(looks: Looks) -> list[Line]:
    """The calls of `checkpoint()`, by how much of the forward pass is inside each: that is what is computed again.

    In the backward pass the frames that led to a call are gone, so they are found in the forward pass.
    """
    return _asking((sample, _checkpoint_call(sample.stack)) for sample in _of(looks, "forward", "loss"))


def leaving_training(phase: str, looks: Looks) -> list[Line]:
    """The lines at which the looks of a phase leave the way that training takes: there, the loop asks for it."""
    usual = {(place.file, place.line) for sample in _of(looks, *_TRAINING) for place in sample.stack}
    return _asking((sample, _first_unusual(sample.stack, usual)) for sample in _of(looks, phase))


def may_be_trained_on(looks: Looks, evals: float, has_loader: bool) -> bool:
    """Whether what the model computes without gradient may be what it is then trained on, as rollouts are.

    It is evaluation where it goes through a loader, beside one, or in a function that is called so.
    """
    names = (place.function for sample in looks.get("eval", ()) for place in sample.stack)
    return not evals and not has_loader and not any(map(_EVALUATION.search, names))


def _first_unusual(stack: tuple[Place, ...], usual: set[tuple[str, int]]) -> Place | None:
    """The outermost line of the program's that never leads to training; where all do, that of a library."""
    unusual = [place for place in reversed(stack) if (place.file, place.line) not in usual]
    return next((place for place in unusual if place.is_users), next(iter(unusual), None))


def _checkpoint_call(stack: tuple[Place, ...]) -> Place | None:
    """The user's line from which activation checkpointing was called; no other line of a stack is torch's."""
    inside = False
    for place in stack:
        if inside and place.is_users:
            return place
        inside = inside or not (place.is_users or place.is_library)
    return None


def _of(looks: Looks, *phases: str) -> Iterable[Sample]:
    return (sample for phase in phases for sample in looks.get(phase, ()))


def _asking(found: Iterable[tuple[Sample, Place | None]]) -> list[Line]:
    """The lines found, as if the looks had fallen on them."""
    return lines(msgspec.structs.replace(sample, user=at, leaf=at) for sample, at in found if at is not None)
