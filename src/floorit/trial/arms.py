"""What is compared: the program as it is, and the program with each change."""

from __future__ import annotations

import itertools
import re
import shlex
from typing import TypeAlias

import msgspec

from floorit.errors import UsageError
from floorit.fixes import ALL, asked
from floorit.fixes.fix import Risk
from floorit.fixes.values import Value
from floorit.trial import configs
from floorit.trial.configs import Entry
from floorit.typed import substitute

Variation: TypeAlias = list[str] | Entry

AS_IS = "as it is"
RISKS: tuple[Risk, ...] = ("exact", "rounding", "order", "training")
# What the program's own arguments do to its results is not ours to know.
_RISK_OF_ARGUMENTS: Risk = "training"
_BRACES = re.compile(r"\{([^{}]*)\}")


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One side of the comparison."""

    name: str
    command: list[str]  # as the user would type it
    fixes: dict[str, Value] = {}
    varied: list[str] = []  # words of the program's own arguments that are other than as it is
    entries: list[Entry] = []  # of configuration files, that are other than as it is
    texts: dict[str, str] = {}  # of files of the program, that are other than as it is: what it finds at each path
    risk: Risk = "exact"


def make(command: list[str], fixes: list[str], vary: list[str], *, each: bool, risk: Risk | None) -> list[Arm]:
    """The program as it is, then every combination of what is asked for; or, with `each`, one change at a time."""
    lists = asked.parse_lists(fixes)
    templates = [_expand(text, command) for text in vary]
    if not lists and not templates:
        raise UsageError("what is to be tried? For example: --fix workers=8, or --vary '--workers {2,4}'")
    changes = list[tuple[dict[str, Value], tuple[Variation, ...]]]()
    if each:
        changes += [({code: value}, ()) for code, values in lists.items() for value in values]
        changes += [({}, (variation,)) for template in templates for variation in template]
    else:
        varied = list(itertools.product(*templates))
        changes += [(chosen, variations) for chosen in asked.combinations(lists) for variations in varied]
    return [Arm(name=AS_IS, command=command), *(_arm(command, *change, risk) for change in changes)]


def _arm(command: list[str], fixes: dict[str, Value], varied: tuple[Variation, ...], risk: Risk | None) -> Arm:
    arguments = [variation for variation in varied if not isinstance(variation, Entry)]
    changed = command
    for words in arguments:
        changed = substitute(changed, words)
    return Arm(
        name=" ".join([*asked.written(fixes), *(str(v) if isinstance(v, Entry) else shlex.join(v) for v in varied)]),
        command=changed,
        fixes=fixes,
        varied=[word for words in arguments for word in words],
        entries=[variation for variation in varied if isinstance(variation, Entry)],
        risk=risk or riskiest(fixes, has_arguments=bool(varied)),
    )


def riskiest(fixes: dict[str, Value], *, has_arguments: bool = False) -> Risk:
    """The class of the change that may alter results most."""
    risks = [fix.risk for fix in ALL if fix.code in fixes] + [_RISK_OF_ARGUMENTS] * has_arguments
    return max(risks, key=RISKS.index, default="exact")


def _expand(text: str, command: list[str]) -> list[Variation]:
    """A template for each way to choose from its braces: `--workers {2,4}`, `hyp.yaml:mosaic={0,1}`."""
    chosen = [[part] for part in _BRACES.split(text)]
    for at in range(1, len(chosen), 2):  # what stood in braces
        chosen[at] = [value.strip() for value in chosen[at][0].split(",")]
        if not all(chosen[at]):
            raise UsageError(f"--vary {text!r}: a value in the braces is empty")
    return [_variation("".join(parts), command) for parts in itertools.product(*chosen)]


def _variation(text: str, command: list[str]) -> Variation:
    found = configs.entry(text, command)
    if found is not None:
        return found
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--vary {text!r}: {error}") from None
    if not words:
        raise UsageError("--vary is empty")
    return words
