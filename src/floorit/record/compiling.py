"""What torch.compile has done so far."""

import sys


def compilations():
    """How many frames and graphs torch.compile has compiled so far; with fullgraph=True it counts no frames."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    if not counters:
        return 0
    return counters.get("frames", {}).get("total", 0) + counters.get("stats", {}).get("unique_graphs", 0)
