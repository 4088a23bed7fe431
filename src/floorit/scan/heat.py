"""Where a project trains: which loops take a step each time round, and which functions run in every step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from enum import Enum

from floorit.declared import Value
from floorit.scan.guards import (
    Branch,
    When,
    branches,
    branches_around,
    conditions,
    evaluates,
    is_unasked,
    pace,
    samples,
    spares_gradients,
    studies,
    trains,
)
from floorit.scan.project import Class, Function, Project, is_own
from floorit.scan.source import COMPREHENSIONS, Source, argument, is_constant, last_word, walk

_OPTIMIZER = re.compile(r"opt|optim\w*|opt_\w+|\w*_opt|\w*optim\w*|scaler", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched|lr", re.IGNORECASE)
BACKWARD = {"backward", "manual_backward"}
# Methods that a framework calls in every step, by the last word of a class that it inherits from.
_HOOKS = {
    "LightningModule": ("training_step", "on_train_batch_start", "on_train_batch_end", "optimizer_step"),
    "Callback": ("on_train_batch_start", "on_train_batch_end", "on_batch_end", "on_step_end"),
    "TrainerCallback": ("on_step_begin", "on_step_end", "on_substep_end"),
    "Trainer": ("training_step", "compute_loss"),
    "Hook": ("before_train_iter", "after_train_iter"),
    "BaseModel": ("train_step", "loss"),
}
_OF_MODULES = ("forward", "forward_train", "loss")  # that a library's loop or model calls in every step
_APPLIES = ("map", "multi_apply", "checkpoint")  # functions that call what they are handed
_APART = (ast.IfExp, ast.Lambda, *COMPREHENSIONS)  # of which one part may run when another does not
_COLLATES = "collate_fn"
_OTHER_FRAMEWORKS = frozenset("paddle tensorflow keras mxnet jax flax mindspore oneflow chainer jittor mlx".split())
_GOES_ON = frozenset("fit run spawn launch Fire".split())
_BY_TURNS = 2  # of which each takes half of the steps
_RARE = 16  # turns of a loop: what is done once in so many costs little
_TRANSFORMS = re.compile(r"transform|augment|pipeline", re.IGNORECASE)


class Place(Enum):
    """When code runs, in a run that trains."""

    STEP = "every step"
    SAMPLE = "every sample"
    SELDOM = "now and then"
    EVALUATION = "evaluation"
    ONCE = "once"


class _Values:
    """As guards ask for them."""

    def __init__(
        self, source: Source, project: Project, callers: dict[Function, list[tuple[Source, ast.Call]]]
    ) -> None:
        self._source, self._project, self._callers = source, project, callers
        self.branches: dict[ast.expr, tuple[When, When]] = {}

    def __call__(self, node: ast.expr, /) -> Value:
        return self._project.entries.value_of(self._source, node)

    def assigned(self, name: ast.Name, /) -> ast.expr | None:
        return self._project.set_once(self._source, name, name.id)

    def may_be_given(self, node: ast.expr, /) -> bool:
        inside = self._source.function(node)
        if inside is None or not isinstance(node, ast.Name):
            return False
        function = self._project.functions[inside]
        places = [number for number, name in enumerate(function.parameters) if name == node.id]
        given = (argument(call, node.id, places[0]) for _, call in self._callers.get(function, ()) if places)
        return any(one is not None and not is_constant(one, None) for one in given)


class Heat:
    """Of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._evaluating = {f for f in project.functions.values() if _is_evaluation(f)}
        self.loops: set[ast.AST] = set()
        self.training: set[Source] = set()  # files that have such a loop, or are handed to one of a framework
        self._branches: set[Branch] = set()  # in which a step is taken
        self.steps: set[Function] = set()
        self.samples: set[Function] = set()
        self._values: dict[Source, _Values] = {}
        self._holders: dict[Function, bool] = {}
        self.callers: dict[Function, list[tuple[Source, ast.Call]]] = {}
        self.made: dict[Class, list[tuple[Source, ast.Call]]] = {}  # the calls that make one
        self._places: dict[ast.AST, Place] = {}
        self._times: dict[tuple[ast.AST, ast.AST], When] = {}  # of a statement in a loop or function
        self._find_loops()
        self._spread()
        self._places.clear()  # of what was asked before all was known
        self._times.clear()

    @property
    def trains(self) -> bool:
        """Whether anything there takes a step."""
        return bool(self.loops or self.steps)

    def of(self, source: Source, node: ast.AST) -> Place:
        """When a node runs."""
        whole = _whole(source, node)
        if whole not in self._places:
            self._places[whole] = self._of(source, whole)
        return self._places[whole]

    def _of(self, source: Source, node: ast.AST) -> Place:
        root, place = self._root(source, node)
        if root is None:
            return place
        when = self._when(source, node, root)
        return place if when is When.ALWAYS else Place.SELDOM if when is When.SELDOM else Place.EVALUATION

    def _when(self, source: Source, node: ast.AST, root: ast.AST) -> When:
        """How seldom a node is reached each time that a loop or function around it runs; worked out once for all that
        stands in a statement."""
        statement = root if isinstance(root, ast.Lambda) else source.statement(node)
        if node is not statement:
            inside = self._rarest(source, node, statement)
            return inside if statement is root else max(inside, self._when(source, statement, root))
        if (statement, root) not in self._times:
            self._times[statement, root] = self._rarest(source, statement, root)
        return self._times[statement, root]

    def _rarest(self, source: Source, node: ast.AST, until: ast.AST) -> When:
        """What stands between a node and something around it lets it be reached so seldom."""
        return max(self.conditions(source, node, until), default=When.ALWAYS)

    def conditions(self, source: Source, node: ast.AST, until: ast.AST) -> Iterator[When]:
        """What stands between a node and something around it, as the project's settings have it."""
        return conditions(source, node, until, self._values_of(source), self._branches)

    def _values_of(self, source: Source) -> _Values:
        if source not in self._values:
            self._values[source] = _Values(source, self._project, self.callers)
        return self._values[source]

    def is_in_step(self, source: Source, node: ast.AST) -> bool:
        """Whether it runs in every step."""
        return self.of(source, node) is Place.STEP

    def is_surely_in_step(self, source: Source, node: ast.AST, hops: int = 3) -> bool:
        """Whether it runs in every step, and nothing on the way to it asks whether it should."""
        root, place = self._root(source, node)
        if root is None or place is not Place.STEP or not self.is_in_step(source, node):
            return False
        if not is_unasked(source, node, root, self._values_of(source), self._branches):
            return False
        if root in self.loops:
            return True
        callers = [
            (where, call)
            for where, call in self.callers.get(self._project.functions[root], ())
            if self.is_in_step(where, call)
        ]
        return not callers or (hops > 0 and any(self.is_surely_in_step(w, call, hops - 1) for w, call in callers))

    def loops_of(self, source: Source) -> list[ast.AST]:
        """Those of a file that take a step each time round."""
        loops: list[ast.AST] = [*source.all(ast.For), *source.all(ast.While)]
        return [loop for loop in loops if loop in self.loops]

    def training_loop(self, source: Source, node: ast.AST) -> ast.AST | None:
        """The innermost loop around a node, in the same function, that takes a step each time round."""
        if source not in self.training:
            return None
        return next((loop for loop in _loops(source, node) if loop in self.loops), None)

    def holds_loop(self, function: Function, hops: int = 3) -> bool:
        """Whether a function trains in a loop, itself or by what it calls."""
        if function not in self._holders:
            self._holders[function] = False  # for functions that call themselves
            self._holders[function] = any(
                self.training_loop(function.source, call) is not None
                or (hops > 0 and any(self.holds_loop(f, hops - 1) for f in self._reached(function.source, call)))
                for call in function.calls
            )
        return self._holders[function]

    def is_in_example(self, source: Source, node: ast.AST) -> bool:
        """Whether it stands in such a function."""
        inside = source.function(node)
        return inside is not None and self.is_example(self._project.functions[inside])

    def is_example(self, function: Function) -> bool:
        """Whether it is the `main` of a file that others import, called only where that file is run, and goes on to
        nothing that trains."""
        if function.name != "main" or function.owner is not None or not self._project.is_imported(function.source):
            return False
        called = {last_word(call.func) for call in function.calls}
        goes_on = not called.isdisjoint(_GOES_ON) or any(map(trains, called)) or self.holds_loop(function)
        callers = self.callers.get(function, [])
        return not goes_on and all(_is_where_run(source, call) for source, call in callers)

    def reached_from(self, source: Source) -> set[Function]:
        """The functions that the code of a file comes to, with all methods of the objects that are made on the way."""
        found: set[Function] = set()
        stack = [(source, call) for call in source.all(ast.Call)]
        while stack:
            where, call = stack.pop()
            made = self._project.find(where, where.name(call.func))
            family = self._project.family(made) if isinstance(made, Class) else ()
            methods = (method for one in family for method in one.methods.values())
            new = {*self._reached(where, call), *methods} - found
            found |= new
            stack += [(function.source, one) for function in new for one in function.calls]
        return found

    def leads_to_training(self, source: Source, node: ast.AST) -> bool:
        """Whether the function around a node goes on to train, or another method of its class does."""
        inside = source.function(node)
        if inside is None:
            return source in self.training
        function = self._project.functions[inside]
        methods = function.owner.methods.values() if function.owner is not None else ()
        return any(map(self.holds_loop, (function, *methods)))

    def loops_around(self, source: Source, node: ast.AST, hops: int = 3) -> Iterator[tuple[Source, ast.AST]]:
        """The loops that go round a node, in its function and in those that call it."""
        for loop in _loops(source, node):
            yield source, loop
        inside = source.function(node)
        if inside is not None and hops > 0:
            for caller, call in self.callers.get(self._project.functions[inside], ()):
                yield from self.loops_around(caller, call, hops - 1)

    def _root(self, source: Source, node: ast.AST) -> tuple[ast.AST | None, Place]:
        """What makes a node hot, a loop or a function, and how hot that is."""
        inside = source.function(node)
        loop = self.training_loop(source, node)
        if loop is not None:
            return loop, Place.STEP
        while inside is not None:
            function = self._project.functions[inside]
            if function in self._evaluating:
                return None, Place.EVALUATION
            if function in self.steps:
                return inside, Place.STEP
            if function in self.samples:
                return inside, Place.SAMPLE
            inside = source.function(inside)
        return None, Place.ONCE

    # -- loops that train ---------------------------------------------------------------------------------------

    def _find_loops(self) -> None:
        """A loop takes steps if it trains each time round, itself or by what it calls, and not in a loop inside."""
        project = self._project
        stepping: set[Function] = set()  # functions each call of which trains
        pending: list[tuple[Source, ast.Call]] = []
        callers = self.callers
        unclear: dict[str, list[tuple[Source, ast.Call]]] = {}  # calls of a method that several classes have
        updates: dict[ast.AST | None, list[set[Branch]]] = {}  # of a loop or function: around each, where it steps
        followed: set[ast.Call] = set()  # of those that call such a function
        where: dict[ast.AST, Source] = {}  # blocks in which a step is taken
        for source in project.sources:
            is_torch = not _is_of_another(source)
            for call in source.all(ast.Call):
                if is_torch and _trains(source, call) and not self._only_evaluates(source, call):
                    pending.append((source, call))
                reached = self._reached(source, call)
                made = project.find(source, source.name(call.func))
                if isinstance(made, Class):
                    self.made.setdefault(made, []).append((source, call))
                for function in reached:
                    callers.setdefault(function, []).append((source, call))
                if not reached and project.has_several(call.func):
                    unclear.setdefault(last_word(call.func), []).append((source, call))
        while pending:
            source, call = pending.pop()
            loop = next(iter(_loops(source, call)), None)
            inside = source.function(call)
            around = set(branches_around(source, call, loop or inside))
            self._branches |= around
            where.update((block, source) for block, _ in around)
            if last_word(call.func) not in BACKWARD:
                updates.setdefault(loop or inside, []).append(around)
            if loop is not None:
                self.loops.add(loop)
                self.training.add(source)
            elif inside is not None and not _makes_optimizer(function := project.functions[inside]):
                # what makes one solves a problem of its own in each call: no step of training
                calling = callers.get(function, [])
                training = [one for one in calling if not _is_told_to_evaluate(function, around, *one)]
                if calling and not training:
                    continue
                pending += [one for one in training if one[1] not in followed]
                followed.update(one for _, one in training)
                if function not in stepping:
                    stepping.add(function)
                    if function.owner is not None and stepping.issuperset(project.methods_of(function.name)):
                        pending += unclear.get(function.name, [])
        self._branches = {
            one for one in self._branches if not _is_extra(one, updates) and not self._is_rare(one, where[one[0]])
        }
        for function in stepping:
            if function.owner is not None and self._is_uncalled(function) and self._trains_itself(function):
                self.steps.add(function)  # somebody else's loop calls it
        for owner in project.classes.values():
            self.steps.update(_hooks(project, owner))
        self.training.update(function.source for function in self.steps)

    def _is_rare(self, branch: Branch, source: Source) -> bool:
        """Whether a step is taken in a branch every so many turns, and in the other branch the other turns, or so many
        turns are needed for one step that what is done beside it costs little."""
        block, taken = branch
        assert isinstance(block, ast.If)
        values = self._values_of(source)
        turns = pace(block.test, values)
        if turns is None or branches(block.test, values)[0 if taken else 1] is not When.SELDOM:
            return False
        return turns >= _RARE or ((block, not taken) in self._branches and turns != _BY_TURNS)

    def _is_uncalled(self, function: Function) -> bool:
        """Whether nothing calls a method but what has been put in its place."""
        around = (source.function(call) for source, call in self.callers.get(function, ()))
        return all(one is not None and self._project.functions[one].name == function.name for one in around)

    def _trains_itself(self, function: Function, hops: int = 3) -> bool:
        """Whether a method goes backward or lets an optimizer step, or another one of its object that it calls."""
        own = (call for call in function.calls if is_own(call.func))
        return any(_trains(function.source, call) for call in function.calls) or any(
            hops > 0 and self._trains_itself(reached, hops - 1)
            for call in own
            for reached in self._reached(function.source, call)
        )

    def _only_evaluates(self, source: Source, call: ast.Call) -> bool:
        """Whether a function goes backward to study or attack a model, or tells it to evaluate and updates nothing."""
        inside = source.function(call)
        if inside is None:
            return False
        function = self._project.functions[inside]
        if studies(function.name) or (function.owner is not None and studies(function.owner.name)):
            return True
        methods = {last_word(other.func) for other in function.calls}
        if "step" not in methods and any(map(_is_sign_of_gradient, function.calls)):
            return True
        return "eval" in methods and methods.isdisjoint(("train", "step"))

    def _reached(self, source: Source, call: ast.Call) -> list[Function]:
        """The functions that a call runs, among them those that it is only handed."""
        found = self._project.called(source, call)
        is_step = isinstance(call.func, ast.Attribute) and call.func.attr == "step"  # optimizer.step(closure)
        if is_step or last_word(call.func) in _APPLIES:
            for given in call.args:
                if isinstance(given, (ast.Name, ast.Attribute)):
                    found = [*found, *self._project.called(source, _call_of(given))]
        return found

    # -- and what they call -------------------------------------------------------------------------------------

    def _spread(self) -> None:
        project = self._project
        hot: list[Function] = []
        for source in (one for one in project.sources if one in self.training):
            for call in source.all(ast.Call):
                if self.training_loop(source, call) is not None and self.is_in_step(source, call):
                    hot += self._reached(source, call)
        # a loop over what takes many steps itself is one over folds or trials
        hot = [*self.steps, *(function for function in hot if not self.holds_loop(function))]
        if self.steps or self.loops:
            modules = [c for c in project.classes.values() if project.is_module(c) and not self._is_for_evaluation(c)]
            hot += [owner.methods[name] for owner in modules for name in _OF_MODULES if name in owner.methods]
        self._reach(hot, self.steps, Place.STEP)
        self._reach(self._datasets(), self.samples, Place.SAMPLE)

    def _is_for_evaluation(self, owner: Class) -> bool:
        """Whether a model is made only where nothing trains, or spares gradients altogether."""
        forward = owner.methods.get("forward")
        if forward is not None and any(spares_gradients(owner.source, d) for d in forward.decorators):
            return True
        made = self.made.get(owner, [])
        return bool(made) and all(self._is_in_evaluation(source, call) for source, call in made)

    def _is_in_evaluation(self, source: Source, node: ast.AST) -> bool:
        inside = source.function(node)
        if inside is not None:
            function = self._project.functions[inside]
            if function in self._evaluating or function.name.startswith("check"):
                return True
        return evaluates(source.path.stem)

    def _reach(self, functions: Iterable[Function], found: set[Function], place: Place) -> None:
        stack = [function for function in functions if function not in self._evaluating]
        found.update(stack)
        while stack:
            function = stack.pop()
            for call in function.calls:
                if self.of(function.source, call) is not place:
                    continue
                for reached in self._reached(function.source, call):
                    if reached not in found and reached not in self._evaluating and not self._makes_module(reached):
                        found.add(reached)
                        stack.append(reached)

    def _makes_module(self, function: Function) -> bool:
        """A model makes its parts once, whatever seems to call it."""
        return function.name == "__init__" and function.owner is not None and self._project.is_module(function.owner)

    def _datasets(self) -> Iterator[Function]:
        project = self._project
        for owner in project.classes.values():
            names = {name.split(".")[-1] for name in project.ancestors(owner)}
            if any(name.endswith("Dataset") for name in names) or {"__getitem__", "__len__"} <= set(owner.methods):
                for name in ("__getitem__", "__iter__"):
                    if name in owner.methods:
                        yield owner.methods[name]
            elif "__call__" in owner.methods and _is_transform(project, owner):
                yield owner.methods["__call__"]
        for source in project.sources:
            for call in source.all(ast.Call) if _COLLATES in source.words else ():
                given = argument(call, _COLLATES)
                if isinstance(given, (ast.Name, ast.Attribute)):
                    yield from project.called(source, _call_of(given))


def _call_of(function: ast.expr) -> ast.Call:
    """A call that the text does not have: of something that is handed on."""
    return ast.Call(func=function, args=[ast.Starred(value=function)], keywords=[])


def _is_of_another(source: Source) -> bool:
    """Whether a file is written for another framework."""
    imported = {name.partition(".")[0] for name in source.imports.values()}
    return not imported.isdisjoint(_OTHER_FRAMEWORKS) and "torch" not in imported


def _trains(source: Source, call: ast.Call) -> bool:
    """Whether a call goes backward or updates parameters."""
    function = call.func
    if len(call.args) > 1 and last_word(call.args[0]) == "loss" and _OPTIMIZER.fullmatch(last_word(call.args[1])):
        return True  # loss_scaler(loss, optimizer)
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in BACKWARD:
        return not last_word(function.value)[:1].isupper()  # MyFunction.backward(ctx, …)
    owner = last_word(function.value.value if isinstance(function.value, ast.Subscript) else function.value)
    return function.attr == "step" and bool(_OPTIMIZER.fullmatch(owner)) and not _SCHEDULER.search(owner)


def _is_where_run(source: Source, node: ast.AST) -> bool:
    """Whether it stands under `if __name__ == "__main__":`."""
    tests = (here.test for here in source.around(node) if isinstance(here, ast.If))
    return any(isinstance(test, ast.Compare) and last_word(test.left) == "__name__" for test in tests)


def _is_sign_of_gradient(call: ast.Call) -> bool:
    """`x.grad.sign()`, `torch.sign(x.grad)`: a way to change what a model is given."""
    if last_word(call.func) != "sign" or not isinstance(call.func, ast.Attribute):
        return False
    return any(last_word(part) == "grad" for one in (call.func.value, *call.args) for part in walk(one))


def _is_extra(branch: Branch, updates: dict[ast.AST | None, list[set[Branch]]]) -> bool:
    """Whether a step is taken in a branch, and another without it: every fifth time the generator's."""
    block, taken = branch
    places = next((places for places in updates.values() if any(branch in around for around in places)), [])
    return any((block, taken) not in around and (block, not taken) not in around for around in places)


def _is_told_to_evaluate(function: Function, around: set[Branch], source: Source, call: ast.Call) -> bool:
    """Whether a call spares gradients, or gives False to the parameter of the branches in which a step is taken."""
    inside = source.function(call)
    blocks = (here for here in source.around(call) if isinstance(here, ast.With) and source.function(here) is inside)
    if any(spares_gradients(source, item.context_expr) for block in blocks for item in block.items):
        return True
    asked = (block.test for block, taken in around if isinstance(block, ast.If) and taken)
    names = [one.id for one in asked if isinstance(one, ast.Name) and one.id in function.parameters]
    given = (argument(call, name, function.parameters.index(name)) for name in names)
    return any(is_constant(one, False, None) for one in given)


def _makes_optimizer(function: Function) -> bool:
    names = (function.source.name(call.func) for call in function.calls)
    return any(name.startswith("torch.optim.") and ".lr_scheduler." not in name for name in names)


def _loops(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """The loops around a node in the same function, from the inside out; not those that only go through optimizers."""
    before = node
    inside = source.function(node)
    for here in source.around(node):
        if here is inside:
            return
        if isinstance(here, (ast.For, ast.AsyncFor)):
            is_body = isinstance(before, ast.stmt) and before in here.body
            if is_body and not _is_listed(here.iter) and not _goes_through_optimizers(here.iter):
                yield here
        elif isinstance(here, ast.While):
            if before is here.test or before in here.body:
                yield here
        elif isinstance(here, COMPREHENSIONS) and not _goes_through_optimizers(here.generators[0].iter):
            yield here
        before = here


def _is_listed(node: ast.AST) -> bool:
    """Whether a loop goes through things that are written out: losses, phases, settings to try."""
    return isinstance(node, (ast.List, ast.Tuple))


def _whole(source: Source, node: ast.AST) -> ast.AST:
    """The outermost expression around a node that runs when the node does."""
    parents = source.parents
    while True:
        around = parents.get(node)
        if not isinstance(around, (ast.expr, ast.keyword)) or isinstance(around, _APART):
            return node
        node = around


def _goes_through_optimizers(node: ast.AST) -> bool:
    """Also `range(len(optimizers))`; not `range(optim_epochs)`."""
    if isinstance(node, ast.Call) and last_word(node.func) in ("range", "trange"):
        return any(_goes_through_optimizers(given) for given in node.args if isinstance(given, ast.Call))
    names = [last_word(part) for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute))]
    return any("optim" in name.lower() for name in names)


def _is_evaluation(function: Function) -> bool:
    """By its name: what only needs no gradients may well run in every step, to match targets or to average weights."""
    if any(spares_gradients(function.source, decorator) for decorator in function.decorators):
        return evaluates(function.name) or samples(function.name)
    if evaluates(function.name) or (function.owner is not None and evaluates(function.owner.name)):
        return True
    methods = {call.func.attr for call in function.calls if isinstance(call.func, ast.Attribute)}
    return {"eval", "no_grad"} <= methods and methods.isdisjoint(("train", "backward", "step"))


def _hooks(project: Project, owner: Class) -> Iterator[Function]:
    names = {name.split(".")[-1] for name in project.ancestors(owner)}
    for base, methods in _HOOKS.items():
        if base in names:
            yield from (owner.methods[name] for name in methods if name in owner.methods)


def _is_transform(project: Project, owner: Class) -> bool:
    return bool(_TRANSFORMS.search(str(owner.source.path))) and not project.is_module(owner)
