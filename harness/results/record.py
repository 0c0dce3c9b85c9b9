"""The record: everything that is kept about one candidate or baseline of one run, each field declared once.

`FIELDS` is the order of the columns and the source of the documentation.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, get_type_hints

from harness.model.verdict import CODES_OF, ReasonCode, Status, blame_of

SCHEMA_VERSION = 1
LONGEST_TEXT = 8000  # a candidate writes parts of its own reason; csv readers refuse cells above 128 KiB
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"  # terminal escapes
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # control characters but tab and newline
    r"|[\u202a-\u202e\u2066-\u2069]"  # marks that turn the direction of a text
)


@dataclass(frozen=True)
class Field:
    """One column: its name, Python type, group, unit ("" where it has none) and meaning."""

    name: str
    type: type
    group: str
    unit: str
    doc: str
    required: bool


def _of(group: str, doc: str, unit: str = "", required: bool = False, default: Any = None) -> Any:
    metadata = {"group": group, "doc": doc, "unit": unit, "required": required}
    return field(metadata=metadata) if required and default is None else field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One row of the results. What was not measured is None, never zero.

    Texts lose control characters on the way in (a candidate may have written them), numbers that are not finite become
    None. Raises TypeError for a value of a wrong type, ValueError for a status, reason code or rank that does not fit.
    """

    schema_version: int = _of("identity", "version of these columns", required=True, default=SCHEMA_VERSION)
    run_id: str = _of("identity", "the run this row belongs to", required=True)
    utc: str = _of("identity", "start of the run, ISO 8601 in UTC", required=True)
    problem: str = _of("identity", "name of the problem", required=True)
    problem_hash: str | None = _of("identity", "sha256 over the YAML and the reference, 16 hex digits")
    sizes: str = _of("identity", "timed sizes, as in `M=2048 K=8192`; may be empty", required=True)
    dtype: str = _of("identity", "dtype of the inputs", required=True)
    mode: str | None = _of("identity", "what was called: forward or forward_backward")
    config: str | None = _of("identity", "name of the settings: quick, default, rigorous or a file")
    config_hash: str | None = _of("identity", "sha256 over the settings' values, 16 hex digits")
    command: str | None = _of("identity", "what to type to run this problem again in the same way")
    candidate: str = _of("identity", "file name without .py, or name of the baseline", required=True)
    source_hash: str | None = _of("identity", "sha256 of its source, 16 hex digits; none for a baseline")
    parameters: str | None = _of("identity", "values of its PARAMETERS, as in `BM=128 STAGES=3`")
    baseline_hash: str | None = _of("identity", "sha256 of the source of the file that the speedup is over, 16 hex "
                                    "digits; none for eager")
    role: str = _of("identity", "candidate or baseline", required=True, default="candidate")
    harness_version: str | None = _of("identity", "version of this software")
    harness_hash: str | None = _of("identity", "sha256 over this software's source files, 16 hex digits")
    dirty: bool | None = _of("identity", "true when this software had uncommitted changes")

    status: Status = _of("verdict", "what became of it (closed list)", required=True)
    reason_code: ReasonCode = _of("verdict", "why (closed list)", default=ReasonCode.NONE)
    reason: str | None = _of("verdict", "why, in words")
    blame: str | None = _of("verdict", "whose doing that is: candidate, machine (try again, perhaps elsewhere) or "
                            "harness; empty where nothing went wrong")
    rank: int | None = _of("verdict", "place by time among the ok candidates of an admitted kind")
    kind: str | None = _of("verdict", "whose kernels ran: custom, mixed, library or unknown")
    precision_class: str | None = _of("verdict", "class of its results: fp32, tf32, bf16, fp16")
    err_max_u: float | None = _of("verdict", "largest error over the error scale", "u")
    err_rms_u: float | None = _of("verdict", "root mean square error over the error scale", "u")
    eager_err_max_u: float | None = _of("verdict", "largest error of strict eager on the same inputs", "u")
    truth: str | None = _of("verdict", "what the outputs were compared with: float64 or eager")
    families: str | None = _of("verdict", "families of inputs it was checked on")
    warnings: str | None = _of("verdict", "what a reader should know beside the verdict, one a line")
    problem_note: str | None = _of("verdict", "what is told of the problem, not of this row: words of a closed list, "
                                   "as in `same_output`")
    state_moved: bool | None = _of("verdict", "whether forward moved the model's state as the reference's does; empty "
                                   "where that moves none")
    memory_step: str | None = _of("verdict", "what was given up to have room: full (nothing), fewer_launches, "
                                  "one_launch, slices or host")
    peak_bytes: int | None = _of("verdict", "the most device memory seen in use meanwhile, by all processes", "bytes")

    time_us: float | None = _of("timing", "GPU time of one cold call, mean of the middle half", "us")
    unvouched_us: float | None = _of("timing", "how much longer a call may take, for all that the judge's own clock "
                                     "shows; ranks count it, 0 for nearly all", "us")
    p10_us: float | None = _of("timing", "10th percentile of the calls", "us")
    p90_us: float | None = _of("timing", "90th percentile of the calls", "us")
    forward_us: float | None = _of("timing", "the forward pass of it, where a backward pass followed", "us")
    backward_us: float | None = _of("timing", "the backward pass of it", "us")
    baseline_forward_us: float | None = _of("timing", "the forward pass of the baseline", "us")
    baseline_backward_us: float | None = _of("timing", "the backward pass of the baseline", "us")
    launches: int | None = _of("timing", "timed calls that were kept")
    rounds: int | None = _of("timing", "rounds of A B B A that were kept")
    players: int | None = _of("timing", "fresh processes that it was timed in; the interval is over all of them")
    dropped: int | None = _of("timing", "rounds dropped for heat or hardware slow-down")
    baseline: str | None = _of("timing", "what the speedup is over")
    baseline_us: float | None = _of("timing", "time of one call of the baseline: eager's in the same rounds, a file's "
                                    "in its own row", "us")
    baseline_inside_us: float | None = _of("timing", "time of the baseline in the candidate's own process, where that "
                                           "agrees with the one before", "us")
    baseline_mean_us: float | None = _of("timing", "mean time of the baseline over several processes, where the "
                                         "speedup is over that", "us")
    baseline_processes: int | None = _of("timing", "how many processes those are")
    speedup: float | None = _of("timing", "baseline time over candidate time, trimmed mean of the rounds; over a file: "
                                "quotient of two speedups over eager")
    speedup_lo: float | None = _of("timing", "lower end of the speedup's confidence interval")
    speedup_hi: float | None = _of("timing", "upper end of the speedup's confidence interval")
    confidence: float | None = _of("timing", "confidence level of that interval, as in 0.99")
    eager_us: float | None = _of("timing", "time of one call of eager in the same rounds, where the baseline is a file", "us")
    eager_speedup: float | None = _of("timing", "speedup over eager, where the baseline is a file")
    eager_speedup_lo: float | None = _of("timing", "lower end of the confidence interval of that")
    eager_speedup_hi: float | None = _of("timing", "upper end of the confidence interval of that")
    call: str | None = _of("timing", "FASTER, SLOWER, SAME or UNSURE")
    e2e_us: float | None = _of("timing", "one call with its launch overhead", "us")
    warm_us: float | None = _of("timing", "one call whose inputs the last call has used, median (`--extra-times`)", "us")
    back_to_back_us: float | None = _of("timing", "one call of many in a row, mean (`--extra-times`)", "us")
    graph_us: float | None = _of("timing", "one replay of many of a CUDA graph of the call (`--extra-times`)", "us")
    joules: float | None = _of("timing", "energy of one call of many in a row (`--energy`)", "J")
    event_floor_us: float | None = _of("timing", "what the clock reads around nothing", "us")
    timer: str | None = _of("timing", "clock that timed the calls: native_events, or torch_events where that cannot be "
                            "had; monotonic on a CPU")
    l2_policy: str | None = _of("timing", "how the cache was made cold before each call")
    input_sets: int | None = _of("timing", "sets of inputs taken in turn")
    launch_hidden: bool | None = _of("timing", "true when launch overhead was hidden by a gated queue")

    useful_flops: float | None = _of("physics", "operations the problem needs", "flop")
    useful_bytes: float | None = _of("physics", "bytes the problem must move", "bytes")
    tflops: float | None = _of("physics", "useful operations over time", "TFLOP/s")
    gbytes_s: float | None = _of("physics", "useful bytes over time", "GB/s")
    sol_us: float | None = _of("physics", "speed of light of the problem on this device", "us")
    percent_of_sol: float | None = _of("physics", "100 x speed of light over time", "%")
    bound_by: str | None = _of("physics", "what limits the speed of light: memory or compute")
    floor_us: float | None = _of("physics", "time that nothing honest can beat", "us")

    language: str | None = _of("build", "what the candidate is written in: cuda, triton, cpp, torch")
    build_s: float | None = _of("build", "time of the build", "s")
    cached: bool | None = _of("build", "true when the build came from the cache")
    registers: int | None = _of("build", "registers of a thread, the largest of its kernels")
    spills: int | None = _of("build", "register spills, the largest of its kernels", "bytes")
    shared_bytes: int | None = _of("build", "static shared memory of a block, the largest", "bytes")
    arch: str | None = _of("build", "architecture it was built for, as in sm_90a")
    stack_bytes: int | None = _of("build", "stack of a thread, the largest of its kernels", "bytes")
    constant_bytes: int | None = _of("build", "constant memory, the largest of its kernels", "bytes")
    per_kernel: str | None = _of("build", "the same of each kernel for each architecture, spills to constant memory in bytes")
    headers: str | None = _of("build", "PyTorch's headers it was built with, or last tried with: slim (those it names) or stock")

    device_kind: str | None = _of("device", "cuda or cpu")
    device_name: str | None = _of("device", "name of the device")
    uuid: str | None = _of("device", "UUID of the GPU")
    sm: str | None = _of("device", "compute capability, as in sm_90")
    sm_count: int | None = _of("device", "streaming multiprocessors")
    l2_bytes: int | None = _of("device", "L2 cache", "bytes")
    memory_bytes: int | None = _of("device", "device memory", "bytes")
    driver: str | None = _of("device", "driver version")
    cuda: str | None = _of("device", "CUDA version of torch")
    torch: str | None = _of("device", "torch version")
    power_limit_w: float | None = _of("device", "power limit in force", "W")
    sm_mhz: float | None = _of("device", "SM clock while it was timed", "MHz")
    mem_mhz: float | None = _of("device", "memory clock while it was timed", "MHz")
    watts: float | None = _of("device", "power while it was timed", "W")
    celsius: float | None = _of("device", "temperature while it was timed", "degrees C")
    throttle: str | None = _of("device", "throttle reasons seen meanwhile; `none` when there was none")
    power_violation_ms: float | None = _of("device", "for how long a power limit held the clocks down while it was timed", "ms")
    thermal_violation_ms: float | None = _of("device", "for how long heat held the clocks down while it was timed", "ms")
    other_processes: int | None = _of("device", "other processes on it; empty when not known")
    canary_gbps: float | None = _of("device", "copy bandwidth measured before the run", "GB/s")
    canary_tflops: float | None = _of("device", "fp32 multiply-add rate measured before the run", "TFLOP/s")

    sandbox: str | None = _of("sandbox", "the sandbox between judge and worker that this row had")

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))
        object.__setattr__(self, "reason_code", ReasonCode(self.reason_code or ""))
        for column in FIELDS:
            if column.type in (str, int, float, bool):
                object.__setattr__(self, column.name, _plain(column, getattr(self, column.name)))
        if self.blame is None:
            object.__setattr__(self, "blame", blame_of(self.status, self.role))
        self._check()

    @classmethod
    def of_typed(cls, values: Mapping[str, Any]) -> Record:
        """The record of values that have their columns' types already, as `reader` makes them; others are `UNSET`. It
        is about ten times as fast as the constructor, and raises ValueError as that does.
        """
        record = object.__new__(cls)
        record.__dict__.update(values if len(values) == len(UNSET) else UNSET | dict(values))
        record._check()
        return record

    def _check(self) -> None:
        if self.reason_code not in CODES_OF[self.status]:
            raise ValueError(f"{self.reason_code.value!r} is no reason for {self.status.value}")
        if self.role not in ("candidate", "baseline"):
            raise ValueError(f"role is candidate or baseline, not {self.role!r}")
        if self.status is Status.CHECKED and (self.time_us is not None or self.speedup is not None):
            raise ValueError(f"{self.candidate} is checked, which has neither time nor speedup")
        if self.rank is not None and (self.status is not Status.OK or self.role != "candidate"):
            raise ValueError(f"only an ok candidate has a rank, not {self.candidate} ({self.status.value})")

    def warned(self, text: str) -> Record:
        """Return this record with one warning more."""
        return replace(self, warnings="\n".join(filter(None, (self.warnings, text))))

    @property
    def on_cpu(self) -> bool:
        return self.device_kind == "cpu"

    @property
    def team(self) -> tuple[str | None, ...]:
        """`DeviceIdentity.team` of the device that it was judged on."""
        return self.device_kind, self.device_name, self.torch, self.cuda

    def to_json(self) -> dict[str, str | int | float | bool | None]:
        """Every field under its name, in the order of `FIELDS`, as values that `json.dumps` takes."""
        values = {column.name: getattr(self, column.name) for column in FIELDS}
        return values | {"status": self.status.value, "reason_code": self.reason_code.value}


def _fields_of_record() -> tuple[Field, ...]:
    hints = get_type_hints(Record)
    columns = []
    for each in fields(Record):
        options = getattr(hints[each.name], "__args__", (hints[each.name],))
        kind = next(option for option in options if option is not type(None))
        columns.append(Field(each.name, kind, **each.metadata))
    return tuple(columns)


FIELDS: tuple[Field, ...] = _fields_of_record()
UNSET = {each.name: None if each.default is MISSING else each.default for each in fields(Record)}


def clean_text(text: str) -> str:
    """The text without terminal escapes, control characters and lone surrogates, cut at `LONGEST_TEXT`."""
    text = _UNPRINTABLE.sub("", text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8"))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 2] + " …"


def _plain(column: Field, value: Any) -> Any:
    """The value as a plain str, int, float or bool (numpy scalars are converted), or None."""
    if value is None:
        if column.required:
            raise TypeError(f"{column.name} must be given")
        return None
    if column.type is str and isinstance(value, str):
        return clean_text(value)
    if column.type is bool and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if column.type in (int, float) and not isinstance(value, (str, bytes, bool)):
        try:
            number = float(value)
            if not math.isfinite(number):
                return None
            if column.type is float:
                return number
            return int(number) if number.is_integer() and isinstance(value, float) else operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{column.name} takes {column.type.__name__}, not {value!r}")
