"""Calls a reference's get_inputs so that two draws differ, as far as they can.

A file may seed the draw itself, or make its inputs once, at module level. A result that was kept would then be right in
every later call, and nothing would tell a kernel that computes once from one that computes in each call.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from itertools import count
from types import ModuleType
from typing import Any

import torch

from harness.reference.inputs.sets import InputSet

_MOST_SEED = 2**32  # NumPy takes no larger one


class Way(Enum):
    """How a draw is made: as the file has it, with its own seeds passed over, or with its module run anew besides."""

    AS_WRITTEN = "as written"
    UNSEEDED = "unseeded"
    ANEW = "anew"


class Drawing:
    """Draws by a module's `get_inputs`; `run_again()` runs its file anew, `arguments_of` lists what a draw returns."""

    def __init__(
        self, module: ModuleType, run_again: Callable[[], ModuleType], arguments_of: Callable[[Any], list[Any]]
    ) -> None:
        self._module, self._run_again, self._arguments_of = module, run_again, arguments_of
        self.way = Way.AS_WRITTEN

    def __call__(self) -> list[Any]:
        """The arguments of one call, under the seed that PyTorch has been given."""
        if self.way is Way.AS_WRITTEN:
            return self._arguments_of(self._module.get_inputs())
        with _seeds_passed_over(torch.initial_seed()):
            module = self._module if self.way is Way.UNSEEDED else self._run_again()
            return self._arguments_of(module.get_inputs())

    def settle(self, draw: Callable[[], InputSet]) -> bool:
        """Choose the first way in which the most tensors differ between two draws by `draw`; whether anything does."""
        differing, values_differ = {}, False
        for way in Way:
            self.way = way
            (first, first_form), (second, second_form) = _traits(draw()), _traits(draw())
            differing[way] = sum(own != other for own, other in zip(first, second))
            values_differ |= first_form != second_form
            if first and differing[way] == len(first):
                return True
        self.way = max(differing, key=differing.__getitem__)
        return differing[self.way] > 0 or values_differ


def _traits(inputs: InputSet) -> tuple[list[str], Any]:
    """What two draws are compared by; the tensors themselves may be large."""
    return inputs.digests(), inputs.skeleton


@contextmanager
def _seeds_passed_over(seed: int) -> Iterator[None]:
    """While entered, seeds that Python code sets count for nothing; new generators, NumPy and `random` go by `seed`."""
    numbers = count(seed)

    def next_seed() -> int:
        return next(numbers) % _MOST_SEED

    class Unseeded(torch.Generator):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().manual_seed(next_seed())

        def manual_seed(self, seed: int) -> torch.Generator:
            return self

    def pass_over(*arguments: Any, **named: Any) -> torch.Generator:
        return torch.default_generator

    random.seed(next_seed())
    replaced: list[tuple[Any, str, Any]] = [
        (torch, "manual_seed", pass_over), (torch.random, "manual_seed", pass_over),
        (torch.cuda, "manual_seed", pass_over), (torch.cuda, "manual_seed_all", pass_over),
        (torch, "set_rng_state", pass_over), (torch.random, "set_rng_state", pass_over),
        (torch, "Generator", Unseeded), (random, "seed", pass_over),
    ]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(next_seed())
        drawn = numpy.random.default_rng
        replaced += [
            (numpy.random, "seed", pass_over),
            (numpy.random, "default_rng", lambda *arguments, **named: drawn(next_seed())),
        ]
    with ExitStack() as restored:
        for owner, name, value in replaced:
            restored.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield
