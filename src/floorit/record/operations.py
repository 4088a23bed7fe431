"""Image operations in a few of the batches that this process makes: which, how often, how long, at which sizes.

Between two watched batches nothing of ours is in the way of a call. In a watched one, a function written in Python runs
our hooks inside, and one written in C has a stand-in where its module, and modules of the program's own, keep it.
Time is exclusive: what a call does inside another that is timed too is not the other's.
"""

import os
import sys
from io import BufferedReader
from pkgutil import resolve_name
from threading import get_ident
from time import perf_counter, perf_counter_ns
from types import ModuleType

from .sampler import USER, caller, origin
from .traces import hide_ours

NAME = "image operations"
FIRST = 2  # batch that is watched first: by then libraries are imported. Then every one after twice as many
MOST_KINDS, MOST_SIZES = 64, 64  # calls that differ, and sizes of each, that are told apart in a batch
MOST_FILES = 8  # that a function reads in a batch, whose paths are noted
_MATRIX = 9  # numbers in the largest matrix of a warp


class Operations:
    """What is called in the batch that is being watched."""

    def __init__(self, session):
        self._session = session
        self._wanted = {}  # module -> {function written in C: how a call of it is described}
        self._timed = {}  # id of such a function -> what stands in for it
        self._stands = []
        self._hooks = []
        self._modules = 0  # that were imported when the program's own were last searched
        self._broken = False
        self.forget()

    def forget(self):
        """This is a new process, or it becomes a worker: count batches from the first."""
        self._fetched, self._next = 0, FIRST
        self._rest()

    def _rest(self):
        self.thread = None  # whose calls count
        self.inside = 0  # nanoseconds of calls inside of the one that is running
        self._found, self._files = {}, {}
        for hooks in self._hooks:
            hooks.rest()
        for stand in self._stands:
            stand.take()

    # -- what is watched ----------------------------------------------------------------------------------------

    def time_c(self, module, functions):
        """Time functions written in C, which can only be replaced: {name: how a call is described} of a module."""
        self._wanted[module] = functions

    def time_python(self, function, name, names, describe, whole=False):
        """Time a function written in Python. `whole`: what it calls is not timed by itself."""

        def enter(*given):
            if get_ident() != self.thread:
                return None
            try:
                described = describe(*given)
            except Exception:
                described = None
            if described is None:
                return None  # nothing that is to be counted, or it cannot be described
            outer, self.inside, self.thread = (self.inside, self.thread), 0, None if whole else self.thread
            return [perf_counter_ns(), outer, described, False]

        def result(token, _):
            token[-1] = True

        def leave(token):
            """Its last statement may be inside a `with` whose end takes time: that is over now."""
            started, (outer, thread), (flag, size, more), returned = token
            spent = perf_counter_ns() - started
            if returned:
                self.add(name, flag, size, spent - self.inside, more)
            self.inside, self.thread = outer + (spent if returned else 0), thread

        hooks = self._session.hook(NAME, function, enter, leave, result, names=names)
        hooks.rest()
        self._hooks.append(hooks)

    def _look_for_modules(self):
        """Those whose functions are wanted, and modules of the program's own with `from cv2 import resize`.

        They are looked for here and not as they are imported: OpenCV's module replaces itself while that happens.
        """
        for name in [name for name in self._wanted if name in sys.modules]:
            module = sys.modules[name]
            for function, describe in self._wanted.pop(name).items():
                self._stand_in(module, name, function, describe)
        known = {id(stand.owner) for stand in self._stands}
        for module in list(sys.modules.values()):
            if type(module) is not ModuleType or id(module) in known:
                continue
            file = vars(module).get("__file__")
            if not isinstance(file, str) or origin(file) is not USER:
                continue
            for name, value in list(vars(module).items()):
                timed = self._timed.get(id(value))
                if timed is not None:
                    self._stands.append(self._session.patches.stand_in(module, name, timed))

    def _stand_in(self, module, library, name, describe):
        function = vars(module).get(name)
        if callable(function):
            timed = self._timed[id(function)] = Timed(self, function, "%s.%s" % (library, name), describe)
            self._stands.append(self._session.patches.stand_in(module, name, timed))

    # -- a batch ------------------------------------------------------------------------------------------------

    def begin(self):
        """A batch is going to be made; whether it is watched."""
        self._fetched += 1
        if self._fetched < self._next or self.thread is not None or self._broken:
            return False
        self._next = 2 * self._fetched
        try:
            self._watch()
        except Exception as error:
            self._give_up(error)
        return not self._broken

    def _watch(self):
        if len(sys.modules) != self._modules:
            self._look_for_modules()
            self._modules = len(sys.modules)
        self._read = _bytes_read()
        for stand in self._stands:
            stand.put()
        for hooks in self._hooks:
            hooks.reset()
        self.thread = get_ident()

    def end(self, samples, nanoseconds):
        """The batch is made."""
        try:
            found, files = self._found, self._files
            self._rest()
            self._tell(samples, nanoseconds, found, files)
        except Exception as error:
            self._give_up(error)

    def _tell(self, samples, nanoseconds, found, files):
        before, after = self._read, _bytes_read()
        read = [b - a for a, b in zip(before, after)] if before and after else None
        cv2 = sys.modules.get("cv2")
        self._session.writer.note(
            "operations",
            pid=os.getpid(),
            at=perf_counter(),
            samples=samples,
            seconds=nanoseconds * 1e-9,
            calls=[call.told(*key) for key, call in found.items()],
            threads={"cv2": cv2.getNumThreads() if cv2 else None, "torch": self._session.torch.get_num_threads()},
            read=read,
            files=files,
        )

    def _give_up(self, error):
        self._broken = True
        self._rest()
        self._session.writer.note("missing", what=NAME, reason=repr(error))

    def add(self, name, flag, size, nanoseconds, more):
        """A call has returned; `size` is (shape, dtype, shape of the result)."""
        call = self._found.get((name, flag))
        if call is None:
            if len(self._found) >= MOST_KINDS:
                return
            call = self._found[name, flag] = _Call(more)
        call.count += 1
        call.nanoseconds += nanoseconds
        if size in call.sizes or len(call.sizes) < MOST_SIZES:
            call.sizes[size] = call.sizes.get(size, 0) + 1
        file = more.get("file")
        if file is not None:
            files = self._files.setdefault(name, [])
            if len(files) < MOST_FILES and file not in files:
                files.append(file)


class _Call:
    """What was seen of one function with one flag."""

    __slots__ = ("count", "matrix", "nanoseconds", "place", "sizes")

    def __init__(self, more):
        self.count = self.nanoseconds = 0
        self.sizes = {}
        matrix = more.get("matrix")
        self.matrix = matrix.tolist() if getattr(matrix, "size", _MATRIX + 1) <= _MATRIX else None
        frame, kind = caller(3)
        self.place = None
        if kind is USER:
            self.place = [os.path.abspath(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name]

    def told(self, name, flag):
        sizes = [[shape, str(dtype), result, count] for (shape, dtype, result), count in self.sizes.items()]
        spent = self.nanoseconds * 1e-9
        return [name, flag, self.count, spent, sizes, self.matrix, self.place]


class Timed:
    """Stands in for a function written in C: to the program it is that function, as far as it can ask."""

    def __init__(self, operations, function, name, describe):
        self._operations, self._function, self._name, self._describe = operations, function, name, describe
        self.__doc__, self.__module__ = function.__doc__, function.__module__

    def __call__(self, *args, **kwargs):
        operations = self._operations
        if get_ident() != operations.thread:
            return self._through(args, kwargs)
        outer, operations.inside = operations.inside, 0
        started = perf_counter_ns()
        try:
            value = self._function(*args, **kwargs)
        except BaseException:
            operations.inside = outer
            hide_ours()
            raise
        spent = perf_counter_ns() - started
        try:
            flag, size, more = self._describe(args, kwargs, value)
            operations.add(self._name, flag, size, spent - operations.inside, more)
        except Exception:
            pass  # a call that cannot be described is not counted
        operations.inside = outer + spent
        return value

    def _through(self, args, kwargs):
        try:
            return self._function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    @property
    def __class__(self):
        return type(self._function)

    def __getattr__(self, name):
        return getattr(self._function, name)

    def __eq__(self, other):
        return other is self or other is self._function

    def __hash__(self):
        return hash(self._function)

    def __repr__(self):
        return repr(self._function)

    def __reduce__(self):
        return resolve_name, (self._name.replace(".", ":"),)


def path_of(file):
    """The path of what is opened, where that can be told without running code that is not Python's own."""
    if type(file) is BufferedReader:
        file = file.name
    if isinstance(file, os.PathLike) and type(file).__module__.startswith("pathlib"):
        file = os.fspath(file)
    return os.path.abspath(file) if type(file) is str else None


def _bytes_read():
    """(all, from storage) that this thread has read so far; None where the system does not tell."""
    try:
        with open("/proc/thread-self/io") as told:
            counted = dict(line.split(": ") for line in told.read().splitlines())
        return int(counted["rchar"]), int(counted["read_bytes"])
    except (OSError, ValueError, KeyError):
        return None
