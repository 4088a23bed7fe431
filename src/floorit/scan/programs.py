"""The programs of a project: each a file that is run to train, with the files that it imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from floorit.scan.devices import Devices, moves
from floorit.scan.guards import evaluates, trains
from floorit.scan.heat import Heat
from floorit.scan.project import Function, Project
from floorit.scan.settings import Settings
from floorit.scan.source import Source, last_word, walk

_OTHER_PURPOSE = re.compile(
    r"demo|export|extract|convert\w*|visuali[sz]e|bench|benchmark|setup|conftest|hubconf|sample|generate|metrics?|projector|finder"
    r"|preprocess\w*|prepare|download|plot|show|infer\w*|predict|synthesi[sz]e|interpolate"
)
_TESTS = ("test_utils", "testing")
_FRAMEWORKS = re.compile(r"LightningModule|LightningDataModule|TrainerCallback|EpochBasedRunner")
_GPU = re.compile(r".*cuda.*|gpus?|gpu_ids?|(?:\w+_)?device|Accelerator|LightningModule", re.IGNORECASE)
_GOES_ON = re.compile(
    r"fit|learn|run|main|launch|spawn|solve|solver|optimi[sz]e|start|experiment|runner|worker|step|cli|app|fire"
)
_OF_DATA = re.compile(r"(?:data)?(?:set|loader)s?|data|transform\w*|samplers?|splits?|collate")  # `get_train_dataset`
_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
_LEARNS = re.compile(
    r".*backward.*|grad|autograd|training_step|.*Trainer\w*|LightningModule|.*scaler.*|Accelerator|deepspeed|train_step|train_one_\w+"
    r"|Learner|fit|minimize|mmcv|mmengine|ignite|functional_call|Runner",
    re.IGNORECASE,
)
Finder: TypeAlias = "Callable[[Heat, Source], ast.AST | None]"  # of something in one file


class _Files:
    """What programs ask of their files, found out once for all of them: a library may have hundreds of programs, and
    each has most of its files."""

    def __init__(self, sources: Iterable[Source], heat: Heat) -> None:
        self._heat = heat
        training = heat.training
        self.ranked = sorted(sources, key=lambda s: (s not in training, "optim" not in s.words, str(s.path)))
        self._having: dict[tuple[str, ...], frozenset[Source]] = {}
        self._naming: dict[re.Pattern[str], frozenset[Source]] = {}
        self._places: dict[Finder, dict[Source, ast.AST]] = {}

    def having(self, words: tuple[str, ...]) -> frozenset[Source]:
        """Those that have one of these names."""
        if words not in self._having:
            self._having[words] = frozenset(s for s in self.ranked if not s.words.isdisjoint(words))
        return self._having[words]

    def naming(self, pattern: re.Pattern[str]) -> frozenset[Source]:
        """Those in which a name is all of what a pattern describes."""
        if pattern not in self._naming:
            self._naming[pattern] = frozenset(source for source in self.ranked if source.names(pattern))
        return self._naming[pattern]

    def places(self, finder: Finder) -> dict[Source, ast.AST]:
        """Where something is found: first in files that train, of these first in those that have an optimizer."""
        if finder not in self._places:
            found = ((source, finder(self._heat, source)) for source in self.ranked)
            self._places[finder] = {source: node for source, node in found if node is not None}
        return self._places[finder]


class Program:
    """One of them."""

    def __init__(
        self,
        entry: Source,
        sources: frozenset[Source],
        is_sure: bool,
        heat: Heat,
        settings: Settings,
        devices: Devices,
        files: _Files,
    ) -> None:
        self.entry, self.sources = entry, sources
        self._files = files  # of all programs
        self.is_sure = is_sure  # that all these files are part of it
        self._heat, self._settings, self._devices = heat, settings, devices
        self._first: dict[Finder, tuple[Source, ast.AST] | None] = {}

    def has(self, *words: str) -> bool:
        """Whether one of its files has one of these names."""
        return not self.sources.isdisjoint(self._files.having(words))

    def first(self, finder: Finder) -> tuple[Source, ast.AST] | None:
        """Where something is found: in its entry, or in the first of its other files."""
        if finder not in self._first:
            places = self._files.places(finder)
            others = (source for source in places if source in self.sources)
            source = self.entry if self.entry in places else next(others, None)
            self._first[finder] = (source, places[source]) if source is not None else None
        return self._first[finder]

    @cached_property
    def uses_gpu(self) -> bool:
        """Whether it names one, or leaves it to a framework that looks for one; where its file has the loop that trains
        and names none, whether anything does that it comes to."""
        if not self.names(_GPU) or self._stays_on_cpu:
            return False
        if self.entry.names(_GPU) or not self._heat.loops_of(self.entry):
            return True
        reached = self._heat.reached_from(self.entry)
        calls = [(function.source, call) for function in reached for call in function.calls]
        for source in {function.source for function in reached}:
            calls += [(source, call) for call in source.all(ast.Call) if source.function(call) is None]
        return any(_goes_to_gpu(source, call) for source, call in calls)

    @property
    def _stays_on_cpu(self) -> bool:
        """Whether batches are moved to a device that no option makes a GPU, and the files that train name no other."""
        training = self.sources & self._heat.training
        named = [(s, call, where) for s in training for call in s.methods.get("to", ()) if (where := moves(call))]
        batches = [(s, where) for s, call, where in named if self._heat.is_in_step(s, call)]
        if self.has("Accelerator") or not any(self._devices.is_cpu(s, where) for s, where in batches):
            return False
        devices = [(s, name) for s in training for name in s.all(ast.Name) if _is_device_read(name)]
        if not all(self._devices.is_cpu(s, device) for s, device in (*batches, *devices)):
            return False
        calls = ((s, call) for s in self.sources for name in ("to", "cuda") for call in s.methods.get(name, ()))
        to_gpu = ((s, call) for s, call in calls if last_word(call.func) == "cuda" or any(map(_is_cuda, call.args)))
        return all(self._devices.is_shut_off(s, call) for s, call in to_gpu)

    def names(self, pattern: re.Pattern[str]) -> bool:
        """Whether any name in it is all of what a pattern describes."""
        return not self.sources.isdisjoint(self._files.naming(pattern))

    @cached_property
    def takes_several_passes(self) -> bool:
        """Whether a loop goes round one that takes steps, or a framework's own does."""
        if self.names(_FRAMEWORKS):
            return True
        return (
            any(self._is_in_passes(source, loop) for source, loop in self._loops())
            or self._counts_epochs()
            or any(map(_samples_again, self.sources))
        )

    def _counts_epochs(self) -> bool:
        """`for epoch in …:` around another loop, in the file that is run."""
        return any(
            isinstance(around, ast.For)
            and "epoch" in last_word(around.target).lower()
            and not self._is_once(self.entry, around)
            for loop in self.entry.all(ast.For)
            for around in self.entry.around(loop)
        )

    def _loops(self) -> Iterator[tuple[Source, ast.AST]]:
        for source in self.sources & self._heat.training:
            for loop in source.all(ast.For, ast.While):
                if loop in self._heat.loops:
                    yield source, loop

    def _is_in_passes(self, source: Source, loop: ast.AST) -> bool:
        around = self._heat.loops_around(source, loop)
        return any(not self._is_once(where, outer) for where, outer in around)

    def _is_once(self, source: Source, loop: ast.AST) -> bool:
        """`for epoch in range(args.epochs)`, of which there is one by default."""
        count = loop.iter if isinstance(loop, ast.For) else None
        if not isinstance(count, ast.Call) or last_word(count.func) not in ("range", "trange") or len(count.args) != 1:
            return False
        return self._settings.value(source, count.args[0]) == 1


class Programs:
    """Of a project."""

    def __init__(self, project: Project, heat: Heat, settings: Settings, devices: Devices) -> None:
        found = list(_entries(project, heat))
        others = {entry for entry, _ in found if is_run(entry) and not _leads_to_training(project, heat, entry)}
        entries = [(entry, reached) for entry, reached in found if entry not in others]
        everything = frozenset(s for s in project.sources if not _serves_others(project, s) and s not in others)
        if any(reached is None and is_run(entry) for entry, reached in entries):
            entries = [(entry, reached) for entry, reached in entries if is_run(entry)]  # it imports the others
        elif any(is_run(entry) and reached & heat.training for entry, reached in entries if reached is not None):
            named = {word for source in project.sources for name in source.imports.values() for word in name.split(".")}
            entries = [(e, reached) for e, reached in entries if _does_anything(e) or e.path.stem in named]
        entries = [
            (entry, reached)
            for entry, reached in entries
            if not heat.loops_of(entry) or any(source.names(_LEARNS) for source in reached or everything)
        ]  # others only show a schedule
        self._files = _Files(project.sources, heat)
        self.all = [
            Program(entry, reached or everything, reached is not None, heat, settings, devices, self._files)
            for entry, reached in entries
            if (reached or everything) & heat.training
        ]
        self._of: dict[Source, list[Program]] = {}
        self._beside: dict[tuple[Program, ...], frozenset[Source]] = {}
        for program in self.all:
            for source in program.sources:
                self._of.setdefault(source, []).append(program)

    def of(self, source: Source) -> list[Program]:
        """Those that a file is part of; those that it may be part of, if that is all that is known."""
        found = [] if _is_test(source) else self._of.get(source, [])
        return [program for program in found if program.is_sure] or found

    def has_place(self, source: Source, finder: Finder) -> bool:
        """Whether something is found in a file, be it the first of a program's or not."""
        return source in self._files.places(finder)

    def beside(self, source: Source) -> frozenset[Source]:
        """The files of all programs that a file is part of."""
        programs = tuple(self.of(source))
        if programs not in self._beside:
            self._beside[programs] = frozenset[Source]().union(*(program.sources for program in programs))
        return self._beside[programs]


def _goes_to_gpu(source: Source, call: ast.Call) -> bool:
    """Whether it moves something to a GPU, or asks whether there is one; not to where something else is."""
    last = last_word(call.func)
    is_named = last in ("cuda", "Accelerator") or source.name(call.func).startswith("torch.cuda.")
    return is_named or (last in ("to", "device") and any(map(_is_cuda, call.args)))


def _is_device_read(name: ast.Name) -> bool:
    return "device" in name.id.lower() and isinstance(name.ctx, ast.Load)


def _is_cuda(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).startswith("cuda")


def _does_anything(source: Source) -> bool:
    """Whether a file does more than to define things when it is run."""
    return any(not isinstance(one, _DEFINES) and not _is_text(one) for one in source.tree.body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _serves_others(project: Project, source: Source) -> bool:
    """Whether a file is there to export, convert or show something, or only such files import it."""
    importers = {one for one, _ in project.importers(source)}
    return has_other_purpose(source) or (bool(importers) and all(map(has_other_purpose, importers)))


def _samples_again(source: Source) -> bool:
    """Whether a sampler goes through all samples more than once before it ends."""
    samplers = (one for one in source.all(ast.ClassDef) if any(last_word(b).endswith("Sampler") for b in one.bases))
    return any(
        isinstance(part, ast.For) and "epoch" in last_word(part.target).lower() and any(map(_yields, walk(part)))
        for one in samplers
        for part in walk(one)
    )


def _yields(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom))


def _entries(project: Project, heat: Heat) -> Iterator[tuple[Source, frozenset[Source] | None]]:
    """Files that are run, and those that train without being part of one that is; each with what it reaches."""
    imported = {module for source in project.sources for module in project.imported(source)}
    covered: set[Source] = set()
    for source in project.sources:
        if (source not in imported or is_program(source)) and not has_other_purpose(source):
            reached = project.reached(source)
            covered.update(reached or ())
            yield source, reached
    for source in project.sources:
        if source in heat.training and source not in covered and not has_other_purpose(source):
            yield source, project.reached(source)


def _leads_to_training(project: Project, heat: Heat, entry: Source) -> bool:
    """Whether a file trains, or calls what does, as far as that can be followed and its names tell: else it computes
    something with a model, or prepares data."""
    if heat.loops_of(entry) or is_program(entry):
        return True
    for call in _made_when_run(project, entry) if entry in heat.training else entry.all(ast.Call):
        called = project.called(entry, call)
        if any(map(heat.holds_loop, called)):
            return True
        is_looked_into = bool(called) and all(one.source is entry for one in called)  # its calls are among these
        words = [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", last_word(call.func))]
        is_named = trains(last_word(call.func)) and not _OF_DATA.fullmatch(words[-1])
        if not is_looked_into and (is_named or any(map(_GOES_ON.fullmatch, words))):
            return True
    return False


def _made_when_run(project: Project, entry: Source) -> Iterator[ast.Call]:
    """The calls that running a file makes, by itself and in those of its functions that it calls or hands on."""
    stack = [call for call in entry.all(ast.Call) if entry.function(call) is None]
    seen: set[Function] = set()
    while stack:
        call = stack.pop()
        yield call
        handed = (given for given in call.args if isinstance(given, ast.Name))
        found = [project.find(entry, entry.name(given)) for given in handed]
        for function in (*project.called(entry, call), *(one for one in found if isinstance(one, Function))):
            if function.source is entry and function not in seen:
                seen.add(function)
                stack += function.calls


def is_program(source: Source) -> bool:
    """Whether a file that others import is a program all the same, and what it does when it is run no demonstration."""
    stem = source.path.stem
    return is_run(source) and (trains(stem) or stem in ("main", "run", "__main__"))


def is_demonstration(project: Project, source: Source, node: ast.AST) -> bool:
    """Whether it stands under `if __name__ == "__main__"` in a file that others import, and that is no program."""
    is_under = any(isinstance(here, ast.stmt) and _asks_for_name(here) for here in source.around(node))
    return is_under and project.is_imported(source) and not is_program(source)


def is_run(source: Source) -> bool:
    """Whether it is a script: it says so, or it does something when it is imported."""
    return any(
        isinstance(statement, (ast.For, ast.While, ast.With)) or _asks_for_name(statement) or _takes_options(statement)
        for statement in source.tree.body
    )


def _takes_options(statement: ast.stmt) -> bool:
    """`args = parser.parse_args()`"""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    return isinstance(value, ast.Call) and last_word(value.func) in ("parse_args", "parse_known_args")


def _asks_for_name(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Compare)
        and last_word(statement.test.left) == "__name__"
    )


def _is_test(source: Source) -> bool:
    return source.path.name.startswith("test_") or any(part in _TESTS for part in source.path.parts)


def has_other_purpose(source: Source) -> bool:
    """Whether a file is there to evaluate, show, prepare or convert something, as its name says."""
    path = source.path
    stem = path.parent.name if path.stem == "__main__" else path.stem
    words = re.findall("[a-z]+", stem.lower())
    has_other = any(_OTHER_PURPOSE.fullmatch(word) for word in words) and not trains(stem)
    return _is_test(source) or evaluates(stem) or has_other
