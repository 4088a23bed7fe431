"""Functions of libraries that are watched by name, whichever version of them is there."""

import sys
from types import ModuleType

from floorit.record.booked import hook_booked


class Session:
    """Keeps what it is asked for."""

    def __init__(self):
        self.hooked, self.not_there = [], []

    def hook_phase(self, function, phase):
        if function.__name__ == "generator":
            raise TypeError("generator is a generator")
        self.hooked.append((function.__qualname__, phase))

    def missing(self, what, reason):
        self.not_there.append((what, reason))


def save():
    """What a library has."""


def generator():
    """The same, of a kind that cannot be watched."""


class Saver:
    def save(self):
        """The same in a class."""


def test_what_is_there_is_watched_and_the_rest_is_told_or_left(monkeypatch):
    library = ModuleType("a_library_of_two")
    library.save, library.generator, library.Saver = save, generator, Saver
    monkeypatch.setitem(sys.modules, "a_library_of_two", library)
    session = Session()
    names = ("save", "gone", "Saver.save", "Saver.gone", "Gone.save", "generator")
    hook_booked(session, {"a_library_of_two": names, "a_library_that_is_not_there": ("save",)}, 11)
    assert session.hooked == [("save", 11), ("Saver.save", 11)]
    assert session.not_there == [("generator of a_library_of_two", "TypeError('generator is a generator')")]
