"""What happened, as recorded: the values a record is read into."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from floorit import packing
from floorit.errors import RecordError
from floorit.patterns import Patterns
from floorit.player import Player
from floorit.qualnames import qualname
from floorit.record import wire
from floorit.replay import Replay, Row
from floorit.tables import DEVICE_ROW, FETCH, NAMED_ROW, NANO, ROW, STRETCH, of_rows
from floorit.tables import Rows as Rows

AT_ONCE = 1 << 22  # bytes of a file that are read at once
_HEAD = 1 << 16  # bytes in which a process is expected to have told of itself
_OF_LINES = wire.note("lines")[-len('"lines"}') :]  # what notes of lines end with
_WORKERS = "workers-"  # what names of files begin with that loader workers share
PACKED = ".pack"  # what the name of the file ends with that has what is packed of another
# Notes that are kept as they come, and the list they are kept in.
_LISTED = {
    "syncs": "syncs",
    "received": "received",
    "traces": "traces",
    "missing": "missing",
    "switch": "switches",
    "config": "configs",
    "argument": "arguments",
    "in_force": "readings",
    "memory_error": "memory_errors",
    "shapes": "shapes",
    "operations": "operations",
    "override": "overrides",
    wire.FLOPS: "counts",
    "named": "named_elsewhere",
    wire.DRAINED: "drained",
}


class Place(msgspec.Struct, frozen=True):
    """A line of source, and whose it is."""

    file: str
    line: int
    function: str
    origin: str
    calls: tuple[str, ...] = ()  # names that the line uses, where a worker was seen at it

    @property
    def is_users(self) -> bool:
        """Whether it is in the program's own code."""
        return self.origin == "user"

    @property
    def is_library(self) -> bool:
        """Whether it is in a package that is installed, other than torch."""
        return self.origin == "library"


def _place(note: dict[str, Any]) -> Place:
    file, function = str(note["file"]), str(note["function"])
    if "first" in note:
        function = qualname(file, int(note["first"]), function)
    calls = tuple(map(str, note.get("calls", ())))
    return Place(file, int(note["line"]), function, str(note["origin"]), calls)


class Sample(msgspec.Struct, frozen=True):
    """One look at the stack, or time of which it is known from which line on it passed."""

    at: float
    phase: int
    iterator: int
    user: Place | None
    leaf: Place | None
    weight: float = 1.0
    stack: tuple[Place, ...] = ()  # lines of the user's and of libraries, innermost first; of torch's, checkpointing's


class Span(msgspec.Struct, frozen=True):
    """Time of the training thread in one phase, inside of the kernel window. Nanoseconds."""

    begin: int
    end: int
    phase: int
    place: Place | None


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """How much memory the machine had left while the program ran. Bytes; None: it could not be read."""

    memory: int | None = None  # that the machine has
    available_least: int | None = None  # that programs could have had without swapping
    shared_size: int | None = None  # of /dev/shm, through which workers hand batches on
    shared_free_least: int | None = None
    training_most: int | None = None  # resident in the processes that train
    workers_most: int | None = None  # resident in their loader workers; pages that several share count for each
    kills: int | None = None  # by the kernel for lack of memory, in our cgroup or on the machine


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a device was seen to do, by a measurement of floorit's own."""

    device: str  # its name
    torch: str
    date: str
    flops: dict[str, float]  # operations a second in a large product, by precision
    bandwidth: float  # bytes a second, read and written, in a large copy


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker of the loader used between two looks at it from outside."""

    pid: int
    begin: float  # seconds, on the record's clock
    end: float
    cpu: float  # seconds on a core
    waited: float  # seconds ready to run, for a core to be free
    read: int  # bytes read, from files and pipes
    from_disk: int  # bytes that came from storage
    cpu_of_all: float = 0.0  # seconds on a core of all its threads; `cpu` is of the one that makes batches
    threads: int = 0  # that it had at the last look; 0 in records that do not tell


class Process:
    """One process's record, as far as it has been read."""

    def __init__(self, patterns: Patterns | None = None) -> None:
        """`patterns` are what is known of sequences of events, of other processes too."""
        self.facts: dict[str, Any] = {}
        self.loaders: dict[int, dict[str, Any]] = {}
        self.iterators: dict[int, dict[str, Any]] = {}
        self.optimizers: dict[int, dict[str, Any]] = {}
        self.samples: list[Sample] = []
        self.syncs: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.traces: list[dict[str, Any]] = []
        self.missing: list[dict[str, str]] = []
        self.switches: list[dict[str, Any]] = []
        self.drained: list[dict[str, Any]] = []  # how fast its loader gave batches by itself
        self.configs: list[dict[str, Any]] = []  # configuration files that it read
        self.arguments: list[dict[str, Any]] = []  # that mean a setting
        self.readings: list[dict[str, Any]] = []  # of the settings in force
        self.counts: list[dict[str, Any]] = []  # in a floor run: what a few stretches compute and move
        self.shapes: list[dict[str, Any]] = []  # of the first batches of each loader
        self.operations: list[dict[str, Any]] = []  # on images, in the batches that were watched
        self.overrides: list[dict[str, Any]] = []  # what became of each, as it changed
        self.names: dict[int, dict[str, Any]] = {}  # that the program has given to stretches of its own
        self.named_elsewhere: list[dict[str, Any]] = []  # the same in workers and other threads, added up
        self.losses: list[float] | None = None  # of its backward passes, where they were asked for
        self.memory_errors: list[dict[str, Any]] = []  # each time that memory ran out
        self.ddp: dict[str, Any] | None = None
        self.ended: float | None = None
        self.stopped = False  # whether the recorder ended it, as --steps wishes
        self.window: dict[str, Any] | None = None  # where the trace of the kernel window is, or why there is none
        self.calls: dict[str, Any] | None = None  # the same for the times of calls of parts of the model
        self.parts: dict[str, Any] | None = None  # and for the trace in which they are marked, with their names
        self.spans: list[Span] = []
        self.replays_since: float | None = None  # in a floor run: when batches began to be repeated, of every loader
        self.allocations: dict[str, Any] | None = None  # where the pieces of memory are that steps took, or why nowhere
        self.memory_peak: int | None = None  # bytes that tensors had on the GPU
        self.memory: list[dict[str, Any]] = []  # the allocator's figures, as they grew
        self._patterns = patterns or Patterns()
        self._player: Player | None = None
        self._played: int | None = None  # numbers of the log
        self._places: dict[tuple[int, int], Place] = {}
        self._stacks: dict[tuple[int, int], tuple[Place, ...]] = {}
        self._parts: dict[str, list[Rows]] = {"rows": [], "device": [], "fetches": [], "named": [], "stretches": []}
        self.packed: packing.Stretch | None = None  # of which there is no log any more, all of it together

    @property
    def rows(self) -> Rows:
        """Stretches of the training thread, in order."""
        return self._table("rows", ROW)

    @property
    def device(self) -> Rows:
        """Device seconds of some rows."""
        return self._table("device", DEVICE_ROW)

    @property
    def named(self) -> Rows:
        """Stretches of the training thread that the program has named, by row and phase."""
        return self._table("named", NAMED_ROW)

    @property
    def fetches(self) -> Rows:
        """Batches made in this process."""
        return self._table("fetches", FETCH)

    @property
    def rank(self) -> int:
        """Its rank in the job; 0 where there is none."""
        return int(self.facts.get("rank") or 0)

    @property
    def key(self) -> tuple[str, int]:
        """Host and process number."""
        return str(self.facts.get("host")), int(self.facts.get("pid") or 0)

    def trained_iterators(self) -> list[int]:
        """Passes over data in which there was a backward pass."""
        rows = self.rows
        return [int(i) for i in np.unique(rows["iterator"][(rows["backwards"] > 0) & (rows["iterator"] > 0)])]

    def loaders_of(self, iterators: Iterable[int]) -> list[dict[str, Any]]:
        """The loaders that these passes go over, as far as they are known, each once."""
        numbers = dict.fromkeys(self.iterators[i]["loader"] for i in iterators if i in self.iterators)
        return [self.loaders[number] for number in numbers if number in self.loaders]

    def starts(self) -> NDArray[np.float64]:
        """When each row began: when the one before it ended."""
        ends = self.rows["end"]
        first = float(self.facts.get("started") or (ends[0] if len(ends) else 0.0))
        return np.concatenate([[first], ends[:-1]]) if len(ends) else np.zeros(0)

    def _table(self, name: str, dtype: np.dtype[Any]) -> Rows:
        parts = self._parts[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.zeros(0, dtype)

    @property
    def stretches(self) -> list[Sample]:
        """Time of the program's own code of which the line is known, weighed by seconds."""
        found = self._table("stretches", STRETCH)
        pid, columns = self.key[1], (found[name].tolist() for name in ("time", "nanoseconds", "place", "iterator"))
        return [
            Sample(time * NANO, wire.OTHER, iterator, place, place, nanoseconds * NANO)
            for time, nanoseconds, number, iterator in zip(*columns, strict=True)
            if nanoseconds > 0
            for place in (self._places.get((pid, number)),)
        ]

    def add(self, tag: bytes, payload: bytes) -> None:
        """Take in one frame, and play it."""
        self.take(tag, payload)
        self.play()

    def take(self, tag: bytes, payload: bytes) -> None:
        """Take in one frame."""
        if tag == wire.LOG_TAG:
            (before,) = wire.LOG.unpack_from(payload)
            self._log(before, payload[wire.LOG.size :])
        elif tag == wire.MARKS_TAG:
            self._mark(payload)
        elif tag == wire.FETCH_TAG:
            self._parts["fetches"].append(np.frombuffer(payload, FETCH))
        else:
            note = _decoded(payload)
            if isinstance(note, dict):
                self._note(note.pop("kind", None), note)

    def _log(self, before: int, part: bytes) -> None:
        is_torn = self._played is not None and before != self._played
        if is_torn or self._player is None:
            (now,) = wire.LOG.unpack_from(part)  # a time is as long as that number
            player = self._playing(now)
            if is_torn:
                player.lost(now)
        self._playing().log(part)
        self._played = before + len(part) // 8

    def play(self) -> None:
        """Play back what has been taken in of the log."""
        player = self._player
        if player is None:
            return
        player.play()
        for name in ("rows", "named", "device", "stretches"):
            self._parts[name] += getattr(player, name)
            getattr(player, name).clear()
        for looks in player.looks:
            self._take_looks(looks)
        player.looks.clear()
        pid = self.key[1]
        self.spans += [Span(s.begin, s.end, s.phase, self._places.get((pid, s.place))) for s in player.spans]
        player.spans.clear()

    def unpack(self, pack: packing.Pack, *, lines: bool) -> None:
        """Take in a stretch that has been played and packed, with or without lines."""
        tables = {name: packing.unpacked(pack.tables.get(name, {}), kind) for name, kind in packing.KINDS.items()}
        for note in pack.notes:
            try:
                self.take(wire.JSON_TAG, note)
            except NOT_OURS:
                continue
        for name, parts in self._parts.items():
            if lines or name != "stretches":
                parts.append(tables[name])
        self._take_looks(tables["looks"])
        times, pids, stacks, leaves = (tables["seen"][name].tolist() for name in packing.SEEN.names or ())
        self._looked(pids, times, repeat(wire.DATA_WAIT), repeat(0), stacks, leaves)
        pid = self.key[1]
        for time, lasted, phase, place in tables["spans"].tolist():
            self.spans.append(Span(time - lasted, time, phase, self._places.get((pid, place))))
        if pack.player is not None:
            self._playing().resume(pack.player)
            self._played = pack.played

    def has_no_log(self, stretch: packing.Stretch) -> None:
        """The log of a stretch is gone."""
        first = self.packed or stretch
        self.packed = msgspec.structs.replace(first, end=stretch.end, until=stretch.until)

    def _take_looks(self, looks: Rows) -> None:
        columns = (looks[name].tolist() for name in ("time", "phase", "iterator", "stack", "leaf"))
        self._looked(repeat(self.key[1]), *columns)

    def let_go(self) -> None:
        """Keep the notes that are few, and nothing that grows with the steps."""
        self._player, self._patterns, self._played = None, Patterns(), None
        self.samples, self.spans, self.syncs, self.received, self.traces = [], [], [], [], []
        self.shapes, self.operations, self.named_elsewhere, self.memory, self.losses = [], [], [], [], None
        self._places, self._stacks = {}, {}
        self._parts = {name: [] for name in self._parts}

    def play_closely(self, words: list[int], lines: list[list[int]]) -> list[Span]:
        """The phases of a stretch of the log by themselves, in order, as they are kept of the kernel window only."""
        replay = Replay(words[0], spans_in=(words[0], words[-2]))
        for time, place in lines:
            replay.line(time, place)
        replay.feed(words)
        pid = self.key[1]
        return [Span(s.begin, s.end, s.phase, self._places.get((pid, s.place))) for s in replay.spans]

    def _playing(self, now: int = 0) -> Player:
        if self._player is None:
            started = round(float(self.facts.get("started") or 0) / NANO) or now
            self._player = Player(started, self._patterns)
        return self._player

    def add_rows(self, rows: list[Row]) -> None:
        """Take in what lies between borders, played back."""
        if rows:
            self._parts["rows"].append(of_rows(rows))

    def _mark(self, payload: bytes) -> None:
        at = 0
        while self._player is not None and at < len(payload):
            began, count = wire.MARKS.unpack_from(payload, at)
            at += wire.MARKS.size
            self._player.marks(began, np.frombuffer(payload, "<f4", count, at).tolist())
            at += 4 * count

    def _note(self, kind: str | None, note: dict[str, Any]) -> None:
        if kind == "process":
            self.facts = note
        elif kind in ("loader", "iterator", "optimizer", "name"):
            getattr(self, kind + "s")[note["id"]] = note
        elif kind == "place":
            self._places[note["pid"], note["id"]] = _place(note)
        elif kind == "stack":
            places = (self._places.get((note["pid"], number)) for number in note["places"])
            self._stacks[note["pid"], note["id"]] = tuple(place for place in places if place is not None)
        elif kind == "samples":
            if not note["worker"]:
                self._playing().looked(note["looks"])
            elif note["looks"]:
                times, stacks, leaves = zip(*note["looks"], strict=True)
                self._looked(repeat(note["pid"]), times, repeat(wire.DATA_WAIT), repeat(0), stacks, leaves)
        elif kind == "lines":
            self._playing().lines(note["taken"])
        elif kind in _LISTED:
            getattr(self, _LISTED[kind]).append(note)
        elif kind == "ddp":
            self.ddp = note
        elif kind in ("window", "calls", "parts", "allocations"):
            setattr(self, kind, note)
        elif kind == "memory":
            self.memory_peak = max(self.memory_peak or 0, int(note["peak"]))
            self.memory.append(note)
        elif kind == "losses":
            self.losses = [float(loss) for loss in note["values"]]
        elif kind == "replay":
            self.replays_since = max(self.replays_since or 0.0, note["at"])
        elif kind == "end":
            self.ended = note["at"]
            self.stopped = bool(note.get("stopped"))

    def _looked(
        self,
        pids: Iterable[int],
        times: Iterable[int],
        phases: Iterable[int],
        iterators: Iterable[int],
        stacks: Iterable[int],
        leaves: Iterable[int],
    ) -> None:
        for pid, time, phase, iterator, number, leaf in zip(
            pids, times, phases, iterators, stacks, leaves, strict=False
        ):
            stack = self._stacks.get((pid, number), ())
            user = next((place for place in stack if place.is_users), None)
            self.samples.append(Sample(time * NANO, phase, iterator, user, self._places.get((pid, leaf)), stack=stack))


# What is whole, but not what we write: somebody else's.
NOT_OURS = (ValueError, KeyError, TypeError, IndexError, struct.error)


def _decoded(payload: bytes) -> Any:
    """A note, which may have in it what JSON does not know: a loss that is not a number."""
    try:
        return msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return json.loads(payload)


class RecordReader:
    """Reads the files of a record as they grow. Runs nothing that is in them."""

    def __init__(self, folder: Path, *, lines: bool = True) -> None:
        """Without `lines`, processes have no stretches: to read these takes a fifth of the time."""
        self.folder = folder
        self._lines = lines
        self._offsets: dict[Path, int] = {}
        self._patterns = Patterns()
        self.processes: dict[Path, Process] = {}
        self.workers: dict[Path, Process] = {}

    def read(self) -> None:
        """Take in what has been appended since the last call."""
        for path in sorted(self.folder.glob("*.rec")):
            self.read_file(path)

    def read_file(self, path: Path) -> Process:
        """The same of one file."""
        process = self._known(path)
        packs = path.with_suffix(PACKED)
        if packs.exists():
            process = self._read_packs(path, process, packs)
        self._read_plain(path, process)
        return process

    def _known(self, path: Path) -> Process:
        kind = self.workers if is_shared(path) else self.processes
        return kind.setdefault(path, Process(self._patterns))

    def _read_plain(self, path: Path, process: Process, until: int | None = None) -> None:
        """The frames of a file up to a place in it."""
        left_out = wire.LOG_TAG if is_shared(path) else None  # of several processes at once: no thread did that
        for frames in self._new_frames(path, until):
            for tag, payload in frames:
                if tag == left_out or (not self._lines and payload.endswith(_OF_LINES)):
                    continue
                try:
                    if tag != wire.PACK_TAG:
                        process.take(tag, payload)
                    else:
                        process.play()
                        self._unpack(process, payload)
                except NOT_OURS:
                    continue
            process.play()

    def _unpack(self, process: Process, payload: bytes) -> None:
        try:
            process.unpack(packing.decode(payload), lines=self._lines)
        except NOT_OURS:
            process.missing.append({"what": "some of the steps", "reason": "what was packed of them cannot be read"})
        process.has_no_log(packing.stretch_of(payload))

    def _read_packs(self, path: Path, process: Process, packs: Path) -> Process:
        """What of a file has been packed, with what stands before it."""
        for frames in self._new_frames(packs):
            for tag, payload in frames:
                if tag != wire.PACK_TAG:
                    continue
                stretch = packing.stretch_of(payload)
                if _has_pack(path, stretch.begin):
                    return process
                if stretch.begin < self._offsets.get(path, 0) < stretch.end:
                    self._read_plain(path, process, stretch.end)
                    if self._offsets[path] != stretch.end:  # what was left of it is gone
                        return self._read_anew(path, packs)
                if stretch.begin >= self._offsets.get(path, 0):
                    self._read_plain(path, process, stretch.begin)
                    self._unpack(process, payload)
                    self._offsets[path] = stretch.end
                else:
                    process.has_no_log(stretch)
        return process

    def _read_anew(self, path: Path, packs: Path) -> Process:
        for one in (path, packs):
            self._offsets.pop(one, None)
        (self.workers if is_shared(path) else self.processes).pop(path)
        return self._read_packs(path, self._known(path), packs)

    def _new_frames(self, path: Path, until: int | None = None) -> Iterator[list[tuple[bytes, bytes]]]:
        """What has been appended to a file, not too much at once."""
        size = AT_ONCE
        with path.open("rb") as file:
            while True:
                offset = self._offsets.get(path, 0)
                file.seek(offset)
                data = file.read(size if until is None else min(size, until - offset))
                found = list(wire.frames(data))
                if found:
                    self._offsets[path] = offset + found[-1][2]
                    yield [(tag, payload) for tag, payload, _ in found]
                    size = AT_ONCE
                if len(data) < size:
                    return
                size *= 1 if found else 2  # a frame is longer than that, or there is much that is none

    def files(self) -> list[Path]:
        """Every file: those of processes by rank, as they tell it themselves, then those that workers share."""
        paths = sorted(self.folder.glob("*.rec"))
        known = {path: Process() for path in paths if not is_shared(path)}
        for path, process in known.items():
            process.facts = _facts(path)
        named = sorted((path for path in known if known[path].facts), key=lambda path: _order(known[path]))
        return [*named, *(path for path in paths if path not in named)]

    def keep(self, path: Path, process: Process) -> None:
        """Take over a process that was read elsewhere."""
        kind = self.workers if is_shared(path) else self.processes
        kind[path] = process

    def run(self) -> list[Process]:
        """Every process that has told its name, by rank."""
        return sorted((p for p in self.processes.values() if p.facts), key=_order)

    def spans_between(self, process: Process, begin: int, end: int) -> list[Span]:
        """What a process did between two moments (nanoseconds), by its log, which is read again; none if it is torn."""
        path = next(path for path, known in self.processes.items() if known is process)
        logs: list[Rows] = []
        lines: list[list[int]] = []
        try:
            for tag, payload, _ in wire.frames(_plain_bytes(path, process.packed)):
                if tag == wire.LOG_TAG:
                    logs.append(np.frombuffer(payload, "<i8", offset=wire.LOG.size))
                elif tag == wire.JSON_TAG and b'"lines"' in payload:
                    lines += json.loads(payload).get("taken", [])
            # A phase may have begun in the part before, and what follows says what its last moments were.
            near = [i for i, log in enumerate(logs) if log[0] <= end and log[-2] >= begin]
            chosen = logs[max(near[0] - 1, 0) : near[-1] + 2]
            return process.play_closely(np.concatenate(chosen).tolist(), lines)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return []

    def workers_of(self, process: Process) -> Process | None:
        """The record that a process's loader workers share."""
        return self.workers.get(self.workers_file(process))

    def workers_file(self, process: Process) -> Path:
        """Where that is, if there is one."""
        host, pid = process.key
        return self.folder / f"{_WORKERS}{host}-{pid}.rec"


def is_shared(path: Path) -> bool:
    """Whether loader workers share a file."""
    return path.name.startswith(_WORKERS)


def _has_pack(path: Path, begin: int) -> bool:
    """Whether what was packed of a file has been put into it, so that it stands there."""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(wire.FRAME.size).startswith(wire.MARK + wire.PACK_TAG)


def _plain_bytes(path: Path, packed: packing.Stretch | None) -> bytes:
    """A file without what of it is gone."""
    if packed is None:
        return path.read_bytes()
    with path.open("rb") as file:
        head = file.read(packed.begin)
        file.seek(packed.end)
        return head + file.read()


def _order(process: Process) -> tuple[int, tuple[str, int]]:
    return process.rank, process.key


def _facts(path: Path) -> dict[str, Any]:
    """What a process tells of itself, which is among the first things in its file."""
    with path.open("rb") as file:
        return _told_in(file.read(_HEAD)) or _told_in(path.read_bytes())


def _told_in(data: bytes) -> dict[str, Any]:
    for tag, payload, _ in wire.frames(data):
        if tag == wire.JSON_TAG and b'"process"' in payload:
            note = _decoded(payload)
            if note.get("kind") == "process":
                return dict(note)
    return {}


def open_record(folder: Path) -> RecordReader:
    """The record in a folder, to be read file by file."""
    if not folder.is_dir():
        raise RecordError(f"no record in {folder}")
    return RecordReader(folder)


def read_record(folder: Path) -> RecordReader:
    """The whole record in a folder."""
    reader = open_record(folder)
    reader.read()
    return reader
