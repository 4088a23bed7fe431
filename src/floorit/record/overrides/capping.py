"""A hard cap on memory, below what is free: what does not fit fails at once, and in this process alone.

On a GPU it is torch's allocator that is capped, once the program uses CUDA; without CUDA, what this process and each
of its workers may have of the host. The last word on it says how it went.
"""

import functools
import os

from ..memory import free_memory
from ..wire import CAP

CODES = (CAP,)
_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # one of them is there where a GPU is


def install(session, asked):
    (applied,) = asked.values()
    if _may_use_gpu(session.torch):
        session.on_cuda.append(_Cap(session, applied).begin)
    else:
        _cap_host(applied.value)
        applied.act()


def _may_use_gpu(torch):
    """Whether torch can, and there is one that is not hidden from it: without asking the driver."""
    if torch.version.cuda is None and torch.version.hip is None:
        return False
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return not hidden and any(map(os.path.exists, _DEVICES))


def _cap_host(share):
    """The kernel refuses what is over it: of written memory, which is what counts, not of addresses."""
    import resource

    with open("/proc/self/status") as lines:
        used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + int(share * free_memory()), hard))


class _Cap:
    """Of the GPU that the program uses. The program may cap itself further, but have no more."""

    def __init__(self, session, applied):
        self._session, self._applied, self._share = session, applied, applied.value
        self._fraction = self._own = 1.0
        cuda = session.torch.cuda
        self._set = setter = cuda.set_per_process_memory_fraction

        @functools.wraps(setter)
        def held(fraction, *args, **kwargs):
            self._own = fraction
            return setter(min(fraction, self._fraction), *args, **kwargs)

        session.patches.replace(cuda, "set_per_process_memory_fraction", held)

    def begin(self):
        """Of what it has and what is free now: others' processes and CUDA's own part are taken off."""
        cuda = self._session.torch.cuda
        try:
            device = cuda.current_device()
            free, total = cuda.mem_get_info(device)
            self._fraction = min(self._share * (free + cuda.memory_reserved(device)) / total, self._own)
            self._set(self._fraction, device)
            self._applied.value = {"bytes": int(self._fraction * total), "total": total}
            self._applied.act()
            self._session.last_words.append(lambda: self._sum_up(device))
        except Exception as error:
            self._applied.fail("memory could not be capped: %r" % (error,))

    def _sum_up(self, device):
        stats = self._session.torch.cuda.memory_stats(device)
        reserved, retries = stats.get("reserved_bytes.all.peak"), stats.get("num_alloc_retries")
        self._applied.value = {**self._applied.value, "reserved": reserved, "retries": retries}
