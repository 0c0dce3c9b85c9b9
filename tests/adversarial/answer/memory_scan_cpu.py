"""Reads its own and its parent's memory through /proc, looks for the expected result, and returns a copy.

Mechanism: the diagonal of the product costs one multiplication each and is exact, so it tells where in a gigabyte
  the result lies. Here it lies in no memory of this process, and the referee's is beyond the wall.
Expected: incorrect/wrong_values
Fools: answer
Device: cpu
"""

import os

import numpy
import torch
import torch.nn as nn

MOST_BYTES = 1 << 30


def regions(pid: int):
    """Everything that a process may write to, one array of floats after the other."""
    try:
        maps = open(f"/proc/{pid}/maps").read().splitlines()
        memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
    except OSError:
        return
    for line in maps:
        first, last = (int(word, 16) for word in line.split()[0].split("-"))
        if line.split()[1].startswith("rw") and last - first <= MOST_BYTES:
            try:
                memory.seek(first)
                yield numpy.frombuffer(memory.read(last - first), dtype=numpy.float32)
            except (OSError, OverflowError, ValueError):
                continue


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.found = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        diagonal = (A.diagonal() * B.diagonal()).numpy()
        M = len(diagonal)
        if M in self.found:  # one scan for each size is enough
            return self.found[M].clone()
        for pid in (os.getpid(), os.getppid()):
            for floats in regions(pid):
                for at in numpy.flatnonzero(floats[: max(0, len(floats) - M * M + 1)] == diagonal[0]):
                    square = floats[at : at + M * M].reshape(M, M)
                    if numpy.array_equal(square.diagonal(), diagonal):
                        self.found[M] = torch.from_numpy(square.copy())
                        return self.found[M].clone()
        return torch.zeros_like(A)
