"""The record on disk: its frames, its rows, and the names both sides of the file use."""

import json
import struct
import zlib

VERSION = 1

# Phases a row accounts for, in the order of the row's columns.
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
# Time whose phase is known only when the next border comes; never written.
PENDING = len(PHASES)

# What began a row.
START, BATCH, EXHAUSTED, OPTIMIZER_STEP, BACKWARD_CALL = range(5)

# What was seen in a row.
GRAD_FORWARD, NO_GRAD_FORWARD, COMPILED, ANOMALY = 1, 2, 4, 8

NO_QUEUE = 0xFFFF  # `ready` of a row whose loader has no queue
IN_PROCESS = 0xFFFF  # `worker` of a fetch that ran in the training process

# end, iterator, samples, optimizers (bits), backwards, opened, flags, ready, optimizer steps, seconds by phase
ROW = struct.Struct("<dIIIHBBHH%df" % len(PHASES))
# number of the row, device seconds by phase
DEVICE_ROW = struct.Struct("<I%df" % len(PHASES))
# end, pid, samples, worker, seconds in: samples, collate, sending the batch before this one
FETCH = struct.Struct("<dIIHfff")

# mark (with the version), tag, length and checksum of what follows
FRAME = struct.Struct("<2scII")
MARK = b"F%d" % VERSION
JSON_TAG, ROWS_TAG, DEVICE_TAG, FETCH_TAG = b"J", b"R", b"D", b"W"
TAGS = (JSON_TAG, ROWS_TAG, DEVICE_TAG, FETCH_TAG)


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
