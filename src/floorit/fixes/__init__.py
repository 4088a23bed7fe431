"""Changes that may make a program faster, each with what it should gain in a given run."""

from __future__ import annotations

from floorit.fixes import compute, habits, loader, memory, ranks, transfers
from floorit.fixes.fix import Fix

ALL: tuple[Fix, ...] = (
    *loader.FIXES,
    *transfers.FIXES,
    *compute.FIXES,
    *habits.FIXES,
    *memory.FIXES,
    *ranks.FIXES,
)
