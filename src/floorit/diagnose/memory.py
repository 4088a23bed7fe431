"""Out of memory, on the GPU or the host: what there was, and what would make it fit."""

from __future__ import annotations

from floorit.analyse.footprint import EIGHT_BITS
from floorit.analyse.memory import OutOfMemory
from floorit.diagnose import Finding, FixAdvice
from floorit.diagnose.thresholds import FRAGMENTED, MOSTLY_STATE, MUCH_ROOM, OTHERS_HOLD

CODE = "out-of-memory"
# code -> (risk, effort, how it is said)
REMEDIES = {
    "allocator-expandable": (
        "exact",
        "a flag",
        "PYTORCH_ALLOC_CONF=expandable_segments:True, as free memory is in pieces",
    ),
    "batch-size": ("training", "a flag", "a smaller batch"),
    "accumulate": ("rounding", "a few lines", "the batch in parts, with gradients accumulated"),
    "amp": ("rounding", "a few lines", "mixed precision, for activations of half the size"),
    "recompute": ("exact", "a few lines", "activations computed again in backward (torch.utils.checkpoint)"),
    "optimizer-8bit": ("training", "a few lines", "optimizer state of 8 bits"),
    "workers": ("order", "a flag", "fewer loader workers"),
    "prefetch": ("exact", "a flag", "a smaller prefetch_factor"),
    "cache": ("exact", "a few lines", "less data kept in memory, on disk instead"),
    "shared-memory": ("exact", "a flag", "a larger /dev/shm (docker run --shm-size, --ipc=host)"),
}
_MIB, _GIB = 1 << 20, 1 << 30


def find(out: OutOfMemory | None) -> list[Finding]:
    """One finding, if memory ran out."""
    if out is None:
        return []
    remedies = _remedies(out)
    how = "; ".join(REMEDIES[code][2] for code in remedies)
    return [
        Finding(
            code=CODE,
            title=out.what if out.ended else f"{out.what}, and the program went on",
            share=None,
            bound=None,
            evidence=[
                *_evidence(out),
                *([f"what would make it fit, most relevant first: {how}"] if remedies else []),
            ],
            where=[out.place] if out.place else [],
            fixes=[_advice(code, out) for code in remedies],
        )
    ]


def _advice(code: str, out: OutOfMemory) -> FixAdvice:
    risk, effort, summary = REMEDIES[code]
    memory = -_of_state(out) if code == "optimizer-8bit" else None
    return FixAdvice(code=code, summary=summary, risk=risk, effort=effort, speedup=None, memory=memory)


def _of_state(out: OutOfMemory) -> int:
    """Bytes that an optimizer's state of 8 bits would save."""
    single = sum(held.dtypes.get("float32", 0) for held in out.held if held.what == "optimizer state")
    return round(single * (1 - EIGHT_BITS))


def _evidence(out: OutOfMemory) -> list[str]:
    said = [_situation(out)]
    if out.where == "gpu":
        said += _gpu(out)
    else:
        said += _host(out)
    held = ", ".join(f"{h.what} {_size(h.bytes)} ({', '.join(h.dtypes)})" for h in out.held if h.bytes >= _MIB)
    if held and out.where == "gpu" and out.allocated is not None:
        rest = max(out.allocated - sum(h.bytes for h in out.held), 0)
        said.append(f"of what tensors had: {held}, activations and the rest {_size(rest)}")
    elif held:
        said.append(f"of what tensors had: {held}")
    return [line for line in said if line]


def _situation(out: OutOfMemory) -> str:
    """What was asked for, and when."""
    parts = [f"{_size(out.asked)} were asked for" if out.asked is not None else ""]
    parts.append(f"in phase {out.phase}" if out.phase else "")
    parts.append(f"with {out.batch} samples in the batch" if out.batch else "")
    parts.append(f"model called with {', '.join(out.inputs)}" if out.inputs else "")
    parts.append(f"{out.times} times in all" if out.times > 1 else "")
    return ", ".join(filter(None, parts))


def _gpu(out: OutOfMemory) -> list[str]:
    said = []
    if out.total is not None and out.free is not None:
        parts = [f"{_size(out.free)} of {_size(out.total)} were free"]
        parts.append(f"tensors had {_size(out.allocated)}" if out.allocated is not None else "")
        parts.append(f"torch's allocator held {_size(out.reserved)}" if out.reserved is not None else "")
        parts.append(f"other processes and CUDA itself {_size(out.others)}" if out.others is not None else "")
        said.append(", ".join(filter(None, parts)))
    if _is_fragmented(out) and out.split is not None:
        said.append(f"{_size(out.split)} were free in pieces of blocks in use (fragmentation)")
    if has_room(out):
        said.append("the GPU had room for that: a limit on this process (ulimit -a) may have kept CUDA from using it")
    if out.others is not None and out.on_device and out.others > OTHERS_HOLD * out.on_device:
        said.append("something else uses much of this GPU: see nvidia-smi")
    return said


def _host(out: OutOfMemory) -> list[str]:
    room, said = out.headroom, []
    if out.limit is not None:
        said.append(f"each process may have {_size(out.limit)} of addresses (ulimit -v)")
    if room is None:
        return said
    if out.where == "shared" and room.shared_size is not None and room.shared_free_least is not None:
        said.append(f"/dev/shm has {_size(room.shared_size)}; {_size(room.shared_free_least)} free at the least seen")
    elif room.memory is not None and room.available_least is not None:
        said.append(f"of {_size(room.memory)} on the machine {_size(room.available_least)} available at the least seen")
    held = [
        f"{_size(size)} by {who}"
        for who, size in (("what trains", room.training_most), ("its loader workers", room.workers_most))
        if size is not None
    ]
    if held:
        said.append(f"at most seen in use: {', '.join(held)}")
    if room.kills:
        said.append(f"kills for lack of memory that the kernel counted meanwhile: {room.kills}")
    return said


def _remedies(out: OutOfMemory) -> list[str]:
    if out.where != "gpu":
        loading = (["workers"] if out.workers else []) + (["prefetch"] if (out.prefetch or 0) > 1 else [])
        in_loader = out.where == "shared" or out.place is None or out.phase == "data_wait"
        first = ["shared-memory"] if out.where == "shared" else []
        batch = ["batch-size"] if out.batch not in (None, 1) else []
        cache = ["cache"] if out.where == "host" else []
        return first + loading + cache + batch if in_loader or not batch else batch + cache + loading
    if has_room(out):
        return []
    activations = [
        *(["batch-size", "accumulate"] if out.batch != 1 else []),
        *(["amp"] if not out.autocast and _is_single(out) else []),
        *(["recompute"] if not out.recomputes else []),
    ]
    state = ["optimizer-8bit"] if any(h.what == "optimizer state" for h in out.held) else []
    pieces = ["allocator-expandable"] if _is_fragmented(out) and not out.expandable else []
    known = sum(h.bytes for h in out.held)
    mostly_state = out.allocated is not None and known > MOSTLY_STATE * out.allocated
    return pieces + (state + activations if mostly_state else activations + state)


def has_room(out: OutOfMemory) -> bool:
    """Whether the GPU had far more than was asked for, in one piece: what the allocator asks for it asks of CUDA."""
    return out.asked is not None and out.free is not None and out.free > MUCH_ROOM * out.asked


def _is_fragmented(out: OutOfMemory) -> bool:
    """Whether what was asked for would have fitted into what lay in pieces, and that is a good part of all."""
    split = out.split
    if split is None and out.reserved is not None and out.allocated is not None:
        split = out.reserved - out.allocated
    if split is None or out.asked is None or not out.total:
        return False
    return split >= out.asked and split > FRAGMENTED * out.total


def _is_single(out: OutOfMemory) -> bool:
    """Whether the parameters are of single precision, as far as is known."""
    return all("float32" in h.dtypes for h in out.held if h.what == "parameters")


def _size(size: int | None) -> str:
    if size is None:
        return "an unknown amount"
    value, unit = (size / _GIB, "GiB") if size >= _GIB / 10 else (size / _MIB, "MiB")
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
