"""The command lines in a project's pages and shell scripts; read when something in them is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

LARGEST = 200_000  # bytes: what is larger is data
_COMMAND = re.compile(r"\.py\b|\bpython|\s--?[a-z]|^\s*[A-Za-z_]+=|torchrun|accelerate")
_LAUNCHES = re.compile(r"torch\.distributed\.(?:launch|run)|torchrun|accelerate launch|deepspeed|srun|mpirun")


class Commands:
    """Of a project."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = paths
        self._given: dict[tuple[str, ...], list[str]] = {}

    @cached_property
    def text(self) -> str:
        """Every line that may be part of one, with those that go on from it."""
        lines = (line for path in self._paths for line in _read(path).replace("\\\n", " ").splitlines())
        return "\n".join(line for line in lines if _COMMAND.search(line))

    def given(self, option: str, unless: Iterable[str] = ()) -> list[str]:
        """What an option is given, but where one of some others is as well."""
        key = (option, *unless)
        if key not in self._given:
            others = [re.compile(rf"--?{_spelt(other)}\b") for other in key[1:]]
            lines = (line for line in self.text.splitlines() if not any(one.search(line) for one in others))
            text = "\n".join(lines) if others else self.text
            self._given[key] = re.findall(rf"--?{_spelt(option)}[ =]+['\"]?([^\s'\"\\]+)", text)
        return self._given[key]

    def launch(self, file: str) -> bool:
        """Whether a file is run in some of them, and always by something that starts several processes."""
        lines = [line for line in self.text.splitlines() if re.search(rf"(?<![\w-]){re.escape(file)}", line)]
        return bool(lines) and all(map(_LAUNCHES.search, lines))

    def name(self, word: str) -> bool:
        """Whether a word stands in one of them."""
        return stands_in(word.lower(), self._lowered)

    @cached_property
    def _lowered(self) -> str:
        return self.text.lower()


def stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text; most do not, which is told without a pattern."""
    return word in text and re.search(rf"\b{re.escape(word)}\b", text) is not None


def _spelt(option: str) -> str:
    return re.escape(option).replace("_", "[-_]")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= LARGEST else ""
    except OSError:
        return ""
