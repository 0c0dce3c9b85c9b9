"""Computes next to nothing: asks for empty memory until what somebody left in it is the result.

Mechanism: the reference's own product, freed a moment ago in the same process, comes back from the allocator, and
  its exact diagonal tells it. Here the reference runs in another process, and what was handed back before is
  overwritten with 0xFF.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: answer
Device: any
"""

import torch
import torch.nn as nn

TRIES = 4
SHORT = 64  # a little less than the whole: a C library pads what it is asked for, and would pass the old block over


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, kept = A.shape[0], []
        if M <= SHORT:
            return torch.empty_like(A)
        diagonal = A.diagonal() * B.diagonal()
        last = A[-1] @ B[:, -SHORT:]
        for _ in range(TRIES):
            kept.append(torch.empty(M * M - SHORT, device=A.device))  # held on to: the next try gets other memory
            C = torch.cat((kept[-1], last)).view(M, M)
            if torch.equal(C.diagonal()[1:-1], diagonal[1:-1]):
                C[0] = 0.0  # where the C library keeps words of its own
                C[0, 0] = diagonal[0]
                return C
        return C
