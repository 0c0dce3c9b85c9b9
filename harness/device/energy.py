"""Mean power over a stretch of time, from a counter of energy that a device moves forward now and then.

NVML's counter stands still for up to a tenth of a second and then jumps, so only the moments of its jumps are used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_POLL_S = 0.002
# The clocks and the power of a GPU that begins to work take a while to settle.
_SETTLES_S = 0.3
_LEAST_S = 0.3


class PowerMeter:
    """Watches `read` (millijoules since some moment, or None) from a thread while it is entered."""

    def __init__(self, read: Callable[[], int | None]) -> None:
        self._read = read
        self._jumps: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def is_readable(self) -> bool:
        return self._read() is not None

    def __enter__(self) -> PowerMeter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def watts(self) -> float | None:
        """Mean power from the first jump after it settled to the last; None where there were too few to say."""
        return watts_of(self._jumps)

    def _watch(self) -> None:
        began, last = time.monotonic(), self._read()
        while last is not None and not self._over.wait(_POLL_S):
            now = self._read()
            if now is None:
                break
            if now != last:
                last = now
                at_s = time.monotonic() - began
                if at_s >= _SETTLES_S:
                    self._jumps.append((at_s, now))


def watts_of(jumps: list[tuple[float, int]]) -> float | None:
    """Power in W from (seconds, millijoules) at the counter's jumps; None for less than `_LEAST_S` of them."""
    if len(jumps) < 2 or jumps[-1][0] - jumps[0][0] < _LEAST_S:
        return None
    (began_s, first_mj), (ended_s, last_mj) = jumps[0], jumps[-1]
    return (last_mj - first_mj) / 1e3 / (ended_s - began_s)
