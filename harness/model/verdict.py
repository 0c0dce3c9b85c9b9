"""The closed list of statuses and reason codes, and the verdict that joins one of each to a sentence.

Whoever decides something about a candidate says it with these; a record's `status` and `reason_code` hold nothing else.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import Enum

_MOST_WORDS = 300


class Status(str, Enum):
    """What became of a candidate. Only `OK` carries a rank."""

    OK = "ok"
    INCORRECT = "incorrect"
    IMPRECISE = "imprecise"
    REJECTED = "rejected"
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    UNSURE = "unsure"
    CHECKED = "checked"
    COMPILED = "compiled"
    SKIPPED = "skipped"
    HARNESS_ERROR = "harness_error"


NEVER_LAUNCHED = frozenset({Status.BUILD_FAILED, Status.COMPILED, Status.SKIPPED})
# Nothing is known against these, and what is left of their verdict takes a device that is not here.
WANT_ANOTHER_DEVICE = frozenset({Status.CHECKED, Status.COMPILED, Status.SKIPPED})


class ReasonCode(str, Enum):
    """Why, each with the statuses that may have it."""

    def __new__(cls, word: str, *statuses: Status) -> ReasonCode:
        code = str.__new__(cls, word)
        code._value_, code.statuses = word, statuses
        return code

    NONE = "", Status.OK
    WRONG_VALUES = "wrong_values", Status.INCORRECT
    WRONG_COUNT = "wrong_count", Status.INCORRECT
    WRONG_TYPE = "wrong_type", Status.INCORRECT
    WRONG_SHAPE = "wrong_shape", Status.INCORRECT
    WRONG_DTYPE = "wrong_dtype", Status.INCORRECT
    WRONG_DEVICE = "wrong_device", Status.INCORRECT
    WRONG_LAYOUT = "wrong_layout", Status.INCORRECT
    NOT_FINITE = "not_finite", Status.INCORRECT
    STATE_MISMATCH = "state_mismatch", Status.INCORRECT
    RAISED = "raised", Status.INCORRECT
    MEMORY_ERROR = "memory_error", Status.INCORRECT
    RACE = "race", Status.INCORRECT
    UNINITIALIZED = "uninitialized", Status.INCORRECT
    BARRIER = "barrier", Status.INCORRECT
    REDUCED_PRECISION = "reduced_precision", Status.IMPRECISE
    INPUTS_WRITTEN = "inputs_written", Status.REJECTED
    ALIASES_INPUT = "aliases_input", Status.REJECTED
    CLOCKS_DISAGREE = "clocks_disagree", Status.REJECTED
    BELOW_FLOOR = "below_floor", Status.REJECTED
    PROTOCOL = "protocol", Status.REJECTED
    BUILD_CHANGED = "build_changed", Status.REJECTED
    GOES_BY_VALUES = "goes_by_values", Status.REJECTED
    SYNTAX_ERROR = "syntax_error", Status.BUILD_FAILED
    COMPILE_ERROR = "compile_error", Status.BUILD_FAILED
    IMPORT_ERROR = "import_error", Status.BUILD_FAILED
    NO_MODEL_NEW = "no_model_new", Status.BUILD_FAILED
    SIGNAL = "signal", Status.CRASHED
    EXITED = "exited", Status.CRASHED
    CUDA_ERROR = "cuda_error", Status.CRASHED
    BUILD_TIMEOUT = "build_timeout", Status.TIMED_OUT
    LOAD_TIMEOUT = "load_timeout", Status.TIMED_OUT
    LAUNCH_TIMEOUT = "launch_timeout", Status.TIMED_OUT
    ROW_TIMEOUT = "row_timeout", Status.TIMED_OUT
    DEVICE_MEMORY = "device_memory", Status.OUT_OF_MEMORY
    HOST_MEMORY = "host_memory", Status.OUT_OF_MEMORY
    NOISY = "noisy", Status.UNSURE
    THROTTLED = "throttled", Status.UNSURE
    INTERPRETED = "interpreted", Status.CHECKED
    NOT_TIMED = "not_timed", Status.CHECKED
    NO_GPU = "no_gpu", Status.COMPILED, Status.SKIPPED
    NO_NVCC = "no_nvcc", Status.SKIPPED
    NO_TRITON = "no_triton", Status.SKIPPED
    NO_CXX = "no_cxx", Status.SKIPPED
    NO_DISK = "no_disk", Status.SKIPPED
    NEEDS_ARCH = "needs_arch", Status.SKIPPED
    NEEDS_CPU = "needs_cpu", Status.SKIPPED
    DEVICE_LOST = "device_lost", Status.SKIPPED
    SAVED_MEANWHILE = "saved_meanwhile", Status.SKIPPED
    EXCEPTION = "exception", Status.HARNESS_ERROR


CODES_OF = {status: frozenset(code for code in ReasonCode if status in code.statuses) for status in Status}

# What another machine, or the same one at another time, may say otherwise: `skipped` and `unsure` as a whole.
_OF_THE_MACHINE = frozenset({Status.UNSURE, Status.SKIPPED})
_OF_NOBODY = frozenset({Status.OK, Status.CHECKED, Status.COMPILED})


def blame_of(status: Status, role: str = "candidate") -> str | None:
    """Return whose doing a status is: "candidate", "machine" or "harness"; None where nothing went wrong. What goes
    wrong with a baseline says something of the machine that it ran on.
    """
    if status in _OF_NOBODY:
        return None
    if status is Status.HARNESS_ERROR:
        return "harness"
    return "machine" if status in _OF_THE_MACHINE or role != "candidate" else "candidate"


@dataclass(frozen=True)
class Verdict:
    """A status, its reason code, and the reason in words that a person can act on. Raises ValueError when the code does
    not belong to the status, or when anything but `ok` has no words.
    """

    status: Status
    reason_code: ReasonCode = ReasonCode.NONE
    reason: str = ""

    def __post_init__(self) -> None:
        # Parts of a reason are a candidate's own words, which must not draw on the reader's terminal.
        shown = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in self.reason)
        object.__setattr__(self, "reason", shown)
        if self.reason_code not in CODES_OF[self.status]:
            raise ValueError(f"{self.reason_code.name} is no reason for {self.status.value}")
        if self.status is not Status.OK and not self.reason:
            raise ValueError(f"a verdict of {self.status.value} needs its reason in words")


OK = Verdict(Status.OK)


def of_own_defect(error: Exception) -> Verdict:
    """The verdict where this software itself failed: no fault of the candidate's is shown by an exception here."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    words = " ".join(str(error).split())[:_MOST_WORDS]
    reason = f"this software failed while it judged the candidate ({type(error).__name__}: {words}{place}); the " \
        "traceback is in the raw samples, please report it"
    return Verdict(Status.HARNESS_ERROR, ReasonCode.EXCEPTION, reason)


def traceback_of(error: Exception) -> str:
    """The whole traceback, as Python prints it."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
