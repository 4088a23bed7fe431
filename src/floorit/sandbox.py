"""A command whose writes are kept away, or that is shown other files: which way works here, and how (see `apart`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from floorit import apart

MEMORY_SHARE = 0.25  # of the memory that is free, for what the command writes
_HOW = {
    apart.OVERLAY: "in a mount namespace of its own: it finds its files, and what it writes is gone afterwards",
    apart.GUARD: "under a guard that refuses every write outside of the run's folder",
}


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """A way that works here, for one command."""

    way: str
    kept: Path  # a folder that really is written to
    scratch: str

    @property
    def meaning(self) -> str:
        """The way, in words."""
        return _HOW[self.way]

    @property
    def refuses(self) -> bool:
        """Whether a write fails, where it does not go to a copy that is thrown away."""
        return self.way == apart.GUARD

    @property
    def environ(self) -> dict[str, str]:
        """Where writes are refused, temporary files have a place all the same."""
        return {"TMPDIR": self.scratch} if self.refuses else {}

    @property
    def can_show(self) -> bool:
        """Whether a file can be another one to the command."""
        return self.way == apart.OVERLAY

    def around(self, command: list[str], shown: Mapping[str, Path] | None = None) -> list[str]:
        """The command that runs `command` in it; at each of these paths it finds that file."""
        return [*_words(self.way, self.kept, self.scratch, _shown(shown or {})), "--", *command]


@contextmanager
def sandbox(kept: Path) -> Iterator[Sandbox | None]:
    """The best way that works here; None where there is none. What is left in it is gone at the end."""
    # Temporary files may go there; sockets among them, so its path must be short.
    with tempfile.TemporaryDirectory(prefix="floorit-") as scratch:
        way = next((way for way in (apart.OVERLAY, apart.GUARD) if _works(way, kept, scratch)), None)
        yield None if way is None else Sandbox(way=way, kept=kept, scratch=scratch)


def can_show() -> bool:
    """Whether a command can be shown other files where nothing else is kept from it."""
    return _succeeds(_showing({}))


def showing(command: list[str], shown: Mapping[str, Path]) -> list[str]:
    """The command that runs `command` where it finds that file at each of these paths, and all else as it is."""
    return [*_showing(shown), "--", *command]


def write(texts: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """The texts of files, in files to be shown in their places: in the same encoding, with the same rights."""
    files = {path: folder / str(number) / Path(path).name for number, path in enumerate(texts)}
    for path, file in files.items():
        file.parent.mkdir(parents=True)
        file.write_bytes(texts[path].encode(_encoding(path)))
        with suppress(OSError):
            shutil.copymode(path, file)
    return files


def _encoding(path: str) -> str:
    """Source may name its own."""
    try:
        with open(path, "rb") as file:
            return tokenize.detect_encoding(file.readline)[0] if path.endswith(".py") else "utf-8"
    except (OSError, SyntaxError):
        return "utf-8"


def _shown(files: Mapping[str, Path]) -> list[str]:
    return [word for path, file in files.items() for word in ("--show", str(file), os.path.realpath(path))]


def _showing(files: Mapping[str, Path]) -> list[str]:
    return [sys.executable, apart.__file__, *_shown(files), apart.SHOWN]


def _words(way: str, kept: Path, scratch: str, more: Sequence[str] = ()) -> list[str]:
    memory = int(MEMORY_SHARE * psutil.virtual_memory().available)
    folders = (str(kept), scratch) if way == apart.GUARD else (str(kept),)
    keep = [word for folder in folders for word in ("--keep", folder)]
    return [sys.executable, apart.__file__, *keep, "--scratch", scratch, "--memory", str(memory), *more, way]


def _works(way: str, kept: Path, scratch: str) -> bool:
    return _succeeds(_words(way, kept, scratch))


def _succeeds(words: list[str]) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
