"""What a kernel does, by its name."""

from __future__ import annotations

import re

# The first row that matches says the kind. Names as cuBLAS, cuDNN, CUTLASS, Triton, NCCL and torch itself give them.
KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("communication", r"nccl"),
        ("copies", r"^memcpy|^memset"),
        ("optimizer", r"multi_tensor_apply|adam|\bsgd|lamb_|adagrad|rmsprop"),
        ("attention", r"flash|fmha|sdpa|attention|mha_"),
        ("normalisation", r"batch_?norm|layer_?norm|rms_?norm|group_?norm|instance_?norm|RowwiseMoments|bn_[fb]w"),
        ("convolution", r"conv|implicit|winograd|wgrad|dgrad|fprop|cudnn|im2col|col2im"),
        ("matrix", r"gemm|gemv|cutlass|cublas|nvjet|xmma|s1688|s884|hmma|16816|split_?k|matmul|triton_(?:mm|tem)"),
        ("elementwise", r"elementwise|vectorized|reduce|softmax|cat_?array|fill|index|scatter|gather|triton_"),
    )
)
OTHER = "other"
# Names of instructions and of kernels that use tensor cores. An estimate: a name need not say it.
TENSOR = re.compile(r"[hgi]mma|16816|1688|[sh]884|tensorop|nvjet|flash|fmha|bf16|tf32", re.IGNORECASE)
HOST_TO_DEVICE = re.compile(r"^memcpy htod", re.IGNORECASE)
PAGEABLE = re.compile(r"pageable", re.IGNORECASE)


def kind_of(name: str) -> str:
    """Which kind of work a kernel, a copy or a fill is."""
    return next((kind for kind, pattern in KINDS if pattern.search(name)), OTHER)


def uses_tensor_cores(name: str) -> bool:
    """Whether its name says that it runs on tensor cores."""
    return kind_of(name) in ("matrix", "convolution", "attention") and TENSOR.search(name) is not None
