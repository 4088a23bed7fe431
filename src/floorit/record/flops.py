"""The work of a step, counted: operations of products, convolutions and attention by number format; bytes of the weights.

Only in the floor run, in its last steps, which no figure counts: it changes how torch dispatches.
"""

from time import perf_counter_ns

from .wire import WINDOW_IN

NAME = "the work of a step"
STEPS = 2  # that are counted
TF32 = "tf32"  # float32 whose products are rounded so that tensor cores can make them


def install(session):
    """Count before the program is told to end."""
    session.log.before_stop = _Counting(session)


class _Counting:
    """Called at each border until it returns False."""

    def __init__(self, session):
        self._session = session
        self._log = session.log
        self._mode = None
        self._counted = {}
        self._steps = 0
        self._passes = 0  # backward passes at the last border

    def __call__(self):
        try:
            return self._at_border()
        except Exception as error:
            self._log.before_stop = None
            self._session.missing(NAME, repr(error))
            return False

    def _at_border(self):
        if self._mode is None:
            self._log.extend((perf_counter_ns(), WINDOW_IN))
            self._mode = _mode(self._session.torch)
            self._mode.__enter__()
        else:
            self._step_ended()
        self._passes = self._log.backwards
        self._mode.by_format.clear()
        if self._steps < STEPS:
            return True
        self._mode.__exit__(None, None, None)
        self._log.before_stop = None
        self._session.writer.note("work", steps=self._steps, flops=self._counted, bytes=_weights(self._session))
        return False

    def _step_ended(self):
        """What was counted since the last border is a step's, if something was learnt in it."""
        if self._log.backwards > self._passes:
            self._steps += 1
            for name, flops in self._mode.by_format.items():
                self._counted[name] = self._counted.get(name, 0) + flops


def _mode(torch):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    class Mode(TorchDispatchMode):
        """Sees every operator, of backward passes too."""

        def __init__(self):
            super().__init__()
            self.by_format = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            formula = flop_registry.get(getattr(func, "_overloadpacket", None))
            if formula is not None:
                name = _format(torch, func, args)
                self.by_format[name] = self.by_format.get(name, 0) + formula(*args, **(kwargs or {}), out_val=out)
            return out

    return Mode()


def _format(torch, func, args):
    """The number format that the operator multiplies in."""
    tensor = next((a for a in args if isinstance(a, torch.Tensor)), None)
    name = "unknown" if tensor is None else str(tensor.dtype).rpartition(".")[2]
    if name != "float32" or not tensor.is_cuda:
        return name
    is_convolution = "conv" in str(func)
    rounded = torch.backends.cudnn.allow_tf32 if is_convolution else torch.backends.cuda.matmul.allow_tf32
    return TF32 if rounded else name


def _weights(session):
    """Bytes that one step of all optimizers cannot but move: weights and their state, read and written once.

    None where the program has no optimizer of torch's.
    """
    optimizers = session.optimizers()
    tensors = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            tensors.update((id(p), p) for p in group["params"])
        for state in list(optimizer.state.values()):
            tensors.update((id(v), v) for v in state.values() if isinstance(v, session.torch.Tensor))
    return 2 * sum(tensor.nbytes for tensor in tensors.values()) if optimizers else None
