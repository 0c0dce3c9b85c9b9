"""The loop that circulates for judging kernels, kept to show what it takes for true: one seed, one set of inputs,
allclose at 1e-2, events around calls in the candidate's own process, the expected output a variable in the caller's
frame. Nothing in the harness decides anything by it; `naive_client` starts it as ``python -m … FD``, a process a case.
"""

from __future__ import annotations

import ast
import ctypes
import socket
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

from harness.model.files.reference_source import with_sizes
from harness.protocol.frames import Channel
from harness.protocol.source_import import import_source
from harness.worker import extensions

TOLERANCE = 1e-2
WARM_UPS, TIMED = 3, 20


def main() -> None:
    """Say that all is imported, take one request, and answer with what `judge` says or with what it raises."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    channel.send({})
    request = channel.receive()
    try:
        answer = judge(request)
    except Exception as error:
        answer = {"raised": type(error).__name__, "said": next(iter(str(error).splitlines()), "")[:200]}
    channel.send(answer)
    # As such a loop ends, in a fork too: after the threads of the case, and what it registered for the end.
    ctypes.pythonapi.Py_Exit(0)


def judge(request: dict[str, Any]) -> dict[str, Any]:
    """Import what `request` names (case, reference, sizes, device, manifest) and judge it; raises what that raises."""
    device = torch.device(request["device"])
    _reuse_builds(request["manifest"], Path(request["case"]).parent)
    reference = types.ModuleType("reference")
    source = Path(request["reference"]).read_text(encoding="utf-8")
    exec(compile(ast.unparse(with_sizes(source, request["sizes"])), request["reference"], "exec"), reference.__dict__)
    module = import_source(Path(request["case"]))
    arguments = getattr(reference, "get_init_inputs", list)()
    model = reference.Model(*arguments).to(device)
    return compare_and_time(model, module.ModelNew(*arguments).to(device), reference.get_inputs, device)


def compare_and_time(
    reference: Callable, model: Callable, get_inputs: Callable[[], list], device: torch.device
) -> dict[str, Any]:
    """{"correct": …, "ms": …, "eager_ms": …}; the times are None where it is not correct."""
    with torch.no_grad():
        torch.manual_seed(0)
        inputs = [each.to(device) if isinstance(each, torch.Tensor) else each for each in get_inputs()]
        expected = reference(*inputs)
        output = model(*inputs)
        if not torch.allclose(output, expected, atol=TOLERANCE, rtol=TOLERANCE):
            return {"correct": False, "ms": None, "eager_ms": None}
        milliseconds = time_calls(model, inputs, device)
        return {"correct": True, "ms": milliseconds, "eager_ms": time_calls(reference, inputs, device)}


def time_calls(forward: Callable, inputs: list, device: torch.device) -> float:
    """The mean of the timed calls in ms: between events on a GPU, by the clock of this process on a CPU."""
    for _ in range(WARM_UPS):
        forward(*inputs)
    total_ms = 0.0
    for _ in range(TIMED):
        if device.type == "cpu":
            began = time.perf_counter()
            forward(*inputs)
            total_ms += (time.perf_counter() - began) * 1e3
            continue
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        forward(*inputs)
        stop.record()
        torch.cuda.synchronize()
        total_ms += start.elapsed_time(stop)
    return total_ms / TIMED


def _reuse_builds(manifest: dict[str, dict[str, Any]], folder: Path) -> None:
    """Open what the harness has built of the case; what it has not, torch builds as it would for anybody."""
    # It deletes a header in torch's own folder, which is read-only here.
    cpp_extension.remove_extension_h_precompiler_headers = lambda: None
    building = {kind: getattr(cpp_extension, kind) for kind in ("load_inline", "load")}
    extensions.install(manifest, folder)
    for kind, build in building.items():
        setattr(cpp_extension, kind, _opened_or_built(getattr(cpp_extension, kind), build, extensions.NotBuilt))


def _opened_or_built(opened: Callable, build: Callable, not_built: type[Exception]) -> Callable:
    def either(*positional: Any, **named: Any) -> Any:
        try:
            return opened(*positional, **named)
        except not_built:
            return build(*positional, **named)

    return either


if __name__ == "__main__":
    main()
