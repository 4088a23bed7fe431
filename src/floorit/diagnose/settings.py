"""Settings that the program was told to use and does not."""

from __future__ import annotations

from floorit.analyse.ledger import Line
from floorit.analyse.settings import Setting
from floorit.diagnose import Facts, Finding


def find(facts: Facts) -> list[Finding]:
    """One finding with all of them. What they cost cannot be told without trying, so it has no bound."""
    ignored = [setting for setting in facts.settings if setting.ignored]
    if not ignored:
        return []
    names = ", ".join(setting.name for setting in ignored)
    return [
        Finding(
            code="setting-ignored",
            title=f"not in force as declared: {names}",
            share=None,
            bound=None,
            evidence=[*map(said, ignored), "what this costs is not known before it is tried"],
            where=[line for setting in ignored for line in _places(setting)],
        )
    ]


def said(setting: Setting) -> str:
    """A setting that is ignored, in words."""
    return f"{setting.name}: {word(setting.declared)} in {setting.declared_at}, {word(setting.actual)} in force"


def word(value: object) -> str:
    """A value as a configuration has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _places(setting: Setting) -> list[Line]:
    """The line of the code, then that of the declaration, as far as they are known."""
    found = []
    if setting.set_at is not None:
        place = setting.set_at
        found.append(Line(file=place.file, line=place.line, function=place.function, share=1.0))
    file, _, line = (setting.declared_at or "").rpartition(":")
    if file and line.isdigit():
        found.append(Line(file=file, line=int(line), function=setting.name, share=1.0))
    return found
