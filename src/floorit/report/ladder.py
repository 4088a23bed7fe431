"""The floor's ladder, and what of it is not known: from the run as it was and the one without its data path."""

from __future__ import annotations

from pathlib import Path

from floorit.analyse import floor, gpu, limit
from floorit.analyse.needs import Needs
from floorit.events import open_record
from floorit.record import wire
from floorit.report import merging, windows
from floorit.report.model import NO_CUDA, PHYSICAL, Missing
from floorit.report.trained import Trained, used_cuda
from floorit.runfile import FLOOR, RECORD, FloorRun, RunFile


def second_run(folder: Path, ended: FloorRun | None) -> Trained | str | None:
    """What the run without the data path did, or why it says nothing; None: it was not wished for."""
    if ended is None:
        return None
    if ended.reason is not None:
        return ended.reason
    reader = open_record(folder / FLOOR / RECORD)
    trained = merging.merge(reader).first
    if trained is None:
        return "no step was seen in it"
    failed = next((m["reason"] for p in reader.run() for m in p.missing if m["what"] == wire.DATA_REPLAY), None)
    return failed or trained


def of_floor(
    first: Trained,
    watched: gpu.Gpu | None,
    second: Trained | str | None,
    folder: Path,
    run: RunFile,
    lowest: limit.Limit | None,
    *,
    has_loader: bool,
    of_ranks: float | None = None,
    needs: Needs,
) -> tuple[floor.Floor | None, list[Missing]]:
    """The ladder, and what of it is not known."""
    if not has_loader:
        reason = "the batches do not come from a DataLoader of torch's: what they cost is unknown"
        return None, [Missing(what="floor", reason=reason)]
    if second is None:
        reason = "it is an estimate from the ledger: `floorit run --floor` measures it"
        estimate = floor.ladder(first.ledger, watched, None, None, of_ranks=of_ranks, needs=needs)
        return estimate, [Missing(what="floor: without data", reason=reason)]
    if isinstance(second, str):
        estimate = floor.ladder(first.ledger, watched, None, None, of_ranks=of_ranks, needs=needs)
        return estimate, [Missing(what="the floor run", reason=second)]
    again, _ = windows.of_gpu(second, windows.of_kernels(second, folder / FLOOR / RECORD, run), None)
    return floor.ladder(first.ledger, watched, second.ledger, again, lowest), []


def of_limit(
    first: Trained, second: Trained | str | None, ended: FloorRun | None, work: limit.Work | None
) -> tuple[limit.Limit | None, list[Missing]]:
    """The physical limit, and what of it is not known."""

    def unknown(reason: str) -> tuple[None, list[Missing]]:
        return None, [Missing(what=what, reason=reason) for what in PHYSICAL]

    if not used_cuda(first.process):
        return unknown(NO_CUDA)
    if second is None or ended is None:
        return unknown("it takes a floor run: `floorit run --floor`")
    if isinstance(second, str):
        return unknown("there is no floor run")
    if work is None:
        said = (m["reason"] for m in second.process.missing if m["what"] == wire.FLOPS)
        return unknown(next(said, "no whole step of the floor run was counted"))
    if not work.is_on_gpu:
        return unknown("what it computes, it computes on the CPU")
    if ended.rates is None:
        return unknown(ended.no_rates or "the GPU's rates were not measured")
    found = limit.find(work, ended.rates)
    if isinstance(found, str):
        return unknown(found)
    unseen = f"these operations are not in it: {', '.join(work.unseen)}"
    return found, [Missing(what="floor: all of the physical limit", reason=unseen)] if work.unseen else []
