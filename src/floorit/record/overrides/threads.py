"""How many threads the libraries of a loader's workers may use, whatever the program sets there."""

import ctypes
import functools
import os

from ..imports import after_import

NAME = "threads of workers"
CODES = ("worker-threads",)
# Read by a library when it is loaded, for those that are not yet.
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# part of the name of a library's file -> functions by which one that is loaded is told
_POOLS = {
    "libgomp": ("omp_set_num_threads",),
    "libomp": ("omp_set_num_threads",),
    "libiomp": ("omp_set_num_threads",),
    "libmkl_rt": ("MKL_Set_Num_Threads",),
    "openblas": (
        "scipy_openblas_set_num_threads64_",
        "scipy_openblas_set_num_threads",
        "openblas_set_num_threads64_",
        "openblas_set_num_threads",
    ),
}


def install(session, asked):
    from torch.utils.data import get_worker_info
    from torch.utils.data.dataloader import _DatasetKind

    (applied,) = asked.values()
    done = []

    def about_to_fetch():
        """In a worker: its own set-up is over, the program's as well, and the first batch is to be made."""
        if get_worker_info() is None or os.getpid() in done:
            return
        done.append(os.getpid())
        _limit(session, applied)

    session.hook(NAME, _DatasetKind.create_fetcher, about_to_fetch)


def _limit(session, applied):
    count = applied.value
    for name in _VARIABLES:
        os.environ[name] = str(count)
    for function in _loaded_pools():
        function(count)
    _hold(session, applied, session.torch, "set_num_threads", session.torch.get_num_threads())
    after_import("cv2", lambda cv2: _hold(session, applied, cv2, "setNumThreads", cv2.getNumThreads()))
    applied.act()


def _hold(session, applied, library, name, present):
    """Set it, and keep the program from setting it otherwise."""
    setter = getattr(library, name)

    @functools.wraps(setter)
    def held(count):
        if count != applied.value:
            applied.opposed_here(count)

    if present != applied.value:
        setter(applied.value)
    session.patches.replace(library, name, held)


def _loaded_pools():
    """The functions that set the size of the thread pools in this process."""
    try:
        with open("/proc/self/maps") as lines:
            paths = {line.split(maxsplit=5)[5].strip() for line in lines if ".so" in line}
    except OSError:
        return []  # not on this system: torch and OpenCV are told by their own functions
    return [function for path in sorted(paths) for function in _setters(path)]


def _setters(path):
    names = [names for part, names in _POOLS.items() if part in os.path.basename(path)]
    if not names:
        return
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return  # the file is gone, or not a library
    for name in names[0]:
        if hasattr(library, name):
            yield getattr(library, name)
            return
