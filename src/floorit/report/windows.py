"""What the windows saw, and what of it is not known: the GPU's time, the model's parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from floorit.analyse import footprint, gpu, limit, machine, parts, syncs, timeline, trace
from floorit.events import Process
from floorit.report.model import NO_CUDA, Missing
from floorit.report.trained import Trained, batch, used_cuda
from floorit.runfile import RunFile
from floorit.stats import seconds

_UNNAMED = 0.01  # of a step: calls that block for longer and have no line are said to be missing


class Kernels(msgspec.Struct, frozen=True):
    """What the kernel window saw."""

    gpu: gpu.Gpu | str  # or why nothing
    blocked: syncs.Watched = syncs.Watched()


def of_kernels(trained: Trained, folder: Path, run: RunFile) -> Kernels:
    """The GPU's work, and where the host waited for it."""
    window = trained.process.window or {}
    seen = _seen(trained, trained.process.window, "kernel window", folder, run)
    if isinstance(seen, str):
        return Kernels(seen)
    found = gpu.examine(trained.process, trained.iterations, window, seen)
    if isinstance(found, str):
        return Kernels(found)
    return Kernels(found, syncs.watched(trained.process, trained.iterations, window, seen))


def of_gpu(trained: Trained, kernels: Kernels, vital: machine.Machine | None) -> tuple[gpu.Gpu | None, list[Missing]]:
    """The GPU's own time and power; what of it is not known, and why."""
    process = trained.process
    if not used_cuda(process):
        return None, [Missing(what="gpu", reason=NO_CUDA)]
    found, said = kernels.gpu, _unnamed(kernels)
    if isinstance(found, str):
        said.append(Missing(what="gpu.busy_share", reason=found))
        found = gpu.Gpu()
    use = vital.gpu if vital is not None else None
    if use is None or use.power_watts is None:
        said.append(Missing(what="gpu.power_watts", reason="no sample of the GPU's power was taken while it trained"))
    drawn = use.power_watts.value if use is not None and use.power_watts is not None else None
    limit = use.power_limit_watts if use is not None else None
    known = {"memory_peak": process.memory_peak, "power_watts": drawn, "power_limit_watts": limit}
    return msgspec.structs.replace(found, waits=kernels.blocked.seconds, **known), said


def _unnamed(kernels: Kernels) -> list[Missing]:
    """Calls that block for longer than is worth a word, of which no line is known."""
    blocked, step = kernels.blocked, kernels.gpu.step_seconds if isinstance(kernels.gpu, gpu.Gpu) else None
    if step is None or blocked.unnamed_seconds < _UNNAMED * step:
        return []
    said = (
        f"{blocked.unnamed:.3g} more calls a step block, for {seconds(blocked.unnamed_seconds)},"
        " each too short to be found by a look at the stack"
    )
    return [Missing(what="syncs", reason=said)]


def of_parts(trained: Trained, folder: Path, run: RunFile) -> tuple[parts.Parts | None, list[Missing]]:
    """What the parts of the model cost; what of it is not known, and why."""
    window = trained.process.parts
    found: parts.Parts | str | trace.Trace = _seen(trained, window, "window of the model's parts", folder, run)
    if isinstance(found, trace.Trace):
        calls = _calls(trained.process, folder)
        found = parts.examine(trained.process, trained.iterations, window or {}, found, trained.ledger, calls)
    if isinstance(found, str):
        return None, [Missing(what="parts", reason=found)]
    said = []
    if not found.on_gpu:
        reason = "torch counts the memory of tensors on a GPU only"
        said.append(Missing(what="parts.activation_bytes", reason=reason))
    uncalled = [part.name for part in found.parts if part.forward_seconds is None]
    if uncalled:
        reason = f"no call of {', '.join(uncalled)} was seen: what it does, if anything, is in the rest"
        said.append(Missing(what="parts", reason=reason))
    if found.left_out:
        reason = f"the model has too many: {found.left_out} with few parameters are in the rest"
        said.append(Missing(what="parts", reason=reason))
    return found, said


class _Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The file of the window of memory on a CPU: bytes by part, of each backward pass."""

    passes: list[list[tuple[int, int]]]
    reason: str | None


def of_memory(
    trained: Trained, folder: Path, run: RunFile, vital: machine.Machine | None, total: int | None, ranks: int
) -> tuple[footprint.Memory | None, list[Missing]]:
    """What memory is for; what of it is not known, and why."""
    process, window = trained.process, trained.process.allocations
    reason = _unseen(trained, window, "window of memory", run)
    if window is None and process.window is not None:
        reason = "the record is of an earlier version, which did not follow it"
    if reason is not None or window is None:
        return None, [Missing(what="memory", reason=reason or "")]
    try:
        written = (folder / Path(window["file"]).name).read_bytes()
        if window["on_gpu"]:
            actions = msgspec.json.decode(written, type=timeline.Actions)
            found = footprint.on_gpu(process, trained.iterations, window, actions, batch(trained), total, vital)
            return (None, [Missing(what="memory", reason=found)]) if isinstance(found, str) else _besides(found, vital)
        saved = msgspec.json.decode(written, type=_Saved)
    except (OSError, ValueError) as error:
        return None, [Missing(what="memory", reason=f"what the window of memory saw cannot be read: {error}")]
    if ranks > 1:
        return None, [Missing(what="memory", reason="of several ranks on a CPU, only all of them together are read")]
    held = footprint.on_host(process, window, saved.passes, batch(trained), run.headroom)
    if isinstance(held, str):
        return None, [Missing(what="memory", reason=held)]
    said = [Missing(what="memory.predicted", reason="of a process on a CPU only the memory of its tensors is known")]
    if not saved.passes:
        none = saved.reason or "no backward pass was seen in the watched steps"
        said.append(Missing(what="memory.activations", reason=none))
    return held, said


def _besides(found: footprint.Memory, vital: machine.Machine | None) -> tuple[footprint.Memory, list[Missing]]:
    """The same, with what of the GPU's memory is not known."""
    if found.not_torch is not None:
        return found, []
    others = vital.gpu_others if vital is not None else None
    why = "other programs use the same GPU" if others else "what the GPU had in use was not read while it trained"
    return found, [Missing(what="memory.not_torch", reason=why)]


def with_types(watched: gpu.Gpu | None, model: parts.Parts | None) -> tuple[gpu.Gpu | None, list[Missing]]:
    """The GPU's time with the types of number that its kernels computed in, which the parts' window tells."""
    if watched is None:
        return None, []
    if model is None or not model.dtypes:
        reason = "kernels' operators are known only where the model's parts were watched"
        return watched, [Missing(what="gpu.dtype_shares", reason=reason)]
    return msgspec.structs.replace(watched, dtype_shares=model.dtypes), []


def with_flops(model: parts.Parts | None, counted: limit.Work | None) -> list[parts.Part]:
    """The parts, with what each computes where that was counted."""
    if model is None:
        return []
    return model.parts if counted is None else parts.with_flops(model.parts, counted.by_module)


def how(found: parts.Parts) -> str:
    """How their seconds were found."""
    if found.on_gpu:
        return f"kernels of {found.steps} watched steps"
    return f"the host's time in {found.steps} watched steps, scaled to the ledger's passes"


def _calls(process: Process, folder: Path) -> list[parts.Call] | None:
    """Of the parts, timed without operators; None where there is a GPU to tell."""
    if process.calls is None or "file" not in process.calls:
        return None
    try:
        return msgspec.json.decode((folder / Path(process.calls["file"]).name).read_bytes(), type=list[parts.Call])
    except (OSError, ValueError):
        return None


def _seen(trained: Trained, window: dict[str, Any] | None, name: str, folder: Path, run: RunFile) -> trace.Trace | str:
    """The trace of a window, or why there is none."""
    reason = _unseen(trained, window, name, run)
    if reason is not None or window is None:
        return reason or ""
    try:
        return trace.parse((folder / Path(window["file"]).name).read_bytes())
    except (OSError, ValueError) as error:
        return f"the trace of the {name} cannot be read: {error}"


def _unseen(trained: Trained, window: dict[str, Any] | None, name: str, run: RunFile) -> str | None:
    """Why a window has left no file; None: it has."""
    if window is None and not run.window:
        return f"the {name} was switched off (--no-window)"
    if window is None and trained.iterations.slowed.any() and trained.process.ended is None:
        return f"the program was killed while the {name} was open"
    if window is None:
        return f"the program ended before the {name} could open: train longer"
    if "file" not in window:
        return f"there is no {name}: {window.get('reason')}"
    return None
