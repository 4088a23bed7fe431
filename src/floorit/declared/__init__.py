"""What the program was told to use: configuration files and arguments, read into values with their places."""

from __future__ import annotations

from typing import Literal

import msgspec

Value = bool | int | float | str | None
By = Literal["argument", "file", "default"]  # in the order in which they outdo each other


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """One place that gives a setting a value."""

    setting: str
    scope: Literal["train", "eval"]
    key: str  # as it is written there: the last component, which may say what the value is about (fp16, bf16)
    value: Value
    by: By
    at: str  # file:line, or the words of the command line


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """All declarations of a run, and the files that could not be read."""

    declarations: list[Declaration] = []
    unread: dict[str, str] = {}  # file -> why


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the program, and the place that gives it its value."""

    name: str  # with its parent where it is a word that says nothing by itself; "" for a number that has no name
    value: Value
    file: str
    line: int  # 0: it was given on the command line
    option: str = ""  # of the command line, that the value is given by, or is the default of

    @property
    def is_typed(self) -> bool:
        """Whether a word of the command decides it."""
        return bool(self.option) and not self.line

    def turned(self, value: Value) -> Value:
        """What a fix of that value makes of it: of a switch the other way, of a number so many times as many; None
        where that is not told."""
        if isinstance(self.value, bool) and isinstance(value, bool):
            return not self.value
        if isinstance(self.value, bool | float | str) or isinstance(value, bool | float | str):
            return None
        return self.value * value if self.value is not None and value is not None and self.value > 0 else None
