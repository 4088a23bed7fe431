"""What is done for every sample that need not be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from floorit.scan.guards import evaluates
from floorit.scan.heat import Heat, Place
from floorit.scan.loaders import Loader
from floorit.scan.programs import Program
from floorit.scan.project import Class
from floorit.scan.rule import Match, Rule, Scene
from floorit.scan.source import Source, argument, dotted, last_word, walk

_DECODES = re.compile(
    r"cv2\.imread|cv2\.imdecode|PIL\.Image\.open|imageio(?:\.v\d)?\.imread|skimage\.io\.imread|torchvision\.io\.read_image"
    r"|mmcv\.imread|tifffile\.imread"
    r"|nibabel\.load|pydicom\.dcmread|numpy\.loadtxt|numpy\.genfromtxt|torchvision\.datasets\.folder\.\w+_loader"
)
_IMAGES = re.compile(r"cv2\.imread|cv2\.imdecode|PIL\.Image\.open")
_OPENS = re.compile(r"h5py\.File|lmdb\.open|zipfile\.ZipFile|tarfile\.open|sqlite3\.connect")
_READS = re.compile(r"pandas\.read_\w+|(?:json|pickle|numpy|torch)\.load|numpy\.loadtxt|scipy\.io\.loadmat")
_LISTS = re.compile(r"glob\.i?glob|os\.listdir|os\.walk|os\.scandir")
_CACHES = re.compile(r".*cach.*|.*preload.*|.*in_?memory.*|.*memo.*|.*\bram\b.*", re.IGNORECASE)
_ADDED = {"numpy.save": ".npy", "numpy.savez": ".npz", "numpy.savez_compressed": ".npz"}  # to names without it
# Functions of OpenCV that share their work out among threads.
_THREADED = re.compile(
    r"cv2\.(?:resize|warpAffine|warpPerspective|remap|cvtColor|GaussianBlur|medianBlur|blur|filter2D|bilateralFilter"
    r"|fastNlMeansDenoising\w*|LUT|dilate|erode|Sobel|Canny|undistort)"
)
_SMALL = 640  # pixels: photographs are larger, as cameras and most image sets have them


def _threads(scene: Scene) -> Iterator[Match]:
    """Once a program, at the first such call of its datasets."""
    if _threaded_call(scene.heat, scene.source) is None:
        return
    programs = [program for program in scene.programs.of(scene.source) if not _limits_threads(program)]
    if not any(_has_workers(scene, program) for program in programs):
        return
    for call in scene.calls(Place.SAMPLE):
        if any(program.first(_threaded_call) == (scene.source, call) for program in programs):
            yield Match(call)
            return


def _decodes_again(scene: Scene) -> Iterator[Match]:
    """One in each function: an image and its labels, or other kinds of file, are one cause."""
    seen: set[ast.AST | None] = set()
    if not any(program.takes_several_passes for program in scene.programs.of(scene.source)):
        return
    calls = sorted(scene.calls(Place.SAMPLE), key=lambda call: not _IMAGES.fullmatch(scene.name(call.func)))
    for call in calls:
        inside = scene.source.function(call)
        is_decoding = _DECODES.fullmatch(scene.name(call.func)) and argument(call, "mmap_mode") is None
        if not is_decoding or inside in seen or not _feeds_training(scene, call) or not _is_the_dataset(scene, call):
            continue
        if not _is_cached(scene, call) and not _is_same_file(scene, call) and not _asks_for_size(scene, call):
            seen.add(inside)
            yield Match(call)


def _opens(scene: Scene) -> Iterator[Match]:
    for call in scene.calls(Place.SAMPLE):
        name = scene.name(call.func)
        is_opening = bool(_OPENS.fullmatch(name) or _READS.fullmatch(name)) and _is_same_file(scene, call)
        if is_opening and _feeds_training(scene, call) and not _is_kept(scene, call):
            yield Match(call)


def _lists(scene: Scene) -> Iterator[Match]:
    for call in scene.calls(Place.SAMPLE):
        is_listing = _LISTS.fullmatch(scene.name(call.func)) and _feeds_training(scene, call)
        if is_listing and _is_near_dataset(scene, call) and not _is_kept(scene, call):
            yield Match(call)


def _large(scene: Scene) -> Iterator[Match]:
    for call in scene.calls(Place.SAMPLE):
        if not _IMAGES.fullmatch(scene.name(call.func)) or not _feeds_training(scene, call):
            continue
        size = _next_size(scene, call)
        if size is not None and max(size) <= _SMALL and not _asks_for_reduced(call):
            yield Match(call)


def _never_read(scene: Scene) -> Iterator[Match]:
    """`numpy.save` writes to another name than it is given where that does not end in .npy; a check for it fails."""
    for call in scene.calls(Place.SAMPLE):
        added = _ADDED.get(scene.name(call.func))
        path = argument(call, "file", 0)
        if added is None or not isinstance(path, ast.Name) or not _feeds_training(scene, call):
            continue
        inside = scene.source.function(call)
        if inside is None or not any(_asks_for(part, path.id) for part in walk(inside)):
            continue
        last = _last_part(scene.project.set_once(scene.source, path, path.id))
        end = scene.settings.value(scene.source, last)
        if last is not None and isinstance(end, str) and end and not end.endswith(added):
            yield Match(call, controls=scene.origins.of(scene.source, last))


def _asks_for(node: ast.AST, name: str) -> bool:
    """`name.exists()`, `os.path.exists(name)`"""
    if not isinstance(node, ast.Call) or last_word(node.func) not in ("exists", "is_file", "isfile"):
        return False
    asked = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(asked, ast.Name) and asked.id == name


def _last_part(node: ast.AST | None) -> ast.AST | None:
    """What a path ends with, as far as the text tells."""
    if isinstance(node, ast.Call) and last_word(node.func) in ("join", "Path", "str", "joinpath", "with_suffix"):
        return _last_part(node.args[-1]) if node.args and not node.keywords else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        return _last_part(node.right)
    if isinstance(node, ast.JoinedStr):
        return _last_part(node.values[-1]) if node.values else None
    return node.value if isinstance(node, ast.FormattedValue) else node


# -- whose samples ----------------------------------------------------------------------------------------------


def _feeds_training(scene: Scene, call: ast.Call) -> bool:
    """Whether the dataset around a call is one that a program trains on, as far as its names tell."""
    if not scene.programs.of(scene.source) or not scene.settings.is_reached(scene.source, call):
        return False
    owner = _owner(scene, call)
    return owner is None or not evaluates(owner.name)


def _is_the_dataset(scene: Scene, call: ast.Call) -> bool:
    """Whether a dataset is surely read by a training loader, or there is no other that it might be instead."""
    owner = _owner(scene, call)
    loaders = [loader for source in scene.programs.beside(scene.source) for loader in scene.loaders.of(source)]
    training = [loader for loader in loaders if loader.trains]
    read = {one for loader in training for one in loader.classes}
    if owner is None or any(_is_used_by(scene, call, owner, made) for made in read):
        return True
    others = [one for one in scene.project.classes.values() if one is not owner and "__getitem__" in one.methods]
    return not read and not others and not (training and all(map(_reads_torchvision, training)))


def _reads_torchvision(loader: Loader) -> bool:
    """Whether its samples are of a dataset that torchvision has."""
    names = [source.name(call.func) for source, call in loader.made]
    return bool(names) and all(name.startswith("torchvision.datasets.") for name in names)


def _is_used_by(scene: Scene, call: ast.Call, owner: Class, made: Class) -> bool:
    """Whether a class has the method that a call stands in, its own or by what it inherits from."""
    inside = scene.source.function(call)
    name = scene.project.functions[inside].name if inside is not None else ""
    own = scene.project.method(made, name)
    return owner in scene.project.family(made) and (own is None or own.node is inside)


def _is_near_dataset(scene: Scene, call: ast.Call) -> bool:
    """Whether it stands in a method, or in a function that a method calls: what is further off may be meant for
    something else."""
    inside = scene.source.function(call)
    if inside is None:
        return False
    function = scene.project.functions[inside]
    callers = scene.heat.callers.get(function, ())
    around = (scene.project.functions.get(f) for source, c in callers if (f := source.function(c)) is not None)
    return function.owner is not None or any(one is not None and one.owner is not None for one in around)


def _owner(scene: Scene, node: ast.AST) -> Class | None:
    inside = scene.source.function(node)
    while inside is not None:
        owner = scene.project.functions[inside].owner
        if owner is not None:
            return owner
        inside = scene.source.function(inside)
    return None


def _has_workers(scene: Scene, program: Program) -> bool:
    return any(
        loader.trains and loader.workers != 0 for source in program.sources for loader in scene.loaders.of(source)
    )


def _limits_threads(program: Program) -> bool:
    return program.has("setNumThreads", "OPENCV_FOR_THREADS_NUM")


def _threaded_call(heat: Heat, source: Source) -> ast.AST | None:
    if "cv2" not in source.words:
        return None
    for call in source.all(ast.Call):
        if _THREADED.fullmatch(source.name(call.func)) and heat.of(source, call) is Place.SAMPLE:
            return call
    return None


# -- what is kept -----------------------------------------------------------------------------------------------


def _is_cached(scene: Scene, call: ast.Call) -> bool:
    """Whether the class, or the function around a call, speaks of a cache."""
    inside = scene.source.function(call)
    if inside is not None:
        function = scene.project.functions[inside]
        if any(_CACHES.fullmatch(last_word(_undecorated(d))) for d in function.decorators) or _CACHES.fullmatch(
            function.name
        ):
            return True
    owner = _owner(scene, call)
    if owner is None:
        return False
    names = {name for one in scene.project.family(owner) for name in (*one.attributes, *one.methods)}
    return any(map(_CACHES.fullmatch, names)) or _is_told_to_cache(scene, owner)


def _is_told_to_cache(scene: Scene, owner: Class) -> bool:
    """Whether a parameter speaks of a cache, and is not known to be off."""
    made = scene.project.method(owner, "__init__")
    names = [name for name in made.parameters if _CACHES.fullmatch(name)] if made is not None else []
    return made is not None and any(scene.settings.parameter(made, name) not in (False, None, 0, "") for name in names)


def _asks_for_size(scene: Scene, call: ast.Call) -> bool:
    """`get_image_size`, `Image.open(path).size`: what stands in a file's first bytes."""
    inside = scene.source.function(call)
    name = "" if inside is None or isinstance(inside, ast.Lambda) else inside.name
    around = scene.source.parents.get(call)
    is_read = isinstance(around, ast.Attribute) and around.attr in ("size", "width", "height")
    return is_read or not {"size", "shape", "dimensions"}.isdisjoint(name.lower().split("_"))


def _undecorated(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_kept(scene: Scene, call: ast.Call) -> bool:
    """`if self.file is None: self.file = h5py.File(…)`, or anything that speaks of a cache."""
    if _is_cached(scene, call):
        return True
    statement = scene.source.statement(call)
    if isinstance(statement, ast.Assign) and any(dotted(target).startswith("self.") for target in statement.targets):
        return True
    return any(
        isinstance(here, ast.If) and isinstance(here.test, (ast.Compare, ast.UnaryOp))
        for here in scene.source.around(call)
    )


def _is_same_file(scene: Scene, call: ast.Call) -> bool:
    """Whether what is opened is the same for every sample: a plain attribute or a text, with nothing looked up."""
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Name):
        given = _opened_as(scene, call, given.id) or scene.project.set_once(scene.source, call, given.id)
    if isinstance(given, ast.Call) and last_word(given.func) in ("open", "Path", "str") and given.args:
        given = given.args[0]
    if isinstance(given, ast.Constant):
        return isinstance(given.value, str)
    if not isinstance(given, ast.Attribute) or dotted(given.value) != "self":
        return False
    owner = _owner(scene, call)
    return owner is not None and _is_dataset(owner)


def _opened_as(scene: Scene, call: ast.Call, name: str) -> ast.expr | None:
    """What `with open(…) as name` around a call opens."""
    for here in scene.source.around(call):
        if isinstance(here, ast.With):
            for item in here.items:
                if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == name:
                    return item.context_expr
    return None


def _is_dataset(owner: Class) -> bool:
    return "__getitem__" in owner.methods


# -- sizes ------------------------------------------------------------------------------------------------------


def _next_size(scene: Scene, call: ast.Call) -> tuple[int, int] | None:
    """The constant size to which an image is scaled right after it was decoded."""
    outer = _end_of_chain(scene, call)
    around = scene.source.parents.get(outer)
    if isinstance(around, ast.Call) and scene.name(around.func) == "cv2.resize" and around.args[:1] == [outer]:
        return _size(scene, argument(around, "dsize", 1))
    if isinstance(outer, ast.Call) and last_word(outer.func) in ("resize", "thumbnail") and outer is not call:
        return _size(scene, argument(outer, "size", 0))
    if not isinstance(around, ast.Assign) or not isinstance(around.targets[0], ast.Name):
        return None
    following = _following(scene, around)
    resize = _resizes(scene, following, around.targets[0].id) if following is not None else None
    if resize is None:
        return None
    is_cv2 = scene.name(resize.func) == "cv2.resize"
    return _size(scene, argument(resize, "dsize", 1) if is_cv2 else argument(resize, "size", 0))


def _end_of_chain(scene: Scene, call: ast.Call) -> ast.expr:
    """`Image.open(path).convert("RGB").resize(…)`, up to where it is scaled."""
    end: ast.expr = call
    while True:
        attribute = scene.source.parents.get(end)
        outer = scene.source.parents.get(attribute) if isinstance(attribute, ast.Attribute) else None
        if not isinstance(outer, ast.Call) or outer.func is not attribute:
            return end
        end = outer
        if last_word(outer.func) in ("resize", "thumbnail"):
            return end


def _following(scene: Scene, statement: ast.stmt) -> ast.stmt | None:
    """The next statement of the same block that does more than convert colours."""
    body: list[ast.stmt] = getattr(scene.source.parents.get(statement), "body", [])
    if statement not in body:
        return None
    for later in body[body.index(statement) + 1 :]:
        made = later.value if isinstance(later, ast.Assign) else None
        if isinstance(made, ast.Call) and last_word(made.func) in ("cvtColor", "convert"):
            continue
        return later
    return None


def _resizes(scene: Scene, statement: ast.stmt, name: str) -> ast.Call | None:
    made = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(made, ast.Call) or last_word(made.func) != "resize" or not isinstance(made.func, ast.Attribute):
        return None
    subject = made.args[0] if scene.name(made.func) == "cv2.resize" and made.args else made.func.value
    return made if last_word(subject) == name else None


def _size(scene: Scene, node: ast.expr | None) -> tuple[int, int] | None:
    if isinstance(node, ast.Name):
        node = scene.project.set_once(scene.source, node, node.id)
    if not isinstance(node, (ast.Tuple, ast.List)) or len(node.elts) != 2:
        return None
    values = [scene.settings.value(scene.source, part) for part in node.elts]
    width, height = values
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _asks_for_reduced(call: ast.Call) -> bool:
    return any("REDUCED" in last_word(part) for part in call.args)


RULES = (
    Rule(
        code="threads-in-workers",
        message="OpenCV with all its threads in every worker",
        costs="workers times cores threads compete for the cores",
        instead="`cv2.setNumThreads(0)` where the dataset is made, or in `worker_init_fn`",
        risk="rounding",
        fix="worker-threads",
        finding="oversubscribed",
        match=_threads,
    ),
    Rule(
        code="decodes-again",
        message="advice: files are decoded anew in every epoch",
        costs="decoding is most of what making a sample takes; `floorit run` says whether the loop waits for it",
        instead="keep what is alike each time, decoded and scaled, in memory or on disk",
        unsafe="it would not fit",
        fix="decode-cache",
        finding="input-bound",
        match=_decodes_again,
    ),
    Rule(
        code="cache-never-read",
        message="a file of a cache is saved under another name than is looked for",
        costs="`numpy.save` adds .npy: every sample is made again, and written again, each time",
        instead="end the name in .npy (.npz for `numpy.savez`)",
        finding="input-bound",
        spares_function=True,
        match=_never_read,
    ),
    Rule(
        code="opens-per-sample",
        message="the same file is opened for every sample",
        costs="it is opened, and what is not needed of it read, once for each sample",
        instead="open it once for each worker: at the first sample, and keep it",
        unsafe="the file changes while the program runs",
        finding="input-bound",
        match=_opens,
    ),
    Rule(
        code="lists-per-sample",
        message="a folder is listed for every sample",
        costs="the file system is asked for all names again, slowly so over a network",
        instead="list it once, in `__init__`",
        unsafe="files come and go while the program runs",
        finding="input-bound",
        is_tentative=True,
        match=_lists,
    ),
    Rule(
        code="large-decode",
        message="advice: an image is decoded whole and then scaled down",
        costs="a JPEG can be decoded at a half, a quarter or an eighth of its size in a fraction of the time",
        instead="`cv2.IMREAD_REDUCED_COLOR_2` (or 4, 8); PIL's `image.draft` before it is read; or smaller files",
        unsafe="the files are no JPEGs, or not larger than that",
        risk="training",
        finding="input-bound",
        is_tentative=True,
        match=_large,
    ),
)
