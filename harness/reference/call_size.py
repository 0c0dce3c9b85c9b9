"""How large a call of a reference will be, found before anything of it is drawn, on PyTorch's device without memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from harness.protocol import tree
from harness.protocol.layout import plan, region_bytes

_META = torch.device("meta")


@dataclass(frozen=True)
class Foreseen:
    """Bytes of the inputs, of the outputs (0 where the model cannot be run without memory), and of the inputs in float64."""

    inputs_bytes: int
    outputs_bytes: int
    wide_inputs_bytes: int


def foreseen(arguments_of: Callable[[], list[Any]], call: Callable[[list[Any]], Any]) -> Foreseen | None:
    """What one `call` with what `arguments_of()` draws takes; None where inputs are made of what must be computed."""
    try:
        with _META, torch.no_grad():
            arguments = arguments_of()
            _, tensors = tree.flatten(arguments)
    except Exception:  # whatever a reference does that this device cannot: it is looked at when it is drawn
        return None
    floating = sum(tensor.numel() for tensor in tensors if tensor.is_floating_point())
    return Foreseen(region_bytes(plan(tensors)), _output_bytes(call, arguments), 8 * floating)


def _output_bytes(call: Callable[[list[Any]], Any], arguments: list[Any]) -> int:
    try:
        with _META, torch.no_grad():
            _, outputs = tree.flatten(call(arguments))
    except Exception:
        return 0
    return region_bytes(plan(outputs))
