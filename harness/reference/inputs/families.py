"""Families of inputs for products of two matrices, each made from one draw of `get_inputs` and keeping its zeros.

All-positive inputs hide lost precision behind a large sum; these do not. Random signs cancel, magnitudes spread over
binades defeat a narrow exponent range, and one-hot inputs make every product visible by itself. What other problems
have stands in `one_way_rounding`, and where these may have signs in the reference's `measured_bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.reference.inputs.pieces import changed_in_pieces

SPREAD_BINADES = 20


@dataclass(frozen=True)
class Family:
    """`transform(tensors, contracted)` returns new tensors; `exact` says that the product involves no rounding, and
    `is_for_products` that other problems cannot have this family.

    `is_timed` is whether a call may be timed on it besides. An honest product takes no longer with signs; one that
    narrows its inputs may look at their range, and lines of zeros and ones could be gathered by whoever knows them.
    """

    name: str
    exact: bool
    transform: Callable[[Sequence[torch.Tensor], Sequence[int] | None], list[torch.Tensor]]
    is_timed: bool = False
    is_for_products: bool = True

    def applied(
        self, skeleton: Any, tensors: Sequence[torch.Tensor], contracted: Sequence[int] | None
    ) -> list[torch.Tensor]:
        """The tensors of a draw, of which only floating-point ones are transformed; `skeleton` is their form."""
        changed = list(tensors)
        if contracted is not None or not self.is_for_products:
            floating = [index for index, tensor in enumerate(tensors) if tensor.is_floating_point()]
            for index, tensor in zip(floating, self.transform([tensors[index] for index in floating], contracted)):
                changed[index] = tensor
        return changed


def _given(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    return list(tensors)


def _signs(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    # A zero stays as it is: a candidate that leaves blocks of zeros out by their bits is to find them here too.
    return [changed_in_pieces(_with_signs, tensor) for tensor in tensors]


def _with_signs(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (2 * torch.randint_like(tensor, 0, 2) - 1) + 0.0


def _spread(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    return [torch.ldexp(tensor, torch.randint_like(tensor, -SPREAD_BINADES, SPREAD_BINADES + 1)) for tensor in tensors]


def _one_hot_last(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    return [*tensors[:-1], one_hot_along(tensors[-1], contracted[-1])]


def _one_hot_first(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    return [one_hot_along(tensors[0], contracted[0]), *tensors[1:]]


def _identity(tensors: Sequence[torch.Tensor], contracted: Sequence[int]) -> list[torch.Tensor]:
    last = tensors[-1]
    identity = torch.eye(*last.shape, dtype=last.dtype, device=last.device)
    return [*tensors[:-1], identity * (last != 0)]


GIVEN = Family("as given", False, _given, is_for_products=False)
SIGNS = Family("signs", False, _signs, is_timed=True, is_for_products=False)
PRODUCT_FAMILIES = (
    GIVEN, SIGNS, Family("spread", False, _spread), Family("one-hot last", True, _one_hot_last),
    Family("one-hot first", True, _one_hot_first), Family("identity", True, _identity),
)


def families_for(contracted: Sequence[int] | None, *, with_gradients: bool = False) -> tuple[Family, ...]:
    """All families for a product with the given contracted axes; "as given" for any other problem, which may have one
    besides that shows what inputs as given hide.

    Inputs that make a product exact do not make its gradients so: `with_gradients` leaves these families out.
    """
    if contracted is None:
        return (GIVEN,)
    return tuple(family for family in PRODUCT_FAMILIES if not (with_gradients and family.exact))


def family_named(name: str) -> Family:
    """Raises KeyError for a name that no family has."""
    return {family.name: family for family in PRODUCT_FAMILIES}[name]


def one_hot_along(matrix: torch.Tensor, axis: int) -> torch.Tensor:
    """A matrix alike with a single 1 in each line along `axis`, where `matrix` is not zero; lines of zeros stay so."""
    allowed = matrix != 0
    chosen = (torch.rand(matrix.shape, device=matrix.device) * allowed).argmax(dim=axis, keepdim=True)
    hot = torch.zeros_like(matrix).scatter_(axis, chosen, 1)
    return hot * allowed
