"""The judge's GPU is opened in a thread while Python imports PyTorch, where it is known early on which one it will be.

Importing this imports no PyTorch.
"""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path

from harness.protocol.context_opening import open_in_thread


def open_context_early(name: str) -> threading.Thread | None:
    """Have a thread open the GPU of `auto` or `cuda:N`, where this PyTorch can use one."""
    if name == "cpu" or not _uses_gpus():
        return None
    return open_in_thread(int(name.partition(":")[2] or 0))


def _uses_gpus() -> bool:
    """Whether this PyTorch comes with its library for GPUs; it is not imported."""
    spec = find_spec("torch")
    return spec is not None and spec.origin is not None and any(
        Path(spec.origin).parent.glob("lib/libtorch_cuda.so*")
    )
