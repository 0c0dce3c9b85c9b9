"""Makes a launch that failed again, from the recipe its run wrote down, and keeps its inputs, output and truth. What
hung on more than the recipe (work left from earlier calls, a race) may come out right this time; that is said, and the
tensors are kept all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.device.choice import open_backend
from harness.judge import check
from harness.judge.build_pool import BuildPool
from harness.judge.judgement import Prepared
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError, InputError
from harness.model.files.text_files import replacing
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.verdict import OK, Verdict
from harness.reference.evidence import Evidence, Recipe
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.report.progress import Progress


@dataclass(frozen=True)
class Reproduction:
    """The launch made again. `got` is None where it returned nothing, `same_inputs` where the run took no digest.
    Tensors lie in host memory; `expected` is float64 for outputs that float.
    """

    verdict: Verdict
    evidence: Evidence | None
    same_inputs: bool | None
    inputs: list[Any]
    got: list[torch.Tensor] | None
    expected: list[torch.Tensor]
    model_inputs: list[Any]

    def save(self, path: Path, recipe: Recipe) -> None:
        """Write everything for `torch.load`, which reads it with `weights_only=True`. Raises InputError."""
        body = {
            "inputs": self.inputs, "got": self.got, "expected": self.expected, "init_inputs": self.model_inputs,
            "sizes": dict(recipe.sizes), "family": recipe.family, "seed": recipe.seed, "model_seed": recipe.model_seed,
        }
        try:
            with replacing(path) as part:
                torch.save(body, part)
        except (OSError, RuntimeError) as error:
            raise InputError(f"cannot be written ({error})", path, hint="Choose another file with --out FILE") from None


def reproduce(
    problem: Problem, candidate: Candidate, recipe: Recipe, device: str, settings: Settings, progress: Progress
) -> Reproduction:
    """Make the launch of `recipe` again on `device`. Raises HarnessError where the candidate cannot be built."""
    progress.note("opening the device")
    backend = open_backend(device)
    with BuildPool(problem, [candidate], backend, settings) as build_pool:  # without its lock: nothing is timed
        build_pool.wait_for_builds(progress.note)
        verdict = build_pool.build_of(candidate).verdict
        if verdict is not None:
            raise HarnessError(f"{candidate.name} cannot be run: {verdict.status.value}: {verdict.reason}")
        progress.note("drawing the inputs again")
        reference = Reference(problem, recipe.sizes, backend.torch_device, recipe.model_seed)
        sets = _drawn(reference, recipe)
        prepared, starter = build_pool.prepared(candidate)
        session = Session(starter.start(), backend, settings.load_timeout_s, settings.launch_timeout_s)
        try:
            progress.status(candidate.name, "making the launch")
            verdict, evidence, got = _launched(session, reference, sets, prepared, settings)
        finally:
            session.stop()
            starter.close()
        truth = reference.truth(sets[-1])
        same_inputs = None if recipe.inputs_digest is None else sets[-1].digest() == recipe.inputs_digest
        inputs, expected = _on_host(sets[-1].arguments()), _on_host(truth.outputs)
        return Reproduction(verdict, evidence, same_inputs, inputs, got, expected, _on_host(reference.init))


def _drawn(reference: Reference, recipe: Recipe) -> list[InputSet]:
    """The inputs of the launches queued before, and of the launch itself."""
    names = (*(recipe.families_before or [recipe.family] * len(recipe.before)), recipe.family)
    try:
        families = [reference.family_named(name) for name in names]
    except KeyError as error:
        raise InputError(f"this version has no family of inputs {error}") from None
    return [reference.draw(*each) for each in zip(families, (*recipe.before, recipe.seed))]


def _launched(
    session: Session, reference: Reference, sets: list[InputSet], prepared: Prepared, settings: Settings
) -> tuple[Verdict, Evidence | None, list[torch.Tensor] | None]:
    """The verdict on the launches, the evidence, and what the last one returned."""
    got = None
    try:
        session.load(prepared.path, reference, prepared.manifest, reference.seed, stand_in_gpu=prepared.stand_in_gpu)
        session.open(reference, len(sets))
        gate = session.backend.limits.gates_queues and len(sets) > 1
        made = session.launch(sets, gate=gate, timeout_s=settings.launch_timeout_s + settings.load_timeout_s)
        if made.launches[-1].fault is None:
            got = _on_host(session.outputs(reference, len(sets) - 1))
        figures = check.verify(session, reference, sets, made, prepared.precision_class, with_eager=True)
        check.decide(figures[-1:], reference, prepared.precision_class)
    except Failed as failure:
        return failure.verdict, failure.evidence, got
    return OK, None, got


def _on_host(values: list[Any]) -> list[Any]:
    """Tensors cloned to host memory, everything else as it is."""
    if isinstance(values, torch.Tensor):
        return values.detach().to("cpu", copy=True).clone()
    if isinstance(values, (list, tuple)):
        return type(values)(_on_host(each) for each in values)
    if isinstance(values, dict):
        return {key: _on_host(each) for key, each in values.items()}
    return values
