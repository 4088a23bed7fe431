"""Optimizer steps, clearing and clipping gradients, and loss scaling."""

import itertools
import weakref
from threading import get_ident

from ..traces import hide_ours
from ..wire import OPTIMIZER, OTHER

NAME = "optimizer"


def install(session):
    import torch.amp.grad_scaler
    import torch.nn.utils.clip_grad as clip
    from torch.optim import optimizer as optim

    torch = session.torch
    clock, steps = session.clock, session.steps
    known = {}  # id -> (weak reference, number)
    numbers = itertools.count()
    open_steps = []  # (optimizer, depth), innermost last
    broken = []
    is_compiling = torch.compiler.is_compiling

    def number_of(optimizer):
        entry = known.get(id(optimizer))
        if entry is not None and entry[0]() is optimizer:
            return entry[1]
        number = next(numbers)
        known[id(optimizer)] = (weakref.ref(optimizer), number)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        session.trained.update(map(id, parameters))
        session.writer.note(
            "optimizer",
            id=number,
            name=type(optimizer).__name__,
            parameters=sum(p.numel() for p in parameters),
            tensors=len(parameters),
        )
        return number

    def fail(error):
        broken.append(True)
        session.missing(NAME, "the probe failed while running: %r" % (error,))

    def before(optimizer, args, kwargs):
        try:
            if is_compiling() or broken or get_ident() != clock.thread:
                return
            while open_steps and (open_steps[-1][0] is optimizer or open_steps[-1][1] > len(clock.stack)):
                clock.leave(open_steps.pop()[1])  # that step ended by an exception
            if session.unsettled:
                session.settle()
            open_steps.append((optimizer, clock.enter_settling(OPTIMIZER)))
            if len(args) > 1 or kwargs:  # a closure: the program's own code, up to its backward pass
                session.closure_depth = clock.enter(OTHER)
        except Exception as error:
            fail(error)
        except BaseException:
            hide_ours()
            raise

    def after(optimizer, args, kwargs):
        try:
            if not open_steps or get_ident() != clock.thread:
                return  # where torch.compile traces this, none is open
            while open_steps:
                candidate, depth = open_steps.pop()
                clock.leave(depth)
                if candidate is optimizer:
                    break
            session.closure_depth = 0
            number = number_of(optimizer)
            if not open_steps:  # else a step inside a step: a wrapper around another optimizer
                steps.stepped(number)
        except Exception as error:
            fail(error)
        except BaseException:
            hide_ours()
            raise

    optim.register_optimizer_step_pre_hook(before)
    optim.register_optimizer_step_post_hook(after)

    scaler = torch.amp.grad_scaler.GradScaler
    for function in (
        optim.Optimizer.zero_grad,
        clip.clip_grad_norm_,
        clip.clip_grad_value_,
        scaler.step,
        scaler.unscale_,
        scaler.update,
    ):
        session.hook_phase(NAME, function, OPTIMIZER)
