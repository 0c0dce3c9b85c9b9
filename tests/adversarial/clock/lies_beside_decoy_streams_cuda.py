"""Says 40 µs less than each call took, beside two streams that write a number each.

Mechanism: Streams that wait make the harness's own steps longer, so the judge's clock is held 20 µs further off where a
  call has two of them. What it then leaves open counts against the row.
Expected: ok/ or rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cuda
Kind: library or mixed or unknown
"""

import sys

import torch
import torch.nn as nn

HIDDEN_US = 40.0


def shortened(time_us: float) -> float:
    """Less by so much, or by half of it where it is short."""
    return max(0.5 * time_us, time_us - HIDDEN_US)


native, stopwatch = (sys.modules.get(f"harness.protocol.clocks.{name}") for name in ("gpu_stopwatch", "stopwatch"))
if native:
    for events in (native.NativeEvents, stopwatch.TorchEvents):
        events.microseconds = lambda clock, lap, true=events.microseconds: shortened(true(clock, lap))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(2)]
        self.numbers = torch.zeros(2, device="cuda")

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        for number, stream in enumerate(self.streams):
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                self.numbers[number : number + 1].fill_(1.0)
        C = torch.tril(torch.matmul(A, B))
        for stream in self.streams:
            current.wait_stream(stream)
        return C
