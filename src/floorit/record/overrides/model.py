"""How the model is called: in half precision, with the channels innermost, compiled, its activations recomputed.

Only calls from outside of any module are changed, of modules that are trained; nothing is left on the model that a
checkpoint or a copy of it would carry along, but the order of its weights in memory.
"""

from ..known import Known
from ..traces import hide_ours
from ..wire import OF_LOSS, TRAINED, WITH_GRAD
from . import recomputing
from .blocks import NONE, is_compiled, repeated
from .scaling import Scaling

CODES = ("amp", "channels-last", "recompute", "compile")
_REGIONAL = "regional"
_DEPTH = 4  # of what a model is given or returns: how far it is looked into
_LEFT_ALONE = object()
_PICTURES = 4  # dimensions of a batch of them, and of a convolution's weight


def install(session, asked):
    if "recompute" in asked and not asked["recompute"].value:
        recomputing.keep(session, asked["recompute"])
        asked = {code: applied for code, applied in asked.items() if code != "recompute"}
    changes = [_CHANGES[code](session, asked[code]) for code in CODES if code in asked]
    if changes:
        session.call_models_by(_Calls(changes).call)


class _Calls:
    """The outermost calls."""

    def __init__(self, changes):
        self._changes = changes

    def call(self, facts, module, args, kwargs):
        """What the program gets of its model."""
        run = module
        if facts & TRAINED and not facts & OF_LOSS:
            for change in self._changes:
                run = self._around(change, facts, module, run)
        try:
            return run(*args, **kwargs)
        except BaseException:
            hide_ours()
            raise

    def _around(self, change, facts, module, run):
        try:
            return change.around(facts, module, run)
        except Exception as error:
            self._changes = [other for other in self._changes if other is not change]
            change.applied.fail("the model could not be changed: %r" % (error,))
            return run


class _Amp:
    """Under autocast, with outputs in the precision that they had: the loss is computed as before."""

    def __init__(self, session, applied):
        torch = self._torch = session.torch
        self.applied = applied
        self._type = {"bf16": torch.bfloat16, "fp16": torch.float16}[applied.value]
        self._scaling = Scaling(session, applied) if self._type is torch.float16 else None
        self._firsts = Known()  # of a module: its first parameter, which tells the device, or _LEFT_ALONE

    def around(self, facts, module, run):
        if not (facts & WITH_GRAD or module.training):
            return run
        first = self._firsts.get(id(module))
        if first is None:
            first = self._firsts.learn(module, self._examine(module))
        if first is _LEFT_ALONE:
            return run
        device = first.device.type
        self._note_own(device)

        def under_autocast(*args, **kwargs):
            if self._scaling is not None:
                _mapped(self._torch, (args, kwargs), self._scaling.follow)
            with self._torch.autocast(device, dtype=self._type):
                output = run(*args, **kwargs)
            return _mapped(self._torch, output, self._restored)

        self.applied.act()
        return under_autocast

    def _examine(self, module):
        """Once for each module that is called from outside."""
        first = next((p for p in module.parameters() if p.is_floating_point()), None)
        if first is None or first.dtype is not self._torch.float32:
            self.applied.unmet("the model's parameters are not in float32")
            return _LEFT_ALONE
        if self._scaling is not None:
            for parameter in module.parameters():
                self._scaling.follow(parameter)
        return first

    def _note_own(self, device):
        torch = self._torch
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) is not self._type:
            self.applied.opposed_here(str(torch.get_autocast_dtype(device)).rpartition(".")[2])

    def _restored(self, tensor):
        return tensor.float() if tensor.dtype is self._type else tensor


class _ChannelsLast:
    """Weights of convolutions, and pictures that the model is given, with the channels innermost."""

    def __init__(self, session, applied):
        self._session = session
        self._torch = session.torch
        self.applied = applied
        self._has_weights = Known()

    def around(self, facts, module, run):
        has_weights = self._has_weights.get(id(module))
        if has_weights is None:
            has_weights = self._has_weights.learn(module, self._turn_weights(module))
        if not has_weights:
            return run

        def on_turned(*args, **kwargs):
            args, kwargs = _mapped(self._torch, (args, kwargs), self._turned)
            return run(*args, **kwargs)

        self.applied.act()
        return on_turned

    def _turn_weights(self, module):
        weights = [p for p in module.parameters() if p.dim() == _PICTURES]
        for weight in weights:
            self._session.patches.assign(weight, "data", self._turned(weight.data))
        if not weights:
            self.applied.unmet("the model has no weights of convolutions")
        return bool(weights)

    def _turned(self, tensor):
        is_pictures = tensor.dim() == _PICTURES and tensor.is_floating_point()
        return tensor.contiguous(memory_format=self._torch.channels_last) if is_pictures else tensor


class _Compile:
    """Compiled in place, whole or block by block, at the first call that is trained by; copies of it are not."""

    def __init__(self, session, applied):
        self._nn = session.torch.nn
        self.applied = applied
        self._mode = applied.value
        self._seen = Known()

    def around(self, facts, module, run):
        if facts & WITH_GRAD and id(module) not in self._seen:
            self._seen.learn(module, True)
            self._compile(module)
        return run

    def _compile(self, module):
        if is_compiled(module):
            self.applied.unmet("the program compiles its model itself")
            return
        is_regional = self._mode == _REGIONAL
        parts = repeated(self._nn, module) if is_regional else [module]
        if not parts:
            self.applied.unmet(NONE)
        try:
            for part in parts:
                part.compile(mode=None if is_regional else self._mode)
                self.applied.act()
        except Exception as error:
            self.applied.fail("torch.compile does not take the model: %r" % (error,))


def _mapped(torch, value, change, depth=0):
    """The same containers with each tensor changed."""
    kind = type(value)
    if torch.is_tensor(value):
        return change(value)
    if depth >= _DEPTH:
        return value
    if kind in (list, tuple):
        return kind([_mapped(torch, item, change, depth + 1) for item in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[_mapped(torch, item, change, depth + 1) for item in value])
    if isinstance(value, dict):
        items = {key: _mapped(torch, item, change, depth + 1) for key, item in value.items()}
        if kind is dict:
            return items
        for key, item in items.items():  # of a class of the program's own
            if item is not value[key]:
                value[key] = item
    return value


_CHANGES = {
    "amp": _Amp,
    "channels-last": _ChannelsLast,
    "recompute": recomputing.Recompute,
    "compile": _Compile,
}
