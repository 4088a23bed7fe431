"""Where a backward pass begins: the gradients of its roots, so many times as large as they would be."""


def weighted(torch, tensors, gradients, factor):
    """What torch.autograd.backward is to be given as gradients of `tensors` in place of `gradients`.

    Raises where a root is no tensor, as torch allows.
    """
    roots = [tensors] if torch.is_tensor(tensors) else list(tensors)
    given = [gradients] * len(roots) if gradients is None or torch.is_tensor(gradients) else list(gradients)
    return [_weighted(torch, root, gradient, factor) for root, gradient in zip(roots, given)]


def _weighted(torch, root, gradient, factor):
    if gradient is None and root.numel() == 1:
        gradient = torch.ones_like(root)
    return None if gradient is None else gradient * factor
