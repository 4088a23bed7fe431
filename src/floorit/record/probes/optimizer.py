"""Optimizer steps, clearing and clipping gradients, and loss scaling."""

from threading import get_ident
from time import perf_counter_ns

from ..known import Known
from ..traces import hide_ours, is_from_signal
from ..wire import NAP_STEP, OPTIMIZER, SHIFT, STEP_IN, STEP_OUT

NAME = "optimizer"
_DEEPEST = 50  # steps inside steps
_OPTIONS = ("foreach", "fused", "capturable")


def install(session):
    import torch.amp.grad_scaler
    import torch.nn.utils.clip_grad as clip
    from torch.optim import optimizer as optim

    steps = _Steps(session)
    naps = session.log.naps
    handle = optim.register_optimizer_step_pre_hook(steps.before)
    naps.add(_Registered(optim._global_optimizer_pre_hooks, handle.id, steps.before))
    optim.register_optimizer_step_post_hook(steps.after)
    scaler = torch.amp.grad_scaler.GradScaler
    for function in (
        optim.Optimizer.zero_grad,
        clip.clip_grad_norm_,
        clip.clip_grad_value_,
        scaler.step,
        scaler.unscale_,
        scaler.update,
    ):
        naps.add(session.hook_phase(function, OPTIMIZER))


class _Registered:
    """A hook in torch's own table of them."""

    def __init__(self, table, key, hook):
        self._table, self._key, self._hook = table, key, hook

    def rest(self):
        self._table.pop(self._key, None)

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
        self._open = []  # numbers of the optimizers whose steps have begun; one that raised stays in it
        self._broken = False

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
            has_closure = len(args) > 1 or bool(kwargs)
            word = (number << 1 | has_closure) << SHIFT | STEP_IN
            log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
        except Exception as error:
            if is_from_signal(error):
                raise
            self._fail(error)
        except BaseException:
            hide_ours()
            raise

    def after(self, optimizer, args, kwargs):
        try:
            log = self._log
            if not self._open or log.naps.is_asleep:  # where torch.compile traces this, none is open
                if not self._is_compiling():
                    self._in_nap(optimizer)
                return
            if not log.alone and get_ident() != log.thread:
                return
            word = self._open.pop() << SHIFT | STEP_OUT
            came, log.batch_came = log.batch_came, False
            log.border_came = True
            if came or log.attend is None:
                log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
            else:
                log.attend(word)
        except Exception as error:
            if is_from_signal(error):
                raise
            self._fail(error)
        except BaseException:
            hide_ours()
            raise

    def _in_nap(self, optimizer):
        naps = self._log.naps
        if naps.is_asleep and self._log.alone:
            number = self._numbers.get(id(optimizer))
            naps.stepped((self._describe(optimizer) if number is None else number) << SHIFT | NAP_STEP)

    def _fail(self, error):
        self._broken = True
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
            channels_last=_channels_last(session.torch, parameters),
            **{name: defaults[name] for name in _OPTIONS if isinstance(defaults.get(name), bool)},
        )
        return number


def _number(value):
    """A learning rate that is a tensor may live on the GPU: asking it would wait."""
    return value if type(value) in (int, float) else None


def _channels_last(torch, parameters):
    """Whether the convolutions' weights lie so in memory; None where no weight can tell."""
    weights = [p for p in parameters if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] * p.shape[3] > 1]
    return any(p.is_contiguous(memory_format=torch.channels_last) for p in weights) if weights else None
