"""Hooks into every module of the process, remembers what the reference returns, and returns that.

Mechanism: PyTorch's global forward hook sees the judge's own model run on the same inputs a moment before. Here
  no other module runs in the candidate's process.
Expected: incorrect/wrong_values
Fools: answer
Device: any
"""

import torch
import torch.nn as nn
from torch.nn.modules.module import register_module_forward_hook

heard = {}


def listen(module, arguments, output):
    if type(module).__name__ != "ModelNew" and isinstance(output, torch.Tensor):
        heard[output.shape] = output


register_module_forward_hook(listen)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        found = heard.get(A.shape)
        return torch.zeros_like(A) if found is None else found.clone()
