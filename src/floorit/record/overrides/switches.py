"""Switches of torch's that hold for the whole process: set once, and kept from being set otherwise.

They are set by functions written in C, which torch's own Python calls by name, or keeps in a ContextProp.
"""

import functools

from .held import hold

CODES = ("tf32", "cudnn-benchmark", "deterministic", "anomaly")
# `precision` of a product or convolution, by whether TF32 is wanted: in the old names, in the new ones.
_PRECISION = {True: ("high", "tf32"), False: ("highest", "ieee")}
_OF_PRODUCTS = ("matmul", "conv", "all")
_NO_CUDA = "the program did not use CUDA"


def install(session, asked):
    for code, applied in asked.items():
        _INSTALL[code](session, applied)


def _tf32(session, applied):
    c, wanted = session.torch._C, bool(applied.value)
    word, precision = _PRECISION[wanted]
    hold(session, applied, c, "_set_cublas_allow_tf32", wanted)(wanted)
    _hold_cudnn(session, applied, "allow_tf32", wanted)
    hold(session, applied, c, "_set_float32_matmul_precision", word)
    if hasattr(c, "_set_fp32_precision_setter"):  # torch 2.9 and later
        _hold_precision(session, applied, c, precision)
    _count_once_on_cuda(session, applied)


def _hold_precision(session, applied, c, wanted):
    setter = c._set_fp32_precision_setter

    @functools.wraps(setter)
    def held(backend, operation, precision):
        if backend != "cuda" or operation not in _OF_PRODUCTS:
            return setter(backend, operation, precision)
        if precision != wanted:
            applied.opposed_here(precision)
        return setter(backend, operation, wanted)

    session.patches.replace(c, "_set_fp32_precision_setter", held)


def _cudnn_benchmark(session, applied):
    _hold_cudnn(session, applied, "benchmark", bool(applied.value))
    _count_once_on_cuda(session, applied)


def _count_once_on_cuda(session, applied):
    applied.unmet(_NO_CUDA)
    session.on_cuda.append(applied.act)


def _deterministic(session, applied):
    """In force once the program asks for what it does not get."""
    wanted = bool(applied.value)
    _hold_cudnn(session, applied, "deterministic", wanted, opposed=applied.overrule)
    hold(session, applied, session.torch._C, "_set_deterministic_algorithms", wanted, opposed=applied.overrule)(wanted)


def _anomaly(session, applied):
    hold(session, applied, session.torch, "set_anomaly_enabled", False, opposed=applied.overrule)


def _hold_cudnn(session, applied, name, wanted, **more):
    """Both ways in which torch sets a flag of cuDNN: by name, and as an attribute of torch.backends.cudnn."""
    prop = vars(type(session.torch.backends.cudnn))[name]
    hold(session, applied, prop, "setter", wanted, **more)
    hold(session, applied, session.torch._C, "_set_cudnn_" + name, wanted, **more)(wanted)


_INSTALL = {"tf32": _tf32, "cudnn-benchmark": _cudnn_benchmark, "deterministic": _deterministic, "anomaly": _anomaly}
