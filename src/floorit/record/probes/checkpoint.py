"""Checkpoints: torch.save and safetensors, and the functions of frameworks that gather what they write."""

from ..booked import hook_booked
from ..wire import CHECKPOINT

NAME = "checkpoints"
_FUNCTIONS = {
    "safetensors.torch": ("save_file",),
    "lightning.pytorch.trainer.trainer": ("Trainer.save_checkpoint",),
    "pytorch_lightning.trainer.trainer": ("Trainer.save_checkpoint",),
    "transformers.trainer": ("Trainer._save_checkpoint",),
    "accelerate.accelerator": ("Accelerator.save_state",),
    "mmengine.runner.runner": ("Runner.save_checkpoint",),
}


def install(session):
    session.hook_phase(session.torch.save, CHECKPOINT)
    hook_booked(session, _FUNCTIONS, CHECKPOINT)
