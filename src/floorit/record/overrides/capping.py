"""A hard cap on memory, below what is free: what does not fit fails at once, and in this process alone.

On a GPU it is torch's allocator that is capped, when CUDA starts; without CUDA, what this process and each of its
workers may have of the host. The last word on it says how it went.
"""

import functools

from ..memory import free_memory
from ..wire import CAP

CODES = (CAP,)


def install(session, asked):
    (applied,) = asked.values()
    share = applied.value
    if session.torch.version.cuda is None and session.torch.version.hip is None:
        _cap_host(share)
        applied.act()
        return
    session.on_cuda.append(lambda: _cap_device(session, applied, share))


def _cap_host(share):
    """The kernel refuses what is over it: of written memory, which is what counts, not of addresses."""
    import resource

    with open("/proc/self/status") as lines:
        used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + int(share * free_memory()), hard))


def _cap_device(session, applied, share):
    """Of what it has and what is free now: others' processes and CUDA's own part are taken off."""
    torch = session.torch
    try:
        device = torch.cuda.current_device()
        free, total = torch.cuda.mem_get_info(device)
        limit = share * (free + torch.cuda.memory_reserved(device))
        torch.cuda.set_per_process_memory_fraction(limit / total, device)
        _hold(session, limit / total)
        applied.value = {"bytes": int(limit), "total": total}
        applied.act()
        session.last_words.append(lambda: _sum_up(torch, device, applied))
    except Exception as error:
        applied.fail("memory could not be capped: %r" % (error,))


def _hold(session, fraction):
    """The program may cap itself further, but have no more."""
    cuda = session.torch.cuda
    setter = cuda.set_per_process_memory_fraction

    @functools.wraps(setter)
    def held(wanted, *args, **kwargs):
        return setter(min(wanted, fraction), *args, **kwargs)

    session.patches.replace(cuda, "set_per_process_memory_fraction", held)


def _sum_up(torch, device, applied):
    stats = torch.cuda.memory_stats(device)
    reserved, retries = stats.get("reserved_bytes.all.peak"), stats.get("num_alloc_retries")
    applied.value = {**applied.value, "reserved": reserved, "retries": retries}
