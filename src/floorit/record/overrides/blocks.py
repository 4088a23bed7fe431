"""The blocks that a model repeats: what can be recomputed, or compiled, one by one."""

from collections import Counter

FEWEST = 3  # children of one class in a list: fewer are not a repetition
NONE = "the model has no list of %d or more blocks of one class" % FEWEST


def repeated(nn, model):
    """Children of a ModuleList or Sequential of which there are several of one class, none of them inside another.

    A single layer of torch's own is no block, however often it comes.
    """
    found, waiting = [], [model]
    while waiting:
        module = waiting.pop()
        blocks = _alike(module) if isinstance(module, (nn.ModuleList, nn.Sequential)) else []
        known = set(map(id, blocks))
        found += blocks
        waiting += [child for child in module.children() if id(child) not in known]
    return list({id(block): block for block in found}.values())


def _alike(container):
    composed = [child for child in container.children() if _is_composed(child)]
    count = Counter(map(type, composed))
    return [child for child in composed if count[type(child)] >= FEWEST]


def _is_composed(module):
    return next(module.children(), None) is not None or not type(module).__module__.startswith("torch.nn.")


def is_compiled(model):
    """Whether the program has had it compiled, or any part of it."""
    return any(part._compiled_call_impl is not None or hasattr(part, "_orig_mod") for part in model.modules())
