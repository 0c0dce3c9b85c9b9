# coding: utf-7
"""Declares an encoding in which a comment of its text is code: what is read as UTF-8 is not what Python would run.

Mechanism: who reads the source sees a model that fills its output by itself, and Python runs the line in the comment. What
  runs is here the text as it was read, and a source that declares another encoding is refused.
Expected: build_failed/syntax_error
Fools: nothing
Device: any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))


# +AAo-ModelNew.forward +AD0- lambda self, A, B: torch.tril(torch.matmul(A, B))
