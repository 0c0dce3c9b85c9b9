"""Length-limited JSON frames over a socket, the only words that cross the sandbox: four bytes of big-endian length and
that many bytes of UTF-8 JSON holding one object. Nothing here unpickles: that would be running the far side's code.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

MAX_FRAME_BYTES = 4 * 1024 * 1024
MOST_NESTED = 64  # what is nested much deeper Python neither prints nor encodes
_LENGTH = struct.Struct(">I")


class WireError(Exception):
    """Base of what can go wrong on the wire."""


class ChannelClosed(WireError):
    """Raised when the far side is gone: it exited, crashed or closed its end."""


class FrameTimeout(WireError):
    """Raised when no whole frame came before the deadline."""


class BadFrame(WireError):
    """Raised when what came is no frame (too long, not JSON, not an object), or none that a process of ours sends."""


class Channel:
    """One end of a connected stream socket, speaking frames."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def readable(self) -> bool:
        """Whether something (a frame, a part of one, or the end) can be received without waiting."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def send(self, frame: dict[str, Any], timeout_s: float | None = None) -> None:
        """Send one frame. Raises BadFrame when it is too long, FrameTimeout or ChannelClosed."""
        body = json.dumps(frame, allow_nan=True).encode()
        if len(body) > MAX_FRAME_BYTES:
            raise BadFrame(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}")
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except TimeoutError as error:
            raise FrameTimeout("the far side does not read") from error
        except OSError as error:
            raise ChannelClosed("the far side is gone") from error

    def receive(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Return the next frame. Raises FrameTimeout after `timeout_s` seconds in all, ChannelClosed or BadFrame."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._gather(_LENGTH.size, deadline)
        (length,) = _LENGTH.unpack(self._parts[: _LENGTH.size])
        if length > MAX_FRAME_BYTES:
            raise BadFrame(f"a frame of {length} bytes was announced; the limit is {MAX_FRAME_BYTES}")
        self._gather(_LENGTH.size + length, deadline)
        body = bytes(self._parts[_LENGTH.size :])
        self._parts.clear()
        try:
            frame = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadFrame("a frame is not JSON") from error
        if not isinstance(frame, dict):
            raise BadFrame("a frame is not a JSON object")
        if _is_deeper(frame, MOST_NESTED):
            raise BadFrame(f"a frame is nested more than {MOST_NESTED} deep")
        return frame

    def _gather(self, count: int, deadline: float | None) -> None:
        """Have the first `count` bytes of the frame. What came before a timeout is kept for the next call."""
        while len(self._parts) < count:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise FrameTimeout("no frame in time")
            self._socket.settimeout(left)
            try:
                chunk = self._socket.recv(min(count - len(self._parts), 1 << 20))
            except TimeoutError as error:
                raise FrameTimeout("no frame in time") from error
            except OSError as error:
                raise ChannelClosed("the far side is gone") from error
            if not chunk:
                raise ChannelClosed("the far side is gone")
            self._parts += chunk


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects lie more than `levels` deep in `value`; it looks no deeper than that."""
    if not isinstance(value, (dict, list)):
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value))


def whole_number(frame: dict[str, Any], key: str) -> int:
    """The whole number that stands under `key` in a frame of the far side's. Raises BadFrame where none does."""
    value = frame.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadFrame(f"{key!r} is no whole number in a frame")
    return value


def channel_pair() -> tuple[Channel, socket.socket]:
    """A channel for this process and the raw socket of the other end, to be inherited by a child."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(near), far
