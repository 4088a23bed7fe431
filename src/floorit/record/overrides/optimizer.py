"""How the optimizer works: in fused kernels, and with gradients dropped instead of filled with zeros."""

import functools

from ..known import Known
from ..traces import hide_ours

CODES = ("fused", "set-to-none")


def install(session, asked):
    for code, applied in asked.items():
        _INSTALL[code](session, applied)


def _fused(session, applied):
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(_Fused(session, applied).before)


class _Fused:
    """Every optimizer, as its step begins: what it was made with or has loaded may say otherwise."""

    def __init__(self, session, applied):
        from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

        self._torch = session.torch
        self._patches = session.patches
        self._applied = applied
        self._devices = _get_fused_kernels_supported_devices()
        self._spared = Known()  # optimizers that cannot be fused

    def before(self, optimizer, args, kwargs):
        try:
            if not self._torch.compiler.is_dynamo_compiling() and id(optimizer) not in self._spared:
                self._fuse(optimizer)
        except Exception as error:
            self._applied.fail("an optimizer could not be changed: %r" % (error,))

    def _fuse(self, optimizer):
        others = [group for group in optimizer.param_groups if group.get("fused") is not True]
        if not others:
            self._applied.act()
            return
        obstacle = self._obstacle(optimizer)
        if obstacle is not None:
            self._spared.learn(optimizer, True)
            self._applied.fail(obstacle)
            return
        for group in others:
            if group["fused"] is False or group.get("foreach") is not None:
                self._applied.opposed("foreach=%s, fused=%s" % (group.get("foreach"), group["fused"]))
            self._patches.put(group, "fused", True)
            self._patches.put(group, "foreach", None)
            for parameter in group["params"]:
                self._move_count(optimizer.state.get(parameter), parameter)
        self._patches.assign(optimizer, "_step_supports_amp_scaling", True)
        self._applied.act()

    def _obstacle(self, optimizer):
        name = type(optimizer).__name__
        for group in optimizer.param_groups:
            if "fused" not in group:
                return "%s has no fused kernels" % name
            if group.get("differentiable"):
                return "%s is differentiable" % name
            for parameter in group["params"]:
                if parameter.device.type not in self._devices or not parameter.is_floating_point():
                    return "there are no fused kernels for %s on %s" % (parameter.dtype, parameter.device.type)
        return None

    def _move_count(self, state, parameter):
        """Fused kernels count steps where the parameter is."""
        count = state.get("step") if state else None
        if self._torch.is_tensor(count):
            self._patches.put(state, "step", count.to(device=parameter.device, dtype=self._torch.float32))


def _set_to_none(session, applied):
    from torch import nn
    from torch.optim import Optimizer

    for owner in (Optimizer, nn.Module):
        session.patches.replace(owner, "zero_grad", _dropping(applied, owner.zero_grad))


def _dropping(applied, zero_grad):
    @functools.wraps(zero_grad)
    def dropped(self, set_to_none=True):
        try:
            if not set_to_none:
                applied.overrule(set_to_none)
            return zero_grad(self, True)
        except BaseException:
            hide_ours()
            raise

    return dropped


_INSTALL = {"fused": _fused, "set-to-none": _set_to_none}
