"""Collectives that the program calls itself. Those that DDP starts from C++ are not seen here, and that is said."""

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


def _tell_of_ddp(session, module):
    said = []

    def made(ddp):
        if not said:
            said.append(True)
            reason = "DistributedDataParallel reduces gradients inside backward; its waits are part of that phase"
            session.missing("grad_sync", reason)
            session.remember("ddp", **{name: getattr(ddp, name, None) for name in _DDP_OPTIONS})

    session.hook(NAME, module.DistributedDataParallel.__init__, lambda ddp: ddp, made, names=("self",))
