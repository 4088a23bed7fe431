"""Which files of a project are read."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from floorit.errors import UsageError

# Folders that hold no code of the project's own, code that is not there to train, or what a run has left.
_NOT_OURS = frozenset(
    "node_modules site-packages __pycache__ build dist venv env tests test log logs runs outputs wandb lightning_logs"
    " checkpoints backup backups".split()
)
_CONFIGS = {".yaml", ".yml", ".json", ".toml"}
_COMMANDS = {".md", ".rst", ".sh"}


def python(paths: Iterable[Path], exclude: tuple[str, ...] = ()) -> list[Path]:
    """Every Python file there, once, in order. A file that is named itself is read whatever it is called, but for
    files of settings."""
    return _unique(path for path in _found(paths, {".py"}, exclude) if path.suffix not in _CONFIGS)


def configs(paths: Iterable[Path], exclude: tuple[str, ...] = ()) -> list[Path]:
    """Every file of settings there."""
    return _unique(path for path in _found(paths, _CONFIGS, exclude) if path.suffix in _CONFIGS)


def commands(paths: Iterable[Path], exclude: tuple[str, ...] = ()) -> Iterator[Path]:
    """Every page and shell script there, looked for when the first is asked for."""
    folders = (path for path in paths if path.is_dir())
    yield from dict.fromkeys(path for folder in folders for path in _inside(folder, _COMMANDS, exclude))


def _unique(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))


def _found(paths: Iterable[Path], suffixes: set[str], exclude: tuple[str, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from _inside(path, suffixes, exclude)
        elif path.exists():
            yield path
        else:
            raise UsageError(f"there is no {path}")


def _inside(folder: Path, suffixes: set[str], exclude: tuple[str, ...]) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_ours(Path(here, name)) and not _matches(name, exclude))
        for name in sorted(names):
            path = Path(here, name)
            if path.suffix in suffixes and not _matches(str(path.relative_to(folder)), exclude):
                yield path


def _is_ours(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name not in _NOT_OURS and not Path(folder, "pyvenv.cfg").exists()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
