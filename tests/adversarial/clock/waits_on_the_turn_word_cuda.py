"""A stream of its own waits on the words in memory by which launches get their turn, and unmasks the inputs for itself.

Mechanism: The stream waits for the turn and for the opening of the window, as the harness's own does, but not for the
  flush of the cache between them: a window that opens late finds it waiting as well, and one that is open at once is
  found by work that began with the flush. Where no window opens before the flush is through the detour gains nothing.
Expected: rejected/clocks_disagree or rejected/below_floor or ok/
Fools: clock
Device: cuda
Kind: library
"""

import sys

import torch
import torch.nn as nn


def caller_of(frame, *names):
    """The local variables called `names` of the nearest caller that has them all."""
    while frame is not None:
        if all(name in frame.f_locals for name in names):
            return [frame.f_locals[name] for name in names]
        frame = frame.f_back
    return None


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side, self.remembered = torch.cuda.Stream(), None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        found = caller_of(sys._getframe(1), "slots", "first", "index", "skeletons", "self")
        if found is None:
            if self.remembered is None:  # any other judge repeats its inputs
                self.remembered = torch.tril(torch.matmul(A, B))
            return self.remembered
        stage, first, index, _, launcher = found
        arena = sys.modules["harness.protocol.arena"]
        side, taken = self.side.cuda_stream, (arena.KEY_BYTE, arena.SECRET_BYTES, stage._secret.data_ptr())
        for byte in (arena.GO_BYTE, arena.WINDOW_BYTE):
            stage._waiter.wait_and_take(side, byte, first + index, *taken)
        with torch.cuda.stream(self.side):
            slot = torch.empty_like(stage._slots[index])
            stage._mask.apply(side, stage._staging[index], slot.data_ptr(), stage._filled_bytes)
            C = torch.tril(torch.matmul(*[spec.view(slot) for spec in launcher.layout.inputs]))
        torch.cuda.current_stream().wait_stream(self.side)
        C.record_stream(torch.cuda.current_stream())
        return C
