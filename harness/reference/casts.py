"""A model that casts inside itself to a narrower type, run in float64 without that.

What such a model is to compute is what it says, not what the rounding of its casts made of it on one machine: in float64
its casts to half precision keep what they are given. How much they could round is part of the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_BY_NAME = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64}
# They read the same bytes as another type, which no wider type has.
_OF_BYTES = ("view", "frombuffer", "view_dtype")


class WithoutCasts(TorchFunctionMode):
    """While entered, each floating-point type that PyTorch's functions are asked for is float64, and so is the default.

    `narrowest_u` is the unit roundoff of the narrowest type that was asked for, in u of fp32: 1 where there was none
    narrower.
    """

    def __init__(self) -> None:
        super().__init__()
        self.narrowest_u = 1.0
        self._default = torch.float32

    def __enter__(self) -> WithoutCasts:
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        torch.set_default_dtype(self._default)
        super().__exit__(*raised)

    def __torch_function__(self, function, types_, arguments=(), named=None):
        named = named or {}
        asked = cast_type(function, arguments, named)
        if asked is None or getattr(function, "__name__", "") in _OF_BYTES:
            return function(*arguments, **named)
        self.narrowest_u = max(self.narrowest_u, roundoff_u(asked))
        if getattr(function, "__name__", "") in _BY_NAME:
            return arguments[0].double()
        widened = [torch.float64 if _is_floating(each) else each for each in arguments]
        return function(*widened, **{
            key: torch.float64 if _is_floating(value) else value for key, value in named.items()
        })


class NarrowestMade(TorchFunctionMode):
    """While entered, `u` is the unit roundoff of the narrowest floating-point tensor that a function of PyTorch's made, in
    u of fp32, as under autocast, which no function is asked for; 1 where there was none narrower.
    """

    def __init__(self) -> None:
        super().__init__()
        self.u = 1.0

    def __torch_function__(self, function, types_, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        for each in made if isinstance(made, (list, tuple)) else (made,):
            if isinstance(each, torch.Tensor) and each.is_floating_point():
                self.u = max(self.u, roundoff_u(each.dtype))
        return made


def cast_type(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> torch.dtype | None:
    """The floating-point type that a call of a function of PyTorch's asks for; None where it asks for none."""
    by_name = _BY_NAME.get(getattr(function, "__name__", ""))
    if by_name is not None:
        is_cast = arguments and isinstance(arguments[0], torch.Tensor) and arguments[0].is_floating_point()
        return by_name if is_cast else None
    return next((each for each in (*arguments, *named.values()) if _is_floating(each)), None)


def roundoff_u(dtype: torch.dtype) -> float:
    """Its unit roundoff in u of fp32; 1 for the wider ones."""
    return max(1.0, torch.finfo(dtype).eps / 2 * 2.0**24)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.dtype) and value.is_floating_point
