"""The closed list of statuses and reason codes, and the verdict that joins one of each to a sentence.

Every other room that decides something about a candidate says it with these; nothing else may stand in a
record's `status` and `reason_code`.
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
    """Why. `CODES_OF` says which of them each status may have."""

    NONE = ""
    # incorrect
    WRONG_VALUES = "wrong_values"
    WRONG_COUNT = "wrong_count"
    WRONG_TYPE = "wrong_type"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_DEVICE = "wrong_device"
    WRONG_LAYOUT = "wrong_layout"
    NOT_FINITE = "not_finite"
    STATE_MISMATCH = "state_mismatch"
    RAISED = "raised"
    MEMORY_ERROR = "memory_error"
    RACE = "race"
    UNINITIALIZED = "uninitialized"
    BARRIER = "barrier"
    # imprecise
    REDUCED_PRECISION = "reduced_precision"
    # rejected
    INPUTS_WRITTEN = "inputs_written"
    ALIASES_INPUT = "aliases_input"
    CLOCKS_DISAGREE = "clocks_disagree"
    BELOW_FLOOR = "below_floor"
    PROTOCOL = "protocol"
    BUILD_CHANGED = "build_changed"
    GOES_BY_VALUES = "goes_by_values"
    # build_failed
    SYNTAX_ERROR = "syntax_error"
    COMPILE_ERROR = "compile_error"
    IMPORT_ERROR = "import_error"
    NO_MODEL_NEW = "no_model_new"
    # crashed
    SIGNAL = "signal"
    EXITED = "exited"
    CUDA_ERROR = "cuda_error"
    # timed_out
    BUILD_TIMEOUT = "build_timeout"
    LOAD_TIMEOUT = "load_timeout"
    LAUNCH_TIMEOUT = "launch_timeout"
    ROW_TIMEOUT = "row_timeout"
    # out_of_memory
    DEVICE_MEMORY = "device_memory"
    HOST_MEMORY = "host_memory"
    # unsure
    NOISY = "noisy"
    THROTTLED = "throttled"
    # checked
    INTERPRETED = "interpreted"
    NOT_TIMED = "not_timed"
    # compiled, skipped
    NO_GPU = "no_gpu"
    NO_NVCC = "no_nvcc"
    NO_TRITON = "no_triton"
    NO_CXX = "no_cxx"
    NO_DISK = "no_disk"
    NEEDS_ARCH = "needs_arch"
    NEEDS_CPU = "needs_cpu"
    DEVICE_LOST = "device_lost"
    SAVED_MEANWHILE = "saved_meanwhile"
    # harness_error
    EXCEPTION = "exception"


_CODES = {
    Status.OK: [ReasonCode.NONE],
    Status.INCORRECT: [
        ReasonCode.WRONG_VALUES, ReasonCode.WRONG_COUNT, ReasonCode.WRONG_TYPE, ReasonCode.WRONG_SHAPE,
        ReasonCode.WRONG_DTYPE, ReasonCode.WRONG_DEVICE, ReasonCode.WRONG_LAYOUT, ReasonCode.NOT_FINITE,
        ReasonCode.STATE_MISMATCH, ReasonCode.RAISED, ReasonCode.MEMORY_ERROR, ReasonCode.RACE,
        ReasonCode.UNINITIALIZED, ReasonCode.BARRIER,
    ],
    Status.IMPRECISE: [ReasonCode.REDUCED_PRECISION],
    Status.REJECTED: [
        ReasonCode.INPUTS_WRITTEN, ReasonCode.ALIASES_INPUT, ReasonCode.CLOCKS_DISAGREE, ReasonCode.BELOW_FLOOR,
        ReasonCode.PROTOCOL, ReasonCode.BUILD_CHANGED, ReasonCode.GOES_BY_VALUES,
    ],
    Status.BUILD_FAILED: [
        ReasonCode.SYNTAX_ERROR, ReasonCode.COMPILE_ERROR, ReasonCode.IMPORT_ERROR, ReasonCode.NO_MODEL_NEW,
    ],
    Status.CRASHED: [ReasonCode.SIGNAL, ReasonCode.EXITED, ReasonCode.CUDA_ERROR],
    Status.TIMED_OUT: [
        ReasonCode.BUILD_TIMEOUT, ReasonCode.LOAD_TIMEOUT, ReasonCode.LAUNCH_TIMEOUT, ReasonCode.ROW_TIMEOUT,
    ],
    Status.OUT_OF_MEMORY: [ReasonCode.DEVICE_MEMORY, ReasonCode.HOST_MEMORY],
    Status.UNSURE: [ReasonCode.NOISY, ReasonCode.THROTTLED],
    Status.CHECKED: [ReasonCode.INTERPRETED, ReasonCode.NOT_TIMED],
    Status.COMPILED: [ReasonCode.NO_GPU],
    Status.SKIPPED: [
        ReasonCode.NO_NVCC, ReasonCode.NO_GPU, ReasonCode.NO_TRITON, ReasonCode.NO_CXX, ReasonCode.NO_DISK,
        ReasonCode.NEEDS_ARCH, ReasonCode.NEEDS_CPU, ReasonCode.DEVICE_LOST, ReasonCode.SAVED_MEANWHILE,
    ],
    Status.HARNESS_ERROR: [ReasonCode.EXCEPTION],
}
CODES_OF: dict[Status, frozenset[ReasonCode]] = {status: frozenset(codes) for status, codes in _CODES.items()}

# What another machine, or the same one at another time, may say otherwise: `skipped` and `unsure` as a whole.
_OF_THE_MACHINE = frozenset({Status.UNSURE, Status.SKIPPED})
_OF_NOBODY = frozenset({Status.OK, Status.CHECKED, Status.COMPILED})


def blame_of(status: Status, role: str = "candidate") -> str | None:
    """Return whose doing a status is: "candidate", "machine" or "harness"; None where nothing went wrong.

    What goes wrong with a baseline says something of the machine that it ran on.
    """
    if status in _OF_NOBODY:
        return None
    if status is Status.HARNESS_ERROR:
        return "harness"
    return "machine" if status in _OF_THE_MACHINE or role != "candidate" else "candidate"


@dataclass(frozen=True)
class Verdict:
    """A status, its reason code, and the reason in words that a person can act on.

    Raises ValueError when the code does not belong to the status, or when anything but `ok` has no words.
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
    return Verdict(
        Status.HARNESS_ERROR, ReasonCode.EXCEPTION,
        f"this software failed while it judged the candidate ({type(error).__name__}: {words}{place}); the traceback is in "
        "the raw samples, please report it",
    )


def traceback_of(error: Exception) -> str:
    """The whole traceback, as Python prints it."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))
