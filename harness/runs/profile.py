"""The hardware counters of one candidate: builds it, draws inputs of the timed sizes, and has one cold call counted.

What is counted is a call like those that are timed, but not one of them: ncu repeats each kernel until all counters
are read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from harness.device.choice import open_backend, why_no_gpu
from harness.device.identity import DeviceIdentity
from harness.device.lock import alone_on
from harness.judge.build_pool import BuildPool
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError, NothingToRun
from harness.model.paths import PROGRAM
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.reference.reference_model import Reference
from harness.report.progress import Progress
from harness.sandbox.environment import scrubbed
from harness.sandbox.sandbox_choice import strongest_sandbox
from harness.tools.counters.measurement import Read, measure
from harness.tools.counters.ncu import require_tool
from harness.tools.launch_files import SmallLaunch

_LIMIT_S = 300.0


@dataclass(frozen=True)
class Profile:
    """What was read, on which device, at which sizes."""

    read: Read
    device: DeviceIdentity
    sizes: dict[str, int]


def profile(
    problem: Problem, candidate: Candidate, device: str, settings: Settings, progress: Progress,
    wait_s: float | None = None,
) -> Profile:
    """Count what `candidate` does in one call, on a device that is waited for at most `wait_s` (as `device.lock` does).

    Raises HarnessError where it cannot be built, NothingToRun without a GPU or without ncu.
    """
    progress.note("opening the device")
    backend = open_backend(device)
    if not backend.limits.lists_kernels:
        why = why_no_gpu() if device != "cpu" else "--device cpu is none"
        raise NothingToRun(f"profile reads a GPU's counters: {why}. `{PROGRAM} doctor` says more")
    program = require_tool()
    with BuildPool(problem, [candidate], backend, settings) as build_pool:
        if candidate.fault is None:
            build_pool.wait_for_builds(progress.note)
        verdict = None if candidate.fault else build_pool.build_of(candidate).verdict
        if candidate.fault or verdict is not None:
            raise HarnessError(f"{candidate.name} cannot be run: {candidate.fault or verdict.reason}")
        sizes = problem.timed_sizes(backend.kind)
        seed = 0  # of the parameters; the inputs are drawn as ever
        reference = Reference(problem, sizes, backend.torch_device, seed)
        prepared, starter = build_pool.prepared(candidate)
        launch = SmallLaunch(
            prepared.path, prepared.manifest, seed, reference.init, reference.draw().arguments(), "cuda:0",
            reference.mode, reference.init_by_name, reference.by_name,
        )
        extra = {
            **backend.visible_devices(),
            # The process under the tool has no network, not even one of its own.
            "NV_COMPUTE_PROFILER_LOCAL_CONNECTION_OVERRIDE": "uds",
        }
        backend.release_memory()
        try:
            with alone_on(backend, progress, wait_s):
                progress.status(candidate.name, "counting one call under ncu")
                read = measure(
                    program, launch, scrubbed(os.environ, extra), strongest_sandbox(), _LIMIT_S, prepared.triton_cache
                )
        except OSError as error:
            raise HarnessError(f"ncu could not be started: {error}") from None
        finally:
            starter.close()
    return Profile(read, backend.identity, dict(sizes))
