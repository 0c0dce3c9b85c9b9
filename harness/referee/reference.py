"""The reference at one set of sizes: strict eager, float64, and the error scale, all on inputs of ours.

"Strict" means TF32 off for cuBLAS and cuDNN. A model that casts inside itself, or has no float64, has no truth in
float64; its outputs are then compared with strict eager, and the record says so.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from harness.accuracy.bounds import ROW_ELEMENTS
from harness.errors import InputError
from harness.inputs.families import GIVEN, Family, families_for
from harness.inputs.sets import InputSet, draw_set
from harness.problem import Problem
from harness.reading.reference_source import with_sizes
from harness.referee import zero_blocks
from harness.referee.sums import WatchedRun
from harness.wire import passes, tree
from harness.wire.layout import TensorSpec, is_dense, plan

# Whose smallest element PyTorch finds in one reading.
_WITH_LEAST = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


@dataclass(frozen=True)
class Truth:
    """What a launch must return: `outputs` are float64 where the output floats and `exact` is False.

    `scales` holds the error scale D of each output (None for integers). `eager` is empty and `values`, the plain
    numbers among the outputs, None where strict eager was not run.
    """

    outputs: list[torch.Tensor]
    scales: list[torch.Tensor | None]
    eager: list[torch.Tensor]
    values: list[Any] | None


class Reference:
    """`Model` of a problem at given sizes on a device, constructed under `seed`.

    Raises InputError when the reference's file cannot be run, with what it raised.
    """

    def __init__(self, problem: Problem, sizes: Mapping[str, int], device: torch.device, seed: int) -> None:
        self.problem, self.sizes, self.device, self.seed = problem, dict(sizes), device, seed
        be_strict()
        self.module = load_module(problem, sizes)
        be_strict()
        try:
            self.init = list(getattr(self.module, "get_init_inputs", list)())
            tree.flatten(self.init)  # what a candidate cannot be given, no candidate can be constructed with
            torch.manual_seed(seed)
            self.model = self.module.Model(*_on_device(self.init, device)).to(device)
        except Exception as error:
            raise InputError(
                f"Model of the reference cannot be constructed: {type(error).__name__}: {error}",
                problem.reference_path,
            ) from error
        # A forward may move a state (a running mean, say): what a candidate is compared with is the state at birth.
        self.state = {
            name: tensor.detach().clone()
            for name, tensor in self.model.state_dict().items() if isinstance(tensor, torch.Tensor)
        }
        self.mode = problem.mode
        self.families = families_for(
            problem.accuracy.contracted, with_gradients=problem.mode == passes.FORWARD_BACKWARD
        )
        self.specs: tuple[TensorSpec, ...] | None = None
        self._get_inputs = self.module.get_inputs
        forward_outputs = None
        if problem.mode == passes.FORWARD_BACKWARD:
            forward_outputs = self._described(self.draw())[0]
            self._add_cotangents(forward_outputs)
        first = self.draw()
        self.specs = first.specs
        self._check_dtype()
        eager, self.shape = self._described(first)
        self._check_repeatable(first, eager)
        self.output_specs = plan(eager, contiguous=True)
        # No layout is promised of a gradient, not even by PyTorch to itself.
        free = len(eager) if forward_outputs is None else len(forward_outputs)
        self.output_strides = [
            list(tensor.stride()) if is_dense(tensor) and index < free else None for index, tensor in enumerate(eager)
        ]
        self.longest_sum = 1
        self.truth_bytes: int | None = None  # what a truth holds on to, once one was made: outputs may be views
        self._with_zero_blocks: frozenset[zero_blocks.Shape] = frozenset()
        self._model64 = self._in_float64(first)
        self.truth_name = "eager" if self._model64 is None else "float64"

    def draw(self, family: Family = GIVEN, seed: int | None = None) -> InputSet:
        """A fresh set of inputs under a seed of the operating system's, or the set that `seed` gave before."""
        contracted = self.problem.accuracy.contracted
        try:
            return draw_set(self._get_inputs, self.device, family, contracted, self.specs, seed)
        except InputError as error:
            raise InputError(error.message, self.problem.reference_path) from error

    def _add_cotangents(self, outputs: Sequence[torch.Tensor]) -> None:
        """From now on a draw is [the inputs, a normal tensor like each floating output], and a call both passes."""
        floating = [(tensor.shape, tensor.dtype) for tensor in outputs if tensor.is_floating_point()]
        if not floating:
            raise InputError(
                "no output of the reference has a gradient, so there is no backward pass", self.problem.path,
                hint="Leave out mode: forward_backward",
            )

        def draw() -> list[Any]:
            vectors = [torch.randn(shape, dtype=torch.float32).to(dtype) for shape, dtype in floating]
            return [list(self.module.get_inputs()), vectors]

        self._get_inputs = draw
        self.model = passes.ForwardBackward(self.model)

    def eager(self, inputs: InputSet) -> list[torch.Tensor]:
        """The outputs of strict eager, cloned so that they do not alias the inputs."""
        with torch.no_grad():
            _, tensors = tree.flatten(self.model(*inputs.arguments()))
        return [tensor.detach().clone() for tensor in tensors]

    def truth(self, inputs: InputSet, *, with_eager: bool = True) -> Truth:
        """The truth for one set. Without `with_eager`, eager is computed only where it is needed."""
        return self.truths([inputs], with_eager=with_eager)[0]

    def truths(self, sets: Sequence[InputSet], *, with_eager: bool = True) -> list[Truth]:
        """`truth` of each set. For their scales one answer of the device's is waited for, before anything is under way.
        """
        own_scales = self._are_own_scales(sets)
        truths, places = [], set()
        for inputs, own_scale in zip(sets, own_scales):
            truths.append(self._truth(inputs, own_scale, with_eager))
            if self.truth_bytes is None:
                self.truth_bytes = _bytes_of(truths[-1])
            own = _storages(truths[-1].outputs).keys()
            if own & places:  # a model that keeps its outputs in a buffer has written over the truth before
                return [_kept(self._truth(*each, with_eager)) for each in zip(sets, own_scales)]
            places |= own
        return truths

    def _truth(self, inputs: InputSet, own_scale: bool, with_eager: bool) -> Truth:
        eager, values = [], None
        if with_eager or self._needs_eager or self._model64 is None:
            with torch.no_grad():
                skeleton, tensors = tree.flatten(self.model(*inputs.arguments()))
            eager, values = [tensor.detach().clone() for tensor in tensors], tree.values_of(skeleton)
        outputs = self._outputs64(inputs) if self._model64 is not None else [tensor.double() for tensor in eager]
        for index, spec in enumerate(self.output_specs):
            if not spec.torch_dtype.is_floating_point:
                outputs[index] = eager[index]
        return Truth(outputs, self._scales(inputs, outputs, own_scale), eager, values)

    @cached_property
    def _needs_eager(self) -> bool:
        """Whether there are outputs that float64 says nothing of: plain values, integers."""
        return "value" in str(self.shape) or any(
            not spec.torch_dtype.is_floating_point for spec in self.output_specs
        )

    @cached_property
    def terms(self) -> float | None:
        """Terms of the sums behind one element of an output, where the problem says; asked for at each launch."""
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

    def _check_repeatable(self, inputs: InputSet, eager: Sequence[torch.Tensor]) -> None:
        """Raise InputError for a reference that nothing can be compared with: random, or writing to its inputs."""
        path, kept = self.problem.reference_path, inputs.region.clone()
        again = self.eager(inputs)
        if not torch.equal(kept, inputs.region):
            raise InputError(
                "Model of the reference writes to its own inputs, which a candidate may not do", path,
                hint="Let it return new tensors",
            )
        for first, second in zip(eager, again):
            # Sums by atomics may differ in their last bits from call to call; dropout differs by the values themselves.
            first, second = first.double(), second.double()
            if bool(((first - second).abs() > 1e-3 * first.abs().amax()).any()):
                raise InputError(
                    "Model of the reference is random: two calls on the same inputs differ (dropout in train mode?)",
                    path, hint="Call self.eval() at the end of __init__, or leave the random part out",
                )

    def _in_float64(self, inputs: InputSet) -> torch.nn.Module | None:
        watch, search, arguments = WatchedRun(), zero_blocks.Search(), self._arguments64(inputs)
        try:
            self._model64 = copy.deepcopy(self.model).double()
            with torch.no_grad(), watch, search:
                _, outputs = tree.flatten(self._model64(*arguments))
        except torch.OutOfMemoryError:
            raise
        except Exception:
            self._watch_eager(inputs)
            return None
        floating = [tensor for tensor in outputs if tensor.is_floating_point()]
        wide = floating and all(tensor.dtype == torch.float64 for tensor in floating)
        self.longest_sum = watch.longest_sum
        # Outputs in float64 are as fine as the truth, so that another order of summation would show.
        if all(spec.torch_dtype != torch.float64 for spec in self.output_specs):
            self._with_zero_blocks = search.shapes
        return self._model64 if wide and not watch.narrow else None

    def _watch_eager(self, inputs: InputSet) -> None:
        """The length of its sums for a model that does not run in float64."""
        watch = WatchedRun()
        with torch.no_grad(), watch:
            self.model(*inputs.arguments())
        self.longest_sum = watch.longest_sum

    def _outputs64(self, inputs: InputSet, *, absolute: bool = False) -> list[torch.Tensor]:
        arguments = self._arguments64(inputs, absolute=absolute)
        with torch.no_grad(), zero_blocks.without(self._with_zero_blocks):
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

    def _are_own_scales(self, sets: Sequence[InputSet]) -> list[bool]:
        """Of each set whether sums of magnitudes are the outputs' own magnitudes, since no input is negative."""
        if self.problem.accuracy.scale != "abs_inputs" or self._model64 is None or not sets:
            return [False] * len(sets)
        return (torch.stack([_least(inputs) for inputs in sets]) >= 0).tolist()

    def _scales(
        self, inputs: InputSet, outputs: Sequence[torch.Tensor], own_scale: bool
    ) -> list[torch.Tensor | None]:
        if self.problem.accuracy.scale == "abs_inputs" and self._model64 is not None:
            magnitudes = outputs if own_scale else self._outputs64(inputs, absolute=True)
            return [_magnitude(output) for output in magnitudes]
        return [_row_max(output) if output.is_floating_point() else None for output in outputs]


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


def _on_device(values: list[Any], device: torch.device) -> list[Any]:
    skeleton, tensors = tree.flatten(values)
    return tree.rebuild(skeleton, [tensor.to(device) for tensor in tensors])


def _least(inputs: InputSet) -> torch.Tensor:
    """A number that is below zero, or NaN, where a floating-point element of the inputs is."""
    dtypes = {spec.torch_dtype for spec in inputs.specs}
    if len(dtypes) == 1 and dtypes <= _WITH_LEAST:  # what lies between the tensors is zero
        return inputs.region.view(*dtypes).amin()
    right = [(tensor >= 0).all() for tensor in inputs.tensors() if tensor.is_floating_point()]
    return torch.stack(right).all().int() - 1 if right else torch.zeros((), device=inputs.region.device)


def _storages(tensors: Sequence[torch.Tensor]) -> dict[int, int]:
    """The storages of all that have elements, by address, with their bytes."""
    found = [tensor.untyped_storage() for tensor in tensors if tensor.numel()]
    return {storage.data_ptr(): storage.nbytes() for storage in found}


def _bytes_of(truth: Truth) -> int:
    scales = [scale for scale in truth.scales if scale is not None]
    return sum(_storages([*truth.outputs, *scales, *truth.eager]).values())


def _kept(truth: Truth) -> Truth:
    return replace(truth, outputs=[tensor.clone() for tensor in truth.outputs])


def _magnitude(output: torch.Tensor) -> torch.Tensor | None:
    return output.abs() if output.is_floating_point() else None


def _row_max(output: torch.Tensor) -> torch.Tensor:
    """The largest finite magnitude over the last dimension, or over as many as hold `ROW_ELEMENTS` together.

    An element that is its own scale would be judged by its distance to zero: sums that happen to cancel have no
    small relative error in any order of summation.
    """
    magnitude = output.abs()
    magnitude = torch.where(magnitude.isfinite(), magnitude, 0.0)
    dims, elements = [], 1
    for dim in range(output.dim() - 1, -1, -1):
        if dims and elements >= ROW_ELEMENTS:
            break
        dims.append(dim)
        elements *= output.shape[dim]
    if not dims or output.numel() == 0:
        return magnitude
    return magnitude.amax(dim=dims, keepdim=True).expand_as(output)
