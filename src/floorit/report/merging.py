"""A record read one file at a time: the first rank that trained is kept whole, of the others what the report needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from floorit.events import Process, RecordReader
from floorit.report.trained import Merged, Peer, Trained, examine, peer, used_cuda

TOGETHER = 32  # files that are read by one process before it answers: what is learnt of one helps with the next

# `map`, or what does the same with several processes.
Spread = Callable[[Callable[[list[Path]], "list[Read]"], Iterable[list[Path]]], Iterable["list[Read]"]]


class Read(NamedTuple):
    """What is left of a file that was read."""

    path: Path
    process: Process  # all that grows with the steps is gone
    peer: Peer | None  # None: it did not train
    used_cuda: bool


def merge(reader: RecordReader, warmup: int | None = None, spread: Spread = map) -> Merged:
    """Read a record's files one by one into a reader that keeps the first rank whole."""
    files = reader.files()
    first, seen = None, 0
    while first is None and seen < len(files):
        first = _examined(reader.read_file(files[seen]), warmup)
        seen += 1
    whole = reader.run()
    if first is not None and reader.workers_file(first.process) in files:
        reader.read_file(reader.workers_file(first.process))
    left = [path for path in files[seen:] if path not in reader.workers]
    groups = [left[at : at + TOGETHER] for at in range(0, len(left), TOGETHER)]
    peers, on_gpu = [peer(first)] if first is not None else [], sum(map(used_cuda, whole))
    for read in chain.from_iterable(spread(partial(_read, reader.folder, warmup), groups)):
        reader.keep(read.path, read.process)
        peers += [read.peer] if read.peer is not None else []
        on_gpu += read.used_cuda
    return Merged(first=first, peers=peers, on_gpu=on_gpu)


def _read(folder: Path, warmup: int | None, paths: list[Path]) -> list[Read]:
    """Some files, one after the other."""
    quick, whole = RecordReader(folder, lines=False), RecordReader(folder)
    return [_summed_up(path, quick, whole, warmup) for path in paths]


def _examined(process: Process, warmup: int | None) -> Trained | None:
    return examine(process, warmup) if process.facts else None  # else it has not even told its name


def _summed_up(path: Path, quick: RecordReader, whole: RecordReader, warmup: int | None) -> Read:
    process = quick.read_file(path)
    trained = _examined(process, warmup)
    if trained is not None and not trained.ledger.looks.get("other"):  # then lines say whose that time is
        process.let_go()
        process = whole.read_file(path)
        trained = _examined(process, warmup)
    known = peer(trained) if trained is not None else None
    read = Read(path, process, known, bool(process.facts) and used_cuda(process))
    if not process.memory_errors:  # of which it is told in which step they were
        process.let_go()
    return read
