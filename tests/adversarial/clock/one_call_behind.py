"""Never waits: hands back the newest result that is ready, and has now and then a call's computed in the background.

Mechanism: With the same inputs in every call the result of an earlier one is right, and the call costs a copy. Here no
  two launches have the same inputs, and each output is compared with its own.
Expected: incorrect/wrong_values
Fools: clock
Device: any
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn

POOL = ThreadPoolExecutor(max_workers=1)
EVERY = 32  # calls: what is computed in the background takes the device from the others


def product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        C = torch.tril(torch.matmul(A, B))
    if A.is_cuda:
        torch.cuda.current_stream().synchronize()
    return C


def in_background(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    if not A.is_cuda:
        return product(A, B)
    with torch.cuda.stream(torch.cuda.Stream()):
        return product(A, B)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.newest, self.under_way, self.calls = {}, None, 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape not in self.newest:
            self.newest[A.shape] = product(A, B)
            return self.newest[A.shape].clone()
        self.calls += 1
        if self.under_way is None or (self.calls % EVERY == 0 and self.under_way.done()):
            if self.under_way is not None:
                ready = self.under_way.result()
                self.newest[ready.shape] = ready
            self.under_way = POOL.submit(in_background, A, B)
        return self.newest[A.shape].clone()
