"""Makes a KernelBench problem small enough to be tried on a CPU: its sizes are halved until one call is cheap.

A size is a whole number in a module-level assignment, or in `get_inputs` and `get_init_inputs`. Nothing is computed
meanwhile: the model runs on PyTorch's meta device, where tensors have a shape and no numbers.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from harness.model.errors import HarnessError

MOST_FLOPS, MOST_ELEMENTS = 3e8, 12e6
MOST_TIMES = 20.0  # that may be left over what is wanted: a network whose image cannot be made smaller
# The smallest that a size is made, first and then where the call is still too large; kernel sizes and strides are below.
_SMALLEST = (16, 4)
_PER_GROUP = 4  # elements of each group of a norm or convolution: a group of one has no variance


class _Elements(TorchDispatchMode):
    """Counts the elements of every tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        made = function(*arguments, **(named or {}))
        for each in made if isinstance(made, (list, tuple)) else [made]:
            if isinstance(each, torch.Tensor) and not function.is_view:
                self.count += each.numel()
        return made


def shrunk(source: str, path: Path) -> str:
    """The source with smaller sizes. Raises HarnessError where its model does not run without numbers, or stays large.
    """
    tree = ast.parse(source)
    cost = _cost(tree, path)
    if isinstance(cost, str):
        raise HarnessError(f"{path.name} cannot be shrunk: {cost}")
    for smallest in _SMALLEST:
        cost = _halve_sizes(tree, path, cost, smallest)
    for batch in _named(tree, "batch"):
        while cost > 1 and batch.value > 1 and (smaller := _with_half(tree, [batch], path, cost)) is not None:
            cost = smaller
    if cost > MOST_TIMES:
        raise HarnessError(f"{path.name} cannot be shrunk: a call still costs {cost:.0f} times what is wanted")
    return ast.unparse(tree)


def _halve_sizes(tree: ast.Module, path: Path, cost: float, smallest: int) -> float:
    """Halve the largest sizes, those of one value together and else each by itself, until a call costs no more than is
    wanted or none can be halved; returns what it costs then.
    """
    stuck: set[int] = set()
    while cost > 1:
        sizes = [each for each in _sizes(tree) if id(each) not in stuck and each.value >= 2 * smallest]
        if not sizes:
            break
        largest = [each for each in sizes if each.value == max(each.value for each in sizes)]
        for halved in [largest, *([[each] for each in largest] if len(largest) > 1 else [])]:
            smaller = _with_half(tree, halved, path, cost)
            if smaller is not None:
                cost = smaller
                break
        else:
            stuck.update(map(id, largest))
    return cost


def _with_half(tree: ast.Module, halved: list[ast.Constant], path: Path, cost: float) -> float | None:
    """What a call costs with these halved, and with them every number of groups that they come near; None where the
    model then does not run, or costs no less than `cost`, and all is as it was.
    """
    new = halved[0].value // 2
    near = [each for each in _named(tree, "group") if each.value <= new < _PER_GROUP * each.value]
    before = {each: each.value for each in (*halved, *near) if each.value > 1}
    for each in before:
        each.value //= 2
    smaller = _cost(tree, path)
    if not isinstance(smaller, str) and smaller < cost:
        return smaller
    for each, value in before.items():
        each.value = value
    return None


def _sizes(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in tree.body:
        is_inputs = isinstance(node, ast.FunctionDef) and node.name in ("get_inputs", "get_init_inputs")
        if isinstance(node, (ast.Assign, ast.AnnAssign)) or is_inputs:
            yield from (
                each for each in ast.walk(node) if isinstance(each, ast.Constant) and type(each.value) is int
            )


def _named(tree: ast.Module, word: str) -> list[ast.Constant]:
    """The whole numbers whose name has this word in it."""
    return [
        node.value for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
        and isinstance(node.targets[0], ast.Name) and word in node.targets[0].id
    ]


def _cost(tree: ast.Module, path: Path) -> float | str:
    """A call over what is wanted, by operations or elements, whichever is more; or what the model raised."""
    module = types.ModuleType(path.stem)
    try:
        exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
        with torch.device("meta"), torch.no_grad():
            model = module.Model(*getattr(module, "get_init_inputs", list)())
            inputs = module.get_inputs()
            with FlopCounterMode(display=False) as flops, _Elements() as elements:
                model(*inputs)
    except Exception as error:  # the model's own, whatever it is
        return f"on the meta device it raises {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    count = elements.count + sum(each.numel() for each in inputs if isinstance(each, torch.Tensor))
    return max(flops.get_total_flops() / MOST_FLOPS, count / MOST_ELEMENTS)
