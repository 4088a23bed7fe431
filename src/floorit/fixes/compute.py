"""The GPU's own work: other number formats, other algorithms, fewer kernels. Figures of others are in docs/fixes.md."""

from __future__ import annotations

from collections.abc import Callable

from floorit.analyse.needs import Range
from floorit.analyse.stepmodel import Change, gain
from floorit.fixes import values
from floorit.fixes.fix import CLAIMED, Fix, Known, foretold, of_kernels
from floorit.fixes.values import Value
from floorit.stats import Estimate, seconds

# What is left of the time of the kernels that a change touches: at best, as others found it mostly, at worst.
_HALF = Range(1 / 3, 1 / 1.9, 1.0)  # NVIDIA: up to 3x; MONAI: 1.93x; fairchem#397: slower
_TF32 = Range(1 / 6.9, 1 / 2, 1.0)  # one large product 6.9x; a model is more than its products
_SEARCHED = Range(1 / 1.3, 1 / 1.1, 1.0)  # cudnn.benchmark: a few to 30 %; pytorch#2759: far slower where sizes vary
_LAST = Range(1 / 1.35, 1 / 1.15, 1.0)  # channels_last: 8 to 35 %
_FUSED = Range(1 / 1.5, 1 / 1.2, 1.0)  # torch.compile: +21 % in float32, +51 % with AMP over 163 models
_ON_CORES = ("matrix", "convolution", "attention")
# Of the GPU's time, on tensor cores: more, and half precision has been there.
_TENSOR = 0.5
# Of a step, idle: the GPU is not what limits it.
_IDLE = 0.5
# What is left by fused=True of an optimizer that takes one tensor after the other and is busy issuing: of plain SGD,
# SGD with momentum, AdamW (docs/fixes.md).
_FUSED_OF_SINGLE = (0.38, 0.25, 0.13)
_HAVE_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")  # of torch's: records of old don't tell, where nobody asks for it
# The same on a CPU, where one tensor after the other is torch's default, by the optimizer's class: at worst, in the
# middle, at best (docs/fixes.md). SGD may have momentum or not.
_FUSED_ON_CPU = {"Adam": (0.34, 0.25, 0.14), "AdamW": (0.34, 0.25, 0.14), "SGD": (1.0, 0.75, 0.2)}


def _waits(known: Known) -> str | None:
    """Why faster kernels do not matter, if they do not."""
    needs = known.needs
    if needs.gpu is None:
        return known.unseen
    idle = 1 - needs.gpu.high / needs.within if needs.within else 0.0
    if idle < _IDLE:
        return None
    return f"the GPU is idle for {idle:.0%} of a step: its {seconds(needs.gpu.high)} of work are not the limit"


def _if_it_is_the_limit(change: Callable[[Known, Value], Change | str]) -> Callable[[Known], Estimate | str]:
    """What a change of the GPU's work should gain, by itself."""
    predict = foretold(change)
    return lambda known: _waits(known) or predict(known)


def _faster(known: Known, share: float | None, left: Range) -> Change | str:
    return known.unseen or Change(gpu=of_kernels(share, left))


def _amp(known: Known, _: Value) -> Change | str:
    autocast = known.setting("autocast")
    if autocast not in (None, "off"):
        return f"autocast is on already ({autocast})"
    if known.gpu is not None and (known.gpu.tensor_share or 0.0) > _TENSOR:
        return f"{known.gpu.tensor_share:.0%} of the GPU's time is on tensor cores already"
    return _faster(known, known.kernels(*_ON_CORES), _HALF)


def _tf32(known: Known, _: Value) -> Change | str:
    on = (known.setting("matmul.allow_tf32"), known.setting("cudnn.allow_tf32"))
    if on == (True, True):
        return "TF32 is allowed already"
    if known.setting("autocast") not in (None, "off"):
        return "autocast computes products in half precision, not in float32"
    kinds = [kind for kind, allowed in zip(("matrix", "convolution"), on, strict=True) if allowed is not True]
    return _faster(known, known.kernels(*kinds), _TF32)


def _convolutions(known: Known) -> float | str | None:
    """Of the GPU's work; or why there are none to speak of."""
    share = known.kernels("convolution")
    if share is not None and share < CLAIMED - 1:
        return f"convolutions are {share:.1%} of the GPU's work"
    return share


def _cudnn_benchmark(known: Known, _: Value) -> Change | str:
    if known.on_gpu and known.setting("cudnn.benchmark") is True:
        return "cudnn.benchmark is on already"
    if known.workers is not None and known.workers.shapes_vary:
        return "samples are of several sizes: the search would begin anew with each"
    return _of_convolutions(known, _SEARCHED)


def _deterministic(known: Known, _: Value) -> Change | str:
    if not (known.setting("cudnn.deterministic") or known.setting("deterministic_algorithms")):
        return "no deterministic algorithms are asked for"
    return _of_convolutions(known, _SEARCHED)


def _channels_last(known: Known, _: Value) -> Change | str:
    if known.on_gpu and known.setting("channels_last") is True:
        return "the weights are in channels_last already"
    return _of_convolutions(known, _LAST)


def _of_convolutions(known: Known, left: Range) -> Change | str:
    share = _convolutions(known)
    return share if isinstance(share, str) else _faster(known, share, left)


def _compile(known: Known) -> Estimate | str:
    needs = known.needs
    if needs.gpu is None:
        return known.unseen if known.on_gpu else f"{known.unseen}; on a CPU it is not predicted"
    if known.setting("torch.compile") is True:
        return "torch.compile is in use already"
    issuing = known.share("forward", "backward", "loss", "optimizer")
    if needs.idle is not None and needs.idle.get("launch", 0.0) + needs.gpu.likely < _IDLE * needs.within:
        launch = needs.idle.get("launch", 0.0)
        return (
            f"the model and its launches take {seconds(launch + needs.gpu.likely)} of a step of {seconds(needs.within)}"
        )
    if needs.idle is None and (issuing + known.share("sync")) * needs.step < _IDLE * needs.within:
        return f"the model takes {issuing + known.share('sync'):.0%} of the step"
    kernels = of_kernels(known.kernels("elementwise", "normalisation"), _FUSED)
    likely = gain(needs, Change(issue=0.5, gpu=kernels))
    best = gain(needs, Change(issue=0.0, gpu=kernels))  # with CUDA graphs, nothing is launched one by one
    return Estimate(value=likely.value, low=1.0, high=max(best.high, likely.value), n=needs.n)


def _fused(known: Known) -> Estimate | str:
    if known.setting("optimizer.fused") is True:
        return "the optimizer is fused already"
    seconds_of = known.needs.host.get("optimizer", 0.0)
    if not seconds_of:
        return "no optimizer step was seen"
    if not known.on_gpu:
        return _fused_on_cpu(known)
    if known.unseen:
        return known.unseen
    name = known.setting("optimizer")
    if name is not None and name not in _HAVE_FUSED and all(s.name != "optimizer.fused" for s in known.settings):
        return f"{name} has no fused form"
    if known.setting("optimizer.foreach") is False:
        return _with_optimizer_left(known, *_FUSED_OF_SINGLE)
    least, most = (gain(known.needs, Change(phases={"optimizer": left})) for left in (0.8, 1 / 3))
    return Estimate(value=least.value, low=1.0, high=most.high, n=known.needs.n)


def _fused_on_cpu(known: Known) -> Estimate | str:
    name = str(known.setting("optimizer"))
    if known.setting("optimizer.foreach") is True:
        return "the optimizer takes many tensors at once already"
    if name not in _FUSED_ON_CPU:
        return f"torch has no fused {name} for a CPU, or its gain was not measured"
    return _with_optimizer_left(known, *_FUSED_ON_CPU[name])


def _with_optimizer_left(known: Known, *lefts: float) -> Estimate:
    """With so much left of the optimizer's time: at worst, likely, at best."""
    least, likely, most = (gain(known.needs, Change(phases={"optimizer": left})) for left in lefts)
    return Estimate(value=likely.value, low=least.low, high=most.high, n=known.needs.n)


def _set_to_none(known: Known) -> Estimate | str:
    return "torch clears gradients so by default since 2.0; whether the program asks for zeros is not recorded"


FIXES = (
    Fix(
        code="amp",
        summary="products and convolutions in half precision",
        risk="rounding",
        effort="a few lines",
        addresses=("compute-bound",),
        setting="autocast",
        predict=_if_it_is_the_limit(_amp),
        change=_amp,
        value=lambda known: "bf16",
        saves=lambda known: "bf16" if known.setting("autocast") in (None, "off") else None,
        takes=values.one_of("bf16", "fp16", default="bf16"),
        popular=True,
    ),
    Fix(
        code="tf32",
        summary="products in TF32, on tensor cores",
        risk="rounding",
        effort="a flag",
        addresses=("compute-bound",),
        setting="matmul.allow_tf32",
        predict=_if_it_is_the_limit(_tf32),
        change=_tf32,
        value=lambda known: True,
        takes=values.SWITCH_ON,
    ),
    Fix(
        code="cudnn-benchmark",
        summary="the fastest convolution is searched for once",
        risk="rounding",
        effort="a flag",
        addresses=("compute-bound",),
        setting="cudnn.benchmark",
        predict=_if_it_is_the_limit(_cudnn_benchmark),
        change=_cudnn_benchmark,
        value=lambda known: True,
        takes=values.SWITCH_ON,
        popular=True,
    ),
    Fix(
        code="deterministic",
        summary="deterministic algorithms are no longer asked for",
        risk="rounding",
        effort="a flag",
        addresses=("compute-bound",),
        setting="cudnn.deterministic",
        predict=_if_it_is_the_limit(_deterministic),
        change=_deterministic,
        value=lambda known: False,
        takes=values.ONLY_OFF,
    ),
    Fix(
        code="channels-last",
        summary="pictures and weights with the channels innermost",
        risk="rounding",
        effort="a few lines",
        addresses=("compute-bound",),
        setting="channels_last",
        predict=_if_it_is_the_limit(_channels_last),
        change=_channels_last,
        takes=values.ONLY_ON,
        popular=True,
    ),
    Fix(
        code="compile",
        summary="torch.compile: fewer and larger kernels, launched with less Python",
        risk="rounding",
        effort="a few lines",
        addresses=("launch-bound", "compute-bound"),
        setting="torch.compile",
        predict=_compile,
        takes=values.one_of("default", "reduce-overhead", "max-autotune", "regional", default="default"),
        popular=True,
    ),
    Fix(
        code="fused",
        summary="the optimizer's step in one kernel for many parameters",
        risk="rounding",
        effort="a flag",
        addresses=("optimizer-bound", "launch-bound"),
        setting="optimizer.fused",
        predict=_fused,
        value=lambda known: True,
        takes=values.ONLY_ON,
    ),
    Fix(
        code="set-to-none",
        summary="gradients are dropped instead of filled with zeros",
        risk="exact",
        effort="a flag",
        addresses=("optimizer-bound",),
        predict=_set_to_none,
        saves=lambda known: True,
        takes=values.ONLY_ON,
    ),
)
