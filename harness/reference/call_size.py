"""How large a call of a reference would be, found on PyTorch's device without memory, which takes two seconds to begin with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from harness.protocol import tree
from harness.protocol.layout import plan, region_bytes

_META = torch.device("meta")


@dataclass(frozen=True)
class Foreseen:
    """Bytes of the inputs, of the outputs (0 where the model cannot be run without memory), of the inputs in float64, and of
    the model's parameters and buffers (0 where it cannot be made without memory).
    """

    inputs_bytes: int
    outputs_bytes: int
    wide_inputs_bytes: int
    state_bytes: int


def foreseen(
    arguments_of: Callable[[], list[Any]], make_model: Callable[[], torch.nn.Module],
    call: Callable[[torch.nn.Module, list[Any]], Any],
) -> Foreseen | None:
    """What one `call` of the model with what `arguments_of()` draws takes; None where inputs are made of what must be
    computed.
    """
    try:
        with _META, torch.no_grad():
            arguments = arguments_of()
            _, tensors = tree.flatten(arguments)
    except Exception:  # whatever a reference does that this device cannot: it is looked at when it is drawn
        return None
    floating = sum(tensor.numel() for tensor in tensors if tensor.is_floating_point())
    outputs_bytes = state_bytes = 0
    with suppress(Exception), _META, torch.no_grad():
        model = make_model()
        state = [each for each in model.state_dict().values() if isinstance(each, torch.Tensor)]
        state_bytes = sum(tensor.numel() * tensor.itemsize for tensor in state)
        _, outputs = tree.flatten(call(model, arguments))
        outputs_bytes = region_bytes(plan(outputs))
    return Foreseen(region_bytes(plan(tensors)), outputs_bytes, 8 * floating, state_bytes)
