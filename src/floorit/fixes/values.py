"""Which values a fix can be applied with, as a person types them."""

from __future__ import annotations

import re

import msgspec

Value = bool | int | float | str | None
_SWITCH = {"on": True, "true": True, "off": False, "false": False}
_FACTOR = re.compile("x[1-9][0-9]*")


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """Words (`on` and `off` for true and false), or whole numbers from `least` to `most`, perhaps a factor (`x2`)."""

    words: tuple[bool | str, ...] = ()
    least: int = 0
    most: int = 0
    with_factors: bool = False
    default: Value = None  # where only the code is given; None: a value must be

    def parse(self, text: str) -> Value:
        """The value that is meant; ValueError where none is."""
        if self.words:
            value: bool | str = _SWITCH.get(text.lower(), text)
            if any(value is word or (value == word and isinstance(word, str)) for word in self.words):
                return value
        elif text.isdecimal() and self.least <= int(text) <= self.most:
            return int(text)
        elif self.with_factors and _FACTOR.fullmatch(text) and 2 <= int(text[1:]) <= self.most:
            return text
        raise ValueError(text)

    def __str__(self) -> str:
        if not self.words:
            factor = ", or a factor as in x2" if self.with_factors else ""
            return f"a whole number from {self.least} to {self.most}{factor}"
        return " or ".join(spelled(word) for word in self.words)


def spelled(value: object) -> str:
    """A value as it is typed."""
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def one_of(*words: str, default: str | None = None) -> Values:
    """One of these words."""
    return Values(words=words, default=default)


def whole(least: int, most: int, default: int | None = None) -> Values:
    """A whole number."""
    return Values(least=least, most=most, default=default)


def size(most: int, default: str) -> Values:
    """A whole number from 1, or by how many times what the program has."""
    return Values(least=1, most=most, with_factors=True, default=default)


SWITCH_ON = Values(words=(True, False), default=True)
SWITCH_OFF = Values(words=(True, False), default=False)
ONLY_ON = Values(words=(True,), default=True)
ONLY_OFF = Values(words=(False,), default=False)
