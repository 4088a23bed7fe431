"""Checkpoints: torch.save and safetensors."""

from ..imports import after_import
from ..wire import CHECKPOINT

NAME = "checkpoints"


def install(session):
    session.hook_phase(session.torch.save, CHECKPOINT)
    after_import("safetensors.torch", lambda module: session.hook_phase(module.save_file, CHECKPOINT))
