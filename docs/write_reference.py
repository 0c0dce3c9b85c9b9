"""Writes docs/reference.md from the code: a list of words, YAML keys, settings, CSV columns, statuses and reason codes.

`python docs/write_reference.py` writes it; tests/test_reference.py fails while it is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from harness.model.files.problem_file import ProblemSchema  # noqa: E402
from harness.model.files.schema_engine import NEEDED, Key, keys_of  # noqa: E402
from harness.model.files.settings_file import SettingsSchema  # noqa: E402
from harness.model.problem_notes import ProblemNote  # noqa: E402
from harness.model.settings import Settings  # noqa: E402
from harness.model.verdict import CODES_OF, ReasonCode, Status  # noqa: E402
from harness.results.record import FIELDS, SCHEMA_VERSION  # noqa: E402

PATH = REPOSITORY / "docs" / "reference.md"

STATUSES = {
    Status.OK: "right, and timed; only these are ranked",
    Status.INCORRECT: "wrong values or the wrong form, or it raised",
    Status.IMPRECISE: "off by as much as a narrower precision would be",
    Status.REJECTED: "a rule was broken",
    Status.BUILD_FAILED: "does not parse, import or compile",
    Status.CRASHED: "its process, or its CUDA context, came to an end",
    Status.TIMED_OUT: "did not end within a limit of the settings",
    Status.OUT_OF_MEMORY: "the device or the machine had no room for it",
    Status.UNSURE: "right, but not measurable here and now",
    Status.CHECKED: "right at small sizes where it could be run without its device; never timed, ranked or scored",
    Status.COMPILED: "compiled, with no GPU here to run it on",
    Status.SKIPPED: "something that it needs is not here",
    Status.HARNESS_ERROR: "this software failed while it judged it: no verdict on the candidate, and exit code 1",
}

CODES = {
    ReasonCode.WRONG_VALUES: "elements, or plain values, are not the reference's",
    ReasonCode.WRONG_COUNT: "another number of outputs than the reference's",
    ReasonCode.WRONG_TYPE: "an output that is no tensor, or of another type",
    ReasonCode.WRONG_SHAPE: "an output of another shape",
    ReasonCode.WRONG_DTYPE: "an output of another dtype",
    ReasonCode.WRONG_DEVICE: "an output on another device",
    ReasonCode.WRONG_LAYOUT: "an output with gaps or overlaps, not as it lies, beyond its storage, or in a changing order",
    ReasonCode.NOT_FINITE: "NaN or infinite where the truth is neither; elements never written show so",
    ReasonCode.STATE_MISMATCH: "parameters or buffers are not the reference's, and the results are wrong",
    ReasonCode.RAISED: "an exception in `__init__` or `forward`",
    ReasonCode.MEMORY_ERROR: "an access out of bounds",
    ReasonCode.RACE: "compute-sanitizer saw a race in shared memory",
    ReasonCode.UNINITIALIZED: "compute-sanitizer saw a read of memory that nothing had written",
    ReasonCode.BARRIER: "compute-sanitizer saw a barrier that not all threads reach",
    ReasonCode.REDUCED_PRECISION: "within the bounds of a wider class only: tf32, bf16 or split",
    ReasonCode.INPUTS_WRITTEN: "the inputs were written to",
    ReasonCode.ALIASES_INPUT: "an output is a view of an input",
    ReasonCode.CLOCKS_DISAGREE: "its clock and ours do not agree, or work was done outside the timed window",
    ReasonCode.BELOW_FLOOR: "a time below what the hardware can do",
    ReasonCode.PROTOCOL: "its process sent what no honest one sends",
    ReasonCode.BUILD_CHANGED: "it opens an extension that its build did not produce",
    ReasonCode.GOES_BY_VALUES: "it takes longer on inputs with other values: what it does goes by how they are drawn",
    ReasonCode.SYNTAX_ERROR: "Python cannot read the file",
    ReasonCode.COMPILE_ERROR: "a compiler or the linker refused it",
    ReasonCode.IMPORT_ERROR: "it raised, or ended, while it was imported",
    ReasonCode.NO_MODEL_NEW: "there is no class `ModelNew`",
    ReasonCode.SIGNAL: "its process was killed by a signal, as by a segmentation fault",
    ReasonCode.EXITED: "its process ended by itself",
    ReasonCode.CUDA_ERROR: "a CUDA call or kernel failed",
    ReasonCode.BUILD_TIMEOUT: "its build took longer than `build_timeout_s`",
    ReasonCode.LOAD_TIMEOUT: "it took longer than `load_timeout_s` to import or load, compilers not counted",
    ReasonCode.LAUNCH_TIMEOUT: "calls took longer than `launch_timeout_s`",
    ReasonCode.ROW_TIMEOUT: "its checks took longer than `row_budget_s`, or ten times as long as eager's own row",
    ReasonCode.DEVICE_MEMORY: "no room on the device",
    ReasonCode.HOST_MEMORY: "no room in the machine's memory, or over the limit of its process",
    ReasonCode.NOISY: "the clocks cannot be held against a quiet control, or the speedup is not known to 5 % on a GPU",
    ReasonCode.THROTTLED: "the GPU slowed down for heat or its power supply",
    ReasonCode.INTERPRETED: "Triton's interpreter ran it on the CPU, at the sizes that the reason names",
    ReasonCode.NOT_TIMED: "its outputs were right, and no time was asked for",
    ReasonCode.NO_GPU: "there is no GPU here",
    ReasonCode.NO_NVCC: "there is no `nvcc` here, or no header of a CUDA library that it names",
    ReasonCode.NO_TRITON: "there is no Triton here",
    ReasonCode.NO_CXX: "there is no C++ compiler here, or none where `CXX` says",
    ReasonCode.NO_DISK: "a disk of this machine is full, or a folder cannot be written",
    ReasonCode.NEEDS_ARCH: "it is for another GPU architecture",
    ReasonCode.NEEDS_CPU: "it is C++ for the CPU",
    ReasonCode.DEVICE_LOST: "the device stopped answering earlier in the run",
    ReasonCode.SAVED_MEANWHILE: "its file was saved again while it was built or judged",
    ReasonCode.EXCEPTION: "an exception of this software's own; the traceback is in the raw samples",
}

# What a newcomer meets on the other pages, in the order of the alphabet.
WORDS = {
    "A B B A": "the order of one round: candidate, eager, eager, candidate. A clock that drifts falls on both alike",
    "baseline": "what a speedup is over: strict eager, or a file that `--baseline` names. In the table also a row for "
    "comparison that is no candidate, as `torch.compile` or `eager-tf32`",
    "builder": "the process that imports a candidate once, or compiles its extensions, without a GPU and in a sandbox",
    "class": "how precise a result is: fp32, tf32, bf16 or fp16. A YAML opens a narrower class "
    "(`accuracy: {class: tf32}`): its wider bounds then count, and its rows are ranked",
    "control": "eager in a worker, judged before any candidate. It shows what an honest process looks like here today, "
    "and the clocks are held against it",
    "eager": "the reference's `Model`, called by PyTorch as it stands",
    "error scale": "what an error is divided by: the reference on absolute inputs (`abs_inputs`), or the largest "
    "magnitude of its row (`row_max`)",
    "expected output": "another name of the truth",
    "family": "a way to make inputs from a draw: as given, with random signs, one-hot, and others that show lost "
    "precision",
    "inputs as given": "what the reference's `get_inputs()` returns, unchanged",
    "interim check": "a planned moment between rounds at which the judge computes the interval, and stops if it is "
    "narrow enough",
    "judge": "the trusted process, one for each device: it draws inputs, makes the truth, times, compares and decides",
    "kind": "whose kernels ran: `custom`, `mixed`, `library` or `unknown`",
    "launch": "one call of `forward`, with all that the harness does around it: new inputs, a cold cache, the output "
    "copied out",
    "look": "on a CPU, one sample by the operating system of whose code a core is at",
    "margin": "how far from 1 a speedup's whole interval must lie for FASTER or SLOWER",
    "memory step": "what the judge gave up so that a problem has room on the device (column `memory_step`)",
    "probe": "a segment that counts for no ratio. In it the judge looks for early or late work, a flush left out, work "
    "that goes by known values, or whose kernels run",
    "referee": "this software as a whole; in Python `harness.Referee`, which stays warm between candidates",
    "round": "A B B A: four segments, which give one ratio",
    "rung": "one kernel of [the ladder](ladder.md), which adds one idea to one below it",
    "segment": "several launches of one side in a row, candidate or eager, after one that warms up",
    "speed of light": "the shortest time that the hardware allows for the useful bytes and operations of a problem",
    "strict eager": "eager with TF32 off, for cuBLAS and for cuDNN",
    "truth": "the reference's outputs in float64 on the same inputs; strict eager's where a model has no float64",
    "u": "the unit of errors: 2⁻²⁴ of the error scale, and 2⁻⁵³ for float64 outputs",
    "unvouched": "by how much a call may take longer than its time, for all that the judge's own clock shows (column "
    "`unvouched_us`). Ranks count it",
    "worker": "the process that calls a candidate's `forward`, in a sandbox; nothing that it says decides by itself",
}

_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def text() -> str:
    """The whole page."""
    return "\n".join([
        "# Reference", "",
        "Written by `docs/write_reference.py` from the code; do not edit it by hand.", "",
        "[Words](#words) · [Problem](#keys-of-a-problem-problemsnameyaml) · [Settings](#keys-of-a-settings-file---config) ·",
        "[Statuses](#statuses-and-reason-codes) · [Notes](#notes-on-a-problem) · [Columns](#columns-of-the-csv)", "",
        "## Words", "",
        "These are words that the other pages take for granted.", "",
        "| word | meaning |", "|---|---|", *(f"| {word} | {meaning} |" for word, meaning in WORDS.items()), "",
        "## Keys of a problem (`problems/NAME.yaml`)", "",
        *_schema_table(ProblemSchema, {}), "",
        "A KernelBench `.py` file by itself has the defaults, and its own sizes.", "",
        "## Keys of a settings file (`--config`)", "",
        *_schema_table(SettingsSchema, {name: getattr(Settings, name, None) for name in keys_of(SettingsSchema)}),
        "",
        "## Statuses and reason codes", "", *_status_table(), "",
        "## Notes on a problem", "",
        "Told once under the table; the column `problem_note` of each row has the words.", "",
        "| word | meaning |", "|---|---|", *(f"| `{note.value}` | {note.sentence} |" for note in ProblemNote), "",
        "## Columns of the CSV", "",
        f"Schema version {SCHEMA_VERSION}. A field that was not measured is empty. The raw samples are in the `.jsonl`",
        "beside it, one line for each row, under `samples`: `players` (times, ratios and telemetry of each process),",
        "`errors`, `kernels`, `build` and `evidence`.", "",
        *_column_tables(),
    ]).rstrip("\n") + "\n"


def _schema_table(section: type, defaults: dict[str, Any]) -> list[str]:
    return ["| key | must be | default | example |", "|---|---|---|---|", *_schema_rows(section, "", defaults)]


def _schema_rows(section: type, prefix: str, defaults: dict[str, Any]) -> list[str]:
    rows = []
    for name, key in keys_of(section).items():
        default = defaults.get(name) if key.default is None else key.default
        rows.append(f"| `{prefix}{name}` | {_must_be(key)} | {_default(default, key)} | `{key.example}` |")
        if key.section is not None:
            rows += _schema_rows(key.section, f"{prefix}{name}.", {})
    return rows


def _must_be(key: Key) -> str:
    """The words of the schema, with the choices where there are only so many."""
    return f"{key.must_be[0]}: {', '.join(key.choices)}" if key.choices else key.must_be[0]


def _default(value: Any, key: Key) -> str:
    if value is NEEDED:
        return "needed"
    if value is None or key.section is not None or value == ():
        return ""
    return f"`{list(value) if isinstance(value, tuple) else value}`".replace("'", "")


def _status_table() -> list[str]:
    lines = ["| status | code | meaning |", "|---|---|---|"]
    for status in Status:
        lines.append(f"| `{status.value}` | | {STATUSES[status]} |")
        codes = [code for code in ReasonCode if code in CODES_OF[status] and code is not ReasonCode.NONE]
        lines += [f"| | `{code.value}` | {CODES[code]} |" for code in codes]
    return lines


def _column_tables() -> list[str]:
    lines = []
    for group in dict.fromkeys(column.group for column in FIELDS):
        lines += [f"### {group.capitalize()}", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        for column in (each for each in FIELDS if each.group == group):
            kind = _TYPES.get(column.type, "text")
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.doc} |")
        lines.append("")
    return lines


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
