"""What a GPU's power says of its work."""

import pytest

from floorit.analyse.gpu import Gpu
from floorit.report import sentences


@pytest.mark.parametrize(
    ("watts", "limit", "busy", "says"),
    [
        (100.0, 575.0, 0.34, "which is little, as it has nothing to do for 66% of a step"),  # the fourth write-up's
        (100.0, 575.0, 0.97, "which is little for one that is busy: its kernels are small, or move memory"),
        (100.0, 575.0, None, None),
        (400.0, 575.0, 0.9, None),
        (560.0, 575.0, 0.9, "which is all it may draw: its clock gives way"),
        (100.0, None, 0.34, None),
        (None, None, 0.34, None),
    ],
)
def test_power_is_explained(watts: float | None, limit: float | None, busy: float | None, says: str | None) -> None:
    gpu = Gpu(steps=3, step_seconds=0.1, busy_share=busy, idle=[], power_watts=watts, power_limit_watts=limit)
    parts = [part for part in sentences.of_gpu(gpu) if part.startswith("which is")]
    assert parts == ([says] if says else [])
