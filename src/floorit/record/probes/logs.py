"""Logging: text, progress bars, scalars, figures and images."""

import logging
import sys

from ..booked import hook_booked
from ..imports import after_import
from ..wire import LOGGING

NAME = "logging"
_WRITER = (
    "add_scalar",
    "add_scalars",
    "add_histogram",
    "add_image",
    "add_images",
    "add_figure",
    "add_video",
    "add_text",
    "add_hparams",
    "add_graph",
    "flush",
)
_FUNCTIONS = {
    "torch.utils.tensorboard.writer": tuple("SummaryWriter." + name for name in _WRITER),
    "tensorboardX.writer": tuple("SummaryWriter." + name for name in _WRITER),
    "wandb.sdk.wandb_run": ("Run.log",),
    "tqdm.std": ("tqdm.refresh",),
    "rich.live": ("Live.refresh",),
    "lightning.fabric.loggers.csv_logs": ("_ExperimentWriter.log_metrics", "_ExperimentWriter.save"),
    "lightning_fabric.loggers.csv_logs": ("_ExperimentWriter.log_metrics", "_ExperimentWriter.save"),
    "matplotlib.figure": ("Figure.savefig",),
    "PIL.Image": ("Image.save",),
}


def install(session):
    session.hook_phase(logging.Logger.handle, LOGGING)
    for stream in (sys.stdout, sys.stderr):
        _time_stream(session, stream)
    hook_booked(session, _FUNCTIONS, LOGGING)
    after_import("cv2", lambda cv2: session.replace_phase(cv2, "imwrite", LOGGING))


def _time_stream(session, stream):
    """What is printed passes through the stream. `print` itself stays: torch.compile knows it by its identity."""
    for name in ("write", "flush"):
        if hasattr(stream, "__dict__") and name not in vars(stream):
            session.replace_phase(stream, name, LOGGING)
