"""Logging: text, progress bars, scalars, figures and images."""

import logging
import sys

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
# module -> the Python functions in it, as Class.method
_FUNCTIONS = {
    "torch.utils.tensorboard.writer": tuple("SummaryWriter." + name for name in _WRITER),
    "tensorboardX.writer": tuple("SummaryWriter." + name for name in _WRITER),
    "wandb.sdk.wandb_run": ("Run.log",),
    "tqdm.std": ("tqdm.refresh",),
    "matplotlib.figure": ("Figure.savefig",),
    "PIL.Image": ("Image.save",),
}


def install(session):
    session.hook_phase(logging.Logger.handle, LOGGING)
    for stream in (sys.stdout, sys.stderr):
        _time_stream(session, stream)
    for module, names in _FUNCTIONS.items():
        after_import(module, _hooking(session, names))
    after_import("cv2", lambda cv2: session.replace_phase(cv2, "imwrite", LOGGING))


def _time_stream(session, stream):
    """What is printed passes through the stream. `print` itself stays: torch.compile knows it by its identity."""
    for name in ("write", "flush"):
        if hasattr(stream, "__dict__") and name not in vars(stream):
            session.replace_phase(stream, name, LOGGING)


def _hooking(session, names):
    def hook(module):
        for name in names:
            owner, _, method = name.partition(".")
            function = getattr(getattr(module, owner), method, None)
            if function is None:
                continue  # this version of the library has none
            try:
                session.hook_phase(function, LOGGING)
            except Exception as error:
                session.missing("%s of %s" % (name, module.__name__), repr(error))

    return hook
