"""What the program was told: which configuration files it read, and what its arguments say.

Of a file only the path is noted, and how large and old it was; floorit reads it afterwards, outside. Of the arguments
only those that mean a setting are noted.
"""

import os
import sys

from ..aliases import LARGEST, meaning
from ..imports import after_import
from ..sampler import OURS, STDLIB, USER, origin

NAME = "configuration files"
ARGUMENTS = "command-line arguments"
SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".py")
MOST_FILES, MOST_CALLS = 50, 2000  # who reads more reads data
LAST = 100  # backward passes after which no more are noted
# Libraries that read configurations on behalf of the program.
READERS = (
    "yaml",
    "ruamel",
    "tomli",
    "omegaconf",
    "hydra",
    "mmengine",
    "mmcv",
    "yacs",
    "fvcore",
    "detectron2",
    "jsonargparse",
)
# module -> the functions in it that read a file, and their argument that says which
_FUNCTIONS = {
    "yaml": (("load", "stream"),),
    "ruamel.yaml.main": (("YAML.load", "stream"),),
    "json": (("load", "fp"),),
    "tomllib": (("load", "fp"),),
    "tomli": (("load", "fp"),),
    "configparser": (("RawConfigParser.read", "filenames"), ("RawConfigParser.read_file", "f")),
    "pkgutil": (("read_code", "stream"),),  # by which runpy.run_path reads; it has no source of its own
    "pathlib": (("Path.read_text", "self"), ("Path.read_bytes", "self")),
    "mmengine.config.config": (("Config.fromfile", "filename"),),
    "mmcv.utils.config": (("Config.fromfile", "filename"),),
}
_PLAIN = (bool, int, float, str, type(None))
_LONGEST = 40  # characters of a value


def install(session):
    files = _Files(session)
    for module, functions in _FUNCTIONS.items():
        after_import(module, _hooking(session, functions, files))
    after_import("argparse", lambda argparse: _hook_arguments(session, argparse))


def _hooking(session, functions, files):
    def hook(module):
        for name, argument in functions:
            function = module
            for part in name.split("."):
                function = getattr(function, part, None)
            if function is None:
                continue  # this version of the library has none
            try:
                names = (_parameter(function, argument),)
                session.hook(NAME, function, files.read, names=names, gate=files.wanted)
            except Exception as error:
                session.missing("%s (%s of %s)" % (NAME, name, module.__name__), repr(error))

    return hook


def _parameter(function, name):
    """The parameter of that name, or the first: some versions of tomli call theirs `__fp`."""
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    return name if name in parameters else parameters[0]


class _Files:
    """The files noted so far."""

    def __init__(self, session):
        self._session = session
        self._seen = set()
        self._calls = 0
        self.wanted = [True]

    def read(self, source):
        """A function is about to read from a path, a stream, or text that came from one."""
        session = self._session
        self._calls += 1
        if (
            session.is_worker
            or session.log.backwards > LAST
            or len(self._seen) >= MOST_FILES
            or self._calls > MOST_CALLS
        ):
            self.wanted[0] = False
        else:
            for path in _paths(source):
                self._note(os.path.abspath(path))

    def _note(self, path):
        if path in self._seen or origin(path) is not USER or not _by_the_program():
            return
        self._seen.add(path)
        try:
            state = os.stat(path)
        except OSError:
            return  # it was text, after all
        if state.st_size <= LARGEST:
            self._session.remember("config", path=path, size=state.st_size, modified=state.st_mtime_ns)


def _paths(source):
    """The configuration files behind a path, a stream, a list of paths, or text. Nothing of the program's is called."""
    if isinstance(source, (list, tuple)):
        found = map(_path, source)
    else:
        found = [_path(source)]
        if found == [None] and type(source) in (str, bytes):
            found = _open_files()
    return [path for path in found if path is not None and path.endswith(SUFFIXES)]


def _path(source):
    if type(source) is str or type(source).__module__.partition(".")[0] == "pathlib":
        path = str(source)
    elif type(source).__module__ == "_io":
        path = getattr(source, "name", None)
    else:
        return None
    return path if type(path) is str and path.endswith(SUFFIXES) and "\n" not in path else None


def _open_files():
    """Paths of the files that are open: text that is parsed inside `with open(...)` came from one of them."""
    paths = []
    try:
        for number in os.listdir("/proc/self/fd"):
            try:
                path = os.readlink("/proc/self/fd/" + number)
            except OSError:
                continue
            paths.append(path)
    except OSError:
        pass  # not Linux: only what is read through a stream or a Path is known
    return paths


def _by_the_program():
    """Whether the program itself reads, or a library that reads configurations for it."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        kind = origin(file)
        if kind is USER:
            return True
        if kind is not OURS and kind is not STDLIB and not _is_reader(frame):
            return False
        frame = frame.f_back
    return False


def _is_reader(frame):
    return str(frame.f_globals.get("__name__")).partition(".")[0] in READERS


def _hook_arguments(session, argparse):
    def given(parser, args):
        return parser, list(sys.argv[1:] if args is None else args)

    def parsed(token, result):
        if session.is_worker or session.log.backwards:
            return
        parser, words = token
        values = vars(result[0])
        for action in parser._actions:
            value = values.get(action.dest)
            if type(value) not in _PLAIN or value is None or (type(value) is str and len(value) > _LONGEST):
                continue
            if meaning(action.dest) is not None:
                option = next(iter(sorted(action.option_strings, key=len, reverse=True)), action.dest)
                was_given = not action.option_strings or any(_names(word, action.option_strings) for word in words)
                session.remember("argument", key=action.dest, option=option, value=value, given=was_given)

    function = argparse.ArgumentParser.parse_known_args
    try:
        session.hook(ARGUMENTS, function, given, None, parsed, names=("self", "args"))
    except Exception as error:
        session.missing(ARGUMENTS, "the probe could not be installed: %r" % (error,))


def _names(word, options):
    """Whether a word of the command line is one of an action's options: `--workers`, `--workers=8`, `-j8`."""
    return any(
        word == option
        or word.startswith(option + "=")
        or (len(option) == 2 and word.startswith(option) and not word.startswith("--"))
        for option in options
    )
