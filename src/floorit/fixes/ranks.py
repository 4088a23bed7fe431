"""What ranks spend on each other."""

from __future__ import annotations

from floorit.fixes import values
from floorit.fixes.fix import CLAIMED, Fix, Known
from floorit.stats import Estimate

_LARGEST = 1 << 16  # MiB of a bucket: more than the gradients that a GPU holds


def _of_ddp(known: Known, setting: str) -> Estimate | str:
    """At best it takes away what the ranks are seen to wait for each other; nothing of that is sure."""
    if known.ranks < 2:
        return "there is one rank"
    if known.setting(setting) is None:
        return "gradients are not reduced by DDP"
    if known.setting(setting) is True:
        return f"{setting} is on already"
    most = 1 / (1 - min(known.shares.get("comm-bound", 0.0), 0.99))
    if most <= CLAIMED:
        return "the ranks are not seen to wait for each other"
    return Estimate(value=most**0.5, low=1.0, high=most, n=known.needs.n)


def _bucket_mb(known: Known) -> Estimate | str:
    if known.ranks < 2:
        return "there is one rank"
    return "which size is best is not known before it is tried"


FIXES = (
    Fix(
        code="static-graph",
        summary="DDP is told that every step uses the same parameters",
        risk="exact",
        effort="a flag",
        addresses=("comm-bound",),
        predict=lambda known: _of_ddp(known, "ddp.static_graph"),
        value=lambda known: True,
        takes=values.ONLY_ON,
    ),
    Fix(
        code="bucket-view",
        summary="gradients are views of DDP's buckets: one copy less",
        risk="exact",
        effort="a flag",
        addresses=("comm-bound",),
        predict=lambda known: _of_ddp(known, "ddp.gradient_as_bucket_view"),
        value=lambda known: True,
        saves=lambda known: True if known.setting("ddp.gradient_as_bucket_view") is False else None,
        takes=values.ONLY_ON,
    ),
    Fix(
        code="bucket-mb",
        summary="DDP reduces gradients in buckets of another size",
        risk="rounding",
        effort="a flag",
        addresses=("comm-bound",),
        setting="ddp.bucket_cap_mb",
        predict=_bucket_mb,
        takes=values.whole(1, _LARGEST),
    ),
)
