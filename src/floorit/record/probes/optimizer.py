"""Optimizer steps, clearing and clipping gradients, and loss scaling."""

from threading import get_ident
from time import perf_counter_ns

from ..known import Known
from ..traces import hide_ours
from ..wire import OPTIMIZER, SHIFT, STEP_IN, STEP_OUT

NAME = "optimizer"
_OPTIONS = ("foreach", "fused", "capturable")


def install(session):
    import torch.amp.grad_scaler
    import torch.nn.utils.clip_grad as clip
    from torch.optim import optimizer as optim

    steps = _Steps(session)
    optim.register_optimizer_step_pre_hook(steps.before)
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
        session.hook_phase(function, OPTIMIZER)


class _Steps:
    """Torch calls us before and after each step of any optimizer."""

    def __init__(self, session):
        self._session = session
        self._numbers = Known()
        self._count = 0
        self._broken = False
        self.before, self.after = self._hooks()

    def _hooks(self):
        log, numbers, is_compiling = self._session.log, self._numbers, self._session.torch.compiler.is_dynamo_compiling

        def before(optimizer, args, kwargs):
            if is_compiling() or self._broken:  # first: torch.compile traces this, and no further
                return
            try:
                if not log.alone and get_ident() != log.thread:
                    return
                number = numbers.get(id(optimizer))
                if number is None:
                    number = self._describe(optimizer)
                has_closure = len(args) > 1 or bool(kwargs)
                word = (number << 1 | has_closure) << SHIFT | STEP_IN
                log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
            except Exception as error:
                self._fail(error)
            except BaseException:
                hide_ours()
                raise

        def after(optimizer, args, kwargs):
            if is_compiling() or self._broken:
                return
            try:
                number = numbers.get(id(optimizer))
                if number is None or (not log.alone and get_ident() != log.thread):
                    return
                came, log.batch_came = log.batch_came, False
                log.border_came = True
                word = number << SHIFT | STEP_OUT
                if came or log.attend is None:
                    log.events.append((perf_counter_ns() if log.mark is None else log.mark(), word))
                else:
                    log.attend(word)
            except Exception as error:
                self._fail(error)
            except BaseException:
                hide_ours()
                raise

        return before, after

    def _fail(self, error):
        self._broken = True
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
