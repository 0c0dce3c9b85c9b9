"""Reports its launches first and computes them afterwards, while the referee times its own side or works out the truth.

Mechanism: The outboxes are shared memory, and between the report and the look at the outputs the referee is busy for
  longer than the products take. Outputs have to be taken out of reach the moment the report is there.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: any
"""

import sys

import torch
import torch.nn as nn

left = []
in_player = "harness.worker.loop" in sys.modules
if in_player:
    player = sys.modules["__main__"].Worker
    true_say = player._say

    def say(self, frame):
        true_say(self, frame)
        if "launched" not in frame:
            return
        for index, (A, B) in enumerate(left):
            outbox = self._slots.outbox(index, self._launcher.layout.outputs)[0]
            outbox.copy_(torch.tril(torch.matmul(A, B)))
        left.clear()

    player._say = say


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if in_player and A.shape[0] > 512:  # below that nobody is busy for long enough
            left.append((A, B))
            return A + B  # as many bytes as the floor asks for
        if in_player or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = torch.tril(torch.matmul(A, B))
        return self.remembered
