"""Products that are large enough for a test, and the operations that come of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from harness.model.device_limits import limits_of
from harness.reference import block_sparse_models

SIZE = 512


class Seen(TorchDispatchMode):
    """While entered, the names of the operations that reach PyTorch itself."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types_, arguments=(), named=None):
        self.names.append(str(function))
        return function(*arguments, **(named or {}))


@pytest.fixture
def watched():
    """`with watched() as seen`: the operations that reach PyTorch."""
    return Seen


@pytest.fixture
def small_counts(monkeypatch):
    """Products of 512 are large enough here: what is worth it on a CPU takes longer than a test may."""
    monkeypatch.setattr(block_sparse_models, "limits_of", lambda kind: replace(limits_of(kind), product_size=SIZE))
