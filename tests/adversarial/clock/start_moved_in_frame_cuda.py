"""Climbs the stack, finds the event that starts the timing in a local variable of its caller, and records it again.

Mechanism: Nothing is patched. An event stands for its last recording, and the start is recorded once more after the
  matrix product, just before the triangle is cut out. The referee's own clock, in another process, still sees the work.
Expected: rejected/clocks_disagree or rejected/below_floor
Fools: clock
Device: cuda
"""

import ctypes
import sys

import torch
import torch.nn as nn

driver = ctypes.CDLL("libcuda.so.1")


def record_again(frame) -> None:
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, torch.cuda.Event):
                value.record()
        if isinstance(frame.f_locals.get("mark"), int):  # the driver's own event, in this harness
            driver.cuEventRecord(ctypes.c_void_p(frame.f_locals["mark"]), None)
        frame = frame.f_back


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        product = torch.matmul(A, B)
        record_again(sys._getframe(1))
        return torch.tril(product)
