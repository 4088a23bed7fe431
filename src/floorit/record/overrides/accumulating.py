"""Several batches to one step of the optimizer: the steps between do nothing, and gradients add up to their mean.

Of each optimizer, its own calls of `step` are counted. Until the last of them, what clears, clips or unscales its
gradients leaves them alone, and DDP does not reduce them.
"""

import functools

from ..imports import after_import
from ..known import Known
from ..traces import hide_ours
from .roots import weighted

NAME = "accumulation"
CODES = ("accumulate",)
_CLEARED = "the program clears gradients itself, not by zero_grad: those of the batches before are lost"
_SEARCHES = "LBFGS asks for the loss several times a step"


def install(session, asked):
    from torch.amp.grad_scaler import GradScaler
    from torch.optim import Optimizer

    (applied,) = asked.values()
    steps = _Steps(session, applied)
    replace = session.patches.replace
    session.hook(NAME, Optimizer._patch_step_function, steps.know, names=("self",))
    replace(Optimizer, "profile_hook_step", staticmethod(steps.counting(Optimizer.profile_hook_step)))
    replace(Optimizer, "zero_grad", _unless(steps.is_between, Optimizer.zero_grad))
    replace(session.torch.nn.Module, "zero_grad", _unless(steps.is_holding, session.torch.nn.Module.zero_grad))
    replace(session.torch.autograd, "backward", steps.averaging(session.torch.autograd.backward))
    replace(GradScaler, "unscale_", _unless(steps.is_early, GradScaler.unscale_))
    replace(GradScaler, "update", _unless(steps.is_idle, GradScaler.update))
    replace(GradScaler, "step", steps.counting_scaled(GradScaler.step))
    _leave_unclipped(session, steps)
    after_import(
        "torch.nn.parallel.distributed",
        lambda module: session.hook(
            NAME, module.DistributedDataParallel._pre_forward, steps.before_forward, names=("self",)
        ),
    )


def _unless(is_between, function):
    """The function, but for calls between two steps."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return None if is_between(*args, **kwargs) else function(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    return call


def _leave_unclipped(session, steps):
    """The norm of gradients that are not all there yet is told, but they are not clipped."""
    from torch.nn import utils
    from torch.nn.utils import clip_grad

    by_norm, by_value = clip_grad.clip_grad_norm_, clip_grad.clip_grad_value_

    @functools.wraps(by_norm)
    def clip_grad_norm_(parameters, max_norm, *args, **kwargs):
        parameters = steps.listed(parameters)
        try:
            return by_norm(parameters, float("inf") if steps.is_amid(parameters) else max_norm, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    @functools.wraps(by_value)
    def clip_grad_value_(parameters, *args, **kwargs):
        parameters = steps.listed(parameters)
        try:
            return None if steps.is_amid(parameters) else by_value(parameters, *args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    for function in (clip_grad_norm_, clip_grad_value_):
        for owner in (utils, clip_grad):
            session.patches.replace(owner, function.__name__, function)


class _Group:
    """The batches of one optimizer's step."""

    __slots__ = ("held", "ids", "is_open", "seen")

    def __init__(self):
        self.seen = 0  # batches whose step was left out
        self.is_open = False  # whether the optimizer is in its step
        self.held = None  # (a parameter, its gradient) when the last step was left out
        self.ids = frozenset()  # of its parameters


class _Steps:
    """Of all optimizers."""

    def __init__(self, session, applied):
        self._torch = session.torch
        self._patches = session.patches
        self._applied = applied
        self._count = applied.value
        self._is_off = False
        self._groups = Known()  # of an optimizer
        self._stepped = Known()  # scalers that have not been updated since
        self._of_ddp = Known()  # of a DDP: (how many optimizers there were, the groups that hold its parameters)
        self._unsynced = Known()  # of a DDP: whether we have told it not to reduce

    def know(self, optimizer):
        """An optimizer is being made."""
        self._group(optimizer)

    def _group(self, optimizer):
        return self._groups.get(id(optimizer)) or self._groups.learn(optimizer, _Group())

    def _fail(self, reason):
        self._is_off = True
        self._applied.fail(reason)

    # -- steps --------------------------------------------------------------------------------------------------

    def counting(self, profile_hook_step):
        """torch makes each class's `step` by it: one with hooks, which only steps that are done will run."""

        @functools.wraps(profile_hook_step)
        def make(function):
            step = profile_hook_step(function)

            @functools.wraps(step)
            def counted(*args, **kwargs):
                try:
                    return self._step(step, args, kwargs)
                except BaseException:
                    hide_ours()
                    raise

            return counted

        return make

    def _step(self, step, args, kwargs):
        optimizer = args[0]
        group = self._group(optimizer)
        if self._is_off or group.is_open:
            return step(*args, **kwargs)
        group.is_open = True
        try:
            if self._is_left_out(optimizer, group):
                closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
                return self._left_out(optimizer, group, closure)
            done = step(*args, **kwargs)
            group.seen, group.held = 0, None
            return done
        finally:
            group.is_open = False

    def counting_scaled(self, scaler_step):
        @functools.wraps(scaler_step)
        def step(scaler, optimizer, *args, **kwargs):
            group = self._group(optimizer)
            try:
                if not self._is_off and self._is_left_out(optimizer, group):
                    return self._left_out(optimizer, group, None)
                self._stepped.learn(scaler, True)
                done = scaler_step(scaler, optimizer, *args, **kwargs)
            except BaseException:
                hide_ours()
                raise
            group.seen, group.held = 0, None  # also where it has found gradients that are not finite
            return done

        return step

    def _is_left_out(self, optimizer, group):
        if isinstance(optimizer, self._torch.optim.LBFGS):
            self._fail(_SEARCHES)
        elif group.held is not None and group.held[0].grad is not group.held[1]:
            self._fail(_CLEARED)
        return not self._is_off and group.seen < self._count - 1

    def _left_out(self, optimizer, group, closure):
        loss = None
        if closure is not None:
            with self._torch.enable_grad():
                loss = closure()
        group.seen += 1
        parameters = (p for own in optimizer.param_groups for p in own["params"])
        group.held = next(((p, p.grad) for p in parameters if p.grad is not None), None)
        self._applied.act()
        return loss

    # -- what happens to gradients between two steps --------------------------------------------------------------

    def averaging(self, backward):
        """A backward pass adds its share of the mean."""

        @functools.wraps(backward)
        def shared(tensors, grad_tensors=None, *args, **kwargs):
            try:
                return backward(tensors, self._share(tensors, grad_tensors), *args, **kwargs)
            except BaseException:
                hide_ours()
                raise

        return shared

    def _share(self, tensors, gradients):
        if self._is_off:
            return gradients
        try:
            return weighted(self._torch, tensors, gradients, 1 / self._count)
        except Exception as error:
            self._fail("a backward pass could not be given its share: %r" % (error,))
            return gradients

    def is_between(self, optimizer, *_, **__):
        """Whether an optimizer's gradients have something of earlier batches in them."""
        return not self._is_off and self._group(optimizer).seen > 0

    def is_holding(self, module, *_, **__):
        """The same of any of a module's parameters."""
        return not self._is_off and any(group.seen > 0 for group in self._holding(module.parameters()))

    def is_idle(self, scaler, *_, **__):
        """Whether a scaler's step was left out: then there is nothing to update it by."""
        return not self._is_off and self._stepped.pop(id(scaler), None) is None

    def is_early(self, _, optimizer):
        """Whether more batches are to come before an optimizer's next step."""
        return not self._is_off and self._group(optimizer).seen < self._count - 1

    def is_amid(self, parameters):
        """The same of any of the parameters."""
        return not self._is_off and _are_early(self._holding(parameters), self._count)

    def listed(self, parameters):
        return [parameters] if self._torch.is_tensor(parameters) else list(parameters)

    def _holding(self, parameters):
        """The groups of the optimizers that update any of the parameters."""
        ids = set(map(id, parameters))
        found = []
        for optimizer, group in self._groups.alive():
            if not group.ids:
                group.ids = frozenset(id(p) for own in optimizer.param_groups for p in own["params"])
            if not ids.isdisjoint(group.ids):
                found.append(group)
        return found

    def before_forward(self, ddp):
        """The backward pass that follows reduces gradients only where a step comes after it."""
        if not self._torch.is_grad_enabled():
            return
        count, groups = self._of_ddp.get(id(ddp)) or (None, None)
        if count != len(self._groups):
            groups = self._holding(ddp.parameters())
            self._of_ddp.learn(ddp, (len(self._groups), groups))
        is_amid = not self._is_off and _are_early(groups, self._count)
        if is_amid and ddp.require_backward_grad_sync:
            self._unsynced.learn(ddp, True)
            self._patches.assign(ddp, "require_backward_grad_sync", False)
        elif not is_amid and self._unsynced.pop(id(ddp), None):
            self._patches.assign(ddp, "require_backward_grad_sync", True)


def _are_early(groups, count):
    """Whether any of them has more batches to come before its step."""
    return any(group.seen < count - 1 for group in groups)
