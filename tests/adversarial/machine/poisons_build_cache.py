"""Adds bytes to what the builds of the other candidates have left in the cache.

Mechanism: the next run would load a rival's poisoned library, or find its build broken. Only a folder of its own is
  writable to builder and player, and what is kept is hashed again before it is used. What could be written is cut off
  again, and the row would say so.
Expected: ok/
Fools: nothing
Device: any
Kind: library or unknown
"""

import os
from pathlib import Path

import torch
import torch.nn as nn

# Where the cache is, is told to nobody; but the folder for Triton's kernels lies in it.
own = Path(os.environ.get("TRITON_CACHE_DIR", "/no/such/folder")).parent
root = next((parent for parent in own.parents if (parent / "entries").is_dir()), None)

if root is not None:
    # The builds beside this one make folders and delete them meanwhile, which os.walk does not mind.
    found = [Path(folder, name) for folder, *inside in os.walk(root) for name in (*inside[0], *inside[1])]
    for path in found:
        if path == own or own in path.parents:
            continue
        try:
            os.chmod(path, 0o777)
        except OSError:
            pass
        try:
            if path.is_dir():
                (path / "poison").mkdir()
                (path / "poison").rmdir()
            else:
                with path.open("r+b") as file:
                    size_bytes = file.seek(0, os.SEEK_END)
                    file.write(b"poison")
                    file.truncate(size_bytes)
        except OSError:
            continue
        raise RuntimeError(f"{path} could be poisoned")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B))
