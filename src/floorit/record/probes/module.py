"""Forward passes: the outermost module call, told apart as forward, loss, recompute or evaluation.

A module inside another costs one look at a list. A loss is a module named as one, or, between a forward pass and its
backward, one that no optimizer trains (a perceptual network); evaluation is a trained module called without gradient
in eval mode; a module called inside a backward pass recomputes.
"""

import os
import weakref
from threading import get_ident

from ..steps import FLAGS, SAMPLES
from ..wire import (
    BACKWARD,
    EVAL,
    FORWARD,
    GRAD_FORWARD,
    LOSS,
    NO_GRAD_FORWARD,
    OPTIMIZER,
    OTHER,
    PENDING,
    RECOMPUTE,
)

NAME = "forward and loss"
_ENOUGH = 50


def install(session):
    torch = session.torch
    clock, steps = session.clock, session.steps
    outside = [True]
    grad_enabled = torch.is_grad_enabled
    is_tensor = torch.is_tensor
    trained = _Trained(session)
    named_loss = {}
    without = [0]  # forward passes on end that returned no scalar

    def is_loss(kind):
        name = kind.__name__.lower()
        answer = named_loss[kind] = "loss" in name or "criterion" in name
        return answer

    def enter(module, args):
        current = clock.current
        if current == BACKWARD:
            outside[0] = False
            return clock.enter(RECOMPUTE, clock.thread)
        if get_ident() != clock.thread or (current != PENDING and current != OTHER and current != OPTIMIZER):
            return None
        kind = type(module)
        known = named_loss.get(kind)
        if (is_loss(kind) if known is None else known) or (
            current == PENDING and clock.becomes == LOSS and not trained(module)
        ):
            outside[0] = False
            return clock.enter(LOSS)
        outside[0] = False
        if not grad_enabled():
            steps.row[FLAGS] |= NO_GRAD_FORWARD
            return clock.enter(FORWARD if module.training or not trained(module) else EVAL)
        row = steps.row
        row[FLAGS] |= GRAD_FORWARD
        if not row[SAMPLES] and args and is_tensor(args[0]) and args[0].dim():
            row[SAMPLES] = args[0].shape[0]
        return -clock.enter_settling(FORWARD)  # the sign says that its loss may follow

    def returned(token, output):
        if token < 0:
            session.returned_losses = found = _scalars(output)
            without[0] = 0 if found else without[0] + 1
            if without[0] > _ENOUGH:  # this model does not compute its loss itself: no need to ask again
                hooks.result = None

    def leave(token):
        outside[0] = True
        if token < 0:
            clock.leave_forward(-token)
        else:
            clock.leave(token)

    call = torch.nn.Module._wrapped_call_impl
    hooks = session.hook(NAME, call, enter, leave, returned, gate=outside, names=("self", "args"))
    os.register_at_fork(after_in_child=lambda: outside.__setitem__(0, True))  # forked inside a call, outside of it


def _scalars(output):
    """Numbers of the graph nodes of the scalars that a model returned: it may have computed its loss itself.

    Numbers, not tensors: holding one would keep its graph in memory.
    """
    if hasattr(output, "grad_fn"):
        if output.ndim:
            return ()
        output = (output,)
    elif hasattr(output, "values") and callable(output.values):
        output = output.values()
    elif not isinstance(output, (list, tuple)):
        return ()
    nodes = (getattr(value, "grad_fn", None) for value in output if getattr(value, "ndim", None) == 0)
    return {node._sequence_nr() for node in nodes if node is not None}


class _Trained:
    """Whether an optimizer updates any parameter of a module; before the first step, whether one wants a gradient."""

    def __init__(self, session):
        self._session = session
        self._known = {}
        self._optimized = 0

    def __call__(self, module):
        parameters = self._session.trained
        if len(parameters) != self._optimized:
            self._optimized = len(parameters)
            self._known.clear()
        entry = self._known.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        if parameters:
            answer = any(id(p) in parameters for p in module.parameters())
        else:
            answer = any(p.requires_grad for p in module.parameters())
        self._known[id(module)] = (weakref.ref(module), answer)
        return answer
