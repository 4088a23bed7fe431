"""Activations: computed again in the backward pass, block by block, or kept where the program computes them again."""

import functools

from ..known import Known
from ..traces import hide_ours
from ..wire import WITH_GRAD
from .blocks import NONE, is_compiled, repeated

NAME = "recomputing"
_COUNTS_TWICE = "its blocks have batch norms, which would count each batch twice"
_COMPILED = "the program compiles its model: what is recomputed is decided there"
_COPIED = "DataParallel and TorchScript call copies of the model's blocks"
_RECOMPUTES = "the program recomputes them already"


def keep(session, applied):
    """Have torch's `checkpoint` call what it is given, and no more; `checkpoint_sequential` asks it too."""
    from torch.utils import checkpoint

    names = {"names": ("function",), "within_names": ("function", "args", "kwargs")}
    hooks = session.hook(NAME, checkpoint.checkpoint, lambda function: True, **names)

    def call(_, function, args, kwargs):
        applied.overrule(True)
        kwargs.pop("preserve_rng_state", None)
        try:
            return function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    hooks.within = call


class Recompute:
    """The forward pass of each repeated block under torch's `checkpoint`, while the model is called.

    Nothing is left on the model between its calls, so a copy or a checkpoint of it is as before.
    """

    def __init__(self, session, applied):
        self._session = session
        self._nn = session.torch.nn
        self.applied = applied
        self._blocks = Known()  # of a module: (block, its forward pass that is to be used)

    def around(self, facts, module, run):
        """How a module is to be run."""
        if not facts & WITH_GRAD:
            return run
        blocks = self._blocks.get(id(module))
        if blocks is None:
            blocks = self._blocks.learn(module, self._chosen(module))
        if not blocks:
            return run

        def recomputed(*args, **kwargs):
            for block, forward in blocks:
                self._session.patches.assign(block, "forward", forward)
            try:
                return run(*args, **kwargs)
            finally:
                for block, _ in blocks:
                    self._session.patches.take_back(block, "forward")

        self.applied.act()
        return recomputed

    def _chosen(self, module):
        from torch.utils.checkpoint import checkpoint

        blocks = repeated(self._nn, module)
        plain = [block for block in blocks if not self._counts_batches(block)]
        obstacle = self._obstacle(module) or (None if plain else _COUNTS_TWICE if blocks else NONE)
        if obstacle is not None:
            return self.applied.unmet(obstacle) or ()
        return [(block, functools.partial(checkpoint, block.forward, use_reentrant=False)) for block in plain]

    def _obstacle(self, module):
        if isinstance(module, (self._nn.DataParallel, self._session.torch.jit.ScriptModule)):
            return _COPIED
        if is_compiled(module):
            return _COMPILED
        return _RECOMPUTES if any(map(_recomputes, module.modules())) else None

    def _counts_batches(self, block):
        return any(isinstance(inner, self._nn.modules.batchnorm._BatchNorm) for inner in block.modules())


def _recomputes(module):
    """As transformers and torch's own wrapper tell."""
    return getattr(module, "gradient_checkpointing", False) is True or type(module).__name__ == "CheckpointWrapper"
