"""Backward passes, and what they compute a second time because of activation checkpointing."""

from threading import get_ident

from ..steps import FLAGS
from ..wire import ANOMALY, BACKWARD, FORWARD, LOSS, PENDING, RECOMPUTE

NAME = "backward and recompute"
_TRACED = "torch._subclasses"  # where the stand-ins for tensors live that torch.compile traces with
_SCALINGS = 3  # by the accumulation, by a GradScaler, by a weight


def install(session):
    torch = session.torch
    clock, steps = session.clock, session.steps
    anomaly = torch.is_anomaly_enabled

    def begin(tensors):
        """The depth; negative for a pass inside another."""
        root = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
        if type(root).__module__.startswith(_TRACED):
            return None
        mine = get_ident() == clock.thread
        if (clock.stack or not mine) and clock.in_backward():
            return -clock.enter_settling(BACKWARD)  # reentrant: the engine's thread works for the one that trains
        if not mine:
            session.adopt()
            if not session.mine():
                return None
        if session.unsettled:
            session.settle()
        if anomaly():
            steps.row[FLAGS] |= ANOMALY
        returned = session.returned_losses
        return clock.enter_settling(BACKWARD, bool(returned) and _is_returned(root, returned))

    def leave_backward(depth):
        clock.leave(abs(depth))
        if depth > 0:
            if session.closure_depth:  # what follows in the closure of a step is taken for the optimizer's
                clock.leave(session.closure_depth)
                session.closure_depth = 0
            steps.went_backward()

    def enter_grad(outputs):
        was_loss = clock.current == PENDING and clock.becomes == LOSS
        depth = begin(outputs)
        return None if depth is None else (depth, was_loss)

    def leave_grad(token):
        depth, was_loss = token
        leave_backward(depth)
        if was_loss and depth > 0 and not clock.stack:  # a gradient inside the loss: the rest of it follows
            clock.leave_forward(clock.enter(FORWARD))

    session.hook(NAME, torch.autograd.backward, begin, leave_backward, names=("tensors",))
    session.hook(NAME, torch.autograd.grad, enter_grad, leave_grad, names=("outputs",))
    _install_recompute(session)


def _is_returned(root, numbers):
    """Whether the root of a backward pass is a scalar that the model returned, scaled at most."""
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
        return clock.enter(RECOMPUTE, clock.thread) if clock.in_backward() else None

    session.hook(NAME, checkpoint.CheckpointFunction.backward, enter_reentrant, clock.leave)

    open_depths = []

    def enter_hooks(hooks):
        if type(hooks).__name__ == "_recomputation_hook" and clock.in_backward():
            open_depths.append(clock.enter(RECOMPUTE, clock.thread))

    def leave_hooks(hooks):
        if type(hooks).__name__ == "_recomputation_hook" and open_depths:
            clock.leave(open_depths.pop())

    # What the other kind of checkpoint recomputes, it recomputes inside this context. Not by the public `checkpoint`:
    # torch.compile knows that one by its identity.
    saved = session.torch.autograd.graph.saved_tensors_hooks
    session.hook(NAME, saved.__enter__, enter_hooks, names=("self",))
    session.hook(NAME, saved.__exit__, leave_hooks, names=("self",))
