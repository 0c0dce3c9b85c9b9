"""The references of a problem on a device, at the sizes that are timed, checked, or given to Triton's interpreter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from harness.device.backend import Backend
from harness.model.errors import NoRoom
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.protocol.cuda_driver import DriverError
from harness.reference.call_size import foreseen
from harness.reference.memory_plan import MemoryPlan, sentence_of
from harness.reference.reference_model import Reference, be_strict, load_module
from harness.reference.error_figures import note_what_cannot_be_compared

# Elements of the inputs and outputs of a call. The shipped candidates take up to 0.4 s for a call of 0.4 million of them
# on one core, and a check has six calls or so.
MOST_ELEMENTS = 1 << 19


def references_at_all_sizes(
    problem: Problem, timed_sizes: Mapping[str, int], backend: Backend, settings: Settings, model_seed: int
) -> list[Reference]:
    """Return the reference at all sizes, the timed ones first, its model constructed under `model_seed`. Raises NoRoom."""
    backend.forget_launches()  # of another problem
    backend.release_memory()
    backend.limit_memory(settings.memory_bytes)
    all_sizes = [timed_sizes, *problem.checks_for(backend.kind)]
    try:
        references = [
            Reference(problem, sizes, backend.torch_device, model_seed, backend.available_bytes()) for sizes in all_sizes
        ]
    except (torch.OutOfMemoryError, DriverError) as error:
        cause = str(error).splitlines()[0]
    else:
        note_what_cannot_be_compared(references[0])
        return references
    backend.release_memory()
    raise NoRoom(
        f"{problem.name}: this device has no room for one call of the reference at these sizes, of "
        f"{backend.available_bytes() / 1e9:.1f} GB that are free ({cause}). Run it at smaller ones with --sizes, or on a "
        "device with more memory"
    )


def no_room(plan: MemoryPlan, backend: Backend, cause: str) -> str:
    """What is said where not even that plan had room for one launch and its truth."""
    return (
        f"this device has no room for its inputs, outputs and their truths at these sizes, {sentence_of(plan)}: about "
        f"{plan.needed_bytes / 1e9:.1f} GB are needed, and {backend.available_bytes() / 1e9:.1f} GB are free ({cause})"
    )


def small_references(known: Sequence[Reference], available_bytes: int) -> list[Reference]:
    """References at all sizes small enough to be interpreted, the smallest first: those `known`, others made here."""
    first = known[0]
    references = {sizes_text(each.sizes): each for each in known}
    for sizes in (first.problem.sizes, *first.problem.check_sizes):
        if sizes_text(sizes) not in references and _has_small_inputs(first.problem, sizes):
            references[sizes_text(sizes)] = Reference(first.problem, sizes, first.device, first.seed, available_bytes)
    return sorted((each for each in references.values() if _elements(each) <= MOST_ELEMENTS), key=_elements)


def _has_small_inputs(problem: Problem, sizes: Mapping[str, int]) -> bool:
    """Whether the floating-point inputs alone leave it small; nothing is drawn for that."""
    module = load_module(problem, sizes)
    inputs = foreseen(lambda: [module.get_inputs()], torch.nn.Module, lambda model, arguments: [])
    be_strict()  # the file may have set it anew
    return inputs is not None and inputs.wide_inputs_bytes / 8 <= MOST_ELEMENTS


def _elements(reference: Reference) -> int:
    return sum(math.prod(spec.shape) for spec in (*reference.specs, *reference.output_specs))
