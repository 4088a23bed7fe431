"""In which order the arms run: at random, and the next time the other way round, so that drift falls on all alike."""

from __future__ import annotations

import random


def order(names: list[str], before: list[list[str]], dice: random.Random) -> list[str]:
    """The next round of these arms, after the rounds that were; with two arms every two rounds are ABBA or BAAB."""
    if len(before) % 2:
        mirrored = [name for name in reversed(before[-1]) if name in names]
        if len(mirrored) == len(names):
            return mirrored
    return dice.sample(names, len(names))
