"""Backward passes, and what they compute a second time because of activation checkpointing."""

import functools

from ..traces import hide_ours
from ..wire import ANOMALY, LOSS, PENDING, RECOMPUTE

NAME = "backward and recompute"


def install(session):
    torch = session.torch
    clock, steps = session.clock, session.steps
    anomaly = torch.is_anomaly_enabled

    def begin():
        """(depth, whether this pass is inside another)."""
        if session.mine() or clock.in_backward():
            if clock.in_backward():  # reentrant: the engine's thread works for the one that trains
                return [clock.enter_backward(), True]
        else:
            session.adopt()
            if not session.mine():
                return None
        session.border()
        if anomaly():
            steps.flags |= ANOMALY
        return [clock.enter_backward(), False]

    def leave_backward(token):
        clock.leave(token[0])
        if not token[1]:
            steps.went_backward()

    def enter_grad():
        was_loss = clock.current == PENDING and clock.becomes == LOSS
        token = begin()
        return None if token is None else [*token, was_loss]

    def leave_grad(token):
        leave_backward(token)
        if token[2] and not token[1] and not clock.stack:  # a gradient inside the loss: the rest of it follows
            clock.await_loss()

    session.hook(NAME, torch.autograd.backward, begin, leave_backward)
    session.hook(NAME, torch.autograd.grad, enter_grad, leave_grad)
    _install_recompute(session)


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
