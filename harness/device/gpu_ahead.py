"""The judge's GPU opened ahead of its use, in a thread while Python imports PyTorch; importing this imports none."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path

from harness.protocol.context_opening import open_in_thread


def open_context_early(name: str) -> threading.Thread | None:
    """Have a thread open the GPU of `auto` or `cuda:N`, where this PyTorch can use one."""
    spec = None if name == "cpu" else find_spec("torch")  # which imports nothing
    if spec is None or spec.origin is None or not any(Path(spec.origin).parent.glob("lib/libtorch_cuda.so*")):
        return None
    return open_in_thread(int(name.partition(":")[2] or 0))
