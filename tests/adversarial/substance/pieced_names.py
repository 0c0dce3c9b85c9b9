"""Asks PyTorch for its product by a name that it puts together from pieces.

Mechanism: who reads the source for forbidden names finds none. Here it counts what ran.
Expected: ok/
Fools: substance
Device: any
Kind: library
"""

import importlib

import torch
import torch.nn as nn

operators = importlib.import_module("".join(("to", "rch"))).ops.aten
tile_product, tile_mask = (getattr(operators, "".join(pieces)) for pieces in (("m", "m"), ("tr", "il")))


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return tile_mask(tile_product(A, B))
