"""Which files of settings belong to the code, and what they say; parsed when something in them is asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from floorit.declared.files import Unreadable, entries
from floorit.scan.commands import LARGEST, Commands
from floorit.scan.options import Entry
from floorit.scan.source import File, Source

_FOLDER = re.compile(
    r"(?:.*[_-])?(?:configs?|configurations?|cfgs?|conf|confs|hyps?|hparams?|settings|options|recipes?|experiments?)"
)
_OF_TOOLS = re.compile(
    r"\..*|mkdocs.*|docker-compose.*|compose|package(?:-lock)?|tsconfig.*|pyproject|environment.*|conda.*|meta|codecov"
    r"|requirements.*|Cargo|action|dependabot|tokenizer.*|vocab.*|special_tokens_map|renovate|cog|CITATION|setup"
    r"|_config|book|netlify|vercel|manifest|Pipfile|uv|tox|ruff|mypy|cspell.*|readthedocs|index|launch|sweep.*"
)
_FILE = re.compile(r"[\w.-]+\.(?:ya?ml|json|toml|py)\b")
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_PLAIN = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Expr, ast.Delete)


class Config(File):
    """One file of settings: YAML, JSON, TOML, or Python that only gives names to values."""

    @cached_property
    def said(self) -> str:
        """Its text without comments: what is only listed there as possible is not chosen."""
        return _COMMENT.sub("", self.text)

    @cached_property
    def entries(self) -> list[Entry]:
        """What it says; nothing if it is not what its name says."""
        try:
            found = [entry for entry in entries(self.text, self.path.suffix) if not entry.holds_more]
        except Unreadable:
            return []
        return [Entry(key=e.key, value=e.value, path=self.path, line=e.line, by="file") for e in found]


def belonging(paths: Iterable[Path], sources: list[Source], commands: Commands) -> list[Config]:
    """Files that the code, a command line or one of them names, and those in a folder whose name says that they are
    settings."""
    waiting = [path for path in paths if not _OF_TOOLS.fullmatch(path.stem)]
    words = _named_in(sources)
    if waiting:
        words.update(_with_variants(set(_FILE.findall(commands.text)), waiting))
    above = depth([*waiting, *(source.path for source in sources)])
    found = [Config(s.path, s.text) for s in sources if is_plain(s) and _is_reached(s.path, words, above)]
    new = found
    while True:
        words.update(word for config in new for word in _FILE.findall(config.text))
        new = [config for path in waiting if _is_reached(path, words, above) for config in _read(path)]
        if not new:
            return found
        found += new
        read = {config.path for config in new}
        waiting = [path for path in waiting if path not in read]


def _with_variants(named: set[str], paths: list[Path]) -> Iterator[str]:
    """Names, and those of files beside such that begin with the same word: config_a.json, config_b.json."""
    yield from named
    kinds = {_kind(path) for path in paths if path.name in named}
    yield from (path.name for path in paths if _kind(path) in kinds)


def _kind(path: Path) -> tuple[Path, str, str]:
    return path.parent, re.split(r"[^a-zA-Z]", path.stem)[0], path.suffix


def _read(path: Path) -> Iterator[Config]:
    try:
        if path.stat().st_size <= LARGEST:
            yield Config(path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return


def is_plain(source: Source) -> bool:
    """Whether a Python file only gives names to values."""
    body = source.tree.body
    return any(isinstance(s, ast.Assign) for s in body) and all(isinstance(statement, _PLAIN) for statement in body)


def _named_in(sources: list[Source]) -> set[str]:
    """The files that texts in the code name: `configs/base.yaml` says base.yaml."""
    found: set[str] = set()
    for source in sources:
        for constant in source.all(ast.Constant):
            if isinstance(constant.value, str) and "." in constant.value and len(constant.value) < 200:
                found.add(constant.value.replace("\\", "/").rpartition("/")[2])
    return found


def _is_reached(path: Path, words: set[str], above: int) -> bool:
    return path.name in words or any(_FOLDER.fullmatch(folder.lower()) for folder in path.parts[above:-1])


def depth(paths: list[Path]) -> int:
    """How many folders all have in common: what these are called is no matter of the project."""
    folders = [path.parts[:-1] for path in paths]
    return next((n for n, level in enumerate(zip(*folders, strict=False)) if len(set(level)) > 1), _least(folders))


def _least(folders: list[tuple[str, ...]]) -> int:
    return min(map(len, folders), default=0)
