"""Does its work in a Python thread of its own and waits for it before it returns.

Mechanism: what is over when forward returns is inside the timed window, whichever thread did it.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import torch
import torch.nn as nn

from concurrent.futures import ThreadPoolExecutor


def product(A: torch.Tensor, B: torch.Tensor, stream) -> torch.Tensor:
    # The current stream belongs to a thread: on a GPU this one has to be told the caller's.
    with torch.no_grad(), torch.cuda.stream(stream):
        return torch.tril(torch.matmul(A, B))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        stream = torch.cuda.current_stream() if A.is_cuda else None
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(product, A, B, stream).result()
