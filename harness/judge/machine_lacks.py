"""What a candidate raises for want of what this machine lacks: a GPU, a compiler, room on a disk. That is no fault of it.

Where Triton's interpreter runs a candidate in a GPU's place, this module tells an error for want of a GPU from one of the
candidate's.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from harness.attribution.source_names import source_text
from harness.build.cache import default_root
from harness.build.machine_faults import machine_fault
from harness.judge.judgement import Prepared
from harness.launch.failures import Failed
from harness.model.device_limits import DeviceLimits
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.protocol.gpu_wanted import wants_gpu

_RAISES_FOR_WANT = (ReasonCode.RAISED, ReasonCode.EXITED)
# What the interpreter's stand-ins for a kernel's values raise for what only the compiler can do with these.
_RAISED_FOR_WANT_OF_A_COMPILER = ("AttributeError", "NotImplementedError", "TypeError")
# A name that Triton's language has not is on no GPU either.
_MISSPELT = re.compile(r"module 'triton(?:\.language(?:\.math)?)?' has no attribute '\w+'")
_NAMES_A_GPU = re.compile(r"cuda|gpu|nvidia", re.IGNORECASE)


def for_want_here(prepared: Prepared, verdict: Verdict, limits: DeviceLimits) -> Verdict | None:
    """The verdict in the place of `verdict` where that comes of what this machine lacks; else None."""
    return _for_the_machine(verdict) or _for_the_cpu(prepared, verdict, limits) or _for_a_gpu(prepared, verdict, limits)


def _for_the_machine(verdict: Verdict) -> Verdict | None:
    """Whoever raises for want of a compiler or of room on a disk, which this machine does lack, is not wrong."""
    return machine_fault(verdict.reason, [default_root()]) if verdict.reason_code in _RAISES_FOR_WANT else None


def _for_the_cpu(prepared: Prepared, verdict: Verdict, limits: DeviceLimits) -> Verdict | None:
    """C++ that refuses CUDA tensors in so many words is for another device, not wrong."""
    refused = verdict.reason_code is ReasonCode.RAISED and re.search(r"\bcpu\b", verdict.reason, re.IGNORECASE)
    if prepared.language != "cpp" or limits.is_host or not refused:
        return None
    reason = f"it is C++ for the CPU ({verdict.reason}); --device cpu runs it"
    return Verdict(Status.SKIPPED, ReasonCode.NEEDS_CPU, reason)


def _for_a_gpu(prepared: Prepared, verdict: Verdict, limits: DeviceLimits) -> Verdict | None:
    """What raises for want of a GPU, where there is none, is not wrong. Nor is CUDA, or what asks PyTorch for its device,
    whatever it raises there: it may lack what it left out of its import as it heard of no device.
    """
    is_here = not limits.is_host or prepared.stand_in_gpu is not None  # one of which `interpreter` decides
    if prepared.is_baseline or is_here or verdict.reason_code is not ReasonCode.RAISED:
        return None
    asks = prepared.language == "cuda" or "torch.cuda" in source_text(Path(prepared.path))
    if not asks and not wants_gpu(verdict.reason):
        return None
    return Verdict(Status.SKIPPED, ReasonCode.NO_GPU, f"it needs a GPU, and there is none here ({verdict.reason})")


def takes_a_gpu(failure: Failed, prepared: Prepared) -> bool:
    """Whether what Triton's interpreter raised may be for want of a GPU or a compiler: that is no fault of its own."""
    if failure.verdict.reason_code is not ReasonCode.RAISED:
        return False
    words = failure.exception
    if _MISSPELT.search(str(words.get("message"))):
        return False
    frames = words.get("frames")
    innermost = str(frames[-1]) if isinstance(frames, list) and frames else ""
    if innermost.startswith(_interpreters_places()):
        return True
    if words.get("in_kernel") is True and words.get("type") in _RAISED_FOR_WANT_OF_A_COMPILER:
        return True
    message = words.get("message") or _line_at(words.get("where"), prepared)
    return wants_gpu(str(message)) or bool(_NAMES_A_GPU.search(str(message)))


def _interpreters_places() -> tuple[str, ...]:
    """The folders of Triton, and of NumPy, which computes for its interpreter."""
    specs = (importlib.util.find_spec(name) for name in ("triton", "numpy"))
    return tuple(f"{Path(spec.origin).parent}/" for spec in specs if spec is not None and spec.origin)


def _line_at(where: object, prepared: Prepared) -> str:
    """The line of the candidate's source that raised without a word, as a plain assert does."""
    path, _, number = str(where).rpartition(":")
    if Path(path).name != Path(prepared.path).name or not number.isdigit():
        return ""
    lines = source_text(Path(prepared.path)).splitlines()
    return lines[int(number) - 1] if 0 < int(number) <= len(lines) else ""
