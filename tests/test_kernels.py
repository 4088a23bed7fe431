"""Calls that may wait for the GPU: timed while the kernel window is open, by line, and left as they are."""

from __future__ import annotations

import pickle
import sys
import threading
import traceback
import warnings
from types import BuiltinFunctionType

import pytest
import torch
from torch import nn

from floorit.record import kernels, traces
from floorit.record.kernels import Waits
from floorit.record.patch import Patches


class Session:
    """As much of one as is asked for."""

    torch = torch

    def __init__(self) -> None:
        self.patches = Patches()
        self.thread = threading.get_ident()

    def mine(self) -> bool:
        return threading.get_ident() == self.thread


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "LEAST", 0)
    made = Waits(Session())
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("default")
        yield made
        made.take()


def sites(waits: Waits) -> list[tuple[str, str, int]]:
    """Operation, source line, and how often, in the order of the first calls."""
    told = waits.facts()
    counts = [sum(call[2] == number for call in told["calls"]) for number in range(len(told["sites"]))]
    return [(op, line, count) for (_, line, _, op), count in zip(told["sites"], counts, strict=True)]


X = torch.arange(12.0).reshape(3, 4)
MASK = X > 5


def _here() -> int:
    return sys._getframe(1).f_lineno


def test_calls_are_told_by_their_lines(waits: Waits) -> None:
    waits.put()
    chosen, first = X[MASK], _here()
    for _ in range(3):
        where, second = torch.where(MASK), _here()
    changed = X.clone()
    changed[MASK] = torch.zeros(6)
    third = _here() - 1
    kinds, fourth = X.unique(), _here()  # a method that calls the function: told once
    waits.take()
    assert chosen.tolist() == [6, 7, 8, 9, 10, 11]
    assert (len(where), changed.sum().item(), len(kinds)) == (2, 15, 12)
    assert sites(waits) == [
        ("__getitem__", first, 1),
        ("where", second, 3),
        ("__setitem__", third, 1),
        ("unique", fourth, 1),
    ]
    told = waits.facts()
    assert all(begin <= end for begin, end, _ in told["calls"])
    assert told["left_out"] == 0


def test_short_calls_and_other_threads_are_left_out(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    waits.put()
    other = threading.Thread(target=lambda: X[MASK])
    other.start()
    other.join()
    monkeypatch.setattr(kernels, "LEAST", 10**12)
    X[MASK]
    assert sites(waits) == []


def test_no_more_than_so_many_are_kept(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST", 5)
    waits.put()
    for _ in range(7):
        X[MASK]
    assert (len(waits.facts()["calls"]), waits.facts()["left_out"]) == (5, 2)
    waits.put()  # the window opens again
    assert (waits.facts()["calls"], waits.facts()["left_out"]) == ([], 0)


OWNERS = (torch.Tensor, torch, torch.nn.functional, torch.linalg, warnings)


def test_nothing_is_left_behind(waits: Waits) -> None:
    before = [dict(vars(owner)) for owner in OWNERS]
    waits.put()
    assert "__getitem__" in vars(torch.Tensor)
    waits.take()
    assert [dict(vars(owner)) for owner in OWNERS] == before
    assert all(
        a is b
        for one, owner in zip(before, OWNERS, strict=True)
        for a, b in zip(one.values(), vars(owner).values(), strict=True)
    )


def test_functions_pass_for_themselves(waits: Waits) -> None:
    kept = {torch.where: "kept", torch.Tensor.__getitem__: "too"}
    plain = repr(torch.where)
    waits.put()
    assert kept[torch.where] == "kept"
    assert kept[torch.Tensor.__getitem__] == "too"
    assert isinstance(torch.where, BuiltinFunctionType)
    assert repr(torch.where) == plain
    assert torch.where.__doc__.startswith("\nwhere(")
    again = pickle.loads(pickle.dumps((torch.where, torch.linalg.inv)))
    waits.take()
    assert again[0] == torch.where


class Told(torch.Tensor):
    """A tensor of the program's own, which is asked which function is called."""

    asked = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.asked.append(function == torch.Tensor.__getitem__)
        return super().__torch_function__(function, types, args, kwargs or {})


def test_a_class_that_overrides_functions_is_asked_for_the_same(waits: Waits) -> None:
    own = X.as_subclass(Told)
    own[MASK]
    waits.put()
    own[MASK]
    own[0]
    waits.take()
    assert all(Told.asked)
    assert type(own[0]) is Told
    assert isinstance(nn.Parameter(X)[0], torch.Tensor)


def test_errors_are_the_programs_own(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((sys, "excepthook"), (traceback, "walk_tb"), (traceback, "_walk_tb_with_full_positions")):
        if hasattr(owner, name):
            monkeypatch.setattr(owner, name, getattr(owner, name))  # what hides our frames is taken out again
    monkeypatch.setattr(traces, "_hidden", [])
    waits.put()
    with pytest.raises(IndexError, match="out of bounds") as raised:
        X[7]
    shown = "".join(traceback.format_exception(raised.value))
    assert kernels.__file__ not in shown
    with pytest.raises(TypeError):
        torch.where()
    assert sites(waits) == []


def test_warnings_are_given_where_the_program_called(waits: Waits) -> None:
    """Torch gives them where the innermost Python code is, which is ours."""
    old = MASK.to(torch.uint8)
    for way in (waits.take, waits.put):
        way()
        with warnings.catch_warnings(record=True) as given:
            for _ in range(2):
                X[old]
        assert [(warning.filename, warning.lineno) for warning in given] == [(__file__, _here() - 1)], way
        with warnings.catch_warnings():
            warnings.filterwarnings("error", module=__name__)
            with pytest.raises(UserWarning, match=r"torch\.uint8"):
                X[old]
        with warnings.catch_warnings(record=True) as given:
            warnings.filterwarnings("ignore", module=__name__)
            X[old]
        assert given == []


def test_nothing_is_timed_where_warnings_are_errors(waits: Waits) -> None:
    warnings.filterwarnings("error", category=DeprecationWarning)
    waits.put()
    assert waits.facts() == {"reason": "the program turns warnings into errors"}
    assert "__getitem__" not in vars(torch.Tensor)


def test_compiled_programs_are_left_alone(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "compilations", lambda: 1)
    waits.put()
    assert "__getitem__" not in vars(torch.Tensor)
    assert waits.facts() == {"reason": "torch.compile was in use"}
    monkeypatch.setattr(kernels, "compilations", lambda: 0)
    waits.put()
    X[MASK]
    assert len(sites(waits)) == 1


def test_what_fails_is_said_and_nothing_stays(waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits._session.patches, "stand_in", lambda *_: 1 / 0)
    waits.put()
    assert "ZeroDivisionError" in waits.facts()["reason"]
    assert "__getitem__" not in vars(torch.Tensor)
