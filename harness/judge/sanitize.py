"""Which launch of a candidate goes under compute-sanitizer, and what its findings do to the judgement."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.attribution.source_names import source_text
from harness.device.backend import Backend
from harness.model.verdict import Status
from harness.reference.reference_model import Reference
from harness.sandbox.environment import scrubbed
from harness.sandbox.leftovers import content_of
from harness.sandbox.sandbox_choice import strongest_sandbox
from harness.tools.launch_files import SmallLaunch
from harness.tools.sanitizer.compute_sanitizer import require_tool
from harness.tools.sanitizer.examination import Examiner, Uses

if TYPE_CHECKING:
    from harness.judge.judgement import Judgement, Prepared

_LEAST_SIZE = 16
_MOST_PTX_FILES, _LARGEST_PTX_BYTES = 64, 4 << 20


def open_examiner(backend: Backend) -> Examiner:
    """An examiner whose children see `backend`'s device and allocate each tensor by itself. Raises InputError without the tool.

    With PyTorch's caching allocator a write beyond an output would land in a neighbour of the same block, unseen.
    """
    extra = {
        **backend.visible_devices(), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUDA_MODULE_LOADING": "LAZY",
        # The children have no network, not even one of their own.
        "NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE": "uds",
    }
    return Examiner(require_tool(backend.kind), scrubbed(os.environ, extra), strongest_sandbox())


def sanitize(
    examiner: Examiner, prepared: Prepared, references: Sequence[Reference], model_seed: int, judgement: Judgement,
    tell: Callable[[str], None],
) -> None:
    """Examine an entry that is `ok` and has kernels of its own; `judgement` takes the verdict and the warnings.

    `references` has the timed sizes first. The launch is a small one; at sizes that the candidate refuses, the timed.
    """
    traced = judgement.provenance
    if judgement.verdict.status is not Status.OK or traced is None or not traced.has_own:
        return
    uses = Uses(
        "\n".join([source_text(Path(prepared.path)), *_ptx(prepared.triton_cache)]),
        any(kernel.owner == "library" for kernel in traced.kernels),
    )
    raised = None
    for reference in dict.fromkeys((small_reference(references), references[0])):
        launch = SmallLaunch(
            prepared.path, prepared.manifest, model_seed, reference.init, reference.draw().arguments(), "cuda:0",
            reference.mode, reference.init_by_name, reference.by_name,
        )
        try:
            examination = examiner.examine(launch, uses, tell, prepared.triton_cache)
        except OSError as error:
            judgement.warnings.append(f"compute-sanitizer could not be started: {error}")
            return
        judgement.warnings += [warning for warning in examination.warnings if warning not in judgement.warnings]
        if examination.verdict is not None:
            judgement.verdict = examination.verdict
            judgement.speedup = judgement.word = None  # what is wrong has no time
        raised = examination.raised
        if raised is None:
            return
    judgement.warnings.append(f"compute-sanitizer could not look at it: under it, it raised {raised}")


def small_reference(references: Sequence[Reference]) -> Reference:
    """The smallest of the check sizes with no size below 16, where a kernel has more than one tile; else the timed."""
    large_enough = [each for each in references[1:] if each.sizes and min(each.sizes.values()) >= _LEAST_SIZE]
    return min(large_enough, key=lambda each: math.prod(each.sizes.values()), default=references[0])


def _ptx(triton_cache: Path | None) -> list[str]:
    """What Triton made of the candidate's kernels, for a look at the instructions that they use."""
    paths = sorted(triton_cache.glob("*/*.ptx"))[:_MOST_PTX_FILES] if triton_cache is not None else ()
    return [content_of(path, _LARGEST_PTX_BYTES).decode(errors="replace") for path in paths]
