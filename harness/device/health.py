"""Whether a GPU is well again after a worker was killed: it answers, it is idle, and nothing of the worker is left.

What "idle" and "empty" mean is measured before the first worker, on the same GPU: the time of a copy and the memory
that others hold. A killed process gives both back within a second or two; what still holds on after some patience is a
process that got away, or another user.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import torch

from harness.protocol.clocks.stopwatch import Stopwatch

_COPY_BYTES = 64 << 20
_COPIES = 5
# Two busy processes share a GPU in slices: a copy beside another one's kernels takes twice as long or more.
_BUSY = 1.5
# The judge's own kernels and contexts grow by this much or less while it works, or, as they did beside gradients, by
# more; but a process that lives holds more than half of what one holds that has only opened the GPU.
_SLACK_BYTES, _SLACK_SHARE = 256 << 20, 0.5
_PATIENCE_S = 10.0
# A copy beside the driver's clearing of memory takes a tenth longer or more.
_CLEARING, _CLEARING_S = 1.05, 1.0
# A process that has done nothing but open the GPU holds less; more is somebody else's too.
_MOST_WAITING_BYTES = 2 << 30
_FREE_BESIDE = 0.5
_NOTED_EACH_S = 0.1


class Health:
    """`raw_bytes()` says how much the judge has allocated outside PyTorch; its own memory is no finding."""

    def __init__(self, device: torch.device, raw_bytes: Callable[[], int], stopwatch: Stopwatch) -> None:
        self._device, self._raw_bytes, self._stopwatch = device, raw_bytes, stopwatch
        self._source = torch.ones(_COPY_BYTES, dtype=torch.uint8, device=device)
        self._target = torch.empty_like(self._source)
        self._waiting_bytes: int | None = None
        self._most_used, self._noted_s = 0, -math.inf
        self._copy_us()
        self.settle()

    def settle(self) -> None:
        """Take the GPU as it is now for idle and empty."""
        self.quiet_us = self._copy_us()
        self._held_bytes = self._bytes_of_others()

    def trouble(self) -> str | None:
        """None when the GPU computes rightly and is idle, else a sentence. Takes a millisecond when all is well."""
        try:
            total = torch.ones(1024, device=self._device).sum().item()
            if total != 1024.0:
                return f"the GPU sums 1024 ones to {total}"
            return self._not_idle()
        except RuntimeError as error:
            return f"the GPU no longer answers: {str(error).splitlines()[0]}"

    def note_waiting_worker(self) -> None:
        """Take what others hold beyond what they held before for what a worker holds that waits with the GPU open."""
        added_bytes = self._bytes_of_others() - self._held_bytes
        self._waiting_bytes = added_bytes if 0 <= added_bytes <= _MOST_WAITING_BYTES else None

    def has_room_for_waiting(self) -> bool:
        """Whether half of the memory is free, and what a waiting worker holds of it is known."""
        free_bytes, total_bytes = torch.cuda.mem_get_info(self._device)
        return self._waiting_bytes is not None and free_bytes >= _FREE_BESIDE * total_bytes

    def free_for_harness_bytes(self) -> int:
        """What is free of the memory, or cached by PyTorch here."""
        free_bytes, _ = torch.cuda.mem_get_info(self._device)
        return free_bytes + torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)

    def note_use(self, ballast_bytes: int, *, always: bool) -> None:
        """See what is in use now, by anybody; `ballast_bytes` are not. The driver takes 0.8 ms to say, beside a judge of
        another GPU, so that it is asked ten times a second, or `always`.
        """
        if not always and time.monotonic() < self._noted_s + _NOTED_EACH_S:
            return
        self._noted_s = time.monotonic()
        free_bytes, total_bytes = torch.cuda.mem_get_info(self._device)
        self._most_used = max(self._most_used, total_bytes - free_bytes - ballast_bytes)

    def peak_bytes(self) -> int:
        """The most that was in use by anybody when it was noted since the last call."""
        peak, self._most_used, self._noted_s = self._most_used, 0, -math.inf
        return peak

    def wait_until_cleared(self) -> None:
        """Wait until the driver has overwritten memory that was given back, which it does beside whatever comes next.

        On an H100 a kernel limited by memory took 16 % longer for a while after 24 GB had been freed.
        """
        deadline = time.monotonic() + _CLEARING_S
        while time.monotonic() < deadline and self._copy_us() > _CLEARING * self.quiet_us:
            time.sleep(0.002)

    def left_bytes(self, waiting: int = 0) -> int:
        """Bytes of device memory that others hold beyond what they held before; waits for a killed worker's.

        So many workers that are `waiting` have their own part of it. What is still held is told but once: it may be
        another user's, and no later worker is to be waited for longer.
        """
        deadline = time.monotonic() + _PATIENCE_S
        own_bytes = waiting * (self._waiting_bytes or 0)
        slack_bytes = max(_SLACK_BYTES, _SLACK_SHARE * (self._waiting_bytes or 0))
        while True:
            left = self._bytes_of_others() - self._held_bytes - own_bytes
            if left <= slack_bytes:
                return 0
            if time.monotonic() > deadline:
                self._held_bytes += left
                return left
            time.sleep(0.02)

    def _not_idle(self) -> str | None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            copy_us = self._copy_us()
            if copy_us <= _BUSY * self.quiet_us:
                return None
            if time.monotonic() > deadline:
                return (
                    f"the GPU is not idle though the candidate's process is gone: a copy takes {copy_us:.0f} µs "
                    f"where it took {self.quiet_us:.0f} µs before the first candidate"
                )
            time.sleep(0.02)

    def _copy_us(self) -> float:
        times_us = []
        for _ in range(_COPIES):
            mark = self._stopwatch.start()
            self._target.copy_(self._source)
            lap = self._stopwatch.stop(mark)
            torch.cuda.synchronize(self._device)
            times_us.append(self._stopwatch.microseconds(lap))
        return statistics.median(times_us)

    def _bytes_of_others(self) -> int:
        free_bytes, total_bytes = torch.cuda.mem_get_info(self._device)
        return total_bytes - free_bytes - torch.cuda.memory_reserved(self._device) - self._raw_bytes()
