"""How an output differs from the truth, on the device: the largest error in u and where it lies, the mean square, what
is not finite.

The error of an element is |C − C64| / (u·D). Where D is zero, and in integer and boolean outputs, an element must be
equal. On a GPU one kernel reads everything once; elsewhere the same is said in PyTorch's operations, ordinary outputs
in few of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.reference.accuracy.bounds import error_unit
from harness.reference.element_errors import element_errors
from harness.reference.error_kernel import Compared, RawFigures, error_kernel, widened

# Stands for an error scale of zero, where any difference must show: in units of it none is too small to be large.
_NO_SCALE = 2.0**-500
_LARGE_U = 2.0**60


@dataclass(frozen=True)
class Difference:
    """How one output differs: errors in u, and the worst element with what was got and expected there."""

    max_u: float
    rms_u: float
    worst_index: tuple[int, ...] | None
    got: float | None
    expected: float | None
    not_finite: int = 0
    elements: int = 0


def difference(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None) -> Difference:
    """Compare one output. `expected` is float64 with error scale `scale`, or of the output's own type. An element that
    must be equal and is not, or that is NaN or infinite where the truth is neither, has an infinite error.
    """
    return differences([(got, expected, scale)])[0]


def differences(outputs: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]]) -> list[Difference]:
    """`difference` of each, all on one device; of a GPU one answer is waited for, and one for each exact type."""
    on_gpu = [
        number for number, (got, _, scale) in enumerate(outputs)
        if got.is_cuda and got.numel() and scale is not None and got.is_floating_point()
    ]
    known = dict(zip(on_gpu, _on_gpu([outputs[number] for number in on_gpu])))
    return [_difference(*each, known.get(number)) for number, each in enumerate(outputs)]


def _difference(
    got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None, raw: RawFigures | None
) -> Difference:
    """`difference`, from its figures where those are known already."""
    if got.numel() == 0:
        return Difference(0.0, 0.0, None, None, None)
    if scale is None or not got.is_floating_point():
        return _exact_difference(got, expected)
    expected, scale = expected.double(), widened(scale)
    if raw is None and not got.is_cuda:
        raw = _in_few_passes(got, expected, scale)
    raw = raw or _in_torch(got, expected, scale)
    rms_u = math.sqrt(raw.square_sum / got.numel()) if math.isfinite(raw.max_u) else math.inf
    place = _unravel(raw.position, got.shape)
    return Difference(raw.max_u, rms_u, place, raw.got, raw.expected, raw.not_finite, got.numel())


def _on_gpu(outputs: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> list[RawFigures | None]:
    """By the kernel, or None for a layout that it does not read."""
    if not outputs:
        return []
    compared = []
    for got, expected, scale in outputs:
        unit = error_unit(str(got.dtype).removeprefix("torch."))
        wide = got if got.dtype in (torch.float32, torch.float64) else got.float()
        expected = expected if expected.dtype == wide.dtype == got.dtype else expected.double()
        compared.append(Compared(wide, expected, widened(scale), unit))
    return error_kernel(outputs[0][0].device).figures(compared)


def _in_few_passes(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor) -> RawFigures | None:
    """Those of an output without NaN, infinity or a difference where the scale is zero; None for any other.

    On a CPU, to tell all cases apart takes three times as long.
    """
    if got.dtype == torch.float64:  # as fine as the truth: a difference may be smaller than what stands for zero
        return None
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    wide = got.double()
    flat = (wide - expected).abs_().div_((scale * unit).clamp_(min=_NO_SCALE)).flatten()
    worst = flat.argmax()
    figures = torch.stack(
        [flat[worst], torch.linalg.vector_norm(flat), worst.double(), wide.flatten()[worst], expected.flatten()[worst]]
    ).tolist()
    max_u, norm_u, position, got_value, expected_value = figures
    if not max_u < _LARGE_U:  # NaN is not either
        return None
    return RawFigures(max_u, norm_u * norm_u, int(position), got_value, expected_value, 0)


def _in_torch(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor) -> RawFigures:
    wide = got.double()
    lost = ~wide.isfinite() & expected.isfinite()
    flat = element_errors(got, expected, scale).flatten()
    worst = flat.argmax()
    squares = torch.where(flat.isfinite(), flat, 0.0).square().sum()
    figures = torch.stack(
        [flat[worst], squares, worst.double(), wide.flatten()[worst], expected.flatten()[worst], lost.sum().double()]
    ).tolist()
    max_u, square_sum, position, got_value, expected_value, lost_count = figures
    return RawFigures(max_u, square_sum, int(position), got_value, expected_value, int(lost_count))


def _exact_difference(got: torch.Tensor, expected: torch.Tensor) -> Difference:
    wrong = (got != expected).flatten()
    count = int(wrong.sum())
    if count == 0:
        return Difference(0.0, 0.0, None, None, None)
    position = int(wrong.to(torch.uint8).argmax())
    got_value, expected_value = float(got.flatten()[position]), float(expected.flatten()[position])
    return Difference(math.inf, math.inf, _unravel(position, got.shape), got_value, expected_value)


def _unravel(position: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(position % size)
        position //= size
    return tuple(reversed(index))
