"""floorit finds out why a PyTorch training program is slow, and proves the fix, without editing the script.

Nothing has to be imported for that. A program that wants to see its own names in the report can:

    with floorit.span("mosaic"):
        ...

    @floorit.span("assign")
    def assign(boxes): ...

    floorit.step()  # a step is over, where that cannot be told

Without `floorit run` both do nothing, in well under a microsecond; torch is not imported.
"""

from __future__ import annotations

import functools
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

__version__ = "0.1.0.dev0"
__all__ = ["span", "step"]

_recorder: Any = sys.modules.get("_floorit")  # in a program that is recorded, from its very start
if _recorder is not None and not hasattr(_recorder, "names"):
    _recorder = None  # another version's


class span:
    """A stretch of the program by a name of its own: in a `with`, or around a function."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> span:
        if _recorder is not None and _recorder.names is not None and not _recorder.is_compiling():
            _recorder.names.enter(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        if _recorder is not None and _recorder.names is not None and not _recorder.is_compiling():
            _recorder.names.leave(self._name)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        name = self._name

        @functools.wraps(function)
        def named(*args: P.args, **kwargs: P.kwargs) -> T:
            with span(name):
                return function(*args, **kwargs)

        return named


def step() -> None:
    """A step is over. Once a program says so, this alone divides its steps."""
    if _recorder is not None and _recorder.names is not None:
        _recorder.names.step()
