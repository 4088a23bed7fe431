"""Backward passes, and what they compute a second time because of activation checkpointing."""

import os
from threading import get_ident
from time import perf_counter_ns

from ..wire import (
    BACKWARD_IN,
    BACKWARD_OUT,
    IN,
    LOSS_KNOWN,
    LOSSES,
    OUT,
    RECOMPUTE,
    SHIFT,
    WITH_ANOMALY,
    WITHOUT_ACCUMULATING,
)

NAME = "backward and recompute"
_TRACED = "torch._subclasses"  # where the stand-ins for tensors live that torch.compile traces with
_SCALINGS = 3  # by the accumulation, by a GradScaler, by a weight


def install(session):
    torch, log = session.torch, session.log
    tensor = torch.Tensor

    def watching(facts_of_all):
        def enter(roots):
            """What `leave` needs, or None for a pass that is not watched."""
            root = roots[0] if isinstance(roots, (list, tuple)) and roots else roots
            kind = type(root)
            if kind is not tensor and kind.__module__.startswith(_TRACED):
                return None
            if not log.alone and get_ident() != log.thread and not log.backward:
                session.adopt()  # while a pass is open, the engine's thread works for ours
                if not session.mine():
                    return None
            facts = facts_of_all
            if session.returned_losses and _is_returned(root, session.returned_losses):
                facts |= LOSS_KNOWN
            if log.anomaly:
                facts |= WITH_ANOMALY
            log.backward += 1
            log.events.append((perf_counter_ns() if log.mark is None else log.mark(), facts << SHIFT | BACKWARD_IN))
            return True

        return enter

    def leave(_):
        log.backward -= 1
        if not log.backward:
            log.backwards += 1
            came, log.border_came = log.border_came, False
            if not came and log.attend is not None:
                log.attend(BACKWARD_OUT)
                return
        log.events.append((perf_counter_ns() if log.mark is None else log.mark(), BACKWARD_OUT))

    entering = watching(0)
    if LOSSES in os.environ:
        from ..losses import keeping

        entering = keeping(session, entering)
    backward = session.hook(NAME, torch.autograd.backward, entering, leave, names=("tensors",))
    session.look_at_backward = _looking(log, backward, entering)
    session.hook(NAME, torch.autograd.grad, watching(WITHOUT_ACCUMULATING), leave, names=("outputs",))
    log.naps.add(backward)
    _install_recompute(session)


def _looking(log, hooks, entering):
    """What has a check called with the roots of each backward pass, or of none."""

    def look(check):
        def enter(roots):
            token = entering(roots)
            if token is not None and log.backward == 1:
                check(roots if isinstance(roots, (list, tuple)) else (roots,))
            return token

        hooks.enter = entering if check is None else enter

    return look


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

    log = session.log

    def enter_recompute():
        if not log.backward:
            return None
        session.recomputing += 1
        log.add(IN + RECOMPUTE)
        return True

    def leave_recompute(_):
        session.recomputing -= 1
        log.add(OUT + RECOMPUTE)

    session.hook(NAME, checkpoint.CheckpointFunction.backward, enter_recompute, leave_recompute)

    open_hooks = []

    def enter_hooks(hooks):
        session.has_saved_hooks = True
        if type(hooks).__name__ == "_recomputation_hook" and enter_recompute():
            open_hooks.append(True)

    def leave_hooks(hooks):
        if type(hooks).__name__ == "_recomputation_hook" and open_hooks:
            leave_recompute(open_hooks.pop())

    # What the other kind of checkpoint recomputes, it recomputes inside this context. Not by the public `checkpoint`:
    # torch.compile knows that one by its identity.
    saved = session.torch.autograd.graph.saved_tensors_hooks
    session.hook(NAME, saved.__enter__, enter_hooks, names=("self",))
    session.hook(NAME, saved.__exit__, leave_hooks, names=("self",))
