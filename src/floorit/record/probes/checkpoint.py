"""Checkpoints: torch.save and safetensors."""

from ..imports import after_import
from ..wire import CHECKPOINT

NAME = "checkpoints"


def install(session):
    session.hook_phase(NAME, session.torch.save, CHECKPOINT)
    after_import("safetensors.torch", lambda module: session.hook_phase(NAME, module.save_file, CHECKPOINT))
