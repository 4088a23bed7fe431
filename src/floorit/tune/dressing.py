"""The program with changes, of which the size of batches may be the program's own argument."""

from __future__ import annotations

import re
import shlex

from floorit.fixes import asked
from floorit.fixes.values import Value
from floorit.trial.arms import Arm, riskiest
from floorit.trial.verdict import Outcome
from floorit.tune.candidates import BATCH
from floorit.typed import substitute


class Dressing:
    """Of one command; `batch_arg` is how the program itself is told the size, with {} for it."""

    def __init__(self, command: list[str], batch_arg: str | None) -> None:
        self._command, self._batch_arg = command, batch_arg

    def dress(self, stack: dict[str, Value], name: str | None = None) -> Arm:
        """The program with all of it."""
        words = self._words(stack[BATCH]) if BATCH in stack else []
        return Arm(
            name=name or " ".join(asked.written(stack)),
            command=substitute(self._command, words) if words else self._command,
            fixes={code: value for code, value in stack.items() if code != BATCH or not words},
            varied=words,
            risk=riskiest(stack),
        )

    def changes(self, of: Arm | Outcome) -> dict[str, Value]:
        """All that is changed in it, the size of batches as a fix."""
        fixes = of.fixes if isinstance(of.fixes, dict) else {fix.code: fix.value for fix in of.fixes}
        if self._batch_arg is None or of.command == self._command:
            return fixes
        numbers = {int(found) for word in of.command for found in re.findall(r"\d+", word)}
        typed = [size for size in sorted(numbers) if substitute(self._command, self._words(size)) == of.command]
        return {**fixes, BATCH: typed[0]} if typed else fixes

    def _words(self, size: Value) -> list[str]:
        return shlex.split(self._batch_arg.replace("{}", str(size))) if self._batch_arg is not None else []
