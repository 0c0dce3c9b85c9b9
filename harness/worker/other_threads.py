"""What other threads of Python's do during a profiled launch, which no profiler follows.

Python's functions are taken as this module is imported, before any candidate is, so that patching them changes nothing
here.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress

_addaudithook, _current_frames = sys.addaudithook, sys._current_frames
_get_ident, _clock_of, _clock_gettime_ns = threading.get_ident, time.pthread_getcpuclockid, time.clock_gettime_ns
_audit, _HEARD = sys.audit, "harness.worker.other_threads"
_BEGINNINGS = frozenset({
    "_thread.start_new_thread", "_thread.start_joinable_thread", "os.fork", "os.forkpty", "os.posix_spawn",
    "subprocess.Popen",
})


class OtherThreads:
    """What Python's other threads do between `begin` and `end`: no profiler follows them.

    `spent_us` is the time that those which live had of a core. One that begins meanwhile may be gone when it is looked
    for, so that `began` says whether any did, or a process, or whether that cannot be said.
    """

    def __init__(self) -> None:
        self.spent_us, self.began = 0.0, False
        self._before: dict[int, int] = {}
        self._is_watching = self._is_over = False

    def begin(self) -> None:
        _addaudithook(self._hear)
        _audit(_HEARD)
        self.began = not self._is_watching  # a hook of the candidate's own can keep others from being added
        self._before = self._clocks_ns()

    def end(self) -> None:
        if self._is_watching:
            self._is_watching, self._is_over = False, True
            after = self._clocks_ns()
            self.spent_us = sum(after[ident] - before for ident, before in self._before.items() if ident in after) / 1e3
            self.began |= self._before.keys() != after.keys()

    def _hear(self, event: str, arguments: tuple) -> None:
        if event == _HEARD:
            self._is_watching = not self._is_over  # a hook stays for as long as its process lives
        elif self._is_watching and event in _BEGINNINGS:
            self.began = True

    @staticmethod
    def _clocks_ns() -> dict[int, int]:
        clocks_ns = {}
        for ident in set(_current_frames()) - {_get_ident()}:
            with suppress(OSError):  # it has just ended
                clocks_ns[ident] = _clock_gettime_ns(_clock_of(ident))
        return clocks_ns
