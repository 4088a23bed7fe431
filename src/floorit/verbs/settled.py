"""A command, with the program's own settings as a floorit.toml has them: words of it, and files that it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from floorit import launch, sandbox, turning, typed
from floorit.analyse.overrides import Override
from floorit.errors import UsageError
from floorit.events import Process
from floorit.fixes.values import Value
from floorit.recipe import Recipe
from floorit.record.wire import IN_FORCE, NOT_MET
from floorit.turning import Turned

FOLDER = "settings"  # of the run: the files that are shown


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it is executed."""

    command: list[str]
    texts: dict[str, str] = {}  # that it is to find at these paths
    copies: dict[str, Path] = {}  # where they stand
    shown: dict[str, Path] = {}  # those of them that are shown in place of the program's; others, its command names
    fixes: dict[str, Value] = {}  # that are settings of the program's own
    turned: list[Turned] = []  # the settings

    def written(self, folder: Path) -> Settled:
        """The same with its texts in files, in the folder of a run: shown, or named in place of the program's."""
        copies = sandbox.write(self.texts, folder.absolute() / FOLDER)
        if copies and not sandbox.can_show():
            return msgspec.structs.replace(self, command=typed.with_copies(self.command, copies), copies=copies)
        return msgspec.structs.replace(self, shown=copies, copies=copies)

    @property
    def words(self) -> list[str]:
        """By which it is started."""
        return sandbox.showing(self.command, self.shown) if self.shown else self.command

    def told(self, processes: Sequence[Process]) -> list[Override]:
        """What became of the settings, by what the program's processes were given and have read."""
        return [self._told(code, value, processes) for code, value in self.fixes.items()]

    def _told(self, code: str, value: Value, processes: Sequence[Process]) -> Override:
        own = [turned for turned in self.turned if turned.code == code]
        why_not = turning.why_not(own, processes, self.copies)
        if why_not is None:
            said = "; ".join(turned.said for turned in own)
            return Override(code=code, value=value, state=IN_FORCE, reason=said)
        return Override(code=code, value=value, state=NOT_MET, reason=why_not)


def settle(command: list[str], wanted: Recipe, path: Path | None = None) -> Settled:
    """What a user has typed, with what the file at `path` wants; UsageError where that can't be."""
    texts: dict[str, str] = {}
    for turned in wanted.settings:
        if turning.is_outdone(turned, command):
            raise UsageError(f"{path}: the command itself gives {turned.control.option}, which the file is to set")
        made = turning.made(turned, command, texts)
        if made is None:
            raise UsageError(
                f"{path}: {turned.place} does not say `{turned.now}` any more: has the patch been applied?"
            )
        command, texts = made
    unnamed = [one for one in wanted.settings if not one.words and not typed.names(command, one.control.file)]
    if unnamed and not sandbox.can_show():
        where = ", ".join(turned.place for turned in unnamed)
        raise UsageError(f"{path}: nothing here can show the program other settings than {where}: apply floorit.patch")
    return Settled(
        command=launch.resolve(command),
        texts=texts,
        fixes={code: value for code, value in wanted.fixes.items() if code not in wanted.applied},
        turned=wanted.settings,
    )
