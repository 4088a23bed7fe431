"""Conditions: which branch of an `if` is taken only now and then, and which only in evaluation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from enum import IntEnum
from functools import cache
from typing import Protocol, TypeAlias

from floorit.declared import Value
from floorit.scan.source import Source, dotted, is_constant, last_word, walk

_SELDOM = re.compile(
    r"debug|verbose|every|interval|freq|frequency|first|last|nan|inf|finite|isnan|isinf|isfinite|plots?|plotting|vis"
    r"|visual\w*|profil\w*|dump|saves?|saving|prints?|display|mps|log|logs|logging|dry|sanity|check\w*|report|resume|error\w*|warn\w*"
)
_AT_END = re.compile(r"end_of_\w+|(?:is_|at_)?(?:epoch|loop)_end\w*")
_COUNTS = re.compile(r"i|ii|j|k|n|ni|it|idx|index|step|steps|iter|iters|iteration|batch|epoch|count|counter|cnt|t")
_EVALUATES = re.compile(
    r"val|valid|validate|validation|eval|evaluat\w*|test|testing|infer\w*|predict\w*"
    r"|visuali[sz]\w*|demo|export|exporter|detect|hubconf|benchmarks?|onnx|nms|suppression|postprocess"
)
_SEARCHES = re.compile(r"viterbi|beams?|searcher")  # for the best sequence
_ONE_BY_ONE = re.compile(r"_?incremental_(?:forward|decod|step|infer)\w*")  # how a sequence is made, not learnt
_EXPLAINS = re.compile(r"interpret\w*|explain\w*|saliency|profile|profiling|bench|benchmark|throughput|flops")
_ASKS_FOR_GRADIENTS = re.compile(r"_?get_grads?|_?(?:get|compute)_(?:input_)?gradients?")
_FINDS_RATE = re.compile(r"(?:find|search|suggest)\w*(?:lr\b|learning_?rate)|(?:\blr|learning_?rate)_?(?:find|search)")
_SAMPLES = re.compile(r"samples?|sampling|generate|demo|visuali[sz]e|images|show|plot|export")
_TRAINS = re.compile(r"train|training|trains")
# Options that whoever trains gives, whatever their default is.
_OF_THE_MACHINE = re.compile(r"cuda|gpus?|device|ddp|dist|distributed|parallel|multi\w*|rank|world|master|main")
_WHO = frozenset(
    "training rank main master local global world primary zero distributed writer tensorboard tb wandb mlflow"
    " cuda".split()
)
_COMMON_CLASSES = re.compile(r".*Module|.*Parallel.*|Parameter|Mapping|Sequence|Iterable|Number|Path|.*Error")
_REMAINDERS = ("mod", "fmod", "remainder")
_EXITS = ("exit", "quit", "_exit", "abort")
_ENDS = (ast.Continue, ast.Return, ast.Break, ast.Raise)


class Values(Protocol):
    """What is known of the values of a file."""

    branches: dict[ast.expr, tuple[When, When]]  # of conditions that were asked for before

    def __call__(self, node: ast.expr, /) -> Value:
        """What an expression is by default; None where that is not known."""

    def assigned(self, name: ast.Name, /) -> ast.expr | None:
        """What a name is set to, if it is set once."""

    def may_be_given(self, node: ast.expr, /) -> bool:
        """Whether it is a parameter that is None unless it is given, and that some call gives."""


Branch: TypeAlias = "tuple[ast.AST, bool]"  # an `if`, and whether its body or its else is meant


def branches_around(source: Source, node: ast.AST, until: ast.AST | None) -> Iterator[Branch]:
    """Those that a node stands in."""
    before = node
    for here in source.around(node):
        if here is until:
            return
        if isinstance(here, ast.If) and before is not here.test:
            yield here, before in here.body
        before = here


class When(IntEnum):
    """When a branch is taken, of those times at which the `if` is reached."""

    ALWAYS = 0
    SELDOM = 1
    EVALUATING = 2


def conditions(source: Source, node: ast.AST, until: ast.AST, values: Values, steps: Set[Branch]) -> Iterator[When]:
    """What stands between a node and something around it, as far as it says when the node is reached.

    Branches in which a step is taken say nothing: what stands there is reached as often as there are steps.
    """
    before = node
    for here in source.around(node):
        if isinstance(here, (ast.If, ast.IfExp)) and before is not here.test:
            is_body = before is here.body or (isinstance(here.body, list) and before in here.body)
            if (
                is_body
                and isinstance(here, ast.If)
                and (_ends(here.body[-1]) or _is_once(source, here) or _is_first_turn(source, here, until))
            ):
                yield When.SELDOM
            elif (here, is_body) not in steps:
                taken, other = branches(here.test, values)
                yield taken if is_body else other
        elif isinstance(here, ast.ExceptHandler):
            yield When.SELDOM
        if isinstance(before, ast.stmt):
            yield from _passed_by(here, before, values)
        if here is until:
            return
        before = here


def is_unasked(source: Source, node: ast.AST, until: ast.AST, values: Values, steps: Set[Branch]) -> bool:
    """Whether nothing between a node and something around it may keep it from running in training, but which process
    this is, and settings that let it run by default."""
    before = node
    for here in source.around(node):
        if isinstance(here, (ast.If, ast.IfExp)) and before is not here.test:
            is_body = before is here.body or (isinstance(here.body, list) and before in here.body)
            asks = (here, is_body) not in steps and not (is_body and _asks_who(here.test))
            if asks and not _is_set(here.test, is_body, values):
                return False
        elif isinstance(here, ast.ExceptHandler):
            return False
        if isinstance(before, ast.stmt) and (_may_be_passed_by(here, before, values) or _ends_the_run(here, before)):
            return False
        if here is until:
            return True
        before = here
    return False


def _asks_who(test: ast.expr) -> bool:
    """`rank == 0`, `is_main_process()`, `writer is not None`, `args.use_wandb`"""
    if isinstance(test, ast.BoolOp):
        return all(_asks_who(value) for value in test.values)
    words = {
        word
        for part in walk(test)
        if isinstance(part, (ast.Name, ast.Attribute))
        for word in _words_of(last_word(part))
    }
    return not words.isdisjoint(_WHO)


def _may_be_passed_by(block: ast.AST, statement: ast.stmt, values: Values) -> bool:
    """Whether an `if` before it goes on to the next turn, and not only now and then."""
    return any(
        isinstance(earlier, ast.If)
        and any(isinstance(body[-1], (ast.Continue, ast.Return)) for body in (earlier.body, earlier.orelse) if body)
        and (branches(earlier.test, values)[0] is When.ALWAYS or bool(earlier.orelse))
        for earlier in _before(block, statement)
    )


def _ends_the_run(block: ast.AST, statement: ast.stmt) -> bool:
    """Whether a loop or program ends right after: what is said then is said once."""
    after = next((body[body.index(statement) + 1 :] for body in _blocks(block) if statement in body), [])
    leaves = (ast.Break, ast.Return) if isinstance(block, ast.If) else (ast.Break,)
    return any(isinstance(later, leaves) or _ends(later) for later in after)


def _ends(statement: ast.stmt) -> bool:
    """Whether the program ends there."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return last_word(statement.value.func) in _EXITS
    return isinstance(statement, ast.Raise)


def _is_once(source: Source, block: ast.If) -> bool:
    """`if not self.checked: self.checked = True`: a flag, or what is made when it is first needed."""
    flag, value = _asked(block.test)
    if _sets_what_it_asks(source, block):
        return True
    return bool(flag) and any(
        isinstance(statement, ast.Assign)
        and any(dotted(target) == flag for target in statement.targets)
        and (value is None or is_constant(statement.value, value))
        for statement in block.body
    )


def _is_first_turn(source: Source, block: ast.If, loop: ast.AST) -> bool:
    """`if mean is None: mean = loss.item()` in a loop that sets it nowhere else."""
    asked = block.test.left if isinstance(block.test, ast.Compare) and _is_none(block.test) else None
    if not isinstance(asked, ast.Name) or not isinstance(loop, (ast.For, ast.While)):
        return False
    around = (here for here in source.around(block) if isinstance(here, (ast.For, ast.While)))
    if next(around, None) is not loop:
        return False
    names = (part for part in walk(loop) if isinstance(part, ast.Name) and part.id == asked.id)
    sets = [name for name in names if isinstance(name.ctx, ast.Store)]
    is_set = any(name in walk(one) for one in block.body for name in sets)
    return is_set and all(block in source.around(name) for name in sets)


def _sets_what_it_asks(source: Source, block: ast.If) -> bool:
    """`if self.scale < 0: self.scale = …`, also where `scale = self.scale` stands before it: what an object keeps is
    set once, and has been negative until then."""
    if not _is_unset(block.test):
        return False
    assert isinstance(block.test, ast.Compare)
    asked = {
        ast.unparse(part)
        for value in _meant(source, block, block.test.left)
        for part in walk(value)
        if isinstance(part, (ast.Attribute, ast.Subscript))
    }
    return any(
        isinstance(statement, ast.Assign)
        and ast.unparse(target) in asked
        and ast.unparse(target).startswith("self.")
        and ast.unparse(target) not in ast.unparse(statement.value)
        for statement in block.body
        for target in getattr(statement, "targets", ())
    )


def _is_unset(test: ast.expr) -> bool:
    """`x < 0`, `x == -1`"""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    right = test.comparators[0]
    is_negative = isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub)
    return (isinstance(test.ops[0], ast.Lt) and is_constant(right, 0)) or (
        isinstance(test.ops[0], ast.Eq) and is_negative
    )


def _meant(source: Source, block: ast.If, node: ast.expr) -> list[ast.expr]:
    """What is asked for, and what a name is set to before that in the same function."""
    inside = source.function(block)
    before = (one for one in source.all(ast.Assign) if one.lineno < block.lineno and source.function(one) is inside)
    name = node.id if isinstance(node, ast.Name) else ""
    return [node, *(one.value for one in before if name and any(last_word(t) == name for t in one.targets))]


def _asked(test: ast.expr) -> tuple[str, bool | None]:
    """The attribute that a condition asks for, and what it must become for the condition to fail; None: anything."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _attribute(test.operand), True
    if isinstance(test, ast.Compare) and _is_none(test):
        return _attribute(test.left), None
    return _attribute(test), False


def _is_none(test: ast.Compare) -> bool:
    """`x is None`"""
    return isinstance(test.ops[0], ast.Is) and is_constant(test.comparators[0], None)


def _attribute(node: ast.expr) -> str:
    return dotted(node) if isinstance(node, ast.Attribute) else ""


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    yield from (body for body in (getattr(node, "body", None), getattr(node, "orelse", None)) if isinstance(body, list))


def _before(block: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of the same block that stand before one."""
    return next((body[: body.index(statement)] for body in _blocks(block) if statement in body), [])


def _is_set(test: ast.expr, is_body: bool, values: Values) -> bool:
    """Whether the program's settings, as they are by default, lead to that branch."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        modulo = next((part for part in (test.left, *test.comparators) if _is_modulo(part)), None)
        if modulo is not None:
            return is_body and _is_every(modulo, values)
    value = values(test)
    return value is not None and bool(value) is is_body


def branches(test: ast.expr, values: Values) -> tuple[When, When]:
    """When the body is taken, and when the else."""
    if test not in values.branches:
        values.branches[test] = _branches(test, values)
    return values.branches[test]


def _branches(test: ast.expr, values: Values) -> tuple[When, When]:
    meant = values.assigned(test) if isinstance(test, ast.Name) else None
    if meant is not None and any(map(_is_modulo, walk(meant))):  # is_due = step % 10 == 0
        return branches(meant, _Plain(values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        taken, other = branches(test.operand, values)
        return other, taken
    if isinstance(test, ast.BoolOp):
        parts = [branches(value, values) for value in test.values]
        bodies, others = [taken for taken, _ in parts], [other for _, other in parts]
        return (_most(bodies), _least(others)) if isinstance(test.op, ast.And) else (_least(bodies), _most(others))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test, values)
    if _is_modulo(test):  # if step % 10:
        return (When.SELDOM, When.ALWAYS) if _is_every(test, values) else (When.ALWAYS, When.SELDOM)
    if _asks_for_own_class(test):
        return When.SELDOM, When.ALWAYS
    return _by_default(test, values) or _named(test)


class _Plain:
    """The same values, of names not what they are set to: one may be set to what it was."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.branches: dict[ast.expr, tuple[When, When]] = {}

    def __call__(self, node: ast.expr, /) -> Value:
        return self._values(node)

    def assigned(self, name: ast.Name, /) -> ast.expr | None:
        return None

    def may_be_given(self, node: ast.expr, /) -> bool:
        return self._values.may_be_given(node)


def _asks_for_own_class(test: ast.expr) -> bool:
    """`isinstance(sampler, LossAwareSampler)`: one of several that the project has; not what torch or Python has."""
    if not isinstance(test, ast.Call) or last_word(test.func) != "isinstance" or len(test.args) != 2:
        return False
    name = last_word(test.args[1])
    return name[:1].isupper() and not _COMMON_CLASSES.fullmatch(name)


def modulus(node: ast.AST) -> ast.expr | None:
    """`n` of `step % n`, of `np.mod(step, n)`; not of `rank % n`, which is the same in every step."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not isinstance(node.left, ast.Constant):
        return None if "rank" in _words_of(last_word(node.left)) else node.right
    is_called = isinstance(node, ast.Call) and last_word(node.func) in _REMAINDERS and len(node.args) == 2
    return node.args[1] if is_called and isinstance(node, ast.Call) else None


def _is_modulo(node: ast.AST) -> bool:
    return modulus(node) is not None


def pace(test: ast.expr, values: Values) -> int | None:
    """`n` of `step % n`, wherever it stands in a condition, as settings have it: 0 where that is not known, None where
    no such thing is asked."""
    found = [values(every) for part in walk(test) if (every := modulus(part)) is not None]
    return max((one for one in found if isinstance(one, int)), default=0) if found else None


def _is_every(modulo: ast.AST, values: Values) -> bool:
    """Whether `step % args.log_every` is 0 in every step."""
    every = modulus(modulo)
    return every is not None and values(every) == 1


def _by_default(test: ast.expr, values: Values) -> tuple[When, When] | None:
    """As its setting says, where that is known and is the program's own affair."""
    value = values(test)
    words = _words_of(last_word(test))
    if value is None or any(_OF_THE_MACHINE.fullmatch(word) or _TRAINS.fullmatch(word) for word in words):
        return None
    return (When.ALWAYS, When.SELDOM) if value else (When.SELDOM, When.ALWAYS)


def _compared(test: ast.Compare, values: Values) -> tuple[When, When]:
    equal = isinstance(test.ops[0], (ast.Eq, ast.In, ast.Is))
    unequal = isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot))
    modulo = next((part for part in walk(test) if _is_modulo(part)), None)
    if modulo is not None:
        return (When.ALWAYS, When.SELDOM) if unequal is not _is_every(modulo, values) else (When.SELDOM, When.ALWAYS)
    if _is_text(test.comparators[0]):  # phase == "train"
        if _text(test.comparators[0]) == "cpu":
            return (When.SELDOM, When.ALWAYS) if equal else (When.ALWAYS, When.SELDOM)
        evaluates = _EVALUATES.fullmatch(_text(test.comparators[0]))
        if evaluates or _TRAINS.fullmatch(_text(test.comparators[0])):
            taken, other = (When.EVALUATING, When.ALWAYS) if evaluates else (When.ALWAYS, When.EVALUATING)
            return (taken, other) if equal else (other, taken)
    if any(isinstance(side, ast.Constant) and side.value is None for side in (test.left, *test.comparators)):
        return (When.SELDOM, When.ALWAYS) if equal and values.may_be_given(test.left) else (When.ALWAYS, When.ALWAYS)
    if equal and is_constant(test.comparators[0], 0) and _is_size(test.left):
        return When.SELDOM, When.ALWAYS
    words = _words_of(last_word(_counted(test.left)))
    if words and _COUNTS.fullmatch(words[-1]):
        if equal or isinstance(test.ops[0], (ast.Lt, ast.LtE)):
            return When.SELDOM, When.ALWAYS
        return When.ALWAYS, (When.SELDOM if unequal else When.ALWAYS)
    return _named(test)


def _is_size(node: ast.expr) -> bool:
    """`len(x)`, `x.shape[0]`, `x.size(0)`, `x.numel()`: nothing is there only now and then."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return last_word(node.func if isinstance(node, ast.Call) else node) in ("len", "shape", "size", "numel")


def _counted(node: ast.expr) -> ast.expr:
    """`step` of `step + 1`."""
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) else node


def _named(test: ast.expr) -> tuple[When, When]:
    """By the words in its names."""
    names = [last_word(part) for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute))]
    words = [word for name in names for word in _words_of(name)]
    if any(map(_AT_END.fullmatch, names)):
        return When.SELDOM, When.ALWAYS
    if any(_TRAINS.fullmatch(word) for word in words):
        return When.ALWAYS, When.EVALUATING
    if any(_EVALUATES.fullmatch(word) for word in words):
        return When.EVALUATING, When.ALWAYS
    if any(_SELDOM.fullmatch(word) for word in words):
        return When.SELDOM, When.ALWAYS
    return When.ALWAYS, When.ALWAYS


def _passed_by(block: ast.AST, statement: ast.stmt, values: Values) -> Iterator[When]:
    """What an `if …: continue` before a statement of the same block says of it."""
    for earlier in _before(block, statement):
        if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], _ENDS) and not earlier.orelse:
            yield branches(earlier.test, values)[1]
        elif isinstance(earlier, ast.If) and earlier.orelse and not isinstance(earlier.body[-1], _ENDS):
            yield _unless_left(earlier, values)


def _unless_left(block: ast.If, values: Values) -> When:
    """When what follows `if due: … elif last: … else: return` is reached."""
    times = [branches(block.test, values)[0]]
    while len(block.orelse) == 1 and isinstance(block.orelse[0], ast.If):
        block = block.orelse[0]
        times.append(branches(block.test, values)[0])
    is_left = bool(block.orelse) and isinstance(block.orelse[-1], _ENDS)
    return min(times) if is_left else When.ALWAYS


def spares_gradients(source: Source, node: ast.expr) -> bool:
    """`torch.no_grad()`, `torch.inference_mode`, with or without its parentheses."""
    name = source.name(node.func if isinstance(node, ast.Call) else node)
    return name.split(".")[-1].endswith(("no_grad", "inference_mode"))


@cache
def samples(name: str) -> bool:
    """Whether a function of this name is there to draw from a model."""
    return any(_SAMPLES.fullmatch(word) for word in _words_of(name))


@cache
def evaluates(name: str) -> bool:
    """Whether something of this name is there to evaluate."""
    if trains(name):
        return False
    words = _words_of(name)
    is_after = "postprocess" in name.lower().replace("_", "")
    is_search = any(map(_SEARCHES.fullmatch, words)) and "loss" not in words
    return (
        is_after
        or is_search
        or bool(_ONE_BY_ONE.fullmatch(name))
        or studies(name)
        or any(map(_EVALUATES.fullmatch, words))
    )


@cache
def studies(name: str) -> bool:
    """Whether something of this name goes backward to explain, attack or time a model, or to find a learning rate."""
    return (
        bool(_ASKS_FOR_GRADIENTS.fullmatch(name))
        or bool(_FINDS_RATE.search(name.lower()))
        or any(map(_EXPLAINS.fullmatch, _words_of(name)))
    )


@cache
def trains(name: str) -> bool:
    """Whether something of this name is there to train."""
    return any(_TRAINS.fullmatch(word) for word in _words_of(name))


@cache
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


def _most(times: list[When]) -> When:
    """When something is reached that needs all of these."""
    return max(times)


def _least(times: list[When]) -> When:
    """When something is reached that needs one of these."""
    return When.ALWAYS if When.ALWAYS in times else times[0]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(node: ast.AST) -> str:
    assert isinstance(node, ast.Constant)
    return str(node.value).lower()
