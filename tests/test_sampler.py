"""Looks at the stack: what a record is told of them, and in which order."""

import sys
from threading import get_ident
from types import ModuleType, SimpleNamespace

import pytest

from floorit.record import sampler as recorder
from floorit.record.log import Log
from floorit.record.sampler import Sampler


class Writer:
    """Keeps what is noted."""

    def __init__(self):
        self.notes = []

    def note(self, kind, **fields):
        self.notes.append((kind, fields))


@pytest.fixture
def sampler():
    log = Log()
    log.thread = get_ident()
    return Sampler(log, Writer(), lambda: None)


def here(sampler):
    """Two looks at one line of this function."""
    for _ in range(2):
        sampler._look()


def told(sampler, kind):
    return {fields["id"]: fields for name, fields in sampler._writer.notes if name == kind}


def test_what_a_look_refers_to_is_noted_before_the_look(sampler):
    here(sampler)
    looks = sampler.take()
    places, stacks = told(sampler, "place"), told(sampler, "stack")
    assert len(looks) == 2
    for _, stack, leaf in looks:
        assert places[leaf]["function"] == "here"
        assert next(places[number]["function"] for number in stacks[stack]["places"]) == "here"


def test_a_place_is_noted_once(sampler):
    here(sampler)
    sampler.take()
    noted = len(sampler._writer.notes)
    here(sampler)
    assert len(sampler.take()) == 2
    assert len(sampler._writer.notes) - noted <= 2  # this function's own line, and the stack with it


def test_each_line_of_a_function_is_a_place_of_its_own(sampler):
    frame = sys._getframe()
    first = sampler._places_of(frame)[0][0]
    second = sampler._places_of(frame)[0][0]
    assert first != second


def test_a_stack_of_a_worker_ends_where_its_loop_begins(sampler, monkeypatch):
    monkeypatch.setattr(recorder, "origin", lambda file: recorder.USER)
    sampler.awake = [True]
    loop = SimpleNamespace(f_code=_worker_loop.__code__, f_lasti=0, f_lineno=1, f_back=None)
    inner = SimpleNamespace(f_code=here.__code__, f_lasti=0, f_lineno=2, f_back=loop)
    assert len(sampler._places_of(inner)[0]) == 1


def _worker_loop():
    """Of the same name as torch's."""


def test_a_forked_child_notes_its_places_anew(sampler):
    here(sampler)
    sampler.take()
    sampler.forget()
    sampler._writer.notes.clear()
    here(sampler)
    sampler.take()
    assert told(sampler, "place")


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/home/somebody/train.py", recorder.USER),
        ("<string>", recorder.STDLIB),  # torch.compile's launchers
        ("/tmp/torchinductor_somebody/we/cwej7.py", recorder.TORCH),
        ("/elsewhere/cache/we/cwej7.py", recorder.TORCH),
    ],
)
def test_what_torch_compile_writes_is_not_the_users(file, kind, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere/cache")
    monkeypatch.setattr(recorder, "_origins", {})
    program = ModuleType("__main__")
    program.__file__ = "train.py"
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert recorder.origin(file) is kind


def test_a_program_without_a_file_is_the_users(monkeypatch):
    monkeypatch.setattr(recorder, "_origins", {})
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    assert recorder.origin("<string>") is recorder.USER


def counts(values):
    """What the compiler adds a jump without a line to."""
    found = 0
    for value in values:
        if value:
            found += 1
    return found


def test_every_instruction_has_a_line():
    first, last = counts.__code__.co_firstlineno, counts.__code__.co_firstlineno + 6
    at = [(begin, line) for begin, _, line in counts.__code__.co_lines() if begin]
    if sys.version_info[:2] in ((3, 11), (3, 12)):
        assert None in [line for _, line in at]  # else this test shows nothing
    before = first
    for begin, line in at:
        frame = SimpleNamespace(f_code=counts.__code__, f_lasti=begin, f_lineno=line)
        assert recorder.line_of(frame) == (before if line is None else line)
        assert first <= recorder.line_of(frame) <= last
        before = recorder.line_of(frame)


def calling(file, inner):
    """A function in that file, which calls another."""
    space = {"inner": inner}
    exec(compile("def f():\n    inner()\n", file, "exec"), space)
    return space["f"]


def test_lines_of_libraries_lead_to_a_look_too(sampler):
    library = calling("/env/lib/site-packages/framework/loop.py", sampler._look)
    calling("/home/train.py", calling("/env/lib/site-packages/torch/nn/module.py", library))()
    ((_, stack, _),) = sampler.take()
    places = told(sampler, "place")
    led = [places[number] for number in told(sampler, "stack")[stack]["places"]]
    assert [(place["origin"], place["file"]) for place in led[:2]] == [
        ("library", "/env/lib/site-packages/framework/loop.py"),
        ("user", "/home/train.py"),
    ]


def test_a_stack_too_many_keeps_the_users_line(sampler, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_STACKS", 0)
    calling("/home/train.py", calling("/env/lib/site-packages/framework/loop.py", sampler._look))()
    ((_, stack, _),) = sampler.take()
    places = told(sampler, "place")
    assert [places[number]["file"] for number in told(sampler, "stack")[stack]["places"]] == ["/home/train.py"]
