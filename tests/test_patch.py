"""Changes inside a function: it stays what it was for everybody who looks, and can be had back."""

import functools
import importlib
import inspect
import signal
import sys
import traceback
import types
from types import SimpleNamespace

import pytest

from floorit.record.patch import Hooks, LeanHooks, Patches
from floorit.record.traces import is_from_signal

LATE = 3


def plain(a, b=2, *rest, c=4, **more):
    """Its own words."""
    local = a + b
    return local + c + sum(rest) + sum(more.values())


def returns_nothing(log):
    log.append("body")


def several_returns(x):
    if x > 0:
        return "positive"
    for _ in range(1):
        if x == 0:
            return None
    return [lambda: "inner"][0]()


def raises(depth):
    if depth:
        raise KeyError("from the body")  # this line
    return depth


def uses_a_global():
    return LATE


def inner_function(x):
    def add(y):
        return x + y

    return add(1) + sum(x for _ in range(2))


def generator():
    yield 1


async def coroutine():
    return 1


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@decorated
def behind_a_decorator(x):
    return x * 2


def make_closure(start):
    count = start

    def closure(x):
        nonlocal count
        count += x
        return count

    return closure


class Parent:
    def greet(self):
        return "parent"


class Child(Parent):
    __secret = 5

    def mangled(self):
        return self.__secret

    def greet(self):
        return super().greet() + " child"

    @classmethod
    def of_class(cls, x):
        return cls.__name__, x

    @staticmethod
    def static(x):
        return x + 1


class Log:
    """Hooks that write down what they saw."""

    def __init__(self, token=0, **hooks):
        self.seen = []
        self.hooks = Hooks(
            self._enter(token), leave=self._noting("leave"), **{k: self._noting(k) for k in hooks if hooks[k]}
        )

    def _enter(self, token):
        def enter(*arguments):
            self.seen.append(("enter", *arguments))
            return token

        return enter

    def _noting(self, name):
        return lambda *what: self.seen.append((name, *what))


@pytest.fixture
def patches():
    made = Patches()
    yield made
    made.undo()


def test_the_hooks_run_around_the_body_and_the_value_is_the_same(patches):
    log = Log()
    before = plain(1, 2, 3, c=5, d=6)
    patches.inside(plain, log.hooks, names=("a", "rest"))
    assert plain(1, 2, 3, c=5, d=6) == before == 17
    assert log.seen == [("enter", 1, (3,)), ("leave", 0)]


def test_it_is_the_same_function_to_everybody_who_has_it(patches):
    held, name, signature, doc = plain, plain.__qualname__, inspect.signature(plain), plain.__doc__
    defaults = plain.__defaults__, plain.__kwdefaults__
    log = Log()
    patches.inside(plain, log.hooks)
    assert held is plain
    assert held(1) == 7
    assert log.seen
    assert (plain.__qualname__, inspect.signature(plain), plain.__doc__) == (name, signature, doc)
    assert (plain.__defaults__, plain.__kwdefaults__) == defaults
    assert plain.__code__.co_name == "plain"
    assert plain.__code__.co_filename == __file__
    if sys.version_info >= (3, 11):
        assert plain.__code__.co_qualname == "plain"


def test_the_first_line_and_the_source_stay(patches):
    source, first = inspect.getsource(plain), plain.__code__.co_firstlineno
    patches.inside(plain, Log().hooks)
    assert plain.__code__.co_firstlineno == first
    assert inspect.getsource(plain) == source


def _text_of_the_error():
    try:
        raises(1)
    except KeyError as error:
        return "".join(traceback.format_exception(error))
    raise AssertionError


@pytest.mark.parametrize("with_result", [False, True])
@pytest.mark.parametrize("gated", [None, [True], [False]])
def test_a_traceback_looks_as_before(patches, with_result, gated):
    before = _text_of_the_error()
    log = Log(result=with_result)
    log.hooks.gate = gated
    patches.inside(raises, log.hooks)
    assert _text_of_the_error() == before
    assert "# this line" in before


def test_leave_runs_when_the_body_raises_but_result_does_not(patches):
    log = Log(result=True)
    patches.inside(raises, log.hooks)
    with pytest.raises(KeyError):
        raises(1)
    assert log.seen == [("enter",), ("leave", 0)]


def test_no_frame_is_added(patches):
    log = []
    hooks = Hooks(lambda: 1, result=lambda token, value: None)
    patches.inside(calls_back, hooks)
    calls_back(lambda: log.append(len(inspect.stack())))
    patches.undo()
    calls_back(lambda: log.append(len(inspect.stack())))
    assert log[0] == log[1]


def calls_back(function):
    return function()


def test_each_return_is_seen(patches):
    log = Log(result=True, returning=True)
    patches.inside(several_returns, log.hooks)
    assert [several_returns(x) for x in (1, 0, -1)] == ["positive", None, "inner"]
    assert [value for name, *value in log.seen if name == "result"] == [[0, "positive"], [0, None], [0, "inner"]]
    assert [name for name, *_ in log.seen] == ["enter", "returning", "result", "leave"] * 3


def test_a_function_without_return(patches):
    log, body = Log(result=True), []
    patches.inside(returns_nothing, log.hooks)
    assert returns_nothing(body) is None
    assert body == ["body"]
    assert [name for name, *_ in log.seen][::2][0] == "enter"
    assert log.seen[-1] == ("leave", 0)


def test_a_call_that_enter_leaves_alone_is_left_alone(patches):
    log = Log(token=None, result=True, returning=True)
    patches.inside(plain, log.hooks)
    assert plain(1) == 7
    assert log.seen == [("enter",)]


def test_a_gate_that_is_shut_keeps_the_hooks_out(patches):
    log = Log()
    log.hooks.gate = [False]
    patches.inside(plain, log.hooks)
    assert plain(1) == 7
    assert log.seen == []
    log.hooks.gate[0] = True
    assert plain(1) == 7
    assert len(log.seen) == 2


def nests(depth, log):
    log.append(nests.__code__)
    return nests(depth - 1, log) if depth else depth


def test_only_the_outermost_call_is_hooked_and_the_others_run_the_very_code(patches):
    original, codes, log = nests.__code__, [], Log()
    log.hooks.outermost = True
    patches.inside(nests, log.hooks)
    hooked = nests.__code__
    for _ in range(2):
        nests(3, codes)
        assert nests.__code__ is hooked
    assert codes == [original] * 8
    assert [name for name, *_ in log.seen] == ["enter", "leave"] * 2


def test_the_outermost_call_is_hooked_again_after_an_error_or_a_fork(patches):
    log = Log()
    log.hooks.outermost = True
    patches.inside(raises, log.hooks)
    hooked = raises.__code__
    with pytest.raises(KeyError):
        raises(1)
    assert raises.__code__ is hooked
    raises.__code__ = log.hooks.bare  # as in a child that was forked inside a call
    log.hooks.reset()
    assert raises.__code__ is hooked


def test_hooks_that_are_off_stay_off_although_a_call_is_open(patches):
    original, log = nests.__code__, Log()
    log.hooks.outermost = True
    log.hooks.leave = lambda _: log.hooks.off()
    patches.inside(nests, log.hooks)
    nests(2, [])
    assert nests.__code__ is original


class Counter:
    """Something that is asked again and again."""

    def __init__(self):
        self.count = 0

    def ask(self):
        if self.count == 3:
            raise StopIteration
        self.count += 1
        return self.count


@pytest.fixture
def leanly(patches):
    """A Counter whose `ask` is hooked; its log, its hooks, and what is known of calls to come."""
    counter, log, plain = Counter(), SimpleNamespace(events=[], attend=None, alone=True, batch_came=False), Log()
    now = SimpleNamespace(key=id(counter), alike=2, word=7, whole=8)
    hooks = LeanHooks(plain._enter(0), plain._noting("leave"), log=log, choose=lambda: now)
    patches.inside(Counter.ask, hooks, names=("self",))
    hooks.rest()
    return SimpleNamespace(counter=counter, log=log, hooks=hooks, now=now, seen=plain.seen)


def test_a_call_that_is_like_the_others_is_hooked_leanly(leanly):
    assert [leanly.counter.ask(), leanly.counter.ask()] == [1, 2]
    assert [word for _, word in leanly.log.events] == [7, 8, 7, 8]
    assert leanly.log.batch_came
    assert not leanly.seen
    assert leanly.counter.ask() == 3  # no more of them are known to be alike
    assert leanly.seen == [("enter", leanly.counter), ("leave", 0)]


def test_one_of_another_object_and_one_that_is_attended_to_are_hooked_as_always(leanly):
    other = Counter()
    assert other.ask() == 1
    leanly.log.attend = print
    assert leanly.counter.ask() == 1
    assert [what for what, _ in leanly.seen] == ["enter", "leave"] * 2
    assert not leanly.log.events


def test_a_lean_call_that_raises_is_left_as_always(leanly):
    leanly.counter.count = 3
    with pytest.raises(StopIteration):
        leanly.counter.ask()
    assert [word for _, word in leanly.log.events] == [7]
    assert leanly.seen == [("leave", leanly.now)]


@pytest.mark.parametrize("how", ["reset", "off"])
def test_lean_hooks_end_with_the_rest_or_with_a_failure(leanly, how):
    getattr(leanly.hooks, how)()
    assert leanly.counter.ask() == 1
    assert not leanly.log.events
    assert bool(leanly.seen) is (how == "reset")


def test_globals_are_looked_up_when_it_runs(patches, monkeypatch):
    patches.inside(uses_a_global, Log().hooks)
    monkeypatch.setattr(sys.modules[__name__], "LATE", 9)
    assert uses_a_global() == 9


def test_inner_functions_and_comprehensions(patches):
    patches.inside(inner_function, Log(result=True).hooks)
    assert inner_function(3) == 10


def test_annotations_that_the_module_does_not_evaluate_are_not_evaluated(patches, tmp_path, monkeypatch):
    (tmp_path / "postponed.py").write_text(
        "from __future__ import annotations\n\n\ndef outer():\n    def inner(x: NotThere) -> NorThis:\n"
        "        return x\n\n    return inner(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    postponed = importlib.import_module("postponed")
    patches.inside(postponed.outer, Log(result=True).hooks)
    assert postponed.outer() == 3


def test_a_stand_in_is_there_only_while_it_is_wanted(patches):
    module = types.ModuleType("theirs")
    own = module.function = len
    stand = patches.stand_in(module, "function", max)
    assert module.function is own
    stand.put()
    assert module.function is max
    stand.take()
    assert module.function is own
    stand.put()
    module.function = another = min
    stand.take()
    assert module.function is another  # theirs stays
    stand.put()
    assert module.function is another
    module.function = own
    stand.put()
    patches.undo()
    assert module.function is own


def test_a_closure_keeps_its_cells(patches):
    mine, other = make_closure(10), make_closure(100)
    mine(1)
    log = Log(result=True)
    patches.inside(mine, log.hooks, names=("x",))
    assert mine(5) == 16
    assert mine(5) == 21
    assert other(1) == 101
    assert log.seen[0] == ("enter", 5)
    assert len([name for name, *_ in log.seen if name == "enter"]) == 2


def test_a_method_with_a_mangled_name(patches):
    patches.inside(Child.mangled, Log().hooks)
    assert Child().mangled() == 5


def test_a_method_that_calls_super(patches):
    patches.inside(Child.greet, Log(result=True).hooks, names=("self",))
    assert Child().greet() == "parent child"


def test_a_classmethod_and_a_staticmethod(patches):
    log = Log()
    patches.inside(Child.of_class, log.hooks, names=("cls", "x"))
    patches.inside(Child.static, log.hooks)
    assert Child.of_class(3) == ("Child", 3)
    assert Child.static(3) == 4
    assert log.seen[0] == ("enter", Child, 3)


def test_behind_a_decorator_the_function_itself_is_changed(patches):
    log = Log()
    patches.inside(behind_a_decorator, log.hooks)
    assert behind_a_decorator(4) == 9
    assert len(log.seen) == 2


def test_undo_gives_the_very_code_back(patches):
    code = plain.__code__
    patches.inside(plain, Log().hooks)
    assert plain.__code__ is not code
    patches.undo()
    assert plain.__code__ is code
    patches.undo()  # once is enough, twice does no harm
    assert plain.__code__ is code


def test_undo_leaves_what_another_changed_on_top(patches):
    original = uses_a_global.__code__
    patches.inside(uses_a_global, Log().hooks)
    try:
        uses_a_global.__code__ = theirs = (lambda: 77).__code__
        patches.undo()
        assert uses_a_global.__code__ is theirs
    finally:
        uses_a_global.__code__ = original


def test_the_same_function_is_not_hooked_twice(patches):
    patches.inside(plain, Log().hooks)
    with pytest.raises(ValueError, match="hooked already"):
        patches.inside(plain, Log().hooks)


@pytest.mark.parametrize("function", [generator, coroutine, len, Parent.__init__])
def test_what_cannot_be_changed_is_refused_and_stays(patches, function):
    code = getattr(function, "__code__", None)
    with pytest.raises((TypeError, AttributeError, OSError)):
        patches.inside(function, Log().hooks)
    assert getattr(function, "__code__", None) is code


def test_a_function_whose_source_is_not_there_is_refused(patches):
    space = {}
    exec("def unseen(x):\n    return x\n", space)
    with pytest.raises((OSError, TypeError)):
        patches.inside(space["unseen"], Log().hooks)
    assert space["unseen"](3) == 3


def test_a_function_refused_can_be_tried_again(patches):
    """What failed was not hooked: to say "hooked already" would be untrue."""
    for _ in range(2):
        with pytest.raises(TypeError, match="generator"):
            patches.inside(generator, Log().hooks)


def _broken(*_):
    raise RuntimeError("in a hook")


@pytest.mark.parametrize("which", ["enter", "leave", "result", "returning"])
def test_a_hook_that_raises_is_switched_off_and_told(patches, which):
    calls, told = [], []

    def noting(name):
        return lambda *_: calls.append(name) or True

    given = {name: noting(name) for name in ("enter", "leave", "result", "returning")}
    given[which] = lambda *_: calls.append(which) or _broken()
    hooks = Hooks(**given)

    def failed(error):
        told.append(error)
        hooks.off()

    hooks.failed = failed
    patches.inside(plain, hooks)
    assert plain(1) == 7
    assert [type(error) for error in told] == [RuntimeError]
    del calls[:]
    assert plain(1) == 7
    assert calls == []


def test_without_anybody_told_a_broken_hook_is_switched_off_too(patches):
    hooks = Hooks(_broken)
    patches.inside(plain, hooks)
    assert plain(1) == 7
    assert hooks.enter is not _broken


def test_an_error_in_a_hook_does_not_show_in_the_programs_own(patches):
    """A hook that fails while the body's exception passes must not become its context."""
    hooks = Hooks(lambda: True, leave=_broken)
    patches.inside(raises, hooks)
    with pytest.raises(KeyError) as caught:
        raises(1)
    assert caught.value.__context__ is None


def test_system_exit_from_a_hook_passes(patches):
    """This is how --steps ends a program."""

    def leave(_):
        raise SystemExit(0)

    patches.inside(plain, Hooks(lambda: True, leave))
    with pytest.raises(SystemExit):
        plain(1)


def test_replacing_an_attribute_and_having_it_back(patches):
    class Owner:
        own = 1

    class Heir(Owner):
        pass

    patches.replace(Owner, "own", 2)
    patches.replace(Heir, "own", 3)
    assert (Owner.own, Heir.own) == (2, 3)
    patches.undo()
    assert (Owner.own, Heir.own) == (1, 1)
    assert "own" not in vars(Heir)


def test_what_another_replaced_on_top_stays(patches):
    class Owner:
        own = 1

    patches.replace(Owner, "own", 2)
    Owner.own = 3
    patches.undo()
    assert Owner.own == 3


class WorkerDied(RuntimeError):
    """As torch's handler of SIGCHLD raises where a worker of the loader has died."""


def _handler(number, frame):
    raise WorkerDied(number)


class Handler:
    def __call__(self, number, frame):
        raise WorkerDied(number)


@pytest.mark.parametrize("handler", [_handler, Handler()])
def test_what_a_signal_handler_raises_inside_of_a_hook_is_the_programs_own(patches, handler):
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        hooks = Hooks(lambda: signal.raise_signal(signal.SIGUSR1))
        hooks.failed = is_from_signal
        patches.inside(plain, hooks)
        with pytest.raises(WorkerDied):
            plain(1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_a_hook_raises_itself_is_not():
    def broken(number, frame):  # called as a handler is, but not by a signal
        raise RuntimeError(frame)

    for argument in (None, "frame"):
        with pytest.raises(RuntimeError) as caught:
            broken(1, argument)
        assert not is_from_signal(caught.value)
