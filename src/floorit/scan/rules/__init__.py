"""Every rule, in the order in which findings of the same line are shown."""

from __future__ import annotations

from floorit.scan.rule import Rule
from floorit.scan.rules import (
    again,
    blocking,
    data,
    gradients,
    hidden,
    loaders,
    loops,
    parallel,
    precision,
    switches,
    transfers,
    unused,
    writes,
)

ALL: tuple[Rule, ...] = (
    *blocking.RULES,
    *hidden.RULES,
    *loops.RULES,
    *again.RULES,
    *transfers.RULES,
    *writes.RULES,
    *gradients.RULES,
    *loaders.RULES,
    *switches.RULES,
    *precision.RULES,
    *parallel.RULES,
    *data.RULES,
    *unused.RULES,
)
