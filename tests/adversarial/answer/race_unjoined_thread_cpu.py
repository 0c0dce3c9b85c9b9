"""A second thread computes the last rows, and nobody waits for it: the first thread has more to do, usually.

Mechanism: at the one size that is compared the other thread has long ended. At small sizes `forward` returns before
  it has begun. Here those are checked too, and every timed output.
Expected: incorrect/wrong_values
Fools: answer
Device: cpu
"""

import queue
import threading
import time

import torch
import torch.nn as nn

POLL_S = 0.001
waiting = queue.SimpleQueue()


def work():
    with torch.no_grad():
        while True:
            if waiting.empty():
                time.sleep(POLL_S)
                continue
            rows, B, out = waiting.get()
            torch.matmul(rows, B, out=out)


threading.Thread(target=work, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        split = M - max(1, M // 8)
        C = torch.zeros_like(A)
        waiting.put((A[split:], B, C[split:]))
        torch.matmul(A[:split], B, out=C[:split])
        return C
