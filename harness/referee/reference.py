"""The reference at one set of sizes: its file is run, its model constructed and checked, its inputs are drawn.

Eager is strict, which means TF32 off for cuBLAS and cuDNN. What launches must return in float64, and the scale of their
errors, is found in `truths`.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch

from harness.errors import InputError
from harness.inputs.families import GIVEN, Family, families_for, family_named
from harness.inputs.one_way import NAME as ONE_WAY
from harness.inputs.one_way import one_way_family
from harness.inputs.sets import InputSet, draw_set
from harness.problem import Problem
from harness.reading.reference_source import with_sizes
from harness.referee.allowances import Allowances
from harness.referee.ready import Ready
from harness.referee.truths import Truth, Truths, eager_of
from harness.wire import passes, tree
from harness.wire.layout import TensorSpec, is_as_it_lies, is_dense, plan, region_bytes


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
        if any(tensor.is_complex() for tensor in eager):
            raise InputError(
                "Model of the reference returns complex numbers, for which there is no accuracy rule",
                problem.reference_path, hint="Return torch.view_as_real(…) of them",
            )
        self._check_repeatable(first, eager)
        self.output_specs = plan(eager, contiguous=True)
        # No layout is promised of a gradient, not even by PyTorch to itself.
        free = len(eager) if forward_outputs is None else len(forward_outputs)
        self.output_strides = [
            list(tensor.stride()) if index < free and is_dense(tensor) and is_as_it_lies(tensor) else None
            for index, tensor in enumerate(eager)
        ]
        self._ready = Ready()
        self._truths = Truths(self.model, problem.accuracy.scale, self.output_specs, self.shape, first)
        self.truth_name, self.longest_sum = self._truths.name, self._truths.longest_sum
        self.sums_magnitudes, self.has_products = self._truths.sums_magnitudes, self._truths.has_products
        if problem.accuracy.terms is None or problem.accuracy.contracted is None:
            self.allowances = Allowances(self.eager, self._truths, self.draw, first, eager)
            self.families += self._families_beside(eager) if problem.accuracy.contracted is None else ()
        self.timed_families = tuple(family for family in self.families if family.is_timed)

    def draw(self, family: Family = GIVEN, seed: int | None = None) -> InputSet:
        """A fresh set of inputs under a seed of the operating system's, or the set that `seed` gave before."""
        contracted = self.problem.accuracy.contracted
        try:
            return draw_set(self._get_inputs, self.device, family, contracted, self.specs, seed)
        except InputError as error:
            raise InputError(error.message, self.problem.reference_path) from error

    def family_named(self, name: str) -> Family:
        """A family of inputs for this reference, whether it is checked on it or not. Raises KeyError for other names."""
        return one_way_family(self.model) if name == ONE_WAY else family_named(name)

    def _families_beside(self, given: Sequence[torch.Tensor]) -> tuple[Family, ...]:
        """What inputs as given hide, others show: those, where the model makes what is as finite of them as `given`."""
        family = self.allowances.family(one_way_family(self.model))
        if family is None:
            return ()
        try:
            made = self.eager(self.draw(family))
        except Exception:  # a reference may refuse what is no longer one by a thousandth
            return ()
        sound = [bool(other.isfinite().all()) for own, other in zip(given, made) if bool(own.isfinite().all())]
        return (family,) if all(sound) else ()

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
        return eager_of(self.model, inputs)[0]

    def outputs_under(
        self, mode: contextlib.AbstractContextManager[Any], inputs: InputSet, *, in_float64: bool = True
    ) -> list[torch.Tensor]:
        """What `Truths.outputs_under` says of the model."""
        return self._truths.outputs_under(mode, inputs, in_float64=in_float64)

    def truth(self, inputs: InputSet, *, with_eager: bool = True) -> Truth:
        """The truth for one set. Without `with_eager`, eager is computed only where it is needed."""
        return self.truths([inputs], with_eager=with_eager)[0]

    def truths(self, sets: Sequence[InputSet], *, with_eager: bool = True) -> list[Truth]:
        """`truth` of each set. For their scales one answer of the device's is waited for, before anything is under way,
        and one in the end where blocks of zeros were left out.
        """
        known = [self._ready.truth_of(inputs) for inputs in sets]
        made = iter(self._truths.of(
            [inputs for inputs, truth in zip(sets, known) if truth is None], with_eager=with_eager
        ))
        return [next(made) if truth is None else truth for truth in known]

    def make_ready(self, families: Sequence[Family], room_bytes: float) -> float:
        """Draw inputs in `families`, where they are not ready, and find their truths, with eager's, as far as there is
        room for all that then are; returns how much is left. `draw_ready` and `truths` have them. Raises RuntimeError as
        PyTorch does.
        """
        lacking = self._ready.lacking(families)
        each_bytes = region_bytes(self.specs) + (self.truth_bytes or 0) + region_bytes(self.output_specs)
        room_bytes = max(0.0, room_bytes - each_bytes * self._ready.count)
        count = min(len(lacking), int(room_bytes // each_bytes))
        # Of several together it is seen whether the model keeps its outputs in a buffer, which later calls write over.
        if count > 1 and self.truth_bytes is not None:
            sets = [self.draw(family) for family in lacking[:count]]
            for inputs, truth in zip(sets, self.truths(sets)):
                self._ready.add(inputs, truth)
            room_bytes -= count * each_bytes
        return room_bytes

    def draw_ready(self, family: Family) -> InputSet:
        """A set in this family that is ready, or else a fresh one."""
        return self._ready.take(family) or self.draw(family)

    def forget_ready(self, *, taken_only: bool = False) -> None:
        """Give back the memory of all that is ready, or of what was taken for launches that have ended or failed."""
        if taken_only:
            self._ready.forget_taken()
        else:
            self._ready.forget()

    @property
    def truth_bytes(self) -> int | None:
        """What a truth holds on to, once one was made."""
        return self._truths.truth_bytes

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
