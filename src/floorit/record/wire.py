"""The record on disk: its frames, its events, and the names both sides of the file use."""

import json
import struct
import zlib

VERSION = 3

# Phases the training thread can be in.
PHASES = (
    "other",
    "data_wait",
    "h2d",
    "forward",
    "loss",
    "backward",
    "recompute",
    "grad_sync",
    "optimizer",
    "sync",
    "logging",
    "checkpoint",
    "eval",
    "epoch_gap",
)
(
    OTHER,
    DATA_WAIT,
    H2D,
    FORWARD,
    LOSS,
    BACKWARD,
    RECOMPUTE,
    GRAD_SYNC,
    OPTIMIZER,
    SYNC,
    LOGGING,
    CHECKPOINT,
    EVAL,
    EPOCH_GAP,
) = range(len(PHASES))

# The log of the training thread: pairs of a time (nanoseconds) and a word. The word's lowest eight bits say what
# happened, the others are its operand.
SHIFT, KIND = 8, 0xFF
IN = 0  # + phase: the phase begins
OUT = 32  # + phase: it ends
LEAF = 64  # + phase: it began as many nanoseconds ago as the operand says, and ends
(
    MODEL_IN,  # the outermost call of a module: OF_LOSS, ..., and samples << SAMPLES_SHIFT where they are known
    MODEL_OUT,
    BACKWARD_IN,  # LOSS_KNOWN, ...
    BACKWARD_OUT,
    STEP_IN,  # number of the optimizer << 1, | 1 with a closure
    STEP_OUT,  # number of the optimizer
    NEXT_IN,  # a batch is asked for: number of the pass over the data
    NEXT_FRESH_IN,  # the same, the first of a pass whose workers are only starting
    NEXT_OUT,  # 1 + samples in it; 0: there was none
    READY,  # batches that wait, told just before NEXT_IN
    ADOPTED,  # from here on another thread is the one that trains: number of its pass over the data
    COMPILED,  # torch.compile has compiled in the nanoseconds of the operand
    MARKS_IN,  # from here on each event but LEAF, READY and COMPILED is marked on the GPU's clock too
    MARKS_OUT,
    FAILED,  # a hook did not come to its end: what it began will not be told to end
    END,
    WINDOW_IN,  # from here on rows are slowed down by being watched: by the kernel window, by counting operations
    WINDOW_OUT,
    NAP_IN,  # from here on forward and backward passes and optimizers are not told of, but for NAP_STEP
    NAP_OUT,
    NAP_STEP,  # number of the optimizer, as in STEP_OUT
    NAMED_IN,  # a stretch begins that the program has named itself: number of its name
    NAMED_OUT,
    STEP_ENDS,  # the program itself says so
    CLOSURE_IN,  # inside of a step, its closure is called
    CLOSURE_OUT,
) = range(96, 122)
OF_LOSS, TRAINED, WITH_GRAD, TRAINING = 1, 2, 4, 8
SAMPLES_SHIFT = 4
LOSS_KNOWN, WITH_ANOMALY, WITHOUT_ACCUMULATING = 1, 2, 4

# The environment variable that asks for data-replay: {"spared": numbers of loaders to leave alone,
# "lengths": {number: batches of a whole pass}}.
REPLAY = "FLOORIT_REPLAY"
# The environment variable that asks for the training loader to be drained: {"loader": its number, "workers": numbers,
# "seconds": in which batches are counted, for each of them, "longest": that each may take}.
DRAIN = "FLOORIT_DRAIN"
DRAINED = "drained"  # the note of what that gave, and its name where it fails
# The environment variable that asks for fixes as overrides: {code: value}.
FIXES = "FLOORIT_FIXES"
CAP = "memory-cap"  # among them: the share of the memory that is free as the program starts, which it may have
# The environment variable that asks for the losses: {"jitter": relative size of a rounding error to plant, or 0}.
LOSSES = "FLOORIT_LOSSES"
DATA_REPLAY = "data-replay"  # its name, where it fails
# What became of one: it has changed something; the program never did what it would change; it could not be applied.
IN_FORCE, NOT_MET, FAILED_OVERRIDE = "in force", "not met", "failed"
FLOPS = "flops"  # what a stretch of a floor run computes: the note, and its name where there is none

PART = "floorit part "  # + its number: the mark of a call in the trace
IN_PROCESS = 0xFFFF  # `worker` of a fetch that ran in the training process
# end, pid, samples, worker, seconds in: samples, collate, sending the batch before this one
FETCH = struct.Struct("<dIIHfff")
# time of MARKS_IN, how many marks follow; then the milliseconds between each two of them
MARKS = struct.Struct("<qI")

# how many numbers of the log were written before those that follow
LOG = struct.Struct("<q")

# mark (with the version), tag, length and checksum of what follows
FRAME = struct.Struct("<2scII")
MARK = b"F%d" % VERSION
JSON_TAG, LOG_TAG, MARKS_TAG, FETCH_TAG = b"J", b"L", b"M", b"W"
PACK_TAG = b"P"  # never in a process's own file: the parent's, see floorit.packing
TAGS = (JSON_TAG, LOG_TAG, MARKS_TAG, FETCH_TAG, PACK_TAG)


def frame(tag, payload):
    """One frame, ready to be appended."""
    return FRAME.pack(MARK, tag, len(payload), zlib.crc32(payload)) + payload


def note(kind, **fields):
    """One JSON frame."""
    fields["kind"] = kind
    return frame(JSON_TAG, json.dumps(fields, default=str).encode())


def frames(data, start=0):
    """Yield (tag, payload, next offset) for each whole frame; skip what is torn or foreign."""
    at = start
    while True:
        at = data.find(MARK, at)
        if at < 0 or at + FRAME.size > len(data):
            return
        _, tag, length, checksum = FRAME.unpack_from(data, at)
        end = at + FRAME.size + length
        payload = data[at + FRAME.size : end]
        if tag in TAGS and end <= len(data) and zlib.crc32(payload) == checksum:
            yield tag, payload, end
            at = end
        else:
            at += 1
