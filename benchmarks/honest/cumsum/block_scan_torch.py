"""Running sums of rows, by Hillis and Steele's scan of 256 columns at a time as in block_scan.py."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        chunks, before = [], torch.zeros_like(x[:, :1])
        for chunk in x.split(256, dim=1):
            for offset in (1, 2, 4, 8, 16, 32, 64, 128):
                chunk = chunk + nn.functional.pad(chunk, (offset, 0))[:, : chunk.shape[1]]
            chunks.append(before + chunk)
            before = chunks[-1][:, -1:]
        return torch.cat(chunks, dim=1)
