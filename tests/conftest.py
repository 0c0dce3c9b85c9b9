"""Tests marked `gpu` run where PyTorch has a GPU and are skipped, visibly, everywhere else."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needing_gpu:
        return
    import torch

    if torch.cuda.is_available():
        return
    skipped = pytest.mark.skip(reason="needs an NVIDIA GPU that PyTorch can use; there is none here")
    for item in needing_gpu:
        item.add_marker(skipped)
