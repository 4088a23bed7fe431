"""A command whose writes are kept from the user's files: which way works here, and how it is started (see `apart`)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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

    def around(self, command: list[str]) -> list[str]:
        """The command that runs `command` in it."""
        return [*_words(self.way, self.kept, self.scratch), "--", *command]


@contextmanager
def sandbox(kept: Path) -> Iterator[Sandbox | None]:
    """The best way that works here; None where there is none. What is left in it is gone at the end."""
    # Temporary files may go there; sockets among them, so its path must be short.
    with tempfile.TemporaryDirectory(prefix="floorit-") as scratch:
        way = next((way for way in (apart.OVERLAY, apart.GUARD) if _works(way, kept, scratch)), None)
        yield None if way is None else Sandbox(way=way, kept=kept, scratch=scratch)


def _words(way: str, kept: Path, scratch: str) -> list[str]:
    memory = int(MEMORY_SHARE * psutil.virtual_memory().available)
    folders = (str(kept), scratch) if way == apart.GUARD else (str(kept),)
    keep = [word for folder in folders for word in ("--keep", folder)]
    return [sys.executable, apart.__file__, *keep, "--scratch", scratch, "--memory", str(memory), way]


def _works(way: str, kept: Path, scratch: str) -> bool:
    tried = subprocess.run(_words(way, kept, scratch), capture_output=True, check=False)
    return tried.returncode == 0
