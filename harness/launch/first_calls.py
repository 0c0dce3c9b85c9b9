"""What a GPU's libraries and PyTorch do at their first calls, done in a thread while Python imports something.

cuBLAS is opened, kernels are loaded as they are first called, and the harness's own are compiled; hardly any of it needs
Python. Beside an H200 the references took 0.14 to 0.19 s after it, and 0.33 s without.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

from harness.reference.error_kernel import error_kernel

_SIZE = 1024


@contextlib.contextmanager
def made_meanwhile(device: torch.device) -> Iterator[None]:
    """While entered, a thread makes the first calls on `device`; left once they are made. On a CPU there are none.

    What fails in them is left to whoever needs it.
    """
    if device.type != "cuda":
        yield
        return
    thread = threading.Thread(target=_make, args=(device,), name="first calls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _make(device: torch.device) -> None:
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
