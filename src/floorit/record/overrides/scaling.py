"""Loss scaling for float16, where the program has none: gradients pass through the model larger, and arrive as before.

A backward pass starts with larger gradients, and each parameter's gradient is made small again before it is
accumulated: whatever the program does with gradients, it finds them as they would be. A step whose gradients are not
finite is skipped, as torch's GradScaler does it, with GradScaler's own figures.
"""

import functools

from ..known import Known
from ..traces import hide_ours
from .roots import weighted

_FIRST, _GROWTH, _BACKOFF, _INTERVAL = 2.0**16, 2.0, 0.5, 2000


class Scaling:
    """Of all backward passes of the process."""

    def __init__(self, session, applied):
        from torch.amp import grad_scaler
        from torch.optim import optimizer as optim

        self._session = session
        self._applied = applied
        self._torch = session.torch
        self._scale = _FIRST
        self._finite = 0  # steps on end
        self._skipped = 0  # steps
        self._is_open = False  # whether a scaled pass is under way
        self._hooked = Known()  # parameters whose gradients are made small again
        self._is_programs = False  # whether the program scales by itself
        session.hook("loss scaling", optim.Optimizer.add_param_group, self._given, names=("param_group",))
        optim.register_optimizer_step_pre_hook(self._before_step)
        self._replace_scale(grad_scaler.GradScaler)
        self._replace_backward(session.torch.autograd)

    def follow(self, leaf):
        """The gradient of a parameter, or of an input, is to come out as it would."""
        if leaf.requires_grad and leaf.is_leaf and id(leaf) not in self._hooked:
            self._hooked.learn(leaf, leaf.register_hook(self._made_small))

    def _given(self, group):
        """An optimizer gets parameters: also those of a loss, which no model has."""
        params = group["params"]
        for parameter in [params] if self._torch.is_tensor(params) else params:
            if self._torch.is_tensor(parameter):
                self.follow(parameter)

    def _made_small(self, gradient):
        return gradient / self._scale if self._is_open else gradient

    _made_small.__torch_unserializable__ = True  # torch does not warn that it is not saved

    def _replace_scale(self, scaler_class):
        """Around it, as those who keep losses are inside."""
        scale = scaler_class.scale

        @functools.wraps(scale)
        def noted(scaler, *args, **kwargs):
            try:
                self._is_programs = scaler.is_enabled()
                return scale(scaler, *args, **kwargs)
            except BaseException:
                hide_ours()
                raise

        self._session.patches.replace(scaler_class, "scale", noted)

    def _replace_backward(self, autograd):
        backward = autograd.backward

        @functools.wraps(backward)
        def scaled(tensors, grad_tensors=None, *args, **kwargs):
            try:
                enlarged = self._enlarged(tensors, grad_tensors)
                if enlarged is None:
                    return backward(tensors, grad_tensors, *args, **kwargs)
                self._is_open = True
                try:
                    return backward(tensors, enlarged, *args, **kwargs)
                finally:
                    self._is_open = False
            except BaseException:
                hide_ours()
                raise

        self._session.patches.replace(autograd, "backward", scaled)

    def _enlarged(self, tensors, gradients):
        """The gradients that a pass is to begin with; None where it is not scaled."""
        if self._is_programs or self._is_open or not self._hooked:
            return None
        try:
            return weighted(self._torch, tensors, gradients, self._scale)
        except Exception as error:
            return self._applied.fail("a backward pass could not be scaled: %r" % (error,))

    def _before_step(self, optimizer, args, kwargs):
        """Skip a step that would spoil the weights: without gradients, an optimizer does nothing."""
        if self._is_programs or self._torch.compiler.is_dynamo_compiling():
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not parameters:
            return
        try:
            if self._are_finite([p.grad for p in parameters]):
                self._grow()
                return
            self._scale, self._finite = self._scale * _BACKOFF, 0
            self._skipped += 1
            self._applied.remark("steps skipped, as gradients were not finite at that scale: %d" % self._skipped)
            for parameter in parameters:
                self._session.patches.assign(parameter, "grad", None)
        except Exception as error:
            self._applied.fail("the scale of the loss could not be kept: %r" % (error,))

    def _are_finite(self, gradients):
        """Waits for the GPU, as GradScaler does."""
        torch = self._torch
        largest = torch._foreach_norm(gradients, float("inf"))
        return torch.stack([norm.float() for norm in largest]).isfinite().all().item()

    def _grow(self):
        self._finite += 1
        if self._finite == _INTERVAL:
            self._scale, self._finite = self._scale * _GROWTH, 0
