"""Make the changes that leave results as they are, or show them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import msgspec

from floorit.errors import OutputError
from floorit.scan.rewrite import difference, rewritten
from floorit.scan.rule import Finding
from floorit.scan.source import decoded


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Of one file."""

    file: str
    before: str
    after: str
    encoding: str
    count: int  # findings that are gone with it

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


def changes(findings: Iterable[Finding]) -> Iterator[Change]:
    """What the findings that can be mended come to, file by file."""
    wanted = sorted((finding for finding in findings if finding.fixable), key=attrgetter("file"))
    for file, group in groupby(wanted, attrgetter("file")):
        mended = list(group)
        text, encoding = decoded(Path(file).read_bytes())
        after = rewritten(text, [edit for finding in mended for edit in finding.edits])
        if after != text:
            yield Change(file=file, before=text, after=after, encoding=encoding, count=len(mended))
