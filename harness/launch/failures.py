"""From what went wrong on the far side of the sandbox to a verdict in words.

Nothing a worker says is believed further than this: its frames may choose among reasons for not ranking, never for
ranking.
"""

from __future__ import annotations

import re
from typing import Any

from harness.model.verdict import CODES_OF, ReasonCode, Status, Verdict
from harness.protocol.gpu_wanted import wants_gpu
from harness.reference.evidence import Evidence
from harness.sandbox.spawn import Child

_MOST_CALLS = 64
_SYNTHETIC_FRAME = re.compile(r"\s+")
# What a kernel raises, with words, for sizes that it says it does not support (TORCH_CHECK is a RuntimeError).
_REFUSALS = ("ValueError", "RuntimeError", "NotImplementedError", "AssertionError")


class Failed(Exception):
    """Raised to end the judging of one candidate with a verdict other than ok; `evidence` is on the launch that showed
    it, where there was one, and `launch` the number of that in its queue, where that is known. `beside_control` is
    whether it rests on what the control left behind. `exception` is a Python exception in the worker, in its own words.
    """

    def __init__(self, verdict: Verdict, evidence: Evidence | None = None) -> None:
        super().__init__(verdict.reason)
        self.verdict, self.evidence = verdict, evidence
        self.launch: int | None = None
        self.exception: dict[str, Any] = {}
        self.refusal = self.beside_control = False


class Unbuilt(Failed):
    """Raised where a candidate asks as it runs for extensions its build had not made: `calls`, as it told them."""

    def __init__(self, verdict: Verdict, calls: list[dict[str, Any]]) -> None:
        super().__init__(verdict)
        self.calls = calls


def failed(status: Status, code: ReasonCode, reason: str, evidence: Evidence | None = None) -> Failed:
    return Failed(Verdict(status, code, reason), evidence)


def from_exception(words: Any, doing: str) -> Failed:
    """A Python exception in the worker. `doing` is "in forward", "in __init__" or "while it was imported"."""
    words = words if isinstance(words, dict) else {}
    kind, message = _text(words, "type") or "an exception", _text(words, "message")
    where = _text(words, "where")
    place = f" at {where.rsplit('/', 1)[-1]}" if where else ""
    error_text = f"{kind}: {message}" if message else kind
    if words.get("out_of_memory") is True:
        code = ReasonCode.DEVICE_MEMORY if "CUDA" in message or "OutOfMemory" in kind else ReasonCode.HOST_MEMORY
        return failed(Status.OUT_OF_MEMORY, code, f"out of memory {doing}{place} ({error_text})")
    if kind == "NotBuilt":
        return failed(Status.REJECTED, ReasonCode.BUILD_CHANGED, f"{message}{place}")
    is_of_cuda = "CUDA error" in message or "CUDA_ERROR_" in message or kind == "AcceleratorError"
    if is_of_cuda and not wants_gpu(message):  # without a GPU there is none that could have failed
        return failed(Status.CRASHED, ReasonCode.CUDA_ERROR, f"{message or kind} ({doing}{place})")
    failure = failed(Status.INCORRECT, ReasonCode.RAISED, f"raised {error_text} {doing}{place}")
    failure.refusal, failure.exception = kind in _REFUSALS and bool(message), words
    return failure


def unbuilt(calls: Any) -> Failed:
    """Calls of `load_inline` and `load` that a worker tells of; what no worker of ours tells is a broken protocol."""
    if not isinstance(calls, list) or not all(map(_is_call, calls)) or len(calls) > _MOST_CALLS:
        return protocol("it asked for extensions in words that no worker of ours has")
    names = ", ".join(sorted({repr(str(each["arguments"].get("name")))[:60] for each in calls}))
    reason = f"it asked for extensions that its build had not made ({names}), and for others each time it was begun anew"
    return Unbuilt(Verdict(Status.REJECTED, ReasonCode.BUILD_CHANGED, reason), calls)


def _is_call(call: Any) -> bool:
    return (
        isinstance(call, dict) and call.get("kind") in ("load_inline", "load")
        and isinstance(call.get("arguments"), dict) and isinstance(call.get("texts"), dict)
    )


def from_fault(fault: Any, where: str) -> Failed:
    """A gate on the form of an output. `where` names the sizes."""
    fault = fault if isinstance(fault, dict) else {}
    detail = _text(fault, "detail") or "the output has the wrong form"
    reason = f"{detail} ({where})"
    for status in (Status.INCORRECT, Status.REJECTED):
        for code in CODES_OF[status]:
            if code.value == fault.get("code"):
                return failed(status, code, reason)
    return failed(Status.REJECTED, ReasonCode.PROTOCOL, f"the worker reported a fault that there is not: {reason}")


def row_timeout(calls: int, seconds: float) -> Failed:
    """The verdict on a candidate whose checks have not ended with its row's budget, after so many calls in `seconds`."""
    each = f", in calls of {seconds / calls:.3g} s each" if calls else ""
    return failed(
        Status.TIMED_OUT, ReasonCode.ROW_TIMEOUT,
        f"it was still being checked when the time that a row may take was over (row_budget_s, or the job's budget_s){each}",
    )


def death(child: Child, doing: str) -> Failed:
    """The verdict on a worker that is gone."""
    child.wait(2.0)
    how = child.death()
    lines = [line.strip() for line in child.output().strip().splitlines() if line.strip()]
    last_words = f'; it said last: "{lines[-1][:200]}"' if lines else ""
    if child.ran_out_of_memory:
        return failed(Status.OUT_OF_MEMORY, ReasonCode.HOST_MEMORY, f"{how} while {doing}")
    if how.startswith("exited"):
        return failed(Status.CRASHED, ReasonCode.EXITED, f"its process {how} while {doing}{last_words}")
    return failed(Status.CRASHED, ReasonCode.SIGNAL, f"its process was {how} while {doing}{last_words}")


def written_late(index: int, count: int) -> Failed:
    """The verdict on an output that was not whole when its window closed."""
    return failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        f"the output of launch {index + 1} of {count} was still being written when the next launch had begun: its work "
        "ended after its timed window; join every stream and thread before forward returns",
    )


def protocol(what: str) -> Failed:
    return failed(Status.REJECTED, ReasonCode.PROTOCOL, f"the candidate's process broke the protocol: {what}")


def _text(words: dict[str, Any], key: str) -> str:
    value = words.get(key)
    return _SYNTHETIC_FRAME.sub(" ", value).strip()[:600] if isinstance(value, str) else ""
