"""How fast a device multiplies large matrices and copies memory: a script of its own, for the program's interpreter.

The best of a few repetitions at several sizes, because it is a limit. The standard library and torch, nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

# Rows of the square matrices, and bytes that are copied, by the device's type: the largest are beyond any cache.
SIZES = {"cuda": (4096, 8192, 16384), "cpu": (512, 1024, 2048)}
COPIES = {"cuda": (2**28, 2**30), "cpu": (2**26, 2**28)}
REPETITIONS = 10
SECONDS = 0.3  # for each precision and size, at most, but for the first repetition: libraries load their kernels in it
AT_ONCE = {"cuda": 4, "cpu": 1}  # calls that are timed together: a launch takes a few microseconds of the GPU's time


def rate(torch: Any, device: str, precisions: list[str]) -> dict[str, Any]:
    """Operations a second by precision, and bytes a second; what does not fit or does not exist is left out."""
    seconds = _Timer(torch, device)
    found = {precision: _product(torch, device, precision, seconds) for precision in precisions}
    return {"flops": {p: r for p, r in found.items() if r is not None}, "bandwidth": _copy(torch, device, seconds)}


class _Timer:
    """The shortest time that a call takes on a device."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._kind = device.partition(":")[0]
        self._times = AT_ONCE[self._kind]

    def __call__(self, call: Callable[[], object]) -> float:
        deadline = time.perf_counter() + SECONDS
        best = self._once(call)
        for _ in range(REPETITIONS):
            if time.perf_counter() > deadline:
                break
            best = min(best, self._once(call))
        return best

    def _once(self, call: Callable[[], object]) -> float:
        if self._kind == "cpu":
            began = time.perf_counter()
            call()
            return time.perf_counter() - began
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(self._times):
            call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 / self._times


def _product(torch: Any, device: str, precision: str, seconds: _Timer) -> float | None:
    name = "float32" if precision == "tf32" else precision
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    best = None
    try:
        dtype = getattr(torch, name)
        for size in SIZES[device.partition(":")[0]]:
            one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
            result = torch.empty_like(one)
            taken = seconds(partial(torch.mm, one, other, out=result))
            best = max(best or 0.0, 2 * size**3 / taken)
            if taken * 8 > SECONDS:  # what twice the size takes
                break
    except (RuntimeError, TypeError, AttributeError):
        pass  # memory is short, or there is no such product
    finally:
        torch.set_float32_matmul_precision(before)
    return best


def _copy(torch: Any, device: str, seconds: _Timer) -> float | None:
    best = None
    try:
        for size in COPIES[device.partition(":")[0]]:
            source = torch.ones(size, dtype=torch.uint8, device=device)
            target = torch.empty_like(source)
            taken = seconds(partial(target.copy_, source))
            best = max(best or 0.0, 2 * size / taken)  # each byte is read and written
    except RuntimeError:
        pass
    return best


def _find(torch: Any, device: str, name: str | None) -> str:
    """The device of that name: the program may have numbered them otherwise."""
    if name is None:
        return device
    devices = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    found = [each for each in devices if torch.cuda.get_device_properties(each).name == name]
    if not found:
        sys.exit(f"there is no {name} here")
    return device if device in found else found[0]


def _main() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]  # its names are not torch's
    import torch

    asked = json.loads(sys.argv[1])
    device = _find(torch, asked["device"], asked["name"])
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    print(json.dumps(rate(torch, device, asked["precisions"])))


if __name__ == "__main__":
    _main()
