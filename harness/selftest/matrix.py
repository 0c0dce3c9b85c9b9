"""The catch matrix: for each case what the naive judge said, what the harness said, and which of the two was right. It
stays in the folder of results, and between markers of a page such as docs/design/adversarial.md. A run over part of the
corpus adds to what its folder holds, so that a matrix can be made in several sittings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.model.verdict import WANT_ANOTHER_DEVICE, ReasonCode, Status
from harness.report import terminal
from harness.results.ranking import vouched_speedup
from harness.results.record import Record
from harness.selftest.corpus import GROUPS, Case

CAUGHT, RIGHT = "caught", "right"
MISSED, FALSE_ALARM = "MISSED", "false alarm"
OTHERWISE, NO_ROW = "other verdict", "no row"
UNSURE, NOT_RUN = "unsure", "not run"
AS_EXPECTED = frozenset({CAUGHT, RIGHT, NOT_RUN})
FASTER = 1.3  # the speedup from which on the naive clock counts as fooled
GAINED = 1.05  # and the vouched one from which on ours does: a case that fools clocks does eager's own work
_LEAST_MS = 1e-6
_AMISS = {OTHERWISE: "not as expected", UNSURE: "not measurable here", NO_ROW: "without a row"}
HEADINGS = ("group", "case", "fools", "naive judge", "verdict here", "outcome")


@dataclass(frozen=True)
class NaiveResult:
    """What the naive judge said of a case: `correct` with times in ms, or what the case `raised` (a type, and what it
    `said`); `end` is "" or how the process ended that should have gone on.
    """

    correct: bool | None = None
    ms: float | None = None
    eager_ms: float | None = None
    raised: str = ""
    said: str = ""
    end: str = ""

    @property
    def speedup(self) -> float | None:
        """Eager's time over the case's, by its clock, which a case may have stopped or turned back."""
        if self.ms is None or not self.eager_ms or self.eager_ms < 0:
            return None
        return self.eager_ms / max(self.ms, _LEAST_MS)

    @property
    def text(self) -> str:
        """In a few words, for a cell."""
        words = []
        if self.correct is not None:
            words.append("correct" if self.correct else "wrong")
            words += [_times(self.speedup)] if self.correct and self.speedup is not None else []
        elif self.raised:
            words.append(f"raised {self.raised}")
        return ", ".join([*words, self.end] if self.end else words) or "no answer"

    def is_fooled(self, fools: str) -> bool | None:
        """Whether it took at its word what `fools` names; None for "nothing"."""
        if fools == "nothing":
            return None
        return self.correct is True and (fools != "clock" or (self.speedup or 0.0) >= FASTER)


@dataclass(frozen=True)
class Row:
    """One line of the matrix. `is_fooled` and `survived` are about the naive judge: None where that was no question.
    `lacks` says of a module that its case needs why that does not work here.
    """

    group: str
    name: str
    sentence: str
    fools: str
    naive: str
    is_fooled: bool | None
    survived: bool
    verdict: str
    outcome: str
    reason: str
    lacks: str = ""


def row_of(case: Case, record: Record | None, naive: NaiveResult | None) -> Row:
    """The line of `case`; `record` is its row of the results, None when it has none."""
    outcome, lacks = outcome_of(case, record), _lacks(case, record)
    if outcome == FALSE_ALARM and case.needs and naive is not None and naive.raised:
        outcome, lacks = NOT_RUN, f"{' and '.join(case.needs)} raised {naive.raised} in the naive judge too"
    return Row(
        group=case.group, name=case.name, sentence=case.sentence, fools=case.fools,
        naive=naive.text if naive else "", is_fooled=naive.is_fooled(case.fools) if naive else None,
        survived=naive is not None and not naive.end, verdict=_verdict(record), outcome=outcome,
        reason=(record.reason or "") if record else "", lacks=lacks,
    )


def _lacks(case: Case, record: Record | None) -> str:
    """Which module the case needs that Python did not find; of a module that is broken it says something else."""
    if record is None or record.reason_code is not ReasonCode.IMPORT_ERROR:
        return ""
    for name in case.needs:
        parts = name.split(".")
        if any(f"No module named '{'.'.join(parts[:count + 1])}'" in (record.reason or "") for count in range(len(parts))):
            return f"{name} is not installed"
    return ""


def outcome_of(case: Case, record: Record | None) -> str:
    """What the harness made of `case`, in one of the words above. Only `AS_EXPECTED` is what should be."""
    if record is None:
        return NO_ROW
    if _lacks(case, record):
        return NOT_RUN
    pair = f"{record.status.value}/{record.reason_code.value}"
    passes = record.status is Status.OK
    gained = case.fools == "clock" and passes and vouched_speedup(record.speedup, record.time_us, record.unvouched_us) >= GAINED
    as_told = pair in case.expected and (not passes or not case.kinds or record.kind in case.kinds) and not gained
    lost = record.reason_code in (ReasonCode.DEVICE_LOST, ReasonCode.SAVED_MEANWHILE)
    if record.status in WANT_ANOTHER_DEVICE and not lost and not as_told:
        return NOT_RUN
    if record.status is Status.UNSURE and not as_told:
        return UNSURE
    if case.is_honest:
        return RIGHT if as_told else FALSE_ALARM
    if as_told:
        return RIGHT if case.fools == "nothing" else CAUGHT
    # A library's work may stand in the table as long as it is not taken for a kernel.
    return MISSED if passes and (case.fools != "substance" or record.kind == "custom") else OTHERWISE


def all_as_expected(rows: Iterable[Row]) -> bool:
    return all(row.outcome in AS_EXPECTED for row in rows)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By group in the order of the corpus, then by name."""
    return sorted(rows, key=lambda row: (GROUPS.index(row.group), row.name))


def totals(rows: Sequence[Row]) -> list[str]:
    """The matrix in sentences: what was caught, how the controls and faults went, and what the naive judge took."""
    ran = [row for row in rows if row.outcome != NOT_RUN]
    cheats = [row for row in ran if row.fools != "nothing"]
    honest = [row for row in ran if row.group == "honest"]
    faults = [row for row in ran if row.fools == "nothing" and row.group != "honest"]
    lines = []
    if cheats:
        lines.append(_tally("cheat", cheats, {CAUGHT: "caught", MISSED: "MISSED", **_AMISS}))
        shown = [row for row in cheats if row.naive]
        fooled = [row for row in shown if row.is_fooled]
        rest = [row.name for row in shown if row.is_fooled is False]
        lines += [f"the naive judge took {len(fooled)} of {len(shown)} at their word"
                  + (f"; not {', '.join(rest)}" if rest else "")] if shown else []
    if faults:
        lines.append(_tally("fault", faults, {RIGHT: "right", MISSED: "passed as ok", **_AMISS}))
        shown = [row for row in faults if row.naive]
        if shown:
            lines.append(f"the naive judge came through {sum(row.survived for row in shown)} of {len(shown)} of them")
    if honest:
        lines.append(_tally("honest control", honest, {RIGHT: "passed", FALSE_ALARM: "false alarm", **_AMISS}))
    idle = [f"{row.name} ({row.lacks})" if row.lacks else row.name for row in rows if row.outcome == NOT_RUN]
    return lines + ([f"{len(idle)} could not be run here: {', '.join(idle)}"] if idle else [])


def cells(row: Row) -> tuple[str, ...]:
    """The texts of a row, one for each of `HEADINGS`."""
    return row.group, row.name, row.fools, row.naive, row.verdict, row.outcome


def markdown(rows: Sequence[Row], title: str) -> str:
    """The matrix as a section of a page: the title, the totals, a table with a line for each case."""
    lines = [title, "", *(f"- {line}" for line in totals(rows)), ""]
    headings = ("group", "case", "what it does", *HEADINGS[2:])
    lines += [_line(headings), _line(["---"] * len(headings))]
    for row in rows:
        group, name, *rest = cells(row)
        lines.append(_line([group, f"`{name}`", row.sentence, *rest]))
    return "\n".join(lines)


def _line(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("<", "&lt;") for text in texts) + " |"


def _verdict(record: Record | None) -> str:
    if record is None:
        return "none"
    code = f"/{record.reason_code.value}" if record.reason_code.value else ""
    kind = f", {record.kind}" if record.status is Status.OK and record.kind else ""
    return f"{record.status.value}{code}{kind}"


def _tally(what: str, rows: Sequence[Row], words: Mapping[str, str]) -> str:
    """`12 honest controls: 11 passed, 1 false alarm (side_stream)`; what is not as it should be is named."""
    parts = []
    for outcome, word in words.items():
        names = [row.name for row in rows if row.outcome == outcome]
        if names or outcome in AS_EXPECTED:
            parts.append(f"{len(names)} {word}" + ("" if outcome in AS_EXPECTED else f" ({', '.join(names)})"))
    return f"{len(rows)} {what}{'' if len(rows) == 1 else 's'}: {', '.join(parts)}"


def _times(speedup: float) -> str:
    if speedup >= 1e6:
        return "1,000,000× and more"
    return f"{speedup:,.0f}×" if speedup >= 100 else f"{speedup:.3g}×"


@dataclass(frozen=True)
class Kept:
    """The rows of a folder for one kind of device, under the title that they have on a page."""

    device_kind: str
    title: str
    rows: list[Row]


def keep(rows: Sequence[Row], control: Record, out_dir: Path, *, whole: bool) -> Kept:
    """Put `rows` into `out_dir`, beside those of earlier runs on this kind of device unless this one was `whole`. The
    `control` is the record of eager in the same run; it names the device.
    """
    kind = control.device_kind or "cpu"
    path = out_dir / f"matrix-{kind}.json"
    fresh = {row.name: row for row in rows}
    together = in_order((fresh if whole else {**_earlier(path), **fresh}).values())
    path.write_text(json.dumps([asdict(row) for row in together], indent=1), encoding="utf-8")
    device = f"{control.device_name}{' (device=cpu)' if control.on_cpu else ''}"
    return Kept(kind, f"### {device} · torch {control.torch} · {terminal.date_text(control.utc)}", together)


def check_markers(path: Path) -> None:
    """Raise InputError unless `path` is a page with the places that `write` fills."""
    for kind in ("cuda", "cpu"):
        _places(path, kind)


def write(path: Path, kept: Kept) -> None:
    """Replace what stands between the page's markers for the device by the matrix. Raises InputError."""
    text, begin, end = _places(path, kept.device_kind)
    section = markdown(kept.rows, kept.title)
    try:
        path.write_text(f"{text[:begin]}\n{section}\n{text[end:]}", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", path) from None


def _places(path: Path, kind: str) -> tuple[str, int, int]:
    """The text of the page, and where the matrix of `kind` begins and ends in it."""
    first, last = f"<!-- matrix:{kind} -->", f"<!-- /matrix:{kind} -->"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path) from None
    match = re.search(f"{re.escape(first)}(.*?){re.escape(last)}", text, re.DOTALL)
    if match is None:
        raise InputError("has no place for the matrix", path, hint=f"Write the lines {first} and {last} into it.")
    return text, match.start(1), match.end(1)


def _earlier(path: Path) -> dict[str, Row]:
    try:
        return {body["name"]: Row(**body) for body in json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
