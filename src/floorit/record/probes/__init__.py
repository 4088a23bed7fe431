"""One file for each thing a probe watches; each has `install(session)`."""

from . import autograd, checkpoint, collectives, copies, loader, logs, module, optimizer, profiler, settings, worker

# Named in the report if one cannot be installed.
ALL = (
    ("data loader", loader.install),
    ("loader workers", worker.install),
    ("forward and loss", module.install),
    ("backward and recompute", autograd.install),
    ("optimizer", optimizer.install),
    ("copies and syncs", copies.install),
    ("collectives", collectives.install),
    ("logging", logs.install),
    ("checkpoints", checkpoint.install),
    ("debugging switches", settings.install),
    ("the program's own profiler", profiler.install),
)
