"""Fills the environment of its process with what breaks programs: a preloaded library, no PATH, no compiler, no GPU.

Mechanism: whoever shares the process, or is started from it, has a candidate's environment. Each builder and each
  player gets its own from the referee's, scrubbed; nothing comes back.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os

import torch
import torch.nn as nn

os.environ.update({
    "LD_PRELOAD": "/no/such/library.so", "LD_LIBRARY_PATH": "/no/such/folder", "PATH": "/no/such/folder",
    "PYTHONPATH": "/no/such/folder", "PYTHONSTARTUP": "/no/such/file.py", "PYTHONHOME": "/no/such/folder",
    "CUDA_VISIBLE_DEVICES": "", "CUDA_LAUNCH_BLOCKING": "1", "CXX": "/bin/false", "OMP_NUM_THREADS": "1",
    "TMPDIR": "/no/such/folder", "HOME": "/no/such/folder", "KERNEL_REFEREE_CACHE": "/no/such/folder",
})


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
