"""The judge's GPU made ready ahead of its use, in a thread while Python imports something: its context before PyTorch
is there, and then what its libraries and PyTorch do at their first calls, hardly any of which needs Python.

Beside an H200 the references took 0.14 to 0.19 s after it, and 0.33 s without. Importing this imports no PyTorch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.protocol.context_opening import open_in_thread

if TYPE_CHECKING:
    import torch

_SIZE = 1024


def open_context_early(name: str) -> threading.Thread | None:
    """Have a thread open the GPU of `auto` or `cuda:N`, where this PyTorch can use one."""
    spec = None if name == "cpu" else find_spec("torch")  # which imports nothing
    if spec is None or spec.origin is None or not any(Path(spec.origin).parent.glob("lib/libtorch_cuda.so*")):
        return None
    return open_in_thread(int(name.partition(":")[2] or 0))


@contextlib.contextmanager
def first_calls_made(device: torch.device) -> Iterator[None]:
    """While entered, a thread makes the first calls on a GPU; left once they are made, or have failed."""
    if device.type != "cuda":
        yield
        return
    thread = threading.Thread(target=_make_first_calls, args=(device,), name="first calls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _make_first_calls(device: torch.device) -> None:
    import torch  # both are there already

    from harness.reference.error_kernel import error_kernel

    with contextlib.suppress(Exception), torch.cuda.device(device), torch.no_grad():
        narrow = torch.rand(_SIZE, _SIZE, device=device).tril()
        wide = narrow.double()
        magnitudes = (wide @ wide).abs()
        magnitudes.addmm_(wide, wide)
        (torch.stack([(narrow @ narrow).amin(), narrow.amin()]) >= 0).tolist()
        torch.linalg.vector_norm(wide.unflatten(1, (2, -1)), 1, dim=2).isfinite().all()
        torch.equal(narrow, narrow.clone())
        torch._foreach_copy_([narrow], [narrow.clone()])
        error_kernel(device)
        torch.cuda.synchronize(device)
