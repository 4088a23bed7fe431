"""What became of a proven fix in the source; it knows nothing of how."""

from __future__ import annotations

import msgspec

from floorit.fixes.values import Value

PATCH = "floorit.patch"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Of one fix: where it belongs, and whether the patch makes it."""

    code: str
    value: Value
    file: str | None = None  # that is changed, or that is to be
    line: int | None = None
    words: str = ""  # what is to be done by hand; empty where the patch does it
