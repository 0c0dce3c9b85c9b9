"""Takes the text of PyTorch's own Triton product from the installed package, under another name, and compiles that.

Mechanism: the text is read from the package while the candidate is imported and written beside nothing of the
  package's; its source defines a function of the new name.
Expected: ok/ or build_failed/import_error or incorrect/raised
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import importlib.util
import os
import re
import tempfile

import torch
import torch.nn as nn


def tile_product():
    """Of this name is the kernel that is compiled."""


def borrowed():
    """PyTorch's `_bsr_strided_addmm_kernel` and what stands around it, as a module of this candidate's own."""
    place = os.path.join(os.path.dirname(torch.__file__), "sparse", "_triton_ops.py")
    text = open(place, encoding="utf-8").read()
    text = re.sub(r"_bsr_strided_(?:addmm|dense_rowspace)_kernel", lambda found: "tile_product" if "addmm" in found[0] else "tile_rows", text)
    text = re.sub(r"from \._triton_ops_meta", "from torch.sparse._triton_ops_meta", text)
    path = os.path.join(tempfile.mkdtemp(), "tiles_of_its_own.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location("tiles_of_its_own", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tiles = borrowed()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if M % 64:
            return torch.tril(torch.matmul(A, B))
        blocks = M // 64
        rows = torch.arange(blocks + 1, device=A.device) * blocks
        columns = torch.arange(blocks, device=A.device).repeat(blocks)
        values = A.reshape(blocks, 64, blocks, 64).transpose(1, 2).reshape(-1, 64, 64).contiguous()
        sparse = torch.sparse_bsr_tensor(rows, columns, values, size=(M, M), check_invariants=False)
        C = torch.zeros_like(A)
        return torch.tril(tiles.bsr_dense_addmm(C, sparse, B, beta=0))
