"""Collectives that the program calls itself. Those that DDP starts from C++ are not seen here: it times them itself."""

import weakref

from ..imports import after_import
from ..wire import GRAD_SYNC

NAME = "collectives"
_FUNCTIONS = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "broadcast",
    "broadcast_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "barrier",
)

# What DDP times in the first ten backward passes and then in every hundredth: means of nanoseconds.
_DDP_TIMES = {"comm": "avg_backward_comm_time", "beside": "avg_backward_compute_comm_overlap_time"}
_DDP_OPTIONS = ("find_unused_parameters", "static_graph", "gradient_as_bucket_view", "bucket_bytes_cap")


def install(session):
    after_import("torch.distributed.distributed_c10d", lambda module: _hook(session, module))
    after_import("torch.nn.parallel.distributed", lambda module: _tell_of_ddp(session, module))


def _hook(session, module):
    for name in _FUNCTIONS:
        try:
            session.hook_phase(getattr(module, name), GRAD_SYNC)
        except Exception as error:
            session.missing("%s (%s)" % (NAME, name), repr(error))
    try:
        session.replace_phase(module.Work, "wait", GRAD_SYNC)  # of those that were told not to wait
    except Exception as error:
        session.missing("%s (wait)" % NAME, repr(error))


def _tell_of_ddp(session, module):
    said = []

    def made(ddp):
        if not said:
            said.append(True)
            reason = "DistributedDataParallel reduces gradients inside backward; its waits are part of that phase"
            session.missing("grad_sync", reason)
            known = weakref.ref(ddp)
            session.ddp_times = lambda: _times(known())
            session.remember("ddp", **{name: getattr(ddp, name, None) for name in _DDP_OPTIONS})

    session.hook(NAME, module.DistributedDataParallel.__init__, lambda ddp: ddp, made, names=("self",))


def _times(ddp):
    """How long a backward pass communicates, and how much of that beside computing; it only copies numbers."""
    told = ddp._get_ddp_logging_data() if ddp is not None else {}
    times = {name: told.get(key) for name, key in _DDP_TIMES.items()}
    return times if times["comm"] and times["beside"] is not None else None
