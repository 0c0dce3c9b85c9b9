"""What of PyTorch a reference can change for all that comes after it in a process."""

from __future__ import annotations

from typing import Any

import torch


def torch_defaults() -> tuple[Any, ...]:
    """The defaults that results or times hang on, to be held against each other before and after a problem."""
    return (
        torch.get_default_dtype(), str(torch.get_default_device()), torch.is_grad_enabled(), torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic, torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction, torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.cuda.mem_efficient_sdp_enabled(), torch.backends.cuda.math_sdp_enabled(),
        torch.Tensor.__add__, torch.nn.functional.relu, torch.nn.Module.__call__,
    )
