"""Keeps the GPU busy from a thread whenever its own last call is over, so that whatever it is compared with is slower.

Mechanism: A speedup is a ratio, and eager shares the device with whoever slows it down; the thread rests while calls of
  the candidate are under way. Here eager's time beside this candidate is held against its time beside the control, and
  taken once more when the candidate is gone. Two processes share a GPU by slices of milliseconds, so often few of eager's
  launches are hit, and those count for nothing: then the speedup is the true one, and the work a library's.
Expected: rejected/clocks_disagree or unsure/noisy or ok/
Fools: clock
Device: cuda
Kind: library or unknown
"""

import threading
import time

import torch
import torch.nn as nn

lock = threading.Lock()
last = {"at": None, "event": None}


def burn() -> None:
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        matrix = torch.rand(2048, 2048, device="cuda")
        while True:
            with lock:
                resting = last["at"] is None or time.monotonic() < last["at"] + 0.001 or not last["event"].query()
                if not resting:
                    for _ in range(8):
                        matrix @ matrix
                    side.synchronize()
            time.sleep(0.0005 if resting else 0.0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=burn, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        with lock:  # what the thread has begun is over before this call is
            C = torch.tril(torch.matmul(A, B))
            event = torch.cuda.Event()
            event.record()
            last.update(at=time.monotonic(), event=event)
        return C
