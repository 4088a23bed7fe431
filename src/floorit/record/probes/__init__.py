"""One file for each thing a probe watches; each has `install(session)`."""

from . import (
    autograd,
    checkpoint,
    collectives,
    configs,
    copies,
    images,
    in_force,
    loader,
    logs,
    memory,
    module,
    optimizer,
    profiler,
    switches,
    threads,
    worker,
)

# Named in the report if one cannot be installed.
ALL = (
    ("other threads", threads.install),
    ("data loader", loader.install),
    ("image operations", images.install),
    ("loader workers", worker.install),
    ("forward and loss", module.install),
    ("backward and recompute", autograd.install),
    ("optimizer", optimizer.install),
    ("copies and syncs", copies.install),
    ("collectives", collectives.install),
    ("logging", logs.install),
    ("checkpoints", checkpoint.install),
    ("debugging switches", switches.install),
    ("settings in force", in_force.install),
    ("configuration files", configs.install),
    ("running out of memory", memory.install),
    ("the program's own profiler", profiler.install),
)
