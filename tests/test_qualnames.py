"""Full names of functions, as Python 3.11 and later tell them, worked out from the source."""

import sys
import types
from pathlib import Path

import pytest

from floorit.qualnames import qualname

SOURCE = """
import functools


class Loader:
    def __iter__(self):
        return iter([x for x in range(3)])

    @property
    @functools.lru_cache
    def size(self):
        def inner():
            return sorted((1, 2), key=lambda y: -y)

        return inner

    class Inside:
        async def go(self): return {z: z for z in (z for z in [1])}


def free(): pass
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects do not know their full names before Python 3.11")
def test_names_are_those_that_python_knows(tmp_path: Path) -> None:
    file = tmp_path / "loader.py"
    file.write_text(SOURCE)
    found = list(_codes(compile(SOURCE, str(file), "exec")))
    assert {"Loader.Inside.go", "Loader.size.<locals>.inner.<locals>.<lambda>"} <= {code.co_qualname for code in found}
    for code in found:
        assert qualname(str(file), code.co_firstlineno, code.co_name) == code.co_qualname


def test_without_the_source_the_name_stays(tmp_path: Path) -> None:
    assert qualname(str(tmp_path / "gone.py"), 3, "step") == "step"
    broken = tmp_path / "broken.py"
    broken.write_text("def step(:")
    assert qualname(str(broken), 1, "step") == "step"


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """All code inside of a module's, classes' bodies left out: they are never the function that runs."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    functions = [c for c in inner if c.co_flags & 0x2]  # CO_NEWLOCALS
    return functions + [deeper for c in inner for deeper in _codes(c)]
