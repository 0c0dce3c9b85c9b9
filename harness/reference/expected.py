"""What launches must return: the reference's model in float64 on their inputs, and the scale of the errors.

A model that casts inside itself is run without its casts. One that cannot be, or has no float64, has no truth in float64;
its outputs are then compared with strict eager, and the record says so.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.protocol import tree
from harness.protocol.layout import TensorSpec
from harness.reference.accuracy.bounds import error_unit
from harness.reference.accuracy.bounds_without_terms import Spread
from harness.reference.casts import WithoutCasts
from harness.reference.inputs.sets import InputSet, Inputs, slice_of
from harness.reference.perturbed_sums import spread_of_sums
from harness.reference.reduction_length import WatchedRun
from harness.reference.slices import ROWS, Slicing
from harness.reference.spreads import row_dimensions, with_arithmetic

# Whose smallest element PyTorch finds in one reading.
_WITH_LEAST = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_COPIED_BYTES = 256 << 20  # of larger outputs no copies are made to find their scale
_TOGETHER_BYTES = 8 << 20  # of larger inputs the copies take longer than the steps
_NO_MODE = contextlib.nullcontext()


@dataclass(frozen=True)
class Truth:
    """What a launch must return: `outputs` are float64 where the output floats.

    `scales` holds the error scale D of each output (None for integers). `eager` is empty and `values`, the plain
    numbers among the outputs, None where strict eager was not run.
    """

    outputs: list[torch.Tensor]
    scales: list[torch.Tensor | None]
    eager: list[torch.Tensor]
    values: list[Any] | None


class Truths:
    """Makes the truths of `model`, which `first` are inputs of; `scale` is the problem's word for the error scale.

    `output_specs` and `shape` describe what the model returns. `name` says what a truth is, float64 or eager;
    `longest_sum` is the number of terms of the longest sum that the model was seen to make, `has_products` whether it
    multiplies matrices or convolves, `narrowest_u` the unit roundoff of the narrowest type it casts to, in u of fp32. Where
    a float64 pass is too large, `slicing` says how it is cut, and `slices` into how many.
    """

    def __init__(
        self, model: torch.nn.Module, scale: str, output_specs: Sequence[TensorSpec], shape: Any, first: InputSet,
        slicing: Slicing | None = None, slices: int = 1,
    ) -> None:
        self._model, self._scale, self._output_specs = model, scale, output_specs
        self.slicing, self.slices = slicing, slices
        # Float64 says nothing of plain values and of integers among the outputs.
        self._needs_eager = "value" in str(shape) or any(
            not spec.torch_dtype.is_floating_point for spec in output_specs
        )
        self.longest_sum, self.has_products, self.narrowest_u = 1, False, 1.0
        self._is_without_casts = False
        self._whole64: torch.nn.Module | None = None  # in float64, of a model that returns whole numbers alone
        self.truth_bytes: int | None = None  # what a truth holds on to, once one was made: outputs may be views
        self._model64 = self._in_float64(first)
        self.name = "eager" if self._model64 is None else "float64"

    @property
    def sums_magnitudes(self) -> bool:
        """Whether the scale of an element's error is the sum of the magnitudes of its terms."""
        return self._scale == "abs_inputs" and self._model64 is not None

    def of(self, sets: Sequence[InputSet], *, with_eager: bool = True) -> list[Truth]:
        """The truth of each set. Without `with_eager`, eager is computed only where it is needed.

        For their scales one answer of the device's is waited for, before anything is under way.
        """
        # Where no input is negative, sums of magnitudes are the outputs' own magnitudes.
        own_scales = (_least_of_each(sets) >= 0).tolist() if self.sums_magnitudes and sets else [False] * len(sets)
        truths, places = [], set()
        for inputs, own_scale in zip(sets, own_scales):
            truths.append(self._truth(inputs, own_scale, with_eager))
            if self.truth_bytes is None:
                self.truth_bytes = _bytes_of(truths[-1])
            own = _storages(truths[-1].outputs).keys()
            if own & places:  # a model that keeps its outputs in a buffer has written over the truth before
                return [kept(self._truth(*each, with_eager)) for each in zip(sets, own_scales)]
            places |= own
        return truths

    def _truth(self, inputs: InputSet, own_scale: bool, with_eager: bool) -> Truth:
        eager, values = [], None
        if with_eager or self._needs_eager or self._model64 is None:
            eager, skeleton = eager_of(self._model, inputs)
            values = tree.values_of(skeleton)
        outputs = self._outputs64(inputs) if self._model64 is not None else [tensor.double() for tensor in eager]
        for index, spec in enumerate(self._output_specs):
            if not spec.torch_dtype.is_floating_point:
                outputs[index] = eager[index]
        magnitudes = None
        if self.sums_magnitudes:
            magnitudes = outputs if own_scale else self._outputs64(inputs, absolute=True)
        return Truth(outputs, self._scales_of(outputs, magnitudes), eager, values)

    @property
    def _is_cut(self) -> bool:
        return self.slicing is not None and self.slices > 1

    @property
    def is_compared_in_slices(self) -> bool:
        """Whether outputs are compared slice by slice, so that no expected output is ever there as a whole."""
        return self._is_cut and self.slicing.join == ROWS

    def sample_of(self, inputs: Inputs) -> Inputs:
        """A slice of `inputs` where the model is cut, or all of them: enough to see what a call of it is like."""
        if not self.is_compared_in_slices or inputs.is_slice:
            return inputs
        return slice_of(inputs, self.slicing.cut(inputs.tensors(), self.slicing.stretches(self.slices)[0]))

    def in_slices(
        self, inputs: Inputs, outputs: Sequence[torch.Tensor]
    ) -> Iterator[tuple[range, InputSet, list[torch.Tensor]]]:
        """Each slice of a call as a call of its own: where it lies, its inputs, and those rows of `outputs`."""
        tensors = inputs.tensors()
        for stretch in self.slicing.stretches(self.slices):
            part = slice_of(inputs, self.slicing.cut(tensors, stretch))
            yield stretch, part, [output[stretch.start : stretch.stop].to(part.region.device) for output in outputs]

    def by_eager(self, inputs: Inputs) -> Truth:
        """What strict eager returns, in its own type, in the place of a truth; the next call may write over it."""
        with torch.no_grad():
            skeleton, outputs = tree.flatten(self._model(*inputs.arguments()))
        outputs = [tensor.detach() for tensor in outputs]
        return Truth(outputs, self._scales_of(outputs, None), [], tree.values_of(skeleton))

    def _in_float64(self, inputs: InputSet) -> torch.nn.Module | None:
        for self._is_without_casts in (False, True):
            try:
                if self._runs_in_float64(inputs):
                    return self._model64
            except torch.OutOfMemoryError:
                raise
            except Exception:  # without its casts it may run, or strict eager has to do
                pass
        self._is_without_casts, watch = False, WatchedRun()
        with torch.no_grad(), watch:  # for the length of its sums
            self._model(*inputs.arguments())
        self._keep(watch)
        return None

    def _runs_in_float64(self, inputs: InputSet) -> bool:
        """Whether all that the model makes of `inputs` in float64 is float64, with or without its casts."""
        sample = self.sample_of(inputs)
        watch, arguments = WatchedRun(), self._arguments64(sample)
        self._model64 = copy.deepcopy(self._model).double()
        with torch.no_grad(), self._casts() as casts, watch:
            _, outputs = tree.flatten(self._model64(*arguments))
        self._keep(watch)
        floating = [tensor for tensor in outputs if tensor.is_floating_point()]
        self.narrowest_u = casts.narrowest_u if casts is not None else 1.0
        if not floating and not watch.narrow:
            self._whole64 = self._model64
        is_wide = not watch.narrow and all(tensor.dtype == torch.float64 for tensor in floating)
        # Who looks at the bytes of a narrow type sees others in float64, and more of them.
        first = int(sample.is_slice)  # of a slice the first axis is shorter
        return bool(floating) and is_wide and [tuple(tensor.shape)[first:] for tensor in outputs] == [
            tuple(spec.shape)[first:] for spec in self._output_specs
        ]

    def _casts(self) -> contextlib.AbstractContextManager[WithoutCasts | None]:
        return WithoutCasts() if self._is_without_casts else contextlib.nullcontext()

    def _keep(self, watch: WatchedRun) -> None:
        self.longest_sum, self.has_products = watch.longest_sum, watch.has_products

    def spread_of_sums(self, inputs: InputSet) -> list[Spread | None]:
        """What other orders of the model's sums change in each output, in u; None for outputs of whole numbers."""
        floating = [spec.dtype for spec in self._output_specs if spec.torch_dtype.is_floating_point]
        unit = error_unit("float64" if floating and set(floating) == {"float64"} else "float32")
        sample = self.sample_of(inputs)
        return spread_of_sums(lambda mode: self.outputs_under(mode, sample), unit)

    def outputs_under(
        self, mode: contextlib.AbstractContextManager[Any], inputs: InputSet, *, in_float64: bool = True
    ) -> list[torch.Tensor]:
        """The outputs as the model returns them while `mode` is entered, in float64 where that is wanted and can be."""
        if self._model64 is not None and in_float64:
            return self._outputs64(inputs, mode=mode)
        arguments, model = inputs.arguments(), self._model
        if self._whole64 is not None and in_float64:
            arguments, model = self._arguments64(inputs), self._whole64
        with torch.no_grad(), mode:
            return tree.flatten(model(*arguments))[1]

    def _outputs64(
        self, inputs: Inputs, *, absolute: bool = False, mode: contextlib.AbstractContextManager[Any] = _NO_MODE
    ) -> list[torch.Tensor]:
        def call(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            """What the model in float64 returns for these input tensors."""
            arguments = tree.rebuild(inputs.skeleton, [_in_double(tensor, absolute) for tensor in tensors])
            with torch.no_grad(), self._casts(), mode:
                _, outputs = tree.flatten(self._model64(*arguments))
            return [tensor.detach() for tensor in outputs]

        if self._is_cut and not inputs.is_slice:
            return self.slicing.joined(call, inputs.tensors(), self.slices)
        return call(inputs.tensors())

    def _arguments64(self, inputs: InputSet) -> list[Any]:
        return tree.rebuild(inputs.skeleton, [_in_double(tensor) for tensor in inputs.tensors()])

    def _scales_of(
        self, outputs: Sequence[torch.Tensor], magnitudes: Sequence[torch.Tensor] | None
    ) -> list[torch.Tensor | None]:
        """The error scale of each output, from the sums of `magnitudes` where the problem has those."""
        if magnitudes is not None:
            return [each.abs() if each.is_floating_point() else None for each in magnitudes]
        return [_row_max(output) if output.is_floating_point() else None for output in outputs]


def eager_of(model: torch.nn.Module, inputs: InputSet) -> tuple[list[torch.Tensor], Any]:
    """What `model` returns as it is: its tensors, cloned so that they do not alias the inputs, and their skeleton."""
    with torch.no_grad():
        skeleton, tensors = tree.flatten(model(*inputs.arguments()))
    return [tensor.detach().clone() for tensor in tensors], skeleton


def outputs_for(model: torch.nn.Module, skeleton: Any, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What `model` returns for input `tensors` in the structure of `skeleton`."""
    with torch.no_grad():
        _, outputs = tree.flatten(model(*tree.rebuild(skeleton, list(tensors))))
    return [output.detach() for output in outputs]


def _in_double(tensor: torch.Tensor, absolute: bool = False) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    wide = tensor.double()
    return wide.abs() if absolute else wide


def _least_of_each(sets: Sequence[InputSet]) -> torch.Tensor:
    """`_least` of each set: of small ones in one step, since a step takes longer than what it does."""
    dtypes = {spec.torch_dtype for spec in sets[0].specs}
    if len(dtypes) == 1 and dtypes <= _WITH_LEAST and sets[0].region.numel() <= _TOGETHER_BYTES:
        return torch.stack([inputs.region for inputs in sets]).view(*dtypes).amin(dim=1)
    return torch.stack([_least(inputs) for inputs in sets])


def _least(inputs: InputSet) -> torch.Tensor:
    """A number that is below zero, or NaN, where a floating-point element of the inputs is."""
    dtypes = {spec.torch_dtype for spec in inputs.specs}
    if len(dtypes) == 1 and dtypes <= _WITH_LEAST:  # what lies between the tensors is zero
        return inputs.region.view(*dtypes).amin()
    right = [(tensor >= 0).all() for tensor in inputs.tensors() if tensor.is_floating_point()]
    return torch.stack(right).all().int() - 1 if right else torch.zeros((), device=inputs.region.device)


def _storages(tensors: Sequence[torch.Tensor]) -> dict[int, int]:
    """The storages of all that have elements, by address, with their bytes."""
    storages = [tensor.untyped_storage() for tensor in tensors if tensor.numel()]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _bytes_of(truth: Truth) -> int:
    scales = [scale for scale in truth.scales if scale is not None]
    return sum(_storages([*truth.outputs, *scales, *truth.eager]).values())


def kept(truth: Truth) -> Truth:
    """A truth that no later call of the model writes over, as one may that keeps its outputs in a buffer."""
    return replace(truth, outputs=[tensor.clone() for tensor in truth.outputs])


def _row_max(output: torch.Tensor) -> torch.Tensor:
    """The largest finite magnitude over the last dimension, or over as many as hold `ROW_ELEMENTS` together.

    An element that is its own scale would be judged by its distance to zero: sums that happen to cancel have no
    small relative error in any order of summation.
    """
    output, dims = with_arithmetic(output), row_dimensions(output.shape)
    if not dims or output.numel() == 0:
        return _finite_magnitude(output)
    if output.numel() * output.itemsize > _COPIED_BYTES:  # the answer that is waited for costs less than copies would
        largest = torch.linalg.vector_norm(output, math.inf, dim=dims, keepdim=True)
        if bool(largest.isfinite().all()):
            return largest.expand_as(output)
    return _finite_magnitude(output).amax(dim=dims, keepdim=True).expand_as(output)


def _finite_magnitude(output: torch.Tensor) -> torch.Tensor:
    magnitude = output.abs()
    return torch.where(magnitude.isfinite(), magnitude, 0.0)
