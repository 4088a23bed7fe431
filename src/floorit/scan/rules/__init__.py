"""Every rule, in the order in which findings of the same line are shown."""

from __future__ import annotations

from floorit.scan.rule import Rule
from floorit.scan.rules import blocking, data, loaders, parallel, precision, switches, unused

ALL: tuple[Rule, ...] = (
    *blocking.RULES,
    *loaders.RULES,
    *switches.RULES,
    *precision.RULES,
    *parallel.RULES,
    *data.RULES,
    *unused.RULES,
)
