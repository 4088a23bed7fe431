"""Optimizer steps, clearing and clipping gradients, and loss scaling."""

from threading import get_ident
from time import perf_counter_ns

from ..known import Known
from ..traces import hide_ours, is_from_signal
from ..wire import CLOSURE_IN, CLOSURE_OUT, NAP_STEP, OPTIMIZER, SHIFT, STEP_IN, STEP_OUT

NAME = "optimizer"
_DEEPEST = 50  # steps inside steps
_OPTIONS = ("foreach", "fused", "capturable")


def install(session):
    import torch.amp.grad_scaler
    import torch.nn.utils.clip_grad as clip
    from torch.optim import optimizer as optim

    steps = _Steps(session)
    naps = session.log.naps
    before = optim.register_optimizer_step_pre_hook(steps.before)
    after = optim.register_optimizer_step_post_hook(steps.after)
    naps.add(
        _Registered(optim._global_optimizer_pre_hooks, before.id, steps.before, None),
        _Registered(optim._global_optimizer_post_hooks, after.id, steps.after, steps.in_nap()),
    )
    _install_closures(session, steps)
    scaler = torch.amp.grad_scaler.GradScaler
    for function in (
        optim.Optimizer.zero_grad,
        session.torch.nn.Module.zero_grad,
        clip.clip_grad_norm_,
        clip.clip_grad_value_,
        scaler.step,
        scaler.unscale_,
        scaler.update,
    ):
        naps.add(session.hook_phase(function, OPTIMIZER))
    _install_scaled(session, steps, scaler)


def _install_scaled(session, steps, scaler):
    session.scaled_steps = steps.scaled
    try:
        decides = (steps.may_be_skipped, steps.was_decided)
        session.hook(NAME, scaler._maybe_opt_step, *decides, names=("optimizer",))
    except Exception as error:
        session.missing("steps that a GradScaler skips", repr(error))


def _install_closures(session, steps):
    """An optimizer calls its closure with gradients switched on: in the first such context that it enters."""
    context = session.torch.enable_grad
    try:
        session.hook(NAME, context.__enter__, steps.enter_closure, names=("self",), gate=steps.with_closure)
        session.hook(NAME, context.__exit__, steps.leave_closure, names=("self",), gate=steps.with_closure)
    except Exception as error:
        session.missing("closures of optimizers", repr(error))


class _Registered:
    """A hook in torch's own table of them, and the one that is there instead in a nap, if any."""

    def __init__(self, table, key, hook, instead):
        self._table, self._key, self._hook, self._instead = table, key, hook, instead

    def rest(self):
        if self._instead is None:
            self._table.pop(self._key, None)
        else:
            self._table[self._key] = self._instead

    def reset(self):
        self._table[self._key] = self._hook


class _Steps:
    """Torch calls us before and after each step of any optimizer."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._numbers = Known()
        self._count = 0
        self._is_compiling = session.torch.compiler.is_dynamo_compiling
        self._taken = 0  # steps
        self._scaled = self._skipped = 0  # steps that a GradScaler was asked for, and did not take
        self._open = []  # numbers of the optimizers whose steps have begun; one that raised stays in it
        self._broken = False
        self.with_closure = [False]  # whether a step with a closure has begun
        self._closure = None  # id of the context that its closure runs in

    def before(self, optimizer, args, kwargs):
        try:
            is_compiling = self._is_compiling
            if is_compiling() or self._broken:  # first: torch.compile traces this, and no further
                return
            log = self._log
            if not log.alone and get_ident() != log.thread:
                return
            number = self._numbers.get(id(optimizer))
            if number is None:
                number = self._describe(optimizer)
            if len(self._open) > _DEEPEST:
                del self._open[:]
            self._open.append(number)
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            has_closure = closure is not None  # wrappers of optimizers hand on a None
            if has_closure:
                self.with_closure[0], self._closure = True, None
            word = (number << 1 | has_closure) << SHIFT | STEP_IN
            log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
        except BaseException as error:
            if self._is_the_programs(error):
                raise

    def after(self, optimizer, args, kwargs):
        try:
            if not self._open:  # where torch.compile traces this, none is
                return
            log = self._log
            if not log.alone and get_ident() != log.thread:
                return
            self._taken += 1
            word = self._open.pop() << SHIFT | STEP_OUT
            self.with_closure[0] = False
            came, log.batch_came = log.batch_came, False
            log.border_came = True
            if came or log.attend is None:
                log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
            else:
                log.attend(word)
        except BaseException as error:
            if self._is_the_programs(error):
                raise

    def enter_closure(self, context):
        if self._closure is None and self._session.mine():
            self._closure = id(context)
            self._log.add(CLOSURE_IN)

    def leave_closure(self, context):
        if self._closure == id(context):
            self._closure = None
            self._log.add(CLOSURE_OUT)

    def may_be_skipped(self, optimizer):
        """Only where a step that is taken is sure to be seen."""
        is_seen = isinstance(optimizer, self._session.torch.optim.Optimizer) and not self._broken
        return self._taken if is_seen and self._session.mine() else None

    def was_decided(self, taken):
        """A GradScaler takes no step where a gradient is infinite or no number."""
        self._scaled += 1
        self._skipped += self._taken == taken

    def scaled(self):
        """How many steps a GradScaler was asked for, and how many of them it did not take; not of those that it leaves
        to the optimizer to skip, as fused ones do on a GPU."""
        return self._scaled, self._skipped

    def in_nap(self):
        """What torch calls after a step in a nap: of all hooks the one that has to be shortest."""
        log, number_of, describe, is_the_programs = self._log, self._numbers.get, self._describe, self._is_the_programs

        def after(optimizer, args, kwargs):
            try:
                if not log.alone and get_ident() != log.thread:  # a thread that has started since
                    return
                number = number_of(id(optimizer))
                if number is None:
                    number = describe(optimizer)
                log.events.append((perf_counter_ns(), number << SHIFT | NAP_STEP))
                self._taken += 1
                log.backwards += 1  # for what waits for so many; how many there were, the replay knows
                if log.batch_came:
                    log.batch_came = False
                else:
                    log.naps.surprised()
            except BaseException as error:
                if is_the_programs(error):
                    raise

        return after

    def _is_the_programs(self, error):
        """Whether what a hook has raised is for the program to hear; else it is our own, and the hooks stop."""
        if not isinstance(error, Exception):
            hide_ours()
            return True
        if is_from_signal(error):
            return True
        self._fail(error)
        return False

    def _fail(self, error):
        self._broken = True
        self._log.naps.give_up()
        del self._open[:]
        self._session.failed(NAME, error)

    def _describe(self, optimizer):
        session = self._session
        number = self._count
        self._count += 1
        self._numbers.learn(optimizer, number)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        defaults = getattr(optimizer, "defaults", {})
        session.trained.update(map(id, parameters))
        session.when_trained_changes()
        session.writer.note(
            "optimizer",
            id=number,
            name=type(optimizer).__name__,
            parameters=sum(p.numel() for p in parameters),
            tensors=len(parameters),
            lr=_number(optimizer.param_groups[0].get("lr")),
            dtypes=sorted({str(p.dtype).rpartition(".")[2] for p in parameters}),
            devices=sorted({p.device.type for p in parameters}),
            channels_last=_channels_last(session.torch, parameters),
            **{name: defaults[name] for name in _OPTIONS if name in defaults and _is_switch(defaults[name])},
        )
        return number


def _is_switch(value):
    """Whether it is on, off, or left to torch; nothing of the program's is compared to find out."""
    return value is None or isinstance(value, bool)


def _number(value):
    """A learning rate that is a tensor may live on the GPU: asking it would wait."""
    return value if type(value) in (int, float) else None


def _channels_last(torch, parameters):
    """Whether the convolutions' weights lie so in memory; None where no weight can tell."""
    weights = [p for p in parameters if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] * p.shape[3] > 1]
    return any(p.is_contiguous(memory_format=torch.channels_last) for p in weights) if weights else None
