"""In which type of number the GPU computed: its kernels' time by the inputs of the operators that asked for them."""

from __future__ import annotations

from collections import Counter

import msgspec

from floorit.analyse.kernels import kind_of
from floorit.analyse.trace import Trace

OTHER = "other"  # integers, lists of tensors (optimizers), what no operator asked for
# C++'s names of types, as operators have them.
_TYPES = {"float": "float32", "double": "float64", "c10::BFloat16": "bfloat16", "c10::Half": "float16"}
_NO_ARITHMETIC = ("communication", "copies")


class TypeShare(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels of one type of number."""

    dtype: str
    share: float  # of the time of all kernels that compute


def shares(trace: Trace) -> list[TypeShare]:
    """By type, the largest first. An operator's type is that of its first input of a floating type."""
    spent = Counter[str]()
    work = trace.work
    computes = [kind_of(name) not in _NO_ARITHMETIC for name in work.names]
    lengths = (work.end - work.begin).tolist()
    for name, number, length in zip(work.name.tolist(), work.operator.tolist(), lengths, strict=True):
        if computes[name]:
            spent[_type(trace.inputs.get(number, ()))] += length
    total = spent.total()
    return [TypeShare(dtype=dtype, share=length / total) for dtype, length in spent.most_common() if length]


def _type(inputs: tuple[str, ...]) -> str:
    floating = (_TYPES.get(name) or ("float8" if "Float8" in name else None) for name in inputs)
    return next(filter(None, floating), OTHER)
