"""The page on KernelBench from the lines of one sweep or of several pieces: totals, then a row for each problem.

    python benchmarks/kernelbench_table.py FILE.jsonl … [--write docs/kernelbench.md]

Of two lines on the same question the later one counts. The device that has most lines has the table; what others judged with
all of their memory has a section with its totals. Lists with figures name each honest copy that is not `ok`, and zeros
and copies narrower inside whose values passed: what is not as it should be, what was refused or told, what is exact. Lines that
`benchmarks/honest_kernels.py --out` wrote may be among the files; they become the last section.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from honest_kernels import table as honest_table  # noqa: E402
from judged_lines import Line, read_lines  # noqa: E402
from timing_flags import carried_out  # noqa: E402

from harness.model.errors import InputError  # noqa: E402

_WRONG = "Not as it should be"
_REFUSED = "Refused, since nothing could be compared with it"
_TOLD = "Passed where nothing can be seen: the problem has a note, and these have no rank and no score"
_EXACT = "Narrower inside, and within fp32's bounds all the same: the output depends so little on the bits that are lost"
_HEADS = (_WRONG, _REFUSED, _TOLD, _EXACT)
VARIANTS = {"honest": "honest copy", "zeros": "zeros", "bf16": "bf16 inside", "tf32": "TF32 inside"}
_VALUES_PASSED = ("ok", "unsure")
# Statuses that say what its values or its conduct were; with any other nothing was compared.
_JUDGED = (*_VALUES_PASSED, "incorrect", "imprecise", "rejected")


@dataclass(frozen=True)
class Row:
    """One problem: the line of each candidate, by its name."""

    problem: str
    lines: Mapping[str, Line]

    @property
    def level(self) -> int:
        return int(self.problem.partition("/")[0])

    @property
    def name(self) -> str:
        name = next(iter(self.lines.values()))["name"]
        return name.partition("_")[2].strip("_").replace("_", " ")

    @property
    def is_judged(self) -> bool:
        return self.status("honest") in _JUDGED

    def status(self, candidate: str) -> str:
        return self.lines[candidate]["status"] if candidate in self.lines else ""

    def any_of(self, field: str) -> Any:
        """What the first line that has this field says, the honest copy's before the others'."""
        ordered = sorted(self.lines, key=lambda candidate: candidate != "honest")
        return next((self.lines[each][field] for each in ordered if self.lines[each].get(field) is not None), None)

    @property
    def peak_bytes(self) -> float | None:
        # Lines of before 2026-11-27 have in eager's own figure what the problem before still held.
        peaks = [
            line.get("device_peak_bytes") if candidate == "eager" else line.get("peak_bytes") or line.get("device_peak_bytes")
            for candidate, line in self.lines.items()
        ]
        return max(filter(None, peaks), default=None)

    @property
    def seconds(self) -> float:
        return sum(line["seconds"] for line in self.lines.values())


def rows_of(lines: Sequence[Line], memory_gb: float | None) -> list[Row]:
    """The problems that were judged with so much memory, in their order."""
    found: dict[str, dict[str, Line]] = {}
    for line in lines:
        if line.get("memory_gb") == memory_gb:
            found.setdefault(line["problem"], {})[line["candidate"]] = line
    ordered = sorted(found, key=lambda problem: tuple(map(int, problem.split("/"))))
    return [Row(problem, found[problem]) for problem in ordered]


def exceptions(rows: Sequence[Row]) -> dict[str, list[str]]:
    """A sentence or two on each candidate that ended otherwise than one of its kind should, by the heads they come under."""
    heads: dict[str, list[str]] = {}
    for row in rows:
        for candidate, words in VARIANTS.items():
            if candidate in row.lines and (head := _head_of(row.lines[candidate])) is not None:
                sentence = f"**{row.problem}** {row.name}, {words}: {explanation(row.lines[candidate])}"
                heads.setdefault(head, []).append(sentence)
    return {head: heads[head] for head in _HEADS if head in heads}


def _head_of(line: Line) -> str | None:
    """What an ending comes under; None for one that is as it should be, and for what the problem's honest copy says too."""
    status, candidate = line["status"], line["candidate"]
    if candidate == "honest":
        return {"ok": None, "refused": _REFUSED}.get(status, _WRONG)
    if status not in _VALUES_PASSED:
        return None
    if line.get("problem_note"):
        return _TOLD
    return _EXACT if candidate != "zeros" and status == "ok" else _WRONG


def explanation(line: Line) -> str:
    """The status of a line, its figures, and what the record says of it."""
    worst = line.get("worst") or {}
    figures = ""
    if worst.get("max_u") is not None:
        figures = f" with {_number(worst['max_u'])} u of {_number(worst['allowed_max_u'])} u allowed"
        figures += f", eager {_number(worst['eager_max_u'])} u" if worst.get("eager_max_u") is not None else ""
        if worst.get("rms_u") is not None and worst.get("allowed_rms_u") is not None:
            figures += f" (rms {_number(worst['rms_u'])} of {_number(worst['allowed_rms_u'])} u)"
    note = line.get("problem_note") or (line.get("reason") if line["status"] != "ok" else None)
    speedup = f", {line['speedup']:.2f}×" if line["status"] == "ok" and line.get("speedup") else ""
    return f"`{line['status']}`{speedup}{figures}. {_in_a_cell(note or '')}".strip()


def totals(rows: Sequence[Row]) -> str:
    """How many problems of each level were judged, and how many of each candidate ended how."""
    table = []
    for level in (*sorted({row.level for row in rows}), None):
        of_level = [row for row in rows if level in (None, row.level)]
        table.append([
            "all" if level is None else level, len(of_level), sum(row.is_judged for row in of_level),
            *(_counts(row.status(candidate) for row in of_level) for candidate in VARIANTS),
            f"{statistics.median(row.seconds for row in of_level):.1f} ({sum(row.seconds for row in of_level):.0f})",
        ])
    heads = ["level", "problems", "judged", *VARIANTS.values(), "seconds, median (sum)"]
    return _table(table, heads)


def steps(rows: Sequence[Row]) -> str:
    """How many problems were judged at each memory step, in one line; empty where the records know of none."""
    counts = Counter(step for row in rows if (step := row.any_of("memory_step")) is not None)
    return ", ".join(f"{step}: {count}" for step, count in sorted(counts.items(), key=lambda each: str(each[0])))


def each_problem(rows: Sequence[Row]) -> str:
    """A row for each problem."""
    table = [
        [
            row.problem, row.name, *(_cell(row.lines.get(candidate)) for candidate in VARIANTS),
            _none_as("", row.any_of("memory_step")),
            "" if row.peak_bytes is None else f"{row.peak_bytes / 1e9:.1f}", f"{row.seconds:.1f}",
        ]
        for row in rows
    ]
    return _table(table, ["", "problem", *VARIANTS.values(), "memory step", "peak, GB", "seconds"])


def page(lines: Sequence[Line]) -> str:
    """The whole page. Raises InputError where lines at full and at shrunk sizes are mixed, or there are none."""
    honest = [line for line in lines if "/" not in line["problem"] and line["candidate"] != "eager"]
    lines = [line for line in lines if "/" in line["problem"]]
    if not lines:
        raise InputError("there is no line to make a table of", hint="benchmarks/kernelbench_sweep.py writes them")
    if len({bool(line.get("is_shrunk")) for line in lines}) > 1:
        raise InputError("some lines are of shrunk problems and some of whole ones", hint="Make a table of each by itself")
    caps = sorted({line.get("memory_gb") for line in lines}, key=lambda cap: (cap is not None, -(cap or 0)))
    devices = [name for name, _ in Counter(line.get("device_name") for line in lines).most_common()]
    main_lines = [line for line in lines if caps[0] is not None or line.get("device_name") == devices[0]]
    parts = ["# KernelBench, problem by problem", "", _origin(lines), "", _AGAIN, ""]
    for cap in caps:
        rows = rows_of(main_lines if cap is None else lines, cap)
        parts += [f"## {_title(cap)}", "", totals(rows), ""]
        parts += [f"Problems at each memory step: {steps(rows)}.", ""] if steps(rows) else []
        if cap is not None:
            parts += _of_a_cap(rows, rows_of(main_lines, None), _with_less(lines, cap), cap)
            continue
        parts += [*_of_one_candidate(rows), *_exceptions_in_lists(rows)]
        for device in devices[1:]:
            others = rows_of([line for line in lines if line.get("device_name") == device], None)
            if others:
                parts += [f"## {device}, with all memory of the device", "", totals(others), ""]
                parts += [*_of_one_candidate(others), *_exceptions_in_lists(others)]
    parts += [f"## Each problem, {_title(caps[0]).lower()}", "", _LEGEND, "", each_problem(rows_of(main_lines, caps[0])), ""]
    parts += ["## Honest kernels", "", _HONEST, ""] if honest else []
    tried_on = dict.fromkeys(line.get("device_name") for line in honest)
    for device in tried_on:
        heading = [f"### {device}", ""] if len(tried_on) > 1 else []
        parts += [*heading, honest_table([line for line in honest if line.get("device_name") == device]), ""]
    return "\n".join(parts)


_AGAIN = """\
To make it again, with a checkout of KernelBench beside this one:

```sh
python benchmarks/kernelbench_sweep.py ../KernelBench --out sweep.jsonl
python benchmarks/honest_kernels.py --out honest.jsonl
python benchmarks/kernelbench_table.py sweep.jsonl honest.jsonl --write docs/kernelbench.md
```

An honest copy is the reference's own text under another name. `zeros` returns zeros of the right form. A copy that is
narrower inside rounds inputs, parameters and buffers, and then makes the reference's own forward pass. `refused` says that
nothing of a problem can be judged. `timed_out` and `died` say what became of the process that judged it."""

_HONEST = (
    "Kernels as people write them, each with another way of summing than eager's, from `benchmarks/honest/`. "
    "All must be `ok`."
)

_LEGEND = (
    "A cell has the status. Where values were compared it also has the largest error, found and allowed, in u (2⁻²⁴ for "
    "fp32). Peak is the most memory that was in use on the device, by all processes together."
)


def _origin(lines: Sequence[Line]) -> str:
    """Where the lines come from: a sentence, and a list."""
    def all_of(field: str) -> str:
        return ", ".join(sorted({str(line[field]) for line in lines if line.get(field)}))

    dates = sorted(line["utc"][:10] for line in lines)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    sizes = "shrunk sizes" if lines[0].get("is_shrunk") else "sizes as they are"
    return (
        f"Made by `benchmarks/kernelbench_table.py` from what `benchmarks/kernelbench_sweep.py` judged, at {sizes}.\n\n"
        f"- Devices: {all_of('device_name')}\n"
        f"- PyTorch: {all_of('torch')}\n"
        f"- This software: {all_of('harness_version')}, by the hash of its source {all_of('harness_hash')}\n"
        f"- Settings: `--config {all_of('config')}`\n"
        f"- Judged: {when}"
    )


def _exceptions_in_lists(rows: Sequence[Row]) -> list[str]:
    return [
        text for head, sentences in exceptions(rows).items()
        for text in (f"### {head}", "", *(f"- {each}" for each in sentences), "")
    ]


def _of_one_candidate(rows: Sequence[Row]) -> list[str]:
    """A paragraph on how long eager and the honest copy took by themselves, where there is one."""
    taken_s = [sum(row.lines[name]["seconds"] for name in ("eager", "honest") if name in row.lines) for row in rows if row.status("honest")]
    if not taken_s:
        return []
    by_day = defaultdict(set)
    for row in rows:
        if "device" in row.lines.get("honest", {}):
            by_day[row.lines["honest"]["utc"][:10]].add(row.lines["honest"]["device"])
    at_once = max(map(len, by_day.values()), default=0)
    beside = f"Up to {at_once} devices of one machine judged at once, and shared its processors. " if at_once > 1 else ""
    return [
        f"The rows of eager and the honest copy alone come to {sum(taken_s) / 60:.1f} minutes of one device, "
        f"{sum(taken_s) / len(taken_s):.1f} s a problem. {beside}The start of a process comes on top. "
        "PyTorch copies need no build; those of CUDA run beside the timing of the problem before.", "",
    ]


def _with_less(lines: Sequence[Line], memory_gb: float) -> set[str]:
    """The problems whose honest copy was `ok` with less memory than that."""
    caps = {line["memory_gb"] for line in lines if (line.get("memory_gb") or memory_gb) < memory_gb}
    return {row.problem for cap in caps for row in rows_of(lines, cap) if row.status("honest") == "ok"}


def _of_a_cap(rows: Sequence[Row], whole: Sequence[Row], with_less: set[str], memory_gb: float) -> list[str]:
    """How many problems have room in so much memory, and which have not; `whole` are those with all memory, and those in
    `with_less` had room in less.
    """
    tried = {row.problem for row in rows}
    others = [row for row in whole if row.problem not in tried and row.is_judged]
    less = [row for row in others if row.problem in with_less]
    small = [
        row for row in others
        if row not in less and row.any_of("memory_step") == "full" and (row.peak_bytes or 0) < memory_gb * 1e9
    ]
    fits = [row for row in rows if row.status("honest") == "ok"]
    peaks = {row.problem: row.peak_bytes for row in whole}
    table = [
        [row.problem, row.name, f"{(peaks.get(row.problem) or 0) / 1e9:.1f}", row.status("honest")]
        for row in rows if row not in fits
    ]
    counted = [
        f"{len(fits) + len(less) + len(small)} of {len(whole)} problems have room:", "",
        f"- {len(fits)} of the {len(rows)} that were tried with so much", *([f"- {len(less)} that had room in less"] if less else []),
        f"- {len(small)} that took less at their peak, and no memory step, with all memory", "",
    ]
    return [*counted, _table(table, ["", "no room for", "peak with all memory, GB", "honest copy"]), ""]


def _title(memory_gb: float | None) -> str:
    return "With all memory of the device" if memory_gb is None else f"With {memory_gb:g} GB of memory"


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    worst = line.get("worst") or {}
    if worst.get("max_u") is None or worst.get("allowed_max_u") is None:
        return line["status"]
    if line["status"] in ("imprecise", "incorrect") and worst["max_u"] <= worst["allowed_max_u"]:
        return line["status"]  # a launch that was timed was beyond its bounds, and these are of the checks before it
    return f"{line['status']} {_number(worst['max_u'])}/{_number(worst['allowed_max_u'])}"


def _counts(statuses: Iterable[str]) -> str:
    counted = Counter(filter(None, statuses))
    return ", ".join(f"{count} {status}" for status, count in counted.most_common())


def _number(value: float) -> str:
    return f"{value:.0f}" if 100 <= value < 1e5 else f"{value:.2g}"


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _none_as(text: str, value: Any) -> Any:
    return text if value is None else value


def _table(rows: Sequence[Sequence[Any]], heads: Sequence[str]) -> str:
    return tabulate([list(map(str, row)) for row in rows], heads, tablefmt="github", disable_numparse=True)


def main() -> None:
    """Print the page, or put it where --write says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.jsonl")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    options = parser.parse_args()
    text = page(read_lines(options.files, of_each_device=True))
    if options.write is None:
        print(text)
    else:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    carried_out(main)
