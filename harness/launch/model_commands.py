"""The commands by which a worker constructs a model, the candidate's or the reference, and the state that it hands over.

What a model is constructed of, and its parameters and buffers, lie in regions of the arena.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

import torch

from harness.model.files.reference_source import with_sizes
from harness.protocol import tree
from harness.protocol.arena import Arena
from harness.protocol.layout import TensorSpec, plan, region_bytes
from harness.reference.reference_model import Reference


def load_command(
    arena: Arena, path: str, reference: Reference, manifest: Mapping[str, Any], seed: int, refused: Collection[str], *,
    may_ask: bool, stand_in_gpu: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Construct `ModelNew` of the file at `path`, as `Session.load` says."""
    return {
        "op": "load", "path": path, "seed": seed, "manifest": dict(manifest), "refused": sorted(refused),
        "may_ask": may_ask, "stand_in_gpu": stand_in_gpu and dict(stand_in_gpu), "mode": reference.mode,
        "by_name": reference.by_name, "state_specs": {name: spec.to_json() for name, spec in _specs_of(reference).items()},
        **_init(arena, reference),
    }


def reference_command(arena: Arena, reference: Reference) -> dict[str, Any]:
    """Construct the reference itself, at its sizes."""
    problem = reference.problem
    return {
        "op": "reference", "seed": reference.seed, "mode": reference.mode, "by_name": reference.by_name,
        "source": ast.unparse(with_sizes(problem.reference_source, reference.sizes, problem.reference_path)),
        **_init(arena, reference),
    }


def _init(arena: Arena, reference: Reference) -> dict[str, Any]:
    """The part of a command that says what the model is constructed of."""
    skeleton, tensors = tree.flatten(reference.init)
    specs, place = plan(tensors, contiguous=True), None
    if specs:
        place = arena.named("init", region_bytes(specs))
        region = arena.map(**place)
        for spec, tensor in zip(specs, tensors):
            spec.view(region).copy_(tensor)
    return {
        "init": skeleton, "init_by_name": reference.init_by_name, "init_specs": [spec.to_json() for spec in specs],
        "init_region": place,
    }


def difference_of_states(reference: Reference, reply: Mapping[str, Any]) -> str | None:
    """Return a sentence on how the state that `reply` tells of differs from that of `reference`, or None.

    The worker's word is enough for the values: what differs explains wrong outputs, and makes none of them wrong.
    """
    theirs = reply.get("state")
    theirs = theirs if isinstance(theirs, dict) else {}
    specs = _specs_of(reference)
    missing = [name for name in specs if name not in theirs]
    if missing:
        return f"ModelNew has no parameter or buffer named {missing[0]!r}, which the reference has"
    for name, spec in specs.items():
        if theirs[name] != [spec.dtype, list(spec.shape)]:
            return f"{name} is {theirs[name]} where the reference has {[spec.dtype, list(spec.shape)]}"
    digests = reply.get("digests")
    digests = digests if isinstance(digests, dict) else {}
    if reply.get("alike") is True:
        for name, digest in reference.state_digests.items():
            if digests.get(name) != digest:
                return f"{name} has other values than the reference's, though both were made under one seed"
    return None


class HandedState:
    """Where a worker lays the parameters and buffers of its model, formed as those of `reference` are; `command` tells it."""

    def __init__(self, arena: Arena, reference: Reference) -> None:
        self._specs = _specs_of(reference)
        place = arena.named("state", region_bytes(list(self._specs.values())))
        self.command = {"op": "state", "state_region": place}
        self._region = arena.map(**place)

    def tensors(self) -> dict[str, torch.Tensor]:
        """What was handed over last, in host memory of its own."""
        return {name: spec.view(self._region).clone() for name, spec in self._specs.items()}


def _specs_of(reference: Reference) -> dict[str, TensorSpec]:
    return dict(zip(reference.state, plan(list(reference.state.values()), contiguous=True)))
