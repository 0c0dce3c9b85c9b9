"""How long the sums of a reference are, seen while it runs: what a YAML says as `terms`, found where none does.

Every function of PyTorch that the model calls is looked at with its arguments: products contract an axis, convolutions
a window of all channels, reductions what they leave out, norms what they average over. The longest counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_PRODUCTS = {"matmul": 0, "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "linear": 0, "__matmul__": 0, "addmm": 1, "baddbmm": 1,
             "addmv": 1, "addbmm": 1, "scaled_dot_product_attention": 0}
_ALONG_A_DIMENSION = ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "normalize", "softmin")


class WatchedRun(TorchFunctionMode):
    """While entered: `narrow` says whether a float64 tensor was made narrower, `longest_sum` how many terms the longest
    sum had (1 where nothing was summed), `has_products` whether a product or convolution was among them.

    A constant that the model makes itself, such as `torch.tensor(0.5)`, is no cast.
    """

    def __init__(self) -> None:
        super().__init__()
        self.narrow = self.has_products = False
        self.longest_sum = 1

    def __torch_function__(self, function, types_, arguments=(), named=None):
        named = named or {}
        made = function(*arguments, **named)
        tensors = [each for each in (made if isinstance(made, (list, tuple)) else (made,)) if _is_tensor(each)]
        if any(each.is_floating_point() and each.dtype != torch.float64 for each in tensors):
            self.narrow |= any(each.dtype == torch.float64 for each in _tensors_in((*arguments, *named.values())))
        if tensors:
            name = getattr(function, "__name__", "")
            self.has_products |= is_product(name)
            self.longest_sum = max(self.longest_sum, sum_length(name, arguments, named, tensors[0]))
        return made


def sum_length(name: str, arguments: Sequence[Any], named: Mapping[str, Any], made: torch.Tensor) -> int:
    """Terms of the longest sum in one call of the PyTorch function `name`; 1 for what sums nothing or is not known."""
    inputs = [each for each in (*arguments, *named.values()) if _is_tensor(each)]
    if not inputs or not all(each.numel() for each in inputs):
        return 1
    first = inputs[0]
    if name in _PRODUCTS:
        operand = inputs[min(_PRODUCTS[name], len(inputs) - 1)]
        return max(1, operand.shape[-1] if operand.dim() else 1)
    if name == "einsum":
        return _contracted(arguments)
    if name.startswith("conv") and len(inputs) > 1:
        weight = inputs[1]
        return weight.numel() // weight.shape[1 if "transpose" in name else 0]
    if name == "layer_norm" or name == "rms_norm":
        return math.prod(arguments[1] if len(arguments) > 1 else named["normalized_shape"])
    if name in ("group_norm", "batch_norm", "instance_norm") and first.dim() > 1:
        groups = first.shape[1] if name != "group_norm" else (
            arguments[1] if len(arguments) > 1 else named["num_groups"]
        )
        batches = 1 if name == "batch_norm" else first.shape[0]
        return max(1, first.numel() // (groups * batches))
    if name in _ALONG_A_DIMENSION:
        dim = named.get("dim", arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else -1)
        return first.shape[dim if isinstance(dim, int) else -1] if first.dim() else 1
    if made.numel() and made.is_floating_point() and _reduces(name):
        return max(1, first.numel() // made.numel())
    return 1


def is_product(name: str) -> bool:
    """Whether the PyTorch function `name` multiplies matrices or convolves."""
    return name in _PRODUCTS or name == "einsum" or name.startswith("conv")


def _reduces(name: str) -> bool:
    return name.endswith("_loss") or "pool" in name or name in (
        "sum", "mean", "var", "std", "norm", "vector_norm", "logsumexp", "prod", "nansum", "nanmean", "var_mean", "cdist",
        "std_mean", "cross_entropy", "kl_div", "cosine_similarity", "pairwise_distance", "trace", "count_nonzero",
    )


def _contracted(arguments: Sequence[Any]) -> int:
    """The product of the sizes of the letters of an einsum that its output does not have."""
    equation = arguments[0] if arguments and isinstance(arguments[0], str) else ""
    left, arrow, right = equation.replace(" ", "").partition("->")
    operands = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], (list, tuple)) else arguments[1:]
    names = left.split(",")
    if not arrow or "." in left or len(names) != len(operands):
        return max((max(each.shape, default=1) for each in operands if _is_tensor(each)), default=1)
    sizes = {letter: size for word, tensor in zip(names, operands) for letter, size in zip(word, tensor.shape)}
    return math.prod(size for letter, size in sizes.items() if letter not in right)


def _tensors_in(values: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among arguments, and in lists of them."""
    tensors = []
    for value in values:
        tensors += _tensors_in(value) if isinstance(value, (list, tuple)) else [value] if _is_tensor(value) else []
    return tensors


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
