"""The products that a stretch of the program computes, by precision, module and pass, seen as torch dispatches them.

Torch's own formulas (torch.utils.flop_counter) say how many operations each takes; a multiplication and an addition
are two. What has no formula and is not torch's own is named as unseen. Only in a floor run: a call for each operation.
"""

FORWARD, BACKWARD, RECOMPUTE = "forward", "backward", "recompute"
MATRIX, CONVOLUTION = "matrix", "convolution"
# Namespaces whose operations without a formula are no products.
_TORCHS = frozenset(("aten", "prim", "prims", "profiler", "c10d", "_c10d_functional", "c10d_functional", "inductor"))
# Of torch's own, products without a formula.
_UNCOUNTED = ("_cudnn_rnn", "_cudnn_rnn_backward", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "miopen_rnn")
# Products that take as many operations as another of the same arguments.
_LIKE = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "_scaled_dot_product_flash_attention_backward",
}


class Products:
    """What was computed since it was made."""

    def __init__(self):
        self.flops = {}  # (device, precision, path of the module, pass) -> operations
        self.unseen = set()  # names of operations that cannot be counted

    def add(self, key, flops):
        self.flops[key] = self.flops.get(key, 0) + flops


def make_mode(torch, look):
    """A dispatch mode that calls `look(function, args, kwargs, result)` after every operation, and changes none."""
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        supports_higher_order_operators = True

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if any(kind is not torch.Tensor and kind is not torch.nn.Parameter for kind in types):
                return NotImplemented  # a class of its own says what it is made of; that comes by here
            if not isinstance(function, HigherOrderOperator):
                with self:  # in inference mode operations come whole
                    result = function.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            result = function(*args, **kwargs)
            look(function, args, kwargs, result)
            return result

    return Mode()


class Counter:
    """Turns operations, as they come, into counts."""

    def __init__(self, torch, module_path, current_pass):
        from torch.utils.flop_counter import flop_registry

        self._torch = torch
        self._module_path = module_path  # () -> of the module that is at work
        self._current_pass = current_pass
        self._formulas = dict(flop_registry)
        aten = torch.ops.aten
        self._formulas[aten.convolution_backward] = _convolution_backward
        for name, other in _LIKE.items():
            if hasattr(aten, name) and hasattr(aten, other):
                formula = self._formulas.get(getattr(aten, other))
                self._formulas.setdefault(getattr(aten, name), formula)
        self._convolutions = {
            getattr(aten, name)
            for name in ("convolution", "_convolution", "cudnn_convolution", "convolution_backward")
            if hasattr(aten, name)
        }
        self.begin()

    def begin(self):
        """Count anew."""
        self.done = Products()
        self._tf32 = {MATRIX: _matrices_in_tf32(self._torch), CONVOLUTION: _convolutions_in_tf32(self._torch)}

    def look(self, function, args, kwargs, result):
        """One operation has been done."""
        packet = getattr(function, "_overloadpacket", None)
        formula = self._formulas.get(packet)
        if formula is None:
            if self._is_unseen(function, packet):
                self.done.unseen.add(str(packet or function))
            return
        flops = formula(*args, **kwargs, out_val=result)
        tensor = next(value for value in (*args, *kwargs.values()) if self._torch.is_tensor(value))
        precision = self._precision(tensor, CONVOLUTION if packet in self._convolutions else MATRIX)
        key = (str(tensor.device), precision, self._module_path(), self._current_pass())
        self.done.add(key, int(flops))

    def _is_unseen(self, function, packet):
        return packet is None or function.namespace not in _TORCHS or packet.__name__ in _UNCOUNTED

    def _precision(self, tensor, kind):
        name = str(tensor.dtype).rpartition(".")[2]
        return "tf32" if name == "float32" and tensor.is_cuda and self._tf32[kind] else name


def _convolution_backward(gradient, x, weight, *settings, out_val):
    """As many for each gradient that is wanted as the forward pass takes; torch's own formula forgets the groups."""
    is_transposed, wanted = settings[-4], settings[-1]
    forward = 2 * (x if is_transposed else gradient).numel() * (weight.numel() // weight.shape[0])
    return forward * sum(wanted[:2])


def _matrices_in_tf32(torch):
    return _asked(
        lambda: torch.backends.cuda.matmul.allow_tf32, lambda: torch.backends.cuda.matmul.fp32_precision == "tf32"
    )


def _convolutions_in_tf32(torch):
    cudnn = torch.backends.cudnn
    return _asked(lambda: cudnn.allow_tf32, lambda: cudnn.conv.fp32_precision == "tf32")


def _asked(*questions):
    """The first answer: where a program mixes torch's old and new names for a precision, the old one raises."""
    for question in questions:
        try:
            return bool(question())
        except Exception:
            continue
    return False
