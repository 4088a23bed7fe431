"""What a model and its optimizers keep from step to step: parameters, buffers, gradients, the optimizers' state."""

LARGE = 4096  # numbers of a tensor of the optimizer's state from which on it can be had in 8 bits


def tensors(torch, models, optimizers):
    """What it is -> the tensors, each once for every time that it is held."""
    is_tensor = torch.is_tensor
    parameters = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
    parameters += [p for model in models for p in model.parameters()]
    states = [list(state.values()) for o in optimizers for state in list(o.state.values()) if isinstance(state, dict)]
    kept = {
        "parameters": parameters,
        "gradients": [p.grad for p in parameters],
        "optimizer state": [value for state in states for value in state],
        "buffers": [buffer for model in models for buffer in model.buffers()],
    }
    return {what: list(filter(is_tensor, values)) for what, values in kept.items()}


def storages(torch, kept, kind, index=None):
    """(address, bytes, what, type) of each piece of memory on a device; one that several tensors share, once."""
    found = {}
    with torch._C.DisableTorchFunctionSubclass():  # else a class of the program's own may have a say
        for what, values in kept.items():
            for tensor in values:
                device = tensor.device
                if device.type != kind or (index is not None and device.index != index):
                    continue
                storage = tensor.untyped_storage()
                address = storage.data_ptr()
                if address:
                    dtype = str(tensor.dtype).rpartition(".")[2]
                    found.setdefault(address, (address, storage.nbytes(), what, dtype))
    return list(found.values())


def facts(torch, models, optimizers, kind, index=None):
    """What is noted: the pieces, how many parameters there are of each size, what 8 bits would do to the state."""
    kept = tensors(torch, models, optimizers)
    sizes = {}
    for parameter in {id(p): p for p in kept["parameters"]}.values():
        sizes[parameter.numel()] = sizes.get(parameter.numel(), 0) + 1
    is_single = torch.float32
    large = (t for t in kept["optimizer state"] if t.dtype is is_single and t.numel() >= LARGE)
    return {
        "held": storages(torch, kept, kind, index),
        "sizes": list(sizes.items()),
        "large_state": sum(t.numel() * t.element_size() for t in large),
    }
