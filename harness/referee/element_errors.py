"""The error of each element of an output, on the device it lies on: what verdicts and evidence are both made of."""

from __future__ import annotations

import math

import torch

from harness.accuracy.bounds import error_unit


def element_errors(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """|C − C64| / (u·D) as float64, of the shape of `got`.

    Where D (`scale`) is zero, and everywhere in integer and boolean outputs, an element must be equal; one that is not,
    or that is NaN or infinite where the truth is neither, has an infinite error.
    """
    if scale is None or not got.is_floating_point():
        return torch.where(got == expected, 0.0, math.inf).double()
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    wide = got.double()
    error = (wide - expected).abs() / (scale * unit)
    # 0/0 (equal where D is 0) is no error; anything else over 0 is an infinite one already.
    same = (wide == expected) | (wide.isnan() & expected.isnan())
    error = torch.where(same, 0.0, error)
    return torch.where(error.isnan(), math.inf, error)
