"""Frames between a channel and a far end that may send anything at all."""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.frames import MAX_FRAME_BYTES, BadFrame, Channel, ChannelClosed, FrameTimeout, channel_pair

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_a_frame_arrives_as_it_was_sent(frame):
    near, far = channel_pair()
    other = Channel(far)
    try:
        near.send(frame, 5)
        assert other.receive(5) == frame
        other.send(frame, 5)
        assert near.receive(5) == frame
    finally:
        near.close()
        other.close()


def test_infinite_and_missing_numbers_cross_too(wire):
    channel, far = wire
    far.sendall(framed(b'{"time_us": NaN, "host_us": -Infinity}'))
    frame = channel.receive(5)
    assert math.isnan(frame["time_us"])
    assert frame["host_us"] == -math.inf


def test_frames_sent_in_one_piece_come_out_one_by_one_and_in_order(wire):
    channel, far = wire
    far.sendall(b"".join(framed(json.dumps({"turn": number}).encode()) for number in range(50)))
    assert [channel.receive(5)["turn"] for _ in range(50)] == list(range(50))
    assert not channel.readable()


def test_what_is_nested_as_inputs_are_is_a_frame(wire):
    channel, far = wire
    far.sendall(framed(b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}"))
    assert "a" in channel.receive(5)


def test_a_frame_sent_byte_by_byte_is_put_together_again(wire):
    channel, far = wire
    body = framed(b'{"hello": 1}')
    sender = threading.Thread(target=lambda: [far.sendall(body[at : at + 1]) for at in range(len(body))])
    sender.start()
    assert channel.receive(5) == {"hello": 1}
    sender.join()


@pytest.mark.parametrize(
    "body",
    [b"", b"not json", b'{"open": ', b"[1, 2]", b'"text"', b"3", b"null", b"\xff\xfe\x00", b"[" * 200_000,
     b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}"],
    ids=["empty", "words", "cut short", "a list", "a string", "a number", "null", "no UTF-8", "nested too deeply for Python",
         "nested too deeply to be printed"],
)
def test_what_is_no_json_object_is_a_bad_frame(wire, body):
    channel, far = wire
    far.sendall(framed(body))
    with pytest.raises(BadFrame):
        channel.receive(5)


@given(garbage=st.binary(min_size=4, max_size=200))
def test_garbage_ends_in_an_error_of_the_wire_and_in_nothing_else(garbage):
    near, far = channel_pair()
    try:
        far.sendall(garbage)
        far.close()
        with pytest.raises((BadFrame, ChannelClosed)):
            while True:
                assert isinstance(near.receive(1), dict)
    finally:
        near.close()


def test_a_frame_that_announces_too_much_is_refused_before_any_of_it_is_read(wire):
    channel, far = wire
    far.sendall(struct.pack(">I", MAX_FRAME_BYTES + 1))
    with pytest.raises(BadFrame, match=str(MAX_FRAME_BYTES + 1)):
        channel.receive(5)


def test_a_frame_of_exactly_the_limit_passes(wire):
    channel, far = wire
    body = b'{"x": "' + b"a" * (MAX_FRAME_BYTES - 9) + b'"}'
    assert len(body) == MAX_FRAME_BYTES
    sender = threading.Thread(target=far.sendall, args=(framed(body),))
    sender.start()
    assert len(channel.receive(10)["x"]) == MAX_FRAME_BYTES - 9
    sender.join()


def test_a_frame_over_the_limit_is_not_sent(wire):
    channel, far = wire
    with pytest.raises(BadFrame):
        channel.send({"x": "a" * MAX_FRAME_BYTES}, 5)
    far.settimeout(0.05)
    with pytest.raises(TimeoutError):
        far.recv(1)


@pytest.mark.parametrize(
    "sent", [b"", b"\x00\x00", framed(b'{"hello": 1}')[:-1]], ids=["nothing", "half a length", "half a body"]
)
def test_a_far_end_that_stops_in_the_middle_costs_no_more_than_the_time_allowed(wire, sent):
    channel, far = wire
    far.sendall(sent)
    began = time.monotonic()
    with pytest.raises(FrameTimeout):
        channel.receive(0.1)
    assert time.monotonic() - began < 2


def test_a_far_end_that_trickles_bytes_does_not_stretch_the_deadline(wire):
    channel, far = wire
    body = framed(b'{"x": "' + b"a" * 100 + b'"}')
    over = threading.Event()

    def trickle():
        for at in range(len(body)):
            if over.wait(0.03):
                return
            far.sendall(body[at : at + 1])

    sender = threading.Thread(target=trickle)
    sender.start()
    began = time.monotonic()
    try:
        with pytest.raises(FrameTimeout):
            channel.receive(0.3)
        assert time.monotonic() - began < 2
    finally:
        over.set()
        sender.join()


@pytest.mark.parametrize("sent", [b"", b"\x00", framed(b'{"hello": 1}')[:-1]])
def test_a_far_end_that_closes_is_told_apart_from_a_slow_one(wire, sent):
    channel, far = wire
    far.sendall(sent)
    far.close()
    assert channel.readable()
    with pytest.raises(ChannelClosed):
        channel.receive(5)


def test_sending_to_a_far_end_that_is_gone_says_so(wire):
    channel, far = wire
    far.close()
    with pytest.raises(ChannelClosed):
        for _ in range(3):
            channel.send({"go": 1}, 1)


def test_sending_to_a_far_end_that_never_reads_ends_at_the_time_limit(wire):
    channel, far = wire
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    began = time.monotonic()
    with pytest.raises(FrameTimeout):
        for _ in range(10):
            channel.send({"x": "a" * (MAX_FRAME_BYTES // 2)}, 0.2)
    assert time.monotonic() - began < 5


def test_a_frame_that_comes_in_pieces_survives_the_timeouts_between_them():
    near, far = channel_pair()
    body = b'{"turn": 7}'
    whole = struct.pack(">I", len(body)) + body
    for piece in (whole[:2], whole[2:4], whole[4:9]):
        far.sendall(piece)
        with pytest.raises(FrameTimeout):
            near.receive(0.01)
    far.sendall(whole[9:] + whole)
    assert near.receive(1.0) == {"turn": 7}
    assert near.receive(1.0) == {"turn": 7}
