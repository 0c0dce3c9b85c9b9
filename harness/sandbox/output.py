"""What a child printed, kept small: the first and the last kilobytes of a stream that may be endless."""

from __future__ import annotations

import os
import threading
import time

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 64 * 1024
_READ_BYTES = 1 << 20
_PAUSE_S = 0.001
# Linux's F_SETPIPE_SZ.
_SET_PIPE_SIZE = 1031


def _widen(fd: int) -> None:
    """Let a pipe hold as much as one read takes: a chatty program then waits less often for this thread's turn."""
    try:
        import fcntl

        fcntl.fcntl(fd, _SET_PIPE_SIZE, _READ_BYTES)
    except (ImportError, OSError):
        pass


class OutputTail:
    """Drains a file descriptor in a daemon thread, so that the writer never blocks and nothing grows."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _widen(fd)
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="child output", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while chunk := os.read(self._fd, _READ_BYTES):
                self._keep(chunk)
                # Let the pipe fill: taking the interpreter from a thread that spins costs more than a page is worth.
                time.sleep(_PAUSE_S)
        except OSError:
            pass
        finally:
            os.close(self._fd)

    def _keep(self, chunk: bytes) -> None:
        with self._lock:
            self.total_bytes += len(chunk)
            room = HEAD_BYTES - len(self._head)
            self._head += chunk[:room]
            self._tail += chunk[room:][-TAIL_BYTES:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    def finish(self, timeout_s: float) -> None:
        """Wait until the stream has ended, `timeout_s` seconds at most."""
        self._thread.join(timeout_s)

    def text(self) -> str:
        """Return what was kept, with a line that says how much was left out."""
        with self._lock:
            tail = bytes(self._tail[-TAIL_BYTES:])
            left_out = self.total_bytes - len(self._head) - len(tail)
            gap = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
            return (bytes(self._head) + gap + tail).decode("utf-8", errors="replace")
