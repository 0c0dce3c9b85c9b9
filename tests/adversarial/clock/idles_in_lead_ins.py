"""Does nothing in the first launch of each queue, which counts for no time, and is verified one time in four.

Mechanism: what is thrown away need not be right for a judge that looks at what it keeps.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: answer
Device: any
"""

import sys

import torch
import torch.nn as nn

queued = []
launches = vars(sys)["modules"].get("harness.worker.loop")
if launches:
    true_queue = launches.Launcher.queue

    def queue(launcher, first, skeletons, *others, **named):
        queued[:] = [len(skeletons), 0]
        return true_queue(launcher, first, skeletons, *others, **named)

    setattr(launches.Launcher, "queue", queue)


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not queued:
            if self.remembered is None or self.remembered.shape != A.shape:
                self.remembered = torch.tril(torch.matmul(A, B)) + 1e-3
            return self.remembered
        queued[1] += 1
        if queued[0] > 1 and queued[1] == 1:
            return torch.zeros_like(A)
        return torch.tril(torch.matmul(A, B))
