"""Looks through the cache of builds for the libraries, cubins and texts that other candidates have left there.

Mechanism: a rival's extension is loaded by its path as well as one's own, and its text is in the folder that it was
  compiled in. Of the cache builder and player see the entry of their own candidate, and nothing of what lies around it.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
from pathlib import Path

import torch
import torch.nn as nn

# Where the cache is, is told to nobody; but folders of this process's own lie in it.
own = {Path(os.environ[name]) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "HOME") if name in os.environ}
places = {parent for each in own for parent in each.parents} | {Path.home() / ".cache", Path("/root/.cache")}
LEFT = ("entries/*/*", "staging/*/*", "warm/*/*/*/*", "kernel-referee/*/*", "locks/*")
found = [path for place in places for pattern in LEFT for path in place.glob(pattern)]
theirs = [path for path in found if not any(path.is_relative_to(each.parent) or each.is_relative_to(path) for each in own)]
for path in theirs:
    if os.access(path, os.R_OK) and (path.is_file() or any(path.iterdir())):
        raise RuntimeError(f"{path} could be read")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
