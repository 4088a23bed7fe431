"""What a stretch of the program must move through memory at least once, in bytes, by what it is.

Parameters that modules use in the forward pass and that autograd keeps for the backward pass, what else it keeps
(activations), what is copied to the device, and of each optimizer's step: gradients, parameters and state.
"""

_PARTIAL = ("embedding", "_embedding_bag", "embedding_bag")  # they read a few rows of their parameter
_COPIES = ("_to_copy", "copy_")


class Traffic:
    """What was seen since `begin`."""

    def __init__(self, torch):
        self._torch = torch
        self.begin()

    def begin(self):
        """Count anew."""
        self._parameters = {}  # (device, address) -> bytes, of all parameters that were seen
        self._used = set()  # those that were read
        self._kept = {}  # (device, address, number of the backward pass to come) -> bytes
        self._copied = {}

    def look(self, function, args, result, in_forward, number):
        """One operation has been done."""
        torch, name = self._torch, function.__name__.partition(".")[0]
        if in_forward:
            for value in args:
                if isinstance(value, torch.nn.Parameter) and _has_place(torch, value):
                    key, size = _place(value)
                    self._parameters[key] = size
                    if name not in _PARTIAL:
                        self._used.add(key)
        if name in _COPIES and torch.is_tensor(result):
            source = args[1] if name == "copy_" else args[0]
            if source.device.type == "cpu" and result.device.type != "cpu":
                key, size = _place(result)
                self._copied[(*key, number)] = size

    def keep(self, tensor, number):
        """Autograd keeps a tensor for the backward pass to come."""
        if not _has_place(self._torch, tensor):
            return
        key, size = _place(tensor)
        key = (*key, number)
        self._kept[key] = max(self._kept.get(key, 0), size)

    def sum_up(self, device):
        """Bytes by what they are, of one device; a batch that is kept counts there."""
        parameters = {key: size for key, size in self._parameters.items() if key[0] == device}
        kept = {key: size for key, size in self._kept.items() if key[0] == device}
        copied = {key: size for key, size in self._copied.items() if key[0] == device and key not in kept}
        kept_parameters = {key[:2] for key in kept} & parameters.keys()
        return {
            "forward_parameters": sum(size for key, size in parameters.items() if key in self._used),
            "backward_parameters": sum(parameters[key] for key in kept_parameters),
            "activations": sum(size for key, size in kept.items() if key[:2] not in parameters),
            "copied": sum(copied.values()),
        }


def of_step(torch, optimizer):
    """Bytes that one step of an optimizer must touch, by device and by what they are."""
    found = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None or gradient.layout is not torch.strided:
                continue
            of_device = found.setdefault(str(parameter.device), {"parameters": 0, "gradients": 0, "state": 0})
            of_device["parameters"] += parameter.nbytes
            of_device["gradients"] += gradient.nbytes
            state = optimizer.state.get(parameter, {})
            tensors = [value for value in state.values() if torch.is_tensor(value) and value.dim()]
            of_device["state"] += sum(value.nbytes for value in tensors if value.device == parameter.device)
    return found


def _has_place(torch, tensor):
    """Whether it lies somewhere itself: tensors that are made of others do not."""
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def _place(tensor):
    """Where a tensor lies, and how many bytes of that it can be: a view may show more than there is."""
    storage = tensor.untyped_storage()
    return (str(tensor.device), storage.data_ptr()), min(tensor.numel() * tensor.element_size(), storage.nbytes())
