"""Changes to objects that are not ours, each with its undo: the only module that makes any.

A Python function is changed *inside*: its code object is replaced by one compiled from its own source, under its
own file name and line numbers, with calls to our hooks around the body. The function stays the same object, so
names imported before us see the change too; no frame is added, so tracebacks, `warnings` with a `stacklevel` and
torch.compile's rules by file name are as before. A function written in C can only be replaced.
"""

import __future__

import ast
import copy
import inspect
import sys
import types
from time import perf_counter_ns

# `from __future__ import annotations` at the head of a module, as the code in it remembers it.
_FUTURE = __future__.annotations.compiler_flag


class Instead:
    """What `enter` returns where the function is not to run: this is its value."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Span:
    """A function and its two codes: its own, and the one with hooks in it."""

    __slots__ = ("bare", "function", "hooked")

    def rest(self):
        """Let calls run the function's own code, at no cost at all, until `reset`."""
        if self.function.__code__ is self.hooked:
            self.function.__code__ = self.bare

    def reset(self):
        """Hook the next call, whatever call this process was forked in."""
        if self.function.__code__ is self.bare:
            self.function.__code__ = self.hooked


class Hooks(Span):
    """What runs around one function.

    `failed` hears of an exception in any of them. It must switch them off, or return true: then it was not theirs.
    """

    __slots__ = (
        "enter",
        "failed",
        "gate",
        "interrupted",
        "leave",
        "log",
        "outermost",
        "replaces",
        "result",
        "returning",
        "within",
        "within_names",
    )

    Instead = Instead

    def __init__(
        self,
        enter,
        leave=None,
        result=None,
        returning=None,
        gate=None,
        outermost=False,
        replaces=False,
        log=None,
        within_names=(),
    ):
        self.enter = enter  # (named arguments) -> token, or None to leave this call alone
        self.leave = leave  # (token), however the function ends; or a word for the log
        self.log = log
        self.result = result  # (token, value) when it returns
        self.returning = returning  # (token) before the returned expression is evaluated
        self.gate = gate  # a list of one: the hooks run while it holds a true value
        self.replaces = replaces  # whether `enter` may return an Instead
        self.within = None  # (token, arguments called `within_names`) -> value: runs the function's body, or another
        self.within_names = within_names  # none: `within` is never asked for
        self.outermost = outermost  # calls inside a call run the function's own code, at no cost at all
        self.function = self.bare = self.hooked = None  # the function, its own code and ours
        self.failed = self.off
        self.interrupted = _nothing  # Ctrl-C, of all moments in ours

    def off(self, error=None):
        """Stop hooking."""
        self.enter = self.leave = self.result = self.returning = _nothing
        self.within = None
        if self.gate is not None:
            self.gate[0] = False
        if self.function.__code__ is self.hooked:
            self.function.__code__ = self.bare
        self.hooked = self.bare


class LeanHooks(Hooks):
    """Hooks that can rest without being out: then `now`, if there is one, says what is logged around a call.

    `choose` gives it as a rest begins. It has the `key` of the object whose method is called, how many calls to come
    are `alike`, and what is logged of each of these as it begins (`word`) and when it returns (`whole`). Every other
    call is hooked as always, and one that raises is left by `leave`.
    """

    __slots__ = ("choose", "lean", "now")

    def __init__(self, *hooks, choose, **more):
        super().__init__(*hooks, **more)
        self.choose = choose
        self.lean = self.now = None

    def rest(self):
        self.now = self.choose()
        if self.now is not None and self.function.__code__ is self.hooked:
            self.function.__code__ = self.lean

    def reset(self):
        self.now = None
        if self.function.__code__ is self.lean:
            self.function.__code__ = self.hooked

    def off(self, error=None):
        self.reset()
        super().off(error)


def _nothing(*_):
    return None


_MISSING = object()  # stands for an attribute that is not there, or that is inherited


class StandIn:
    """A value that takes the place of an attribute for a while, unless somebody has put theirs there."""

    __slots__ = ("_name", "_own", "_value", "owner")

    def __init__(self, owner, name, value):
        self.owner, self._name, self._value = owner, name, value
        self._own = vars(owner).get(name, _MISSING)

    def put(self):
        self._exchange(self._own, self._value)

    def take(self):
        self._exchange(self._value, self._own)

    def _exchange(self, old, new):
        if vars(self.owner).get(self._name, _MISSING) is not old:
            return
        if new is _MISSING:
            delattr(self.owner, self._name)
        else:
            setattr(self.owner, self._name, new)


class Patches:
    """Every change made to code, so that each can be undone, once, in reverse."""

    def __init__(self):
        self._undo = []
        self._inside = []

    def inside(self, function, hooks, names=()):
        """Run `hooks` around the body of `function`; `enter` gets the arguments called `names`."""
        self._change(hooks, function, hooks, lambda body: _hooked(body, hooks, names))
        if isinstance(hooks, LeanHooks):
            hooks.lean = _instrumented(hooks.function, hooks, lambda body: _lean(body, hooks, names))

    def spanning(self, function, log, enter, leave):
        """Log the word `enter` where the body of `function` begins and `leave` where it ends, calling nothing."""
        span = Span()
        self._change(span, function, log, lambda body: _spanned(body, enter, leave))
        return span

    def _change(self, span, function, ours, around):
        function = inspect.unwrap(getattr(function, "__func__", function))
        if any(function is changed for changed in self._inside):
            raise ValueError("%s is hooked already" % function.__qualname__)
        original, changed = function.__code__, _instrumented(function, ours, around)
        function.__code__ = changed
        span.function, span.bare, span.hooked = function, original, changed
        self._inside.append(function)

        def undo():
            span.reset()
            if function.__code__ is changed:
                function.__code__ = original

        self._undo.append(undo)

    def replace(self, owner, name, value):
        """Set an attribute of a module or class."""
        made = self.stand_in(owner, name, value)
        made.put()

    @staticmethod
    def assign(thing, name, value):
        """Set an attribute of an object that the program has made, whatever its class says to that. Not undone."""
        object.__setattr__(thing, name, value)

    @staticmethod
    def take_back(thing, name):
        """Undo an `assign` of what the object itself did not have."""
        vars(thing).pop(name, None)

    @staticmethod
    def put(mapping, key, value):
        """The same for an entry of a dictionary of the program's."""
        mapping[key] = value

    def stand_in(self, owner, name, value):
        """Another value for an attribute: only between `put` and `take` of what this returns."""
        made = StandIn(owner, name, value)
        self._undo.append(made.take)
        return made

    def undo(self):
        """Take every change back."""
        while self._undo:
            self._undo.pop()()
        del self._inside[:]


def _instrumented(function, ours, around):
    """The code of `function` with the statements that `around` puts around its body; `ours` is what they refer to."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TypeError("%s is a generator" % function.__qualname__)
    definition, owner = _definition(function)
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:
        del definition.body[0]
    definition.body = around(definition.body)
    tree = ast.Module(body=[_enclosed(definition, owner, code.co_freevars)], type_ignores=[])
    future = code.co_flags & _FUTURE
    module = compile(ast.fix_missing_locations(tree), code.co_filename, "exec", flags=future, dont_inherit=True)
    new = _find(module, code.co_name)
    if new.co_freevars != code.co_freevars:
        raise TypeError("the source of %s is not the code that runs" % function.__qualname__)
    places = {_PLACE: ours, _CLOCK: perf_counter_ns}
    constants = tuple(places.get(c, c) if isinstance(c, str) else c for c in new.co_consts)
    changes = {"co_consts": constants}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = code.co_qualname
    return new.replace(**changes)


def _definition(function):
    """The function's syntax tree with its true lines and columns, and the name of its class, if any."""
    lines, first = inspect.getsourcelines(function)
    owner = function.__qualname__.split(".")[-2] if "." in function.__qualname__ else None
    indented = lines[0][:1].isspace()
    if indented:  # a class statement in front keeps the columns as they are
        lines = ["class Enclosing:\n", *lines]
        first -= 1
    tree = ast.parse("".join(lines))
    ast.increment_lineno(tree, first - 1)
    definition = tree.body[0].body[0] if indented else tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError("%s is not a plain function" % function.__qualname__)
    return definition, owner if indented and owner != "<locals>" else None


_PLACE, _CLOCK = "floorit: ours goes here", "floorit: the clock goes here"


def _guarded(call, depth=0):
    """Source that calls a hook so that the program never notices, whatever it does."""
    lines = (
        "try:",
        "    " + call,
        "except Exception as _fl_error:",
        "    if _fl.failed(_fl_error): raise",
        "except BaseException:",
        "    _fl.interrupted()",
        "    raise",
    )
    return "\n".join("    " * depth + line for line in lines)


_AROUND = """
_fl = 'floorit: ours goes here'
_fl_token = None
%s
try:
    BODY
finally:
    LEAVE
""" % _guarded("_fl_call = _fl.enter; _fl_token = _fl_call({names})")
_LEAVE = """
if _fl_token is not None and _fl.leave is not None:
%s
""" % _guarded("_fl_call = _fl.leave; _fl_call(_fl_token)", 1)
_LEAVE_BY_WORD = """
if _fl_token is not None:
    _fl_log = _fl.log
    _fl_clock = 'floorit: the clock goes here'
    _fl_log.events.append((_fl_clock() if _fl_log.mark is None else _fl_log.mark(), {word}))
"""
_REPLACED = """
if _fl_token.__class__ is _fl.Instead:
    return _fl_token.value
"""
_WITHIN = """
if _fl_token is not None and _fl.within is not None:
    return _fl.within(_fl_token, {names})
"""
_STAND_ASIDE = """
if _fl_token is not None:
    _fl.function.__code__ = _fl.bare
"""
_STAND_BACK = """
if _fl_token is not None:
    _fl.function.__code__ = _fl.hooked
"""
_GATED = """
_fl = 'floorit: ours goes here'
if _fl.gate[0]:
    AROUND
else:
    ORIGINAL
"""
_LEAN = """
_fl = 'floorit: ours goes here'
_fl_now = _fl.now
_fl_log = _fl.log
if _fl_now is not None and _fl_now.alike and _fl_now.key == id({itself}) and _fl_log.attend is None and _fl_log.alone:
    _fl_clock = 'floorit: the clock goes here'
    _fl_word = None
    _fl_now.alike -= 1
    _fl_log.batch_came = True
    _fl_log.events.append((_fl_clock(), _fl_now.word))
    try:
        BODY
    finally:
        if _fl_word is not None:
            _fl_log.events.append((_fl_clock(), _fl_word))
        else:
%s
else:
    AROUND
""" % _guarded("_fl_call = _fl.leave; _fl_call(_fl_now)", 3)
_LEAN_RETURN = """
def _():
    _fl_value = VALUE
    _fl_word = _fl_now.whole
    return _fl_value
"""
_SPAN = """
_fl = 'floorit: ours goes here'
_fl_clock = 'floorit: the clock goes here'
_fl_mine = _fl.alone or _fl.ident() == _fl.thread
if _fl_mine:
    _fl.events.append((_fl_clock() if _fl.mark is None else _fl.mark(), {enter}))
try:
    BODY
finally:
    if _fl_mine:
        _fl.events.append((_fl_clock() if _fl.mark is None else _fl.mark(), {leave}))
"""
_RETURN = """
def _():
    if _fl_token is not None and _fl.returning is not None:
%s
    _fl_value = VALUE
    if _fl_token is not None and _fl.result is not None:
%s
    return _fl_value
""" % (
    _guarded("_fl.returning(_fl_token)", 2),
    _guarded("_fl_call = _fl.result; _fl_call(_fl_token, _fl_value)", 2),
)


def _spanned(body, enter, leave):
    """The statements of a function with a word logged before and after them."""
    around = _template(_SPAN.format(enter=enter, leave=leave), body[0])
    around[-1].body = body
    return around


def _hooked(body, hooks, names):
    """The statements of a function with the hooks around them."""
    first = body[0]
    if hooks.within_names:
        body = [*_template(_WITHIN.format(names=", ".join(hooks.within_names)), first), *body]
    around = _template(_AROUND.format(names=", ".join(names)), first)
    around[-1].body = body
    leave = _LEAVE_BY_WORD.format(word=hooks.leave) if isinstance(hooks.leave, int) else _LEAVE
    around[-1].finalbody = _template(leave, first)
    if hooks.outermost:
        around[-1].finalbody += _template(_STAND_BACK, first)
        around[-1:-1] = _template(_STAND_ASIDE, first)
    if hooks.replaces:
        around[-1:-1] = _template(_REPLACED, first)
    if hooks.result is not None or hooks.returning is not None:
        around[-1].body = _returning(_RETURN, 1, body)
    if hooks.gate is None:
        return around
    gated = _template(_GATED, first)
    gated[-1].body = around
    gated[-1].orelse = copy.deepcopy(body)
    return gated


def _lean(body, hooks, names):
    """The statements of a function with as little around them as can be, for those calls that `hooks.now` is of."""
    leanly = _template(_LEAN.format(itself=names[0]), body[0])
    gate = leanly[-1]
    gate.body[-1].body = _returning(_LEAN_RETURN, 0, body)
    gate.orelse = _hooked(copy.deepcopy(body), hooks, names)
    return leanly


def _template(source, place):
    """The statements of a template, all of them at the line they stand before."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return tree.body


def _returning(template, place, body):
    """The statements of a function with a template's instead of each return; its value is assigned at a `place`."""
    return _Returns(template, place).visit(ast.Module(body=copy.deepcopy(body), type_ignores=[])).body


class _Returns(ast.NodeTransformer):
    """Puts other statements in the place of each return."""

    def __init__(self, template, place):
        self._template, self._place = template, place

    def visit_Return(self, node):
        statements = _template(self._template, node)[0].body
        statements[self._place].value = node.value or ast.copy_location(ast.Constant(None), node)
        return statements

    def visit_FunctionDef(self, node):
        return node  # a return in there is not ours

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef


def _enclosed(definition, owner, free):
    """Put the definition into a class (for name mangling) and a function (for its closure), as it was."""
    node = definition
    if owner is not None:
        node = ast.ClassDef(name=owner, bases=[], keywords=[], body=[node], decorator_list=[])
        if sys.version_info >= (3, 12):
            node.type_params = []
    outer = [name for name in free if name != "__class__"]
    if not outer:
        return ast.copy_location(node, definition)
    function = ast.parse("def _(%s): pass" % ", ".join(outer)).body[0]
    function.body = [ast.copy_location(node, definition)]
    return ast.copy_location(function, definition)


def _find(code, name):
    """The code object called `name` inside a module's code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name and constant.co_flags & inspect.CO_OPTIMIZED:
                return constant
            found = _find(constant, name)
            if found is not None:
                return found
    return None
