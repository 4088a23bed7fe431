"""Adam and AdamW with a state of 8 bits, as bitsandbytes or torchao has them, where one of them is installed."""

import functools
import importlib
import importlib.util
import inspect

from ..traces import hide_ours

CODES = ("optimizer-8bit",)
# package -> its module with classes called Adam8bit and AdamW8bit: in newer versions, in older ones
_PACKAGES = {
    "bitsandbytes": ("bitsandbytes.optim",),
    "torchao": ("torchao.optim", "torchao.prototype.low_bit_optim"),
}
_MISSING = "neither %s is installed where the program runs" % " nor ".join(_PACKAGES)
_UNUSED = "the program makes no Adam or AdamW of torch's own"
_TAKEN = ("lr", "betas", "eps", "weight_decay")
_NOT_TAKEN = ("amsgrad", "maximize", "differentiable", "capturable")


def install(session, asked):
    from torch.optim import Adam, AdamW

    (applied,) = asked.values()
    if not any(map(_is_installed, _PACKAGES)):
        applied.fail(_MISSING)
        return
    applied.unmet(_UNUSED)
    for kind in (Adam, AdamW):
        session.patches.replace(kind, "__init__", _Making(session, applied, kind).wrapped())


class _Making:
    """How optimizers of one class are made; of a class that the program derives from it, as ever."""

    def __init__(self, session, applied, kind):
        self._torch = session.torch
        self._patches = session.patches
        self._applied = applied
        self._kind = kind
        self._make = kind.__init__
        self._signature = inspect.signature(kind.__init__)

    def wrapped(self):
        @functools.wraps(self._make)
        def made(optimizer, params, *args, **kwargs):
            try:
                if type(optimizer) is self._kind:
                    params = self._listed(params)
                    if self._become(optimizer, params, args, kwargs):
                        return
                self._make(optimizer, params, *args, **kwargs)
            except BaseException:
                hide_ours()
                raise

        return made

    def _listed(self, params):
        """An iterator would be at its end after the first use."""
        groups = params if self._torch.is_tensor(params) else list(params)
        return [self._group(group) if isinstance(group, dict) else group for group in groups]

    def _group(self, group):
        params = group["params"]
        return {**group, "params": params if self._torch.is_tensor(params) else list(params)}

    def _become(self, optimizer, params, args, kwargs):
        """Whether it is one of 8 bits now; if not, it is as it was."""
        try:
            given = self._signature.bind(optimizer, params, *args, **kwargs)
            given.apply_defaults()
            obstacle = self._obstacle(given.arguments, params)
            if obstacle is not None:
                return self._applied.fail(obstacle)
            kind = _found(self._kind.__name__ + "8bit")
            self._patches.assign(optimizer, "__class__", kind)
            kind.__init__(optimizer, params, **{name: given.arguments[name] for name in _TAKEN})
        except Exception as error:
            for name in list(vars(optimizer)):
                self._patches.take_back(optimizer, name)
            self._patches.assign(optimizer, "__class__", self._kind)
            return self._applied.fail("an optimizer of 8 bits could not be made: %r" % (error,))
        self._applied.overrule(self._kind.__name__)
        return True

    def _obstacle(self, given, params):
        more = [name for name in _NOT_TAKEN if given.get(name)]
        if more:
            return "there is no %s of 8 bits with %s" % (self._kind.__name__, " and ".join(more))
        if not _are_on_gpu(self._torch, params):
            return "its parameters are not on a GPU when the optimizer is made"
        return None


def _are_on_gpu(torch, params):
    inner = [group["params"] if isinstance(group, dict) else group for group in params]
    tensors = [tensor for group in inner for tensor in ([group] if torch.is_tensor(group) else group)]
    return all(value.is_cuda for value in (t[1] if isinstance(t, tuple) else t for t in tensors))


def _found(name):
    """The class of that name in the first package that has it; raises where none can be imported."""
    errors = []
    for module in [module for package in _PACKAGES for module in _PACKAGES[package] if _is_installed(package)]:
        try:
            return getattr(importlib.import_module(module), name)
        except Exception as error:
            errors.append(error)
    raise errors[0]


def _is_installed(package):
    return importlib.util.find_spec(package) is not None
