"""What PyTorch, Triton and CUDA say where a GPU is wanted and there is none."""

from __future__ import annotations

_SIGNS = (
    "No CUDA GPUs are available", "Found no NVIDIA driver", "no CUDA-capable device", "0 active drivers",
    "Torch not compiled with CUDA enabled", "no NVIDIA", "CUDA driver initialization failed",
    "Invalid device id", "CUDA is not available", "Cannot access accelerator device",
    "CUDA unknown error", "cuda available", "Tried to instantiate dummy base class",
    "requires CUDA support", "libcuda.so", "CUDA driver version is insufficient",
)


def wants_gpu(message: str) -> bool:
    """Whether an exception's words say so."""
    return any(sign in message for sign in _SIGNS)
