"""What is said to people, in the language that they asked for.

All that is computed and stored is English; it is translated where it is drawn, sentence by sentence (catalogue.py).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TextIO

from floorit.errors import UsageError

if TYPE_CHECKING:
    from floorit.language.catalogue import Catalogue

ENGLISH = "en"
CODES = (ENGLISH, "zh-TW", "zh-CN")
VARIABLE = "FLOORIT_LANG"

_in_use = ENGLISH


class Code(str):
    """A word of the contract (a phase, a finding's code) or of the user's program: the same in every language."""

    __slots__ = ()


def named(text: str) -> str:
    """The language that is meant: zh-tw and zh_TW are zh-TW."""
    for code in CODES:
        if text.replace("_", "-").lower() == code.lower():
            return code
    raise UsageError(f"there is no language {text!r}; there are {', '.join(CODES)}")


def use(code: str) -> None:
    """From now on what is drawn is drawn in this language."""
    global _in_use
    _in_use = code


def in_use() -> str:
    """The language that is drawn in."""
    return _in_use


def said(text: str) -> str:
    """A text in the language in use; what no sentence of the catalogue matches stays as it is."""
    if _in_use == ENGLISH or isinstance(text, Code):
        return text
    return sentences(_in_use).say(text).text


def speaks_utf8(stream: TextIO) -> bool:
    """Whether it can be given any character."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


@cache
def sentences(code: str) -> Catalogue:
    """All sentences of a language."""
    from floorit.language.catalogue import read  # which English need not wait for

    return read(files(__package__).joinpath("locale", f"{code.replace('-', '_')}.po").read_text(encoding="utf-8"))
