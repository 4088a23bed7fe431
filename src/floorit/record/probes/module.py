"""Calls of modules: the model's forward pass, the loss, evaluation. Only the outermost call counts."""

import os
from threading import get_ident
from time import perf_counter_ns

from ..known import Known
from ..wire import MODEL_IN, MODEL_OUT, OF_LOSS, SAMPLES_SHIFT, SHIFT, TRAINED, TRAINING, WITH_GRAD

NAME = "forward and loss"
_ENOUGH = 50
_OF_A_LOSS = 0.5  # of the parameters that are trained: a module that has more, whatever its name, has the model in it


def install(session):
    _Calls(session).install()


class _Calls:
    """The outermost calls of modules."""

    def __init__(self, session):
        self._session = session
        self._known = Known()  # of a module: OF_LOSS and TRAINED
        self._without_loss = 0  # forward passes on end that returned no scalar
        self._hooks = None
        self._check = None  # wants to see the next input
        session.when_trained_changes = self._known.clear
        session.look_at_input = self._look_at_input
        session.trained_models = self._trained_models
        session.other_models = self._other_models
        session.call_models_by = self._call_by

    def install(self):
        call = self._session.torch.nn.Module._wrapped_call_impl
        hooks = (self._enter(), MODEL_OUT, self._returned)
        within = ("self", "args", "kwargs") if self._session.has_overrides else ()
        self._hooks = self._session.hook(
            NAME, call, *hooks, outermost=True, names=("self", "args"), within_names=within
        )
        os.register_at_fork(after_in_child=self._hooks.reset)
        self._session.log.naps.add(self._hooks)

    def _enter(self):
        log, known, describe = self._session.log, self._known, self._describe
        torch = self._session.torch
        with_grad, is_tensor = torch.is_grad_enabled, torch.is_tensor

        def enter(module, args):
            if not log.alone and get_ident() != log.thread and not log.backward:
                return None
            facts = known.get(id(module))
            if facts is None:
                facts = describe(module)
            if with_grad():
                facts |= WITH_GRAD
                if not log.batch_came and args and is_tensor(args[0]) and args[0].dim():
                    facts |= args[0].shape[0] << SAMPLES_SHIFT
            elif module.training:
                facts |= TRAINING
            log.events.append((perf_counter_ns() if log.mark is None else log.mark(), facts << SHIFT | MODEL_IN))
            return facts

        return enter

    def _look_at_input(self, check):
        """Call `check` with the first argument of the next forward pass that is to be trained by."""
        if self._check is None:
            hooks, usual = self._hooks, self._hooks.enter

            def enter(module, args):
                facts = usual(module, args)
                if facts is not None and facts & WITH_GRAD:
                    hooks.enter = usual
                    waiting, self._check = self._check, None
                    waiting(args[0] if args else None)
                return facts

            hooks.enter = enter
        self._check = check

    def _call_by(self, call):
        self._hooks.within = call

    def _trained_models(self):
        """The modules that were called from outside of any other, and have parameters that are updated."""
        return [module for module, facts in self._known.alive() if facts & TRAINED]

    def _other_models(self):
        """The others: networks that are frozen, losses."""
        return [module for module, facts in self._known.alive() if not facts & TRAINED]

    def _returned(self, facts, output):
        if facts & WITH_GRAD and not facts & OF_LOSS and not self._session.log.backward:
            self._session.returned_losses = found = _scalars(output)
            self._without_loss = 0 if found else self._without_loss + 1
            if self._without_loss > _ENOUGH:  # this model does not compute its loss itself: no need to ask again
                self._hooks.result = None

    def _describe(self, module):
        trained = self._trained(module)
        facts = TRAINED if trained else 0
        name = type(module).__name__.lower()
        if ("loss" in name or "criterion" in name) and trained <= _OF_A_LOSS * len(self._session.trained):
            facts |= OF_LOSS
        return self._known.learn(module, facts)

    def _trained(self, module):
        """How many of its parameters an optimizer updates; before the first step, how many want a gradient."""
        updated = self._session.trained
        return sum(id(p) in updated if updated else p.requires_grad for p in module.parameters())


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
