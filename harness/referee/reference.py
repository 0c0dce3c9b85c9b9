"""The reference at one set of sizes: strict eager, float64, and the error scale, all on inputs of ours.

"Strict" means TF32 off for cuBLAS and cuDNN. A model that casts inside itself, or has no float64, has no truth in
float64; its outputs are then compared with strict eager, and the record says so.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.errors import InputError
from harness.inputs.families import GIVEN, Family
from harness.inputs.sets import InputSet, draw_set
from harness.problem import Problem
from harness.reading.reference_source import with_sizes
from harness.wire import tree
from harness.wire.layout import TensorSpec, is_dense, plan


@dataclass(frozen=True)
class Truth:
    """What a launch must return: `outputs` are float64 where the output floats and `exact` is False.

    `scales` holds the error scale D of each output (None for integers), `values` the plain numbers among them.
    """

    outputs: list[torch.Tensor]
    scales: list[torch.Tensor | None]
    eager: list[torch.Tensor]
    values: list[Any]


class Reference:
    """`Model` of a problem at given sizes on a device, constructed under `seed`.

    Raises InputError when the reference's file cannot be run, with what it raised.
    """

    def __init__(self, problem: Problem, sizes: Mapping[str, int], device: torch.device, seed: int) -> None:
        self.problem, self.sizes, self.device = problem, dict(sizes), device
        be_strict()
        self.module = load_module(problem, sizes)
        be_strict()
        try:
            self.init = list(getattr(self.module, "get_init_inputs", list)())
            torch.manual_seed(seed)
            self.model = self.module.Model(*self.init).to(device)
        except Exception as error:
            raise InputError(
                f"Model of the reference cannot be constructed: {type(error).__name__}: {error}",
                problem.reference_path,
            ) from error
        self.specs: tuple[TensorSpec, ...] | None = None
        first = self.draw()
        self.specs = first.specs
        self._check_dtype()
        eager, self.shape = self._described(first)
        self.output_specs = plan(eager, contiguous=True)
        self.output_strides = [list(tensor.stride()) if is_dense(tensor) else None for tensor in eager]
        self._model64 = self._in_float64(first)
        self.truth_name = "eager" if self._model64 is None else "float64"

    def draw(self, family: Family = GIVEN) -> InputSet:
        """A fresh set of inputs; the seed is the operating system's and is kept nowhere."""
        contracted = self.problem.accuracy.contracted
        try:
            return draw_set(self.module.get_inputs, self.device, family, contracted, self.specs)
        except InputError as error:
            raise InputError(error.message, self.problem.reference_path) from error

    def eager(self, inputs: InputSet) -> list[torch.Tensor]:
        """The outputs of strict eager, cloned so that they do not alias the inputs."""
        with torch.no_grad():
            _, tensors = tree.flatten(self.model(*inputs.arguments()))
        return [tensor.detach().clone() for tensor in tensors]

    def truth(self, inputs: InputSet, *, with_eager: bool = True) -> Truth:
        """The truth for one set. Without `with_eager`, eager is computed only where it is needed."""
        integers = any(not spec.torch_dtype.is_floating_point for spec in self.output_specs)
        eager, values = [], []
        if with_eager or integers or self._model64 is None:
            with torch.no_grad():
                skeleton, tensors = tree.flatten(self.model(*inputs.arguments()))
            eager, values = [tensor.detach().clone() for tensor in tensors], tree.values_of(skeleton)
        outputs = self._outputs64(inputs) if self._model64 is not None else [tensor.double() for tensor in eager]
        for index, spec in enumerate(self.output_specs):
            if not spec.torch_dtype.is_floating_point:
                outputs[index] = eager[index]
        return Truth(outputs, self._scales(inputs, outputs), eager, values)

    def terms(self) -> float | None:
        formula = self.problem.accuracy.terms
        return None if formula is None else formula.evaluate(self.sizes)

    def _check_dtype(self) -> None:
        made = sorted({spec.dtype for spec in self.specs if spec.torch_dtype.is_floating_point})
        if self.problem.path != self.problem.reference_path and made and self.problem.dtype not in made:
            raise InputError(
                f"dtype is {self.problem.dtype}, but get_inputs() of {self.problem.reference_path.name} makes "
                f"{' and '.join(made)}", self.problem.path, hint=f"Write dtype: {made[0]}, or change get_inputs",
            )

    def _described(self, inputs: InputSet) -> tuple[list[torch.Tensor], Any]:
        try:
            with torch.no_grad():
                skeleton, tensors = tree.flatten(self.model(*inputs.arguments()))
        except Exception as error:
            raise InputError(
                f"Model of the reference cannot run on its own inputs: {type(error).__name__}: {error}",
                self.problem.reference_path,
            ) from error
        return tensors, tree.shape_of(skeleton)

    def _in_float64(self, inputs: InputSet) -> torch.nn.Module | None:
        self._model64 = copy.deepcopy(self.model).double()
        watch, arguments = _NarrowFloats(), self._arguments64(inputs)
        try:
            with torch.no_grad(), watch:
                _, outputs = tree.flatten(self._model64(*arguments))
        except Exception:
            return None
        floating = [tensor for tensor in outputs if tensor.is_floating_point()]
        wide = floating and all(tensor.dtype == torch.float64 for tensor in floating)
        return self._model64 if wide and not watch.seen else None

    def _outputs64(self, inputs: InputSet, *, absolute: bool = False) -> list[torch.Tensor]:
        arguments = self._arguments64(inputs, absolute=absolute)
        with torch.no_grad():
            _, outputs = tree.flatten(self._model64(*arguments))
        return [tensor.detach() for tensor in outputs]

    def _arguments64(self, inputs: InputSet, *, absolute: bool = False) -> list[Any]:
        tensors = []
        for tensor in inputs.tensors():
            if tensor.is_floating_point():
                tensor = tensor.double()
                tensor = tensor.abs() if absolute else tensor
            tensors.append(tensor)
        return tree.rebuild(inputs.skeleton, tensors)

    def _scales(self, inputs: InputSet, outputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
        if self.problem.accuracy.scale == "abs_inputs" and self._model64 is not None:
            floating = [tensor for tensor in inputs.tensors() if tensor.is_floating_point()]
            if all(bool((tensor >= 0).all()) for tensor in floating):
                return [output.abs() for output in outputs]
            return [output.abs() for output in self._outputs64(inputs, absolute=True)]
        return [_row_max(output) if output.is_floating_point() else None for output in outputs]


class _NarrowFloats(TorchFunctionMode):
    """Notes whether any function made a floating tensor narrower than float64: the model casts inside itself."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(self, function, types_, arguments=(), named=None):
        made = function(*arguments, **(named or {}))
        for tensor in made if isinstance(made, (list, tuple)) else (made,):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dtype != torch.float64:
                self.seen = True
        return made


def be_strict() -> None:
    """Turn TF32 off for cuBLAS and cuDNN in this process."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def load_module(problem: Problem, sizes: Mapping[str, int]) -> types.ModuleType:
    """Run the reference's source with its module-level sizes replaced by `sizes`.

    Raises InputError when it cannot be run.
    """
    path = problem.reference_path
    module = types.ModuleType(f"reference_{problem.name}")
    module.__file__ = str(path)
    try:
        exec(compile(with_sizes(problem.reference_source, sizes, path), str(path), "exec"), module.__dict__)
    except Exception as error:
        raise InputError(f"the reference cannot be run: {type(error).__name__}: {error}", path) from error
    return module


def _row_max(output: torch.Tensor) -> torch.Tensor:
    if output.dim() == 0:
        return output.abs()
    if output.numel() == 0:
        return output.abs()
    return output.abs().amax(dim=-1, keepdim=True).expand_as(output)
