"""`python -m harness.tools.watched_call FOLDER [profiled]`: load a candidate as a worker does and call it once; to be
profiled a second time, between the profiler's start and stop.

This is what a tool watches. The inputs are copied to the device by the driver and not by a kernel, so that the kernels
which run are the candidate's doing. What is compiled or tuned when it first runs is no part of a profiled call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harness.protocol import passes, tree
from harness.protocol.source_import import import_source
from harness.tools import launch_files
from harness.worker import extensions, model


def main(folder: Path, *, profiled: bool = False) -> int:
    """Make the launch in `folder` and leave its outcome there. Returns the exit status."""
    launch = launch_files.read(folder)
    try:
        _make(launch, profiled=profiled)
        outcome: dict[str, Any] = {"launched": True}
    except Exception as error:
        outcome = {"raised": model.describe(error)}
    (folder / launch_files.OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
    return 0 if "launched" in outcome else 1


def _make(launch: launch_files.SmallLaunch, *, profiled: bool) -> None:
    device = torch.device(launch.device)
    candidate = _constructed(launch, device)
    inputs = _on_device(device, launch.inputs)
    with torch.no_grad():
        candidate(*inputs)
        if device.type == "cuda":
            torch.cuda.synchronize()
        if profiled:
            torch.cuda.profiler.start()
            candidate(*inputs)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def _constructed(launch: launch_files.SmallLaunch, device: torch.device) -> Callable[..., Any]:
    """The candidate's model on `device`, as it is called. Raises what the candidate raises."""
    extensions.install(dict(launch.manifest), Path(launch.path).parent)
    module = import_source(Path(launch.path))
    init = _on_device(device, launch.init)
    made = model.construct(module, init, launch.seed, device, by_name=launch.init_by_name)
    return passes.as_called(made, launch.mode, by_name=launch.by_name)


def _on_device(device: torch.device, values: list[Any]) -> list[Any]:
    """Tensors of nested `values` on `device`, everything else as it is."""
    skeleton, tensors = tree.flatten(values)
    return tree.rebuild(skeleton, [tensor.to(device) for tensor in tensors])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), profiled=sys.argv[2:] == ["profiled"]))
