"""A small launch as files, of JSON and raw bytes: what the program under the tool needs to call a candidate once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.model.files.neighbours import beside
from harness.protocol import tree
from harness.protocol.layout import TensorSpec, fill, plan, region_bytes

PLAN, OUTCOME = "launch.json", "outcome.json"
_AS_THEY_ARE = ("path", "manifest", "seed", "device", "mode", "init_by_name", "by_name")


@dataclass(frozen=True)
class SmallLaunch:
    """One call of the candidate at `path`: `ModelNew(*init)` under `seed`, then `forward(*inputs)` on `device`.

    `manifest` names its built extensions. Tensors may lie on any device. With `init_by_name` and `by_name` these
    arguments are `[positional], {named}`.
    """

    path: str
    manifest: Mapping[str, Any]
    seed: int
    init: list[Any]
    inputs: list[Any]
    device: str
    mode: str = "forward"
    init_by_name: bool = False
    by_name: bool = False

    @property
    def places(self) -> list[str]:
        """What a process that makes it has to see, wherever it lies."""
        return [*map(str, beside(Path(self.path)).own), *(str(entry["path"]) for entry in self.manifest.values())]

    @property
    def hidden(self) -> list[str]:
        """The folders of which it is to see nothing else."""
        return [str(Path(place).parent) for place in self.places]


def write(folder: Path, launch: SmallLaunch) -> None:
    """Put `launch` into `folder`. Raises OSError, and TypeError for values that cannot cross."""
    body = {name: getattr(launch, name) for name in _AS_THEY_ARE} | {"manifest": dict(launch.manifest)}
    for name, values in (("init", launch.init), ("inputs", launch.inputs)):
        skeleton, tensors = tree.flatten(values)
        specs = plan(tensors)
        region = torch.zeros(region_bytes(specs), dtype=torch.uint8)
        for spec, tensor in zip(specs, tensors):
            fill(spec.view(region), tensor)
        (folder / f"{name}.bytes").write_bytes(region.numpy().tobytes())
        body[name] = {"skeleton": skeleton, "specs": [spec.to_json() for spec in specs]}
    (folder / PLAN).write_text(json.dumps(body), encoding="utf-8")


def read(folder: Path) -> SmallLaunch:
    """The launch in `folder`, its tensors on the CPU."""
    body = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    values = {}
    for name in ("init", "inputs"):
        specs = [TensorSpec.from_json(each) for each in body[name]["specs"]]
        region = torch.frombuffer(bytearray((folder / f"{name}.bytes").read_bytes()), dtype=torch.uint8)
        values[name] = tree.rebuild(body[name]["skeleton"], [spec.view(region) for spec in specs])
    return SmallLaunch(**{name: body[name] for name in _AS_THEY_ARE}, **values)
