"""Backward passes, and what they compute a second time because of activation checkpointing."""

import functools

from ..traces import hide_ours
from ..wire import ANOMALY, LOSS, PENDING, RECOMPUTE

NAME = "backward and recompute"
_SCALINGS = 3  # by the accumulation, by a GradScaler, by a weight


def install(session):
    torch = session.torch
    clock, steps = session.clock, session.steps
    anomaly = torch.is_anomaly_enabled

    def begin(tensors):
        """The depth; negative for a pass inside another."""
        mine = session.mine()
        if (clock.stack or not mine) and clock.in_backward():
            return -clock.enter_backward()  # reentrant: the engine's thread works for the one that trains
        if not mine:
            session.adopt()
            if not session.mine():
                return None
        if session.unsettled:
            session.settle()
        if anomaly():
            steps.flags |= ANOMALY
        returned = session.returned_losses
        return clock.enter_backward(bool(returned) and _is_returned(tensors, returned))

    def leave_backward(depth):
        clock.leave(abs(depth))
        if depth > 0:
            steps.went_backward()

    def enter_grad(outputs):
        was_loss = clock.current == PENDING and clock.becomes == LOSS
        depth = begin(outputs)
        return None if depth is None else (depth, was_loss)

    def leave_grad(token):
        depth, was_loss = token
        leave_backward(depth)
        if was_loss and depth > 0 and not clock.stack:  # a gradient inside the loss: the rest of it follows
            clock.await_loss()

    session.hook(NAME, torch.autograd.backward, begin, leave_backward, names=("tensors",))
    session.hook(NAME, torch.autograd.grad, enter_grad, leave_grad, names=("outputs",))
    _install_recompute(session)


def _is_returned(tensors, numbers):
    """Whether the root of a backward pass is a scalar that the model returned, scaled at most."""
    root = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
    node = getattr(root, "grad_fn", None)
    for _ in range(_SCALINGS + 1):
        if node is None:
            return False
        if node._sequence_nr() in numbers:
            return True
        node = node.next_functions[0][0] if node.next_functions else None
    return False


def _install_recompute(session):
    from torch.utils import checkpoint

    clock = session.clock

    def enter_reentrant():
        return clock.enter(RECOMPUTE) if clock.in_backward() else None

    session.hook(NAME, checkpoint.CheckpointFunction.backward, enter_reentrant, clock.leave)

    def timed(recompute):
        @functools.wraps(recompute)
        def wrapper(*args, **kwargs):
            depth = clock.enter(RECOMPUTE) if clock.in_backward() else None
            try:
                return recompute(*args, **kwargs)
            except BaseException:
                hide_ours()
                raise
            finally:
                if depth is not None:
                    clock.leave(depth)

        return wrapper

    def made(frame):
        frame.recompute_fn = timed(frame.recompute_fn)

    # Not the public `checkpoint`: torch.compile knows that one by its identity.
    session.hook(NAME, checkpoint._CheckpointFrame.__init__, lambda frame: frame, made, names=("self",))
