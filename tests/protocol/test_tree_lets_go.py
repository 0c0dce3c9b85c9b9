"""What `flatten` returns is all that holds the tensors: no cycle keeps them until garbage is collected."""

from __future__ import annotations

import gc
import weakref

import torch

from harness.protocol import tree


def test_tensors_go_with_the_result_and_wait_for_no_garbage_collection():
    gc.disable()
    try:
        tensor = torch.zeros(3)
        seen = weakref.ref(tensor)
        skeleton, tensors = tree.flatten({"a": [tensor, 1]})
        del tensor, tensors
        assert skeleton == {"dict": {"a": {"list": [{"tensor": 0}, {"value": 1}]}}}
        assert seen() is None
    finally:
        gc.enable()
