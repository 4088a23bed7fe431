"""Make the changes that leave results as they are, or show them."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from floorit.errors import OutputError
from floorit.scan.edits import Edit
from floorit.scan.finding import Finding
from floorit.scan.rewrite import difference, rewritten
from floorit.scan.rule import Rule
from floorit.scan.rules import ALL
from floorit.scan.scan import scan, shown, whole_path
from floorit.scan.source import decoded

_ROUNDS = 5  # more than changes ever make each other possible


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Of one file."""

    file: str
    before: str
    after: str
    encoding: str
    count: int  # of places in it

    def diff(self) -> str:
        """For `git apply`, if the file is named from where the repository begins."""
        return difference(self.before, self.after, Path(self.file).as_posix())

    def write(self) -> None:
        """Put it in the file's place, at once or not at all."""
        path = Path(self.file).resolve()
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(handle, "wb") as file:
                file.write(self.after.encode(self.encoding))
            os.chmod(name, path.stat().st_mode)
            os.replace(name, path)
        except OSError as error:
            raise OutputError(f"{self.file} cannot be written: {error.strerror}") from None


def changes(
    paths: Iterable[Path], rules: tuple[Rule, ...] = ALL, exclude: tuple[str, ...] = (), asked: bool = False
) -> list[Change]:
    """What can be mended, file by file, until nothing is left: one change may make another possible."""
    paths = list(paths)
    texts: dict[Path, str] = {}
    counts: Counter[Path] = Counter()
    for _ in range(_ROUNDS):
        wanted = _edits(scan(paths, rules, exclude, texts, asked=asked).findings)
        if not wanted:
            break
        for path, edits in wanted.items():
            texts[path] = rewritten(texts[path] if path in texts else decoded(path.read_bytes())[0], edits)
            counts[path] += len(edits)
    return [_change(path, text, counts[path]) for path, text in sorted(texts.items())]


def _edits(findings: Iterable[Finding]) -> dict[Path, list[Edit]]:
    wanted: dict[Path, list[Edit]] = defaultdict(list)
    for finding in findings:
        if finding.fixable:
            wanted[whole_path(finding.file)] += finding.edits
    return wanted


def _change(path: Path, after: str, count: int) -> Change:
    before, encoding = decoded(path.read_bytes())
    return Change(file=shown(path), before=before, after=after, encoding=encoding, count=count)
