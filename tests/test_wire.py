"""Frames: what is written is read back, and what is torn or foreign is not."""

import json
import random
import struct
from array import array

import pytest

from floorit import events
from floorit.record import wire
from floorit.replay import BATCH


def _some_frames(count=5):
    rows = [struct.pack("<d", n) * 3 for n in range(count)]
    return [wire.frame(wire.LOG_TAG, row) for row in rows]


def _payloads(data):
    return [payload for _, payload, _ in wire.frames(data)]


def test_a_frame_comes_back_as_it_went():
    data = wire.frame(wire.FETCH_TAG, b"abc") + wire.frame(wire.LOG_TAG, b"")
    assert [(tag, payload) for tag, payload, _ in wire.frames(data)] == [(b"W", b"abc"), (b"L", b"")]


def test_the_offset_is_where_the_next_frame_begins():
    one, two = _some_frames(2)
    assert [end for _, _, end in wire.frames(one + two)] == [len(one), len(one + two)]


def test_a_note_is_json_with_its_kind():
    [(tag, payload, _)] = wire.frames(wire.note("loader", id=1, odd=object))
    assert tag == wire.JSON_TAG
    note = json.loads(payload)
    assert note["kind"] == "loader"
    assert note["id"] == 1
    assert isinstance(note["odd"], str)  # what JSON does not know is written as text, not raised


def test_both_sides_agree_on_the_size_of_a_fetch():
    assert wire.FETCH.size == events.FETCH.itemsize


def test_the_kinds_of_events_are_told_apart():
    """A phase's number fits between IN, OUT and LEAF, and every kind into the bits of a word that are its."""
    assert wire.IN + len(wire.PHASES) <= wire.OUT
    assert wire.OUT + len(wire.PHASES) <= wire.LEAF
    assert wire.LEAF + len(wire.PHASES) <= wire.MODEL_IN
    assert wire.END <= wire.KIND == (1 << wire.SHIFT) - 1


def test_a_log_becomes_rows():
    process = events.Process()
    process.add(wire.JSON_TAG, b'{"kind": "process", "pid": 1, "started": 0.000001}')
    words = [3000, 2 << wire.SHIFT | wire.NEXT_IN, 4000, 9 << wire.SHIFT | wire.NEXT_OUT, 4500, wire.END]
    for at in (0, 2, 4):  # as it comes, in pieces
        process.add(wire.LOG_TAG, array("q", [at, *words[at : at + 2]]).tobytes())
    before, row = process.rows
    assert (before["end"], before["seconds"].sum()) == pytest.approx((3e-6, 2e-6))
    assert (row["iterator"], row["samples"], row["opened"]) == (2, 8, BATCH)
    assert row["seconds"][wire.DATA_WAIT] == pytest.approx(1e-6)
    assert process.starts().tolist() == pytest.approx([1e-6, 3e-6])


def test_both_sides_agree_on_the_columns_of_a_fetch():
    process = events.Process()
    process.add(wire.FETCH_TAG, wire.FETCH.pack(1.5, 2, 3, 4, 0.5, 0.25, 0.125))
    fetch = process.fetches[0]
    assert [fetch[name] for name in events.FETCH.names] == [1.5, 2, 3, 4, 0.5, 0.25, 0.125]


def test_cut_off_anywhere_the_whole_frames_remain():
    parts = _some_frames()
    data = b"".join(parts)
    ends = [end for _, _, end in wire.frames(data)]
    for length in range(len(data) + 1):
        assert len(_payloads(data[:length])) == sum(end <= length for end in ends)


def test_a_torn_frame_in_the_middle_costs_only_itself():
    one, two, three = _some_frames(3)
    assert _payloads(one + two[:-4] + three) == _payloads(one + three)


def test_what_looks_like_a_frame_inside_a_payload_is_not_read_twice():
    inner = wire.frame(wire.LOG_TAG, b"inner")
    assert _payloads(wire.frame(wire.JSON_TAG, inner)) == [inner]


def test_no_payload_is_yielded_that_was_not_written():
    written = {payload for _, payload, _ in wire.frames(b"".join(_some_frames(20)))}
    data = bytearray(b"".join(_some_frames(20)))
    dice = random.Random(1)
    for _ in range(500):
        broken = bytearray(data)
        for _ in range(dice.randrange(1, 6)):
            broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        assert set(_payloads(bytes(broken))) <= written


def test_noise_holds_no_frames():
    dice = random.Random(2)
    noise = dice.randbytes(5_000) + wire.MARK * 50 + dice.randbytes(100)
    assert _payloads(noise) == []


def test_a_length_beyond_the_end_is_waited_for():
    whole = wire.frame(wire.LOG_TAG, b"x" * 100)
    assert _payloads(whole[:50]) == []
    assert _payloads(whole) == [b"x" * 100]


def test_a_frame_of_another_version_is_passed_over():
    other = b"F9" + wire.frame(wire.LOG_TAG, b"later")[2:]
    assert _payloads(other + wire.frame(wire.LOG_TAG, b"ours")) == [b"ours"]
