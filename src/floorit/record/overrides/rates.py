"""The learning rate that goes with batches so many times as large: as many times for SGD, by the square root for
optimizers that divide by the size of their gradients.

Set once, before an optimizer's first step; schedules that go by the rate an optimizer began with are told too.
"""

from ..known import Known
from ..traces import is_from_signal

NAME = "learning rates"
_LINEAR = ("sgd",)  # Goyal et al. 2017
_ROOT = ("adam", "rmsprop", "adagrad", "lamb")  # Krizhevsky 2014; Malladi et al. 2022
_IN_GROUP = ("lr", "initial_lr", "max_lr", "min_lr")  # as optimizers, schedulers and OneCycleLR keep them
_IN_SCHEDULER = ("base_lrs", "max_lrs", "_last_lr")
_NO_RULE = "the learning rate is as the program has it: no rule is known for %s"
_RESET = "the program sets the learning rate itself as it goes: the rule does not reach it"


class Rates:
    """Of every optimizer."""

    def __init__(self, session, applied):
        from torch.optim import lr_scheduler
        from torch.optim import optimizer as optim

        self.times = None  # as large are batches now; None before the first
        self._session = session
        self._applied = applied
        self._set = Known()  # of an optimizer: the rates it was given
        self._schedulers = Known()  # the optimizer of each
        made = {"names": ("self", "optimizer")}
        session.hook(NAME, lr_scheduler.LRScheduler.__init__, self._schedulers.learn, **made)
        handle = optim.register_optimizer_step_pre_hook(self._before_step)
        optim._global_optimizer_pre_hooks.move_to_end(handle.id, last=False)  # before the recorder reads the rate

    def _before_step(self, optimizer, args, kwargs):
        if self.times is None or self._session.torch.compiler.is_dynamo_compiling():
            return
        try:
            rates = self._set.get(id(optimizer))
            if rates is None:
                self._scale(optimizer)
            elif rates != _rates(optimizer) and not self._schedulers_of(optimizer):
                self._applied.remark(_RESET)
        except Exception as error:
            if is_from_signal(error):
                raise
            self._applied.fail("a learning rate could not be changed: %r" % (error,))

    def _scale(self, optimizer):
        power = _power(optimizer)
        if power is None:
            self._applied.remark(_NO_RULE % type(optimizer).__name__)
        else:
            factor = self.times**power
            for group in optimizer.param_groups:
                for name in _IN_GROUP:
                    if name in group:
                        self._session.patches.put(group, name, group[name] * factor)
            for scheduler in self._schedulers_of(optimizer):
                for name in _IN_SCHEDULER:
                    if hasattr(scheduler, name):
                        scaled = [rate * factor for rate in getattr(scheduler, name)]
                        self._session.patches.assign(scheduler, name, scaled)
        self._set.learn(optimizer, _rates(optimizer))

    def _schedulers_of(self, optimizer):
        return [scheduler for scheduler, own in self._schedulers.alive() if own is optimizer]


def _rates(optimizer):
    """Those that are numbers: a tensor may live on the GPU, and comparing it would wait."""
    return [group["lr"] for group in optimizer.param_groups if type(group.get("lr")) in (int, float)]


def _power(optimizer):
    """Of the factor of the batch, by which the rate grows; None where no rule is known."""
    names = [kind.__name__.lower() for kind in type(optimizer).__mro__]
    for power, kinds in ((1.0, _LINEAR), (0.5, _ROOT)):
        if any(kind in name for kind in kinds for name in names):
            return power
    return None
