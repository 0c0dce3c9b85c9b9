"""The page's tables as finished cells: the leaderboard, and devices side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.verdict import Status
from harness.report import terminal
from harness.report.html.cases import Case, Entry
from harness.report.html.chart_rows import has_speedup
from harness.report.leaderboard import baseline_word, built, eager_error
from harness.results.ranking import class_of, shown_time, why_unranked
from harness.results.record import Record


@dataclass(frozen=True)
class BoardRow:
    """One line of a leaderboard; an empty text is a cell where nothing was measured. `remarks` are sentences."""

    entry: Entry
    status: str
    tone: str
    time: str
    ratio: str
    interval: str
    call: str
    rate: str
    percent: str
    error: str
    eager_error: str
    built: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    """A leaderboard with the titles of the columns that depend on the run."""

    unit: str
    baseline: str
    rate_title: str
    rows: tuple[BoardRow, ...]

    def has(self, column: str) -> bool:
        """Whether any row has something to show there."""
        return any(getattr(row, column) for row in self.rows)


def board(case: Case) -> Board:
    records = case.records
    unit, times = terminal.time_column([shown_time(record) for record in records])
    by_bytes = any(record.bound_by == "memory" for record in records)
    timed = [record if shown_time(record) is not None else None for record in records]
    rates = terminal.number_column([each and getattr(each, "gbytes_s" if by_bytes else "tflops") for each in timed])
    baselines = {record.baseline for record in records if record.baseline}
    wanted = class_of(records)
    rows = [_board_row(entry, records, wanted, time, rate) for entry, time, rate in zip(case.entries, times, rates)]
    over = baselines.pop() if len(baselines) == 1 else "the baseline"
    return Board(unit, over, "GB/s" if by_bytes else "TFLOP/s", tuple(rows))


def _board_row(entry: Entry, group: Sequence[Record], wanted: str | None, time: str, rate: str) -> BoardRow:
    record = entry.record
    status, tone = _status(record, wanted)
    ratio, _, interval = terminal.speedup_text(record).partition(" ") if has_speedup(record) else ("", "", "")
    return BoardRow(
        entry, status, tone, time, ratio, interval, call=(record.call or "") if ratio else "", rate=rate,
        percent=terminal.percent_text(record.percent_of_sol) if time else "", error=terminal.units_text(record.err_max_u),
        eager_error=terminal.units_text(eager_error(record)), built=built(record), remarks=tuple(_remarks(record, group)),
    )


def _status(record: Record, wanted: str | None) -> tuple[str, str]:
    """The word for the status column, and which of the page's tones it has."""
    word = baseline_word(record, wanted)
    if word is not None:
        return word, "plain"
    tones = {"green": "good", "yellow": "open"}
    return record.status.value.replace("_", " "), tones.get(terminal.STATUS_STYLES.get(record.status.value, ""), "bad")


def _remarks(record: Record, group: Sequence[Record]) -> list[str]:
    said = []
    if record.status is not Status.OK:
        said.append(record.reason or "no reason was recorded")
    elif record.role == "candidate" and record.rank is None:
        said.append(f"ok, without a rank: {why_unranked(record, group)}")
    return said + [line for line in (record.warnings or "").splitlines() if line.strip()]
