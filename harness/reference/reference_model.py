"""The reference at one set of sizes: its file is run, its model constructed and checked, its inputs are drawn.

Eager is strict, which means TF32 off for cuBLAS and cuDNN. What launches must return in float64, and the scale of their
errors, is found in `expected`.
"""

from __future__ import annotations

import copy
import math
import types
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from harness.model.device_limits import limits_of
from harness.model.errors import InputError, NoRoom
from harness.model.files.reference_source import with_sizes
from harness.model.problem import Problem
from harness.model.problem_notes import ProblemNote
from harness.protocol import parallel_draws, passes, tree
from harness.protocol.call_form import arguments_of, called
from harness.protocol.digest import digest_of_tensor
from harness.protocol.layout import TensorSpec, is_as_it_lies, is_dense, plan, region_bytes, without_strides
from harness.reference.accuracy.bounds_without_terms import Spread
from harness.reference.call_size import foreseen
from harness.reference.expected import Truth, Truths, eager_of, kept, outputs_for
from harness.reference.host_memory import at_most
from harness.reference.inputs.draws import Drawing
from harness.reference.inputs.families import GIVEN, Family, families_for, family_named
from harness.reference.inputs.one_way_rounding import NAME as ONE_WAY, one_way_family
from harness.reference.inputs.sets import InputSet, Inputs, RedrawnInputs, draw_set, fresh_seed, slice_of
from harness.reference.measured_bounds import MeasuredBounds
from harness.reference.memory_plan import CallSizes, MemoryPlan, MemoryStep, plan_memory, slices_wanted, smallest_plan
from harness.reference.reference_checks import (
    NOT_SHORT_S, call_to_call_u, is_same_for_all_draws, moved_names, outputs_of, refuse_contracted, refuse_lazy, refuse_other_shapes,
    seconds_of,
)
from harness.reference.slices import ROWS, Slicing, find_slicing
from harness.reference.spreads import with_arithmetic

_USUAL_BYTES = 8 << 30  # where nobody says what there is
# A truth that takes so long, and that many times as long as eager's outputs, is made of some timed launches alone: as many as
# it takes eager's time have one, so that all truths take no longer than eager's outputs of all, within these limits.
_SLOW_TRUTH_S, _LONGER = 0.002, 1.25
_LEAST_ONE_OF, _MOST_ONE_OF = 8, 32
_READY_SHARE = 1 / 16  # of the memory, for what the next entry is checked with
_PARTS = 8  # of a batch, of which one is looked at for chance


class Reference:
    """`Model` of a problem at given sizes on a device, constructed under `seed`; `memory` is how its launches have room in
    `available_bytes` of the device's memory.

    Raises InputError when the reference's file cannot be run, with what it raised, and NoRoom where a CPU has none.
    """

    def __init__(
        self, problem: Problem, sizes: Mapping[str, int], device: torch.device, seed: int,
        available_bytes: int = _USUAL_BYTES,
    ) -> None:
        self.problem, self.sizes, self.device, self.seed = problem, dict(sizes), device, seed
        self.mode = problem.mode
        self.notes: list[ProblemNote] = []  # what is told of the problem, once for all rows
        self.families = families_for(problem.accuracy.contracted, with_gradients=self.mode == passes.FORWARD_BACKWARD)
        self.specs: tuple[TensorSpec, ...] | None = None
        self._can_draw_again = False  # nothing is deferred before its layout is known
        # Draws with their truths: for the checks of whoever comes next, and those shown to a worker whose truth is still to come.
        self._ready, self._shown = list[tuple[Inputs, Truth]](), list[tuple[Inputs, Truth]]()
        first, free, eager, skeleton, peak_bytes = self._first_call(available_bytes)
        self.shape = tree.shape_of(skeleton)
        self.moved_state = moved_names(self._constructed, self.state)  # by forward, as batch norm does in train mode
        self.output_specs = plan(eager, contiguous=True)
        # No layout is promised of a gradient, not even by PyTorch to itself.
        self.output_strides = [
            list(tensor.stride())
            if (free is None or index < free) and is_dense(tensor) and is_as_it_lies(tensor) else None
            for index, tensor in enumerate(eager)
        ]
        self._available_bytes = available_bytes
        call = self._call_sizes(peak_bytes)
        slicing = self._slicing(first, eager, call)
        self.memory = plan_memory(replace(call, is_separable=slicing is not None), available_bytes)
        if self._is_on_host and self.memory.needed_bytes > available_bytes:
            raise NoRoom(self._no_room(self.memory.sizes, available_bytes))
        self._can_draw_again = self.memory.tight and self._draws_alike(first)
        self._truths = Truths(
            self.model, problem.accuracy.scale, self.output_specs, self.shape, first, slicing, self.memory.slices
        )
        self.by_eager, self.in_slices = self._truths.by_eager, self._truths.in_slices
        self.outputs_under, self.sample_of = self._truths.outputs_under, self._truths.sample_of
        self.truth_name, self.longest_sum = self._truths.name, self._truths.longest_sum
        self.sums_magnitudes, self.has_products = self._truths.sums_magnitudes, self._truths.has_products
        # One for each output; what eager differs by from itself counts as an error of its own.
        self.call_to_call_u = self._differing(first, eager)
        self.eager_spreads: list[Spread] | None = None  # its errors on one draw, once `error_figures` has asked for them
        self._usual_truth_s = 0.0  # how long that draw's truth took
        if problem.accuracy.terms is None or problem.accuracy.contracted is None:
            sample = self.sample_of(first)
            returned = eager if sample is first else self.eager(sample)
            self.measured_bounds = MeasuredBounds(
                self.eager, self._truths, lambda: self.sample_of(self.draw()), sample, returned
            )
            self.families += self._families_beside(eager) if problem.accuracy.contracted is None else ()
        self.timed_families = tuple(family for family in self.families if family.is_timed)
        if ProblemNote.SAME_INPUTS not in self.notes and is_same_for_all_draws(
            eager, lambda: self._shaped(self.eager(self.draw())), by_median=problem.accuracy.terms is None
        ):
            self.notes.append(ProblemNote.SAME_OUTPUT)

    def _first_call(self, available_bytes: int) -> tuple[InputSet, int | None, list[torch.Tensor], Any, int]:
        """Make the model, draw, and call it once: the draw, with gradients how many outputs forward has, the outputs and
        their skeleton, and the most bytes that the call took. Raises NoRoom, on a CPU, where that is more than there is.
        """
        try:
            # On a GPU an allocation fails by itself.
            with at_most(available_bytes) if self._is_on_host else nullcontext():
                self._construct()
                first, free = self._first_draw()
                self._check_dtype()
                with PeakMemory(self.device) as peak:
                    eager, skeleton = self._outputs_of(first)
                return first, free, eager, skeleton, peak.bytes
        except MemoryError:
            if not self._is_on_host:
                raise
            # What holds on to half of a call is gone once this is left.
        sizes = None
        with suppress(MemoryError, InputError), at_most(available_bytes):  # the file may draw as it is read
            sizes = self._foreseen_sizes()
        raise NoRoom(self._no_room(sizes, available_bytes))

    @property
    def _is_on_host(self) -> bool:
        return limits_of(self.device.type).is_host

    def _construct(self) -> None:
        """Run the file and make its model, under strict settings whatever it sets. Raises InputError."""
        path, device = self.problem.reference_path, self.device
        be_strict()
        self.module = load_module(self.problem, self.sizes)
        be_strict()
        try:
            returned = getattr(self.module, "get_init_inputs", list)()
            self.init, self.init_by_name = arguments_of(self.module.Model, returned)
            # What a candidate cannot be given, no candidate can be constructed with.
            kind = next(filter(None, map(without_strides, tree.flatten(self.init)[1])), None)
            if kind is not None:
                raise TypeError(f"a {kind} tensor cannot cross to the candidate's process")
            torch.manual_seed(self.seed)
            with parallel_draws.entered():
                model = called(self.module.Model, _on_device(self.init, device), self.init_by_name)
            model = model.to(device)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            lacks_them = isinstance(error, TypeError) and not hasattr(self.module, "get_init_inputs")
            hint = "The reference has no get_init_inputs(): write one that returns the list of Model's arguments"
            raise InputError(
                f"Model of the reference cannot be constructed: {type(error).__name__}: {error}", path,
                hint=hint if lacks_them else None,
            ) from error
        refuse_lazy(model, path)
        self._constructed = model
        # A forward may move a state (a running mean, say): what a candidate is compared with is the state at birth.
        self.state = {
            name: tensor.detach().clone() for name, tensor in model.state_dict().items()
            if isinstance(tensor, torch.Tensor) and without_strides(tensor) is None
        }

    @cached_property
    def state_digests(self) -> dict[str, str]:
        """A digest of each tensor of the state at birth."""
        return {name: digest_of_tensor(tensor) for name, tensor in self.state.items()}

    def _first_draw(self) -> tuple[InputSet, int | None]:
        """The first draw, once draws differ and the model is as called; with gradients how many outputs forward has."""
        self.by_name = False
        self._get_inputs = self._drawing = Drawing(
            self.module, lambda: load_module(self.problem, self.sizes), self._arguments_of
        )
        if not self._drawing.settle(self.draw):
            self.notes.append(ProblemNote.SAME_INPUTS)
        if self.problem.accuracy.contracted is not None:
            refuse_contracted(self.problem, self.draw().specs)
        self.model, forward_outputs = passes.as_called(self._constructed, passes.FORWARD, by_name=self.by_name), None
        if self.mode == passes.FORWARD_BACKWARD:
            forward_outputs = self._outputs_of(self.draw())[0]
            self._add_cotangents(forward_outputs)
        first = self.draw()
        self.specs = first.specs
        if first.overlapping:
            self.notes.append(ProblemNote.OVERLAPPING_INPUT)
        return first, None if forward_outputs is None else len(forward_outputs)

    def _arguments_of(self, returned: Any) -> list[Any]:
        arguments, self.by_name = arguments_of(self._constructed.forward, returned)
        return arguments

    def _outputs_of(self, inputs: InputSet) -> tuple[list[torch.Tensor], Any]:
        return outputs_of(self.model, inputs, self._constructed.state_dict(), self.problem.reference_path)

    def _differing(self, inputs: InputSet, eager: Sequence[torch.Tensor]) -> tuple[float, ...]:
        """By how much calls on the same inputs differ. Raises InputError for a reference that is random."""
        def call64() -> list[torch.Tensor]:
            return self.truth(self._part_of(inputs, eager), with_eager=False).outputs

        return call_to_call_u(
            eager, lambda: self._shaped(self.eager(inputs)), call64 if self.truth_name == "float64" else None,
            self.longest_sum, self.problem.reference_path,
        )

    def _part_of(self, inputs: InputSet, eager: Sequence[torch.Tensor]) -> InputSet:
        """A few rows of `inputs` where those are seen to give the same rows of `eager`, or all: what is drawn by chance
        shows in them as well, and a convolution in float64 can take seconds.
        """
        slicing = self._truths.slicing or self._find_slicing(inputs, eager)
        if slicing is None or slicing.join != ROWS:
            return inputs
        return slice_of(inputs, slicing.cut(inputs.tensors(), slicing.stretches(_PARTS)[0]))

    def usual_truth(self) -> Truth:
        """The truth of a sample of a fresh draw, with eager; how long it took is kept for `float64_one_of`."""
        sample, made = self.sample_of(self.draw()), []
        self._usual_truth_s = seconds_of(lambda: made.append(self.truth(sample, with_eager=False)), self.device, times=1)
        return made[0] if made[0].eager else replace(made[0], eager=self.eager(sample))

    @cached_property
    def float64_one_of(self) -> int:
        """Of how many timed launches near eager one is held against its truth: 1 where that takes little longer."""
        if self.truth_name != "float64" or self._truths.sums_magnitudes:
            return 1
        sample, truth_s = self.sample_of(self.draw()), self._usual_truth_s
        slices = self.memory.slices if sample.is_slice else 1
        if truth_s < NOT_SHORT_S:  # a first one may load its kernels
            truth_s = seconds_of(lambda: self.truth(sample, with_eager=False), self.device)
        if slices * truth_s < _SLOW_TRUTH_S:
            return 1
        times = truth_s / seconds_of(lambda: self.by_eager(sample), self.device)
        return min(max(_LEAST_ONE_OF, math.ceil(times)), _MOST_ONE_OF) if times > _LONGER else 1

    def _shaped(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """`tensors`, outputs of one draw, where they have the shapes of the others'. Raises InputError otherwise."""
        refuse_other_shapes(tensors, self.output_specs, self.problem.reference_path)
        return tensors

    def draw(self, family: Family = GIVEN, seed: int | None = None) -> Inputs:
        """A fresh set under a seed of the system's, or that of `seed`; where memory is short only that is kept."""
        if not self._can_draw_again or family is not GIVEN:  # what a gradient has a part in is not the same twice
            return self._drawn(family, seed)
        return RedrawnInputs(self._skeleton, self.specs, family, fresh_seed() if seed is None else seed, self._drawn)

    def _drawn(self, family: Family = GIVEN, seed: int | None = None, *, transient: bool = False) -> InputSet:
        contracted = self.problem.accuracy.contracted
        try:
            return draw_set(
                self._get_inputs, self.device, family, contracted, self.specs, seed,
                transient=transient or (self._can_draw_again and family is GIVEN),
            )
        except InputError as error:
            raise InputError(error.message, self.problem.reference_path, hint=error.hint) from error

    def family_named(self, name: str) -> Family:
        """A family of inputs for this reference, whether it is checked on it or not. Raises KeyError for other names."""
        return one_way_family(self.model) if name == ONE_WAY else family_named(name)

    def _families_beside(self, given: Sequence[torch.Tensor]) -> tuple[Family, ...]:
        """What inputs as given hide, others show: those, where the model makes what is as finite of them as `given`."""
        family = self.measured_bounds.family(one_way_family(self.model))
        if family is None:
            return ()
        try:
            made = self.eager(self.draw(family))
        except Exception:  # a reference may refuse what is no longer one by a thousandth
            return ()
        given, made = [[with_arithmetic(each) for each in outputs] for outputs in (given, made)]
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
            return [self._drawing(), vectors]

        self._get_inputs = draw
        self.model = passes.as_called(self._constructed, passes.FORWARD_BACKWARD, by_name=self.by_name)

    def make_ready(self, families: Sequence[Family]) -> None:
        """Have a draw of each of `families` with its truth for `draw_ready`, as far as there is room; each is used once."""
        lacking = list(families)
        for inputs, _ in self._ready:
            lacking.remove(inputs.family)
        # Inputs, and outputs in their own type and in float64 with a scale for each.
        each_bytes = region_bytes(self.specs) + sum(spec.size_bytes + 16 * math.prod(spec.shape) for spec in self.output_specs)
        room_bytes = min(_READY_SHARE * self._available_bytes, self._available_bytes - self.memory.needed_bytes)
        lacking = lacking[: max(0, int(room_bytes // each_bytes) - len(self._ready))]
        if lacking and self.memory.step is MemoryStep.FULL:
            sets = [self.draw(family) for family in lacking]
            self._ready += zip(sets, map(kept, self.truths(sets)))

    def draw_ready(self, family: Family) -> Inputs:
        """A draw of `family` that is ready, or else a fresh one."""
        at = next((at for at, (inputs, _) in enumerate(self._ready) if inputs.family is family), None)
        if at is None:
            return self.draw(family)
        self._shown.append(self._ready.pop(at))
        return self._shown[-1][0]

    def _ready_truth(self, inputs: Inputs) -> Truth | None:
        at = next((at for at, (shown, _) in enumerate(self._shown) if shown is inputs), None)
        return None if at is None else self._shown.pop(at)[1]

    def forget_shown(self) -> None:
        """Give back what was ready and was shown, whose launches have ended: no truth of it is asked for any more."""
        self._shown.clear()

    def forget_ready(self) -> None:
        """Give back the memory of what is ready."""
        self._ready.clear()
        self._shown.clear()

    def eager(self, inputs: InputSet) -> list[torch.Tensor]:
        """The outputs of strict eager, cloned so that they do not alias the inputs."""
        return eager_of(self.model, inputs)[0]

    def state_after(self, before: Mapping[str, torch.Tensor], inputs: InputSet) -> dict[str, torch.Tensor]:
        """The state that a call of strict eager leaves of the state `before`, in host memory; its own stays as it is."""
        model = copy.deepcopy(self._constructed)
        model.load_state_dict(dict(before), strict=False)
        eager_of(passes.as_called(model, self.mode, by_name=self.by_name), inputs)
        now = model.state_dict()
        return {name: now[name].detach().to("cpu") for name in self.moved_state}

    def truth(self, inputs: InputSet, *, with_eager: bool = True) -> Truth:
        """The truth for one set. Without `with_eager`, eager is computed only where it is needed."""
        return self.truths([inputs], with_eager=with_eager)[0]

    def truths(self, sets: Sequence[InputSet], *, with_eager: bool = True) -> list[Truth]:
        """`truth` of each set. One answer of the device's is waited for."""
        known = list(map(self._ready_truth, sets))
        made = iter(self._truths.of([inputs for inputs, truth in zip(sets, known) if truth is None], with_eager=with_eager))
        truths = [next(made) if truth is None else truth for truth in known]
        for truth in truths if not any(inputs.is_slice for inputs in sets) else ():
            self._shaped(truth.outputs)
        return truths

    @property
    def truth_bytes(self) -> int | None:
        """What a truth holds on to, once one was made."""
        return self._truths.truth_bytes

    @cached_property
    def terms(self) -> float | None:
        """Terms of the sums behind one element of an output, where the problem says; asked for at each launch."""
        formula = self.problem.accuracy.terms
        return None if formula is None else formula.evaluate(self.sizes)

    def _foreseen_sizes(self) -> CallSizes | None:
        """What one call takes, without its making; None where that cannot be said."""
        module = load_module(self.problem, self.sizes)
        by_name = False

        def drawn() -> list[Any]:
            nonlocal by_name
            arguments, by_name = arguments_of(module.Model.forward.__get__(self), module.get_inputs())  # of no model yet
            return arguments

        def made() -> torch.nn.Module:
            init, is_by_name = arguments_of(module.Model, getattr(module, "get_init_inputs", list)())
            return called(module.Model, init, is_by_name)

        call = foreseen(
            drawn, made,
            lambda model, arguments: passes.as_called(model, passes.FORWARD, by_name=by_name)(*arguments),
        )
        return None if call is None else CallSizes(
            call.inputs_bytes, call.outputs_bytes, call.state_bytes, call.outputs_bytes, call.wide_inputs_bytes
        )

    def _no_room(self, sizes: CallSizes | None, available_bytes: int) -> str:
        hint = "Run it at smaller sizes with --sizes, or on another device"
        free = f"{available_bytes / 1e9:.1f} GB that are free"
        if sizes is None:
            return f"{self.problem.name}: one call takes more than the {free}. {hint}"
        return (
            f"{self.problem.name}: one call has {sizes.inputs_bytes / 1e9:.1f} GB of inputs, {sizes.outputs_bytes / 1e9:.1f} GB "
            f"of outputs and {sizes.state_bytes / 1e9:.1f} GB of parameters and buffers, and judging it takes "
            f"{smallest_plan(sizes).needed_bytes / 1e9:.1f} GB at least, of {free}. {hint}"
        )

    def _call_sizes(self, eager_bytes: int) -> CallSizes:
        floating = sum(spec.extent for spec in self.specs if spec.torch_dtype.is_floating_point)
        outputs_bytes = region_bytes(self.output_specs)
        return CallSizes(
            region_bytes(self.specs), outputs_bytes,
            sum(tensor.numel() * tensor.itemsize for tensor in self.state.values()), max(eager_bytes, outputs_bytes),
            8 * floating,
        )

    def _slicing(self, first: InputSet, eager: Sequence[torch.Tensor], sizes: CallSizes) -> Slicing | None:
        """How a float64 pass is cut, where it is so large that it must be, or may have to be later on."""
        if slices_wanted(sizes, self._available_bytes) == 1 or "value" in str(self.shape) or "dict" in str(self.shape):
            return None

        return self._find_slicing(first, eager)

    def _find_slicing(self, inputs: InputSet, outputs: Sequence[torch.Tensor]) -> Slicing | None:
        def call(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
            return outputs_for(self.model, inputs.skeleton, tensors)

        return find_slicing(call, inputs.tensors(), outputs)

    def _draws_alike(self, first: InputSet) -> bool:
        """Whether a seed gives the same inputs each time, so that they need not be kept."""
        self._skeleton = first.skeleton
        return self._drawn(first.family, first.seed, transient=True).digest() == first.digest()

    def have_less(self) -> bool:
        """Take the next step down in memory; False where there is none."""
        smaller = self.memory.smaller()
        if smaller is None:
            return False
        self.restore_memory(smaller)
        return True

    def restore_memory(self, plan: MemoryPlan) -> None:
        """Go by `plan`, one of an earlier moment or a smaller one."""
        self.forget_ready()
        if plan.tight and not self.memory.tight:
            self._can_draw_again = self._draws_alike(self._drawn())
        elif not plan.tight:
            self._can_draw_again = False
        self.memory, self._truths.slices = plan, plan.slices

    @property
    def is_compared_in_slices(self) -> bool:
        return self._truths.is_compared_in_slices

    def _check_dtype(self) -> None:
        made = sorted({spec.dtype for spec in self.specs if spec.torch_dtype.is_floating_point})
        if self.problem.path != self.problem.reference_path and made and self.problem.dtype not in made:
            raise InputError(
                f"dtype is {self.problem.dtype}, but get_inputs() of {self.problem.reference_path.name} makes "
                f"{' and '.join(made)}", self.problem.path, hint=f"Write dtype: {made[0]}, or change get_inputs",
            )


def be_strict() -> None:
    """Turn TF32 off for cuBLAS and cuDNN in this process."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def load_module(problem: Problem, sizes: Mapping[str, int]) -> types.ModuleType:
    """Run the reference's source with its module-level sizes replaced by `sizes`. Raises InputError where it fails."""
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


class PeakMemory:
    """Measures the `bytes` that PyTorch's allocator gave out at most while entered; 0 on a CPU: nobody counts there."""

    def __init__(self, device: torch.device) -> None:
        self._device, self.bytes = device, 0

    def __enter__(self) -> PeakMemory:
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before_bytes = torch.cuda.memory_allocated(self._device)
        return self

    def __exit__(self, *_: object) -> None:
        if self._device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self._device) - self._before_bytes
