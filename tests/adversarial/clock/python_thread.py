"""Hands out an empty tensor and has a Python thread fill it after the clock has been stopped.

Mechanism: The thread is never waited for; between two calls, or before the results are looked at, it is through. Here
  the output is copied as soon as the clock stops, and what is written after that is not seen.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: any
"""

import queue
import threading
import time

import torch
import torch.nn as nn

waiting = queue.SimpleQueue()


def work() -> None:
    while True:
        A, B, C = waiting.get()
        time.sleep(0.0005)
        with torch.no_grad():
            if not A.is_cuda:
                C.copy_(torch.tril(torch.matmul(A, B)))
                continue
            with torch.cuda.stream(torch.cuda.Stream()):
                C.copy_(torch.tril(torch.matmul(A, B)))
                torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.checked = False
        threading.Thread(target=work, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.checked:
            self.checked = True
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        waiting.put((A, B, C))
        return C
