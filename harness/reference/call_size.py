"""How large a call of a reference will be, found before anything of it is drawn, on PyTorch's device without memory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from harness.protocol import tree
from harness.protocol.layout import plan, region_bytes

_META = torch.device("meta")
_COMPILER = "torch._dynamo"


@dataclass(frozen=True)
class Foreseen:
    """Bytes of the inputs, of the outputs (0 where the model cannot be run without memory), and of the inputs in float64."""

    inputs_bytes: int
    outputs_bytes: int
    wide_inputs_bytes: int


def foreseen(arguments_of: Callable[[], list[Any]], call: Callable[[list[Any]], Any]) -> Foreseen | None:
    """What one `call` of a model, which it constructs, with what `arguments_of()` draws takes; None where inputs are made of
    what must be computed.
    """
    try:
        with _META, torch.no_grad(), _without_compiler():
            arguments = arguments_of()
            _, tensors = tree.flatten(arguments)
    except Exception:  # whatever a reference does that this device cannot: it is looked at when it is drawn
        return None
    floating = sum(tensor.numel() for tensor in tensors if tensor.is_floating_point())
    return Foreseen(region_bytes(plan(tensors)), _output_bytes(call, arguments), 8 * floating)


def _output_bytes(call: Callable[[list[Any]], Any], arguments: list[Any]) -> int:
    try:
        with _META, torch.no_grad(), _without_compiler():
            _, outputs = tree.flatten(call(arguments))
    except Exception:
        return 0
    return region_bytes(plan(outputs))


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Keep PyTorch from importing torch._dynamo, which takes 0.6 s, only to tell it to leave shape functions alone.

    `torch._compile` does so at the first call of each, and keeps the answer on the function: that is taken back. Whoever
    asks for anything else gets the real one.
    """
    if _COMPILER in sys.modules:
        yield
        return
    stand_in = _CompilerStandIn(_COMPILER)
    sys.modules[_COMPILER] = stand_in
    try:
        yield
    finally:
        stand_in.leave()
        for function in stand_in.asked:
            function.__dict__.pop("__dynamo_disable", None)


class _CompilerStandIn(ModuleType):
    """Stands in the place of torch._dynamo until somebody needs more of it than `disable` in `torch._compile`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.asked: list[Any] = []

    def disable(self, function: Any = None, *given: Any, **named: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__") != "torch._compile":
            return self.__getattr__("disable")(function, *given, **named)
        self.asked.append(function)
        return function

    def leave(self) -> None:
        if sys.modules.get(_COMPILER) is self:
            del sys.modules[_COMPILER]

    def __getattr__(self, name: str) -> Any:
        self.leave()
        return getattr(importlib.import_module(_COMPILER), name)
