"""The DataLoaders of a file: which of them feed training, and what they take their samples from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from floorit.scan.guards import When, evaluates, trains
from floorit.scan.heat import Heat, Place
from floorit.scan.programs import Program, Programs
from floorit.scan.project import Class, Function, Project, is_own
from floorit.scan.settings import UNKNOWN, Settings
from floorit.scan.source import Source, argument, dotted, has_stars, is_constant, last_word, walk

_MAKERS = ("torch", "torch_geometric", "monai", "torchvision")
_POSITIONS = {"dataset": 0, "batch_size": 1, "shuffle": 2, "sampler": 3, "num_workers": 5, "pin_memory": 7}
_HOPS = 5
# What only hands on the samples of another dataset, its first argument.
_WRAPS = frozenset("Subset random_split ConcatDataset RepeatDataset ClassBalancedDataset".split())
_SPLITS = ("split", "mode", "phase", "subset", "set", "image_set", "partition")
# Calls that do work for a sample, by their full name or by the last word of it.
_WORK = re.compile(
    r"(?:cv2|PIL|imageio|skimage|librosa|torchaudio|torchvision|albumentations|h5py|soundfile|tifffile|rasterio|nibabel"
    r"|pydicom|decord|av|lmdb|scipy)\..+|open|(?:.*\.)?(?:imread|read_image|load_image|load_img|imdecode|decode_jpeg"
    r"|get_transform\w*|apply_transform\w*|transforms?|augment\w*|preprocess\w*|tokenize\w*|tokenizer|read_csv|read_json)"
    r"|numpy\.(?:load|loadtxt|memmap|fromfile)|json\.loads?|pickle\.loads?|torch\.load"
)
# Those of them that read a whole dataset, which then lies in memory.
_READ_AT_ONCE = re.compile(
    r"torch\.load|numpy\.(?:load|loadtxt|fromfile)|json\.loads?|pickle\.loads?|(?:.*\.)?read_(?:csv|json)"
)
_UNREADABLE = ast.Name(id="", ctx=ast.Load())  # stands for a value that can't be told
_STEPS = ("step", "learn", "optimize_parameters", "optimize", "backward")
_DATA = re.compile(r"(?:.*_)?(?:data|dataset|ds|trainset|set)", re.IGNORECASE)
_TOGETHER = ("zip", "zip_longest", "product")  # what goes through several things at the same time
_MAKES_TENSORS = frozenset("tensor Tensor LongTensor FloatTensor from_numpy stack default_collate as_tensor".split())
_PADS = re.compile(r"pad|tokenizer|processor|tokenize\w*")
_PLAIN = frozenset("dataloader loader data dl batches iterator it set dataset trainloader".split())
_LABELLED = re.compile(r"(?:.*_)?label(?:l?ed)?(?:_.*|train.*)?")


class Loader:
    """One call of DataLoader."""

    def __init__(self, source: Source, call: ast.Call, loaders: Loaders) -> None:
        self.source, self.call = source, call
        self._loaders = loaders

    def given(self, name: str) -> ast.expr | None:
        """One of its arguments, also one out of a dictionary that it is given whole."""
        plain = argument(self.call, name, _POSITIONS.get(name))
        if plain is not None:
            return plain
        return next((more[name] for more in self._starred if more is not None and name in more), None)

    def lacks(self, name: str) -> bool:
        """Whether it is surely not given an argument."""
        return self.given(name) is None and not self._hides

    @cached_property
    def _hides(self) -> bool:
        """Whether it is given arguments that can't be seen."""
        return any(isinstance(part, ast.Starred) for part in self.call.args) or None in self._starred

    @cached_property
    def _starred(self) -> list[dict[str, ast.expr] | None]:
        return [self._loaders.entries(self.source, k.value) for k in self.call.keywords if k.arg is None]

    @property
    def programs(self) -> list[Program]:
        """Those that it may feed."""
        return self._loaders.programs.of(self.source)

    @cached_property
    def trains(self) -> bool:
        """Whether its batches are trained on: by names, its own, its data's, its function's; or by the loop around."""
        source, call = self.source, self.call
        if not self.programs or self._loaders.heat.of(source, call) is Place.EVALUATION:
            return False
        if any(when is When.EVALUATING for when in self._loaders.heat.conditions(source, call, source.tree)):
            return False
        if self._is_used_up() or self._is_handed_in_vain():
            return False
        verdict = self._named()
        if verdict is not None:
            return verdict
        if self._reads_other_split():
            return False
        if self._is_in_order():
            return False
        has_sampler = self.given("sampler") is not None or self.given("batch_sampler") is not None
        return self.given("shuffle") is not None or has_sampler or self._is_gone_through()

    def _is_in_order(self) -> bool:
        """Whether it is told not to shuffle, nor given a sampler."""
        has_sampler = self.given("sampler") is not None or self.given("batch_sampler") is not None
        return is_constant(self.given("shuffle"), False) and not has_sampler

    def _is_used_up(self) -> bool:
        """Whether a loop that does not train goes through it, to measure its samples, and nothing else."""
        source, inside = self.source, self.source.function(self.call)
        through = self._loaders.measured(source)
        if self.call in through:
            return True
        made = source.parents.get(self.call)
        target = made.targets[0] if isinstance(made, ast.Assign) else None
        if not isinstance(target, ast.Name):
            return False
        read = _read_as(source, inside, target.id)
        return bool(through.intersection(read)) and all(name in through or _is_counted(source, name) for name in read)

    def _is_handed_in_vain(self) -> bool:
        """Whether all that is done with it is to return it beside others, to callers who then do nothing with it."""
        source, inside = self.source, self.source.function(self.call)
        made = source.parents.get(self.call)
        target = made.targets[0] if isinstance(made, ast.Assign) else None
        if inside is None or not isinstance(target, ast.Name):
            return False
        read = _read_as(source, inside, target.id)
        places = [_place_in_return(source, name) for name in read]
        callers = self._loaders.heat.callers.get(self._loaders.project.functions[inside], [])
        return bool(read and callers) and all(
            place is not None and _is_dropped(where, call, place) for place in places for where, call in callers
        )

    def _named(self) -> bool | None:
        function = self.source.function(self.call)
        data = self.given("dataset")
        if not trains(self.target) and self._is_in_order() and _is_special(self.target) and not self._is_gone_through():
            return False
        names = [self.target, _all_words(data), "" if not isinstance(function, ast.FunctionDef) else function.name]
        for name in names:
            if trains(name):
                return True
            if evaluates(name):
                return False
        return None

    @cached_property
    def target(self) -> str:
        """The name that it is given."""
        around = self.source.parents.get(self.call)
        if isinstance(around, ast.Assign):
            target = around.targets[0]
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                return str(target.slice.value)
            return last_word(target)
        if isinstance(around, ast.AnnAssign):
            return last_word(around.target)
        if isinstance(around, ast.keyword):
            return around.arg or ""
        if isinstance(around, ast.Dict):
            key = around.keys[around.values.index(self.call)]
            return str(key.value) if isinstance(key, ast.Constant) else ""
        return ""

    def _reads_other_split(self) -> bool:
        """Whether all that it has samples of is told to be for evaluation."""
        return bool(self.made) and all(self._is_other_split(source, made) for source, made in self.made)

    def _is_other_split(self, source: Source, made: ast.Call) -> bool:
        if any(self._worth(source, argument(made, name)) is False for name in ("train", "is_train")):
            return True
        splits = (self._worth(source, argument(made, name)) for name in _SPLITS)
        return any(isinstance(split, str) and evaluates(split) for split in splits)

    def _worth(self, source: Source, given: ast.expr | None) -> object:
        """A constant, or what all callers of the function give its parameter."""
        inside = source.function(given) if isinstance(given, ast.Name) else None
        function = self._loaders.project.functions[inside] if inside is not None else None
        if isinstance(given, ast.Name) and function is not None and given.id in function.parameters:
            is_called = bool(self._loaders.heat.callers.get(function))
            return self._loaders.settings.parameter(function, given.id) if is_called else UNKNOWN
        return given.value if isinstance(given, ast.Constant) else UNKNOWN

    def _is_gone_through(self) -> bool:
        return bool(self.target) and self.target in self._loaders.gone_through(self.source)

    @cached_property
    def made(self) -> list[tuple[Source, ast.Call]]:
        """The calls that make its dataset, those that only wrap another left out; none where that can't be told."""
        data = self.given("dataset")
        return list(self._loaders.made(self.source, data, _HOPS)) if data is not None else []

    @cached_property
    def classes(self) -> list[Class]:
        """The project's classes among them."""
        found = (self._loaders.project.find(source, source.name(call.func)) for source, call in self.made)
        return [one for one in found if isinstance(one, Class)]

    @cached_property
    def does_work(self) -> bool:
        """Whether making a sample surely takes more than picking it from memory."""
        makers = (source.name(call.func) for source, call in self.made)
        if any(_is_worked(maker) and not _READ_AT_ONCE.fullmatch(maker) for maker in makers):
            return True
        return any(self._loaders.works(owner) for owner in self.classes) or self._pads

    @cached_property
    def is_short(self) -> bool:
        """Whether it is begun anew after each batch: workers would be started as often."""
        size = self._loaders.settings.value(self.source, self.given("batch_size") or ast.Constant(value=1))
        lengths = [self._loaders.length(source, call) for source, call in self.made]
        most = size if isinstance(size, int) else 1
        return bool(lengths) and all(one is not None and one <= most for one in lengths)

    @cached_property
    def has_few_labels(self) -> bool:
        """Whether it has the samples with labels of a program that has another loader for those without: they are few,
        as a rule, and it is begun anew after a few batches."""
        beside = (one for one in self._loaders.of(self.source) if one is not self and one.target)
        has_others = any("unlabel" in one.target.lower() for one in beside)
        return has_others and bool(_LABELLED.fullmatch(self.target.lower()))

    @cached_property
    def _pads(self) -> bool:
        """Whether putting a batch together is work: texts are made numbers, say; not where torch only pads these."""
        given = self.given("collate_fn")
        makers = self._loaders.made(self.source, given, 2) if given is not None else ()
        if any(last_word(made.func).startswith("DataCollator") for _, made in makers):
            return True
        calls = ((one.source, call) for one in self.collates for call in one.calls)
        return any(
            _PADS.fullmatch(last_word(call.func)) and not source.name(call.func).startswith("torch.")
            for source, call in calls
        )

    @cached_property
    def collates(self) -> list[Function]:
        """The project's functions that put its batches together."""
        given = self.given("collate_fn")
        if given is None:
            return []
        return self._loaders.project.called(self.source, ast.Call(func=given, args=[], keywords=[]))

    @cached_property
    def has_nothing_to_pin(self) -> bool:
        """Whether its batches are arrays, or objects of the project's own that can't be pinned: such a loader leaves
        both as they are."""
        project = self._loaders.project
        called = [one for first in self.collates for one in (first, *_called_by(project, first))]
        made = [(one.source, call) for one in called for call in one.calls]
        names = [source.name(call.func) for source, call in made]
        if any(name.startswith("numpy.") for name in names) and len(called) == len(self.collates):
            return not any(name.startswith("torch.") or name.split(".")[-1] in _MAKES_TENSORS for name in names)
        own = (project.find(source, source.name(call.func)) for source, call in made)
        return any(isinstance(one, Class) and _can_only_move(project, one) for one in own)

    @cached_property
    def is_shared(self) -> bool:
        """Whether it is gone through twice at the same time: both would share workers that are kept, and each batch
        would come to one of them."""
        beside = self._loaders.programs.beside(self.source)
        names = set[str]().union(*map(self._loaders.gone_through_twice, beside))
        is_renamed = bool(names) and self._is_returned()
        return self.target in names or (is_renamed and any("loader" in name.lower() for name in names))

    def _is_returned(self) -> bool:
        """Whether its function hands it to somebody who gives it a name of their own."""
        inside = self.source.function(self.call)
        returned = self._loaders.project.functions[inside].returns if inside is not None else []
        parts = [part for value in returned for part in walk(value)]
        return any(part is self.call or last_word(part) == self.target != "" for part in parts)

    @cached_property
    def workers(self) -> object:
        """As the defaults have it; UNKNOWN where that can't be told."""
        given = self.given("num_workers")
        if given is None:
            return UNKNOWN if self._hides else 0
        return self._loaders.settings.value(self.source, given)


class Loaders:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat, settings: Settings, programs: Programs) -> None:
        self.project, self.heat, self.settings, self.programs = project, heat, settings, programs
        self._gone_through: dict[Source, set[str]] = {}
        self._gone_through_twice: dict[Source, set[str]] = {}
        self._measured: dict[Source, set[ast.AST]] = {}
        self._of: dict[Source, list[Loader]] = {}
        self._tells: dict[Source, bool] = {}

    def of(self, source: Source) -> list[Loader]:
        """Those that a file makes."""
        if source not in self._of:
            calls = source.all(ast.Call) if any("DataLoader" in name for name in source.words) else ()
            self._of[source] = [Loader(source, call, self) for call in calls if _is_loader(source, call)]
        return self._of[source]

    def measured(self, source: Source) -> set[ast.AST]:
        """What loops and comprehensions that do not train go through, with all that is part of it."""
        if source not in self._measured:
            loops = (loop for loop in source.all(ast.For) if loop not in self.heat.loops)
            listed = (one for one in source.all(ast.comprehension) if source.parents[one] not in self.heat.loops)
            through = [*(loop.iter for loop in loops if not _calls_training(loop)), *(one.iter for one in listed)]
            self._measured[source] = {node for iterated in through for node in walk(iterated)}
        return self._measured[source]

    def gone_through(self, source: Source) -> set[str]:
        """Names that the loops which train go through."""
        if source not in self._gone_through:
            loops = (loop for loop in source.all(ast.For) if loop in self.heat.loops)
            self._gone_through[source] = {
                last_word(part)
                for loop in loops
                for part in walk(loop.iter)
                if isinstance(part, (ast.Name, ast.Attribute))
            }
        return self._gone_through[source]

    def tells_dataset(self, source: Source) -> bool:
        """Whether a file tells a dataset something between epochs."""
        if source not in self._tells:
            told = (call for call in source.all(ast.Call) if _tells_dataset(call) and _is_again(source, call))
            self._tells[source] = any(self.heat.training_loop(source, call) is None for call in told)
        return self._tells[source]

    def gone_through_twice(self, source: Source) -> set[str]:
        """What something goes through twice at the same time, by the last words of its names."""
        if source not in self._gone_through_twice:
            self._gone_through_twice[source] = {name.split(".")[-1] for name in _gone_through_twice(source) if name}
        return self._gone_through_twice[source]

    def entries(self, source: Source, node: ast.expr) -> dict[str, ast.expr] | None:
        """Of a dictionary that is written out; None where it is not, or what is changed afterwards can't be told.

        What is changed is there, and can't be told.
        """
        if isinstance(node, ast.Name):
            made = self.project.set_once(source, node, node.id)
            found = self.entries(source, made) if made is not None else None
            changed = _changed(source, node.id)
            return None if found is None or changed is None else {**found, **dict.fromkeys(changed, _UNREADABLE)}
        if isinstance(node, ast.Call) and source.name(node.func) == "dict" and len(node.args) < 2:
            named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
            copied = self.entries(source, node.args[0]) if node.args else {}
            return None if copied is None or len(named) < len(node.keywords) else {**copied, **named}
        if isinstance(node, ast.IfExp):  # {"num_workers": 4} if torch.cuda.is_available() else {}
            return self.entries(source, node.body) if self.settings.value(source, node.test) is True else None
        if isinstance(node, ast.Dict):
            named = {key.value: value for key, value in zip(node.keys, node.values, strict=True) if _is_text(key)}  # type: ignore[union-attr]
            return named if len(named) == len(node.keys) else None
        return None

    def made(self, source: Source, node: ast.AST, hops: int) -> Iterator[tuple[Source, ast.Call]]:
        """The calls whose result an expression is."""
        if hops == 0:
            return
        if isinstance(node, ast.Name):
            value = self.project.assigned(source, node, node.id) or self.project.unpacked(source, node, node.id)
            if value is not None:
                yield from self.made(source, value, hops - 1)
            else:
                yield from self._given(source, node, hops - 1)
        elif isinstance(node, ast.Attribute):
            owner = self.project.class_of(source, node.value)
            if owner is not None and node.attr in owner.attributes:
                yield from self.made(owner.source, owner.attributes[node.attr], hops - 1)
        elif isinstance(node, ast.Subscript):
            yield from self.made(source, self._entry(source, node), hops)
        elif isinstance(node, ast.Dict):
            for part in node.values:
                yield from self.made(source, part, hops - 1)
        elif isinstance(node, (ast.List, ast.Tuple)):
            for part in node.elts:
                yield from self.made(source, part, hops - 1)
        elif isinstance(node, ast.Call):
            yield from self._made_by(source, node, hops)

    def _entry(self, source: Source, node: ast.Subscript) -> ast.expr:
        """`Pictures()` of `data["train"]`, where `data = {"train": Pictures(), …}`; else all that there is."""
        known = self.entries(source, node.value) if isinstance(node.slice, ast.Constant) else None
        return (
            known.get(str(node.slice.value), node.value)
            if known and isinstance(node.slice, ast.Constant)
            else node.value
        )

    def _made_by(self, source: Source, call: ast.Call, hops: int) -> Iterator[tuple[Source, ast.Call]]:
        if last_word(call.func) in _WRAPS and call.args:
            yield from self.made(source, call.args[0], hops - 1)
            return
        found = self.project.called(source, call)
        if found and found[0].name != "__init__":
            for statement in found[0].returns:
                yield from self.made(found[0].source, statement, hops - 1)
        else:
            yield source, call

    def length(self, source: Source, made: ast.Call, hops: int = 3) -> int | None:
        """Of a dataset, where it is written out: `return 1`, or `len(self.pictures)` of such another."""
        owner = self.project.find(source, source.name(made.func))
        method = self.project.method(owner, "__len__") if isinstance(owner, Class) else None
        counted = method.returns[0] if method is not None and len(method.returns) == 1 else None
        if isinstance(counted, ast.Constant) and isinstance(counted.value, int):
            return counted.value
        if not isinstance(counted, ast.Call) or last_word(counted.func) != "len" or not hops:
            return None
        assert isinstance(owner, Class)
        kept = owner.attributes.get(last_word(counted.args[0])) if is_own(counted.args[0]) else None
        begin = owner.methods.get("__init__")
        if begin is None or not isinstance(kept, ast.Name) or kept.id not in begin.parameters:
            return None
        given = argument(made, kept.id, begin.parameters.index(kept.id))
        inner = list(self.made(source, given, _HOPS)) if given is not None else []
        return self.length(*inner[0], hops - 1) if len(inner) == 1 else None

    def _given(self, source: Source, node: ast.Name, hops: int) -> Iterator[tuple[Source, ast.Call]]:
        """What the callers of a function give it."""
        inside = source.function(node)
        if inside is None:
            return
        function = self.project.functions[inside]
        if node.id in function.parameters:
            position = function.parameters.index(node.id)
            for caller, call in self.heat.callers.get(function, ()):
                given = argument(call, node.id, position)
                if given is not None:
                    yield from self.made(caller, given, hops)

    def works(self, owner: Class) -> bool:
        """Whether making one sample of a dataset does more than look it up."""
        methods = [self.project.method(owner, name) for name in ("__getitem__", "__iter__")]
        stack = [method for method in methods if method is not None]
        seen = set(stack)
        while stack:
            function = stack.pop()
            for call in function.calls:
                if _is_worked(function.source.name(call.func) or last_word(call.func)):
                    return True
                for reached in self.project.called(function.source, call):
                    if reached not in seen:
                        seen.add(reached)
                        stack.append(reached)
        return False


def _called_by(project: Project, function: Function) -> list[Function]:
    """The functions of the project that one calls; not what makes objects."""
    called = (one for call in function.calls for one in project.called(function.source, call))
    return [one for one in called if one.name != "__init__"]


def _can_only_move(project: Project, owner: Class) -> bool:
    """Whether it has a `to` and no `pin_memory`, and is no list or mapping that a loader would look into."""
    names = {name.split(".")[-1] for name in project.ancestors(owner)} - {owner.name, "object"}
    return "to" in owner.methods and "pin_memory" not in owner.methods and not names


def is_data(name: str) -> bool:
    """Whether something of this name is a dataset."""
    return _DATA.fullmatch(name) is not None


def is_in_loop(source: Source, node: ast.AST) -> bool:
    """Whether any loop goes round it."""
    return any(isinstance(here, (ast.For, ast.While)) for here in source.around(node))


def _is_again(source: Source, node: ast.AST) -> bool:
    """Whether it is done more than once: in a loop, or for its own sake whenever something is gone through."""
    inside = source.function(node)
    begins = isinstance(inside, ast.FunctionDef) and inside.name == "__iter__"
    return is_in_loop(source, node) or (begins and isinstance(source.parents.get(node), ast.Expr))


def _tells_dataset(call: ast.Call) -> bool:
    """`dataset.set_epoch(epoch)`, `loader.dataset.shuffle()`"""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    if isinstance(function.value, ast.Attribute) and function.value.attr == "dataset":
        return not evaluates(function.attr) and not evaluates(last_word(function.value.value))
    return function.attr == "set_epoch" and is_data(last_word(function.value))


def _gone_through_twice(source: Source) -> Iterator[str]:
    """`zip(loader, loader)`; `for x in loader: … iter(loader)`"""
    for call in source.calling(*_TOGETHER):
        names = [name for given in call.args for name in _gone_through(given)]
        yield from (name for name in names if names.count(name) > 1)
    for loop in source.all(ast.For):
        outer = set(_gone_through(loop.iter))
        if outer:
            inside = (node for statement in loop.body for node in walk(statement))
            yield from (name for node in inside for name in _begun_by(node) if name in outer)


def _begun_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.For):
        yield from _gone_through(node.iter)
    elif isinstance(node, ast.Call) and last_word(node.func) in ("iter", *_TOGETHER):
        yield from (name for given in node.args for name in _gone_through(given))


def _gone_through(node: ast.expr) -> Iterator[str]:
    """What an iterator of an expression goes through: `loader` of `enumerate(loader)`."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield dotted(node)
    elif isinstance(node, ast.Call) and last_word(node.func) in ("enumerate", "tqdm", "iter", "cycle", *_TOGETHER):
        yield from (name for given in node.args for name in _gone_through(given))


def _calls_training(loop: ast.For) -> bool:
    """Whether something in a loop may take a step, as far as its name tells."""
    calls = (node for statement in loop.body for node in walk(statement) if isinstance(node, ast.Call))
    return any(trains(last_word(call.func)) or last_word(call.func) in _STEPS for call in calls)


def _is_loader(source: Source, call: ast.Call) -> bool:
    name = source.name(call.func)
    first, _, rest = name.partition(".")
    if not rest:  # from torch.utils.data import *
        return name == "DataLoader" and any(
            star.module == "torch.utils.data" and star.names[0].name == "*" for star in source.all(ast.ImportFrom)
        )
    return rest.split(".")[-1] == "DataLoader" and first in _MAKERS


def _is_counted(source: Source, name: ast.Name) -> bool:
    """`len(loader)`, `loader.dataset`"""
    around = source.parents.get(name)
    is_length = isinstance(around, ast.Call) and last_word(around.func) == "len"
    return is_length or (isinstance(around, ast.Attribute) and around.attr in ("dataset", "batch_size"))


def _read_as(source: Source, inside: ast.AST | None, name: str) -> list[ast.Name]:
    """Where a function, or a file outside of its functions, reads a name."""
    names = (one for one in source.all(ast.Name) if one.id == name and isinstance(one.ctx, ast.Load))
    return [one for one in names if source.function(one) is inside]


def _place_in_return(source: Source, name: ast.Name) -> int | None:
    """At which place of `return loader, other` a name stands."""
    around = source.parents.get(name)
    is_one_of = isinstance(around, ast.Tuple) and isinstance(source.parents.get(around), ast.Return)
    return around.elts.index(name) if is_one_of and isinstance(around, ast.Tuple) else None


def _is_dropped(source: Source, call: ast.Call, place: int) -> bool:
    """`loader, _ = make()`, of which nothing reads what is in a place."""
    around = source.parents.get(call)
    targets = around.targets[0] if isinstance(around, ast.Assign) else None
    target = targets.elts[place] if isinstance(targets, ast.Tuple) and place < len(targets.elts) else None
    return isinstance(target, ast.Name) and not _read_as(source, source.function(call), target.id)


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _changed(source: Source, name: str) -> set[str] | None:
    """The entries of a dictionary that are set by its name, anywhere in a file; None where that can't be told."""
    found: set[str] = set()
    for subscript in source.all(ast.Subscript):
        if isinstance(subscript.ctx, ast.Store) and last_word(subscript.value) == name:
            if not _is_text(subscript.slice):
                return None
            found.add(subscript.slice.value)  # type: ignore[attr-defined]
    for change in ("update", "setdefault", "pop"):
        for call in source.methods.get(change, []):
            if isinstance(call.func, ast.Attribute) and last_word(call.func.value) == name:
                if call.args or has_stars(call):
                    return None
                found.update(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    return found


def _is_special(name: str) -> bool:
    """Whether a loader is named after something: `memorable_loader`, not `data_loader`."""
    return bool(set(re.findall("[a-z]+", name.lower())) - _PLAIN)


def _is_worked(name: str) -> bool:
    return _WORK.fullmatch(name) is not None


def _all_words(node: ast.AST | None) -> str:
    """Of every name in an expression, with the texts that it is looked up by."""
    if node is None:
        return ""
    words = []
    for part in walk(node):
        words.append(last_word(part))
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            words.append(part.value)
    return "_".join(word for word in words if word)
