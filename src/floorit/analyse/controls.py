"""The program's own settings behind a cost: which of them say how often a line runs that time was spent at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from floorit.analyse.callers import Looks
from floorit.analyse.ledger import heaviest
from floorit.declared import Control, Value
from floorit.declared.gather import given
from floorit.events import Place, Sample
from floorit.scan.finding import Finding, Paced

# The fix that does something more rarely, and the phase that it takes time in.
PHASES = {"log-every": "logging", "eval-every": "eval", "checkpoint-every": "checkpoint"}
_LOGS = ("log-per-step", "plot-per-step")  # what reading the source calls logging in every step
RECOMPUTE, OWN_CODE = "recompute", "python-bound"


def find(
    looks: Looks, read: Iterable[Finding], paced: Sequence[Paced], recomputing: Iterable[Control], command: list[str]
) -> dict[str, list[Control]]:
    """By the code of the fix that they are the way to, or of the finding that names a function of the program's own."""
    typed = {name.replace("-", "_").lower(): (option, value) for name, option, value in given(command)}
    logging = [(finding.file, finding.line) for finding in read if finding.code in _LOGS]
    found = {code: _behind(looks.get(phase, ()), paced) for code, phase in PHASES.items()}
    found[OWN_CODE] = _behind(_of_heaviest(looks.get("other", ())), paced)
    found["log-every"] += [block for line in logging for block in paced if _covers(block, *line)]
    controls = {
        code: [_as_given(one, typed) for block in blocks for one in block.controls] for code, blocks in found.items()
    }
    controls[RECOMPUTE] = [one for one in (_as_given(one, typed) for one in recomputing) if one.value is True]
    return {code: list(dict.fromkeys(some)) for code, some in controls.items() if some}


def _behind(samples: Iterable[Sample], paced: Sequence[Paced]) -> list[Paced]:
    """The innermost of them around each look, those around most looks first."""
    around = Counter(at for sample in samples if (at := _innermost(sample, paced)) is not None)
    return [paced[at] for at, _ in around.most_common()]


def _of_heaviest(samples: Sequence[Sample]) -> list[Sample]:
    """Looks at the program's own function that takes most of them."""
    function = heaviest(samples)
    if function is None:
        return []
    own = (function.file, function.function)
    return [sample for sample in samples if any((at.file, at.function) == own for at in _places(sample))]


def _innermost(sample: Sample, paced: Sequence[Paced]) -> int | None:
    for place in _places(sample):
        here = [at for at, block in enumerate(paced) if _covers(block, place.file, place.line)]
        if here:
            return min(here, key=lambda at: paced[at].lines[1] - paced[at].lines[0])
    return None


def _places(sample: Sample) -> Iterator[Place]:
    yield from sample.stack or ([sample.user] if sample.user is not None else [])


def _covers(block: Paced, file: str, line: int) -> bool:
    return block.file == file and block.lines[0] <= line <= block.lines[1]


def _as_given(control: Control, typed: dict[str, tuple[str, Value]]) -> Control:
    """With the value that the command line gives, which outdoes a file and a default: `--save-every 2`, and with more
    in front of it `train.save_every=2`."""
    ends = [given for name, given in typed.items() if f".{name}".endswith(f".{control.name.lower()}")]
    if not control.name or not ends:
        return control
    option, value = ends[-1]
    return msgspec.structs.replace(control, value=value, option=option, file="", line=0)
