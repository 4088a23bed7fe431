"""Copies to the GPU: faster ones, and ones that the step does not wait for."""

from __future__ import annotations

from floorit.analyse.stepmodel import Change, gain
from floorit.fixes import values
from floorit.fixes.fix import CLAIMED, NO_LOADER, Fix, Known
from floorit.stats import Estimate, seconds

# Of the time of a pageable copy, that a pinned one takes: 15 and 51 GiB/s on an H200 (measured, torch 2.11).
_PINNED = 15 / 51


def _copied(known: Known) -> str | None:
    """Why copies do not matter, if they do not."""
    if known.unseen:
        return known.unseen
    needs = known.needs
    spent = max(needs.host.get("h2d", 0.0), needs.copies_alone)
    if spent > (CLAIMED - 1) * needs.step:
        return None
    return f"copies to the GPU take {seconds(spent)} of a step of {seconds(needs.step)}"


def _pin(known: Known) -> Estimate | str:
    if known.workers is None:
        return NO_LOADER
    if known.unseen:
        return known.unseen
    if known.workers.pinned or known.setting("pin_memory") is True:
        return "batches are pinned already"
    return _copied(known) or gain(known.needs, Change(transfers=_PINNED))


def _beside(known: Known) -> Change:
    """Copies run while the GPU computes: neither takes less time for that, so a step is as long as the longer."""
    needs = known.needs
    copying = max(needs.host.get("h2d", 0.0), needs.copies_alone)
    hidden = min(copying, max(needs.within - copying, 0.0))
    return Change(transfers=1 - hidden / copying if copying else 1.0)


def _async_copy(known: Known) -> Estimate | str:
    if known.workers is not None and not known.workers.pinned and known.on_gpu:
        return "a copy from pageable memory waits whatever it is told: pin first"
    return _copied(known) or gain(known.needs, _beside(known))


def _device_prefetch(known: Known) -> Estimate | str:
    return _copied(known) or gain(known.needs, _beside(known))


FIXES = (
    Fix(
        code="pin",
        summary="batches lie in pinned memory, from which the GPU copies faster",
        risk="exact",
        effort="a flag",
        addresses=("transfer-bound",),
        setting="pin_memory",
        predict=_pin,
        change=lambda known, _: known.unseen or Change(transfers=_PINNED),
        value=lambda known: True,
        takes=values.SWITCH_ON,
        popular=True,
    ),
    Fix(
        code="async-copy",
        summary="copies to the GPU are not waited for (non_blocking)",
        risk="exact",
        effort="a few lines",
        addresses=("transfer-bound",),
        predict=_async_copy,
        change=lambda known, _: known.unseen or _beside(known),
        takes=values.ONLY_ON,
    ),
    Fix(
        code="device-prefetch",
        summary="the next batch is copied on a stream of its own while the GPU computes",
        risk="exact",
        effort="a few lines",
        addresses=("transfer-bound",),
        predict=_device_prefetch,
        change=lambda known, _: known.unseen or _beside(known),
        takes=values.ONLY_ON,
    ),
)
