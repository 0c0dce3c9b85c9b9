"""The page's tables as finished cells: leaderboard, devices side by side, what is known of one entry, its older runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.ranking import class_of, shown_time, why_unranked
from harness.records.schema import Record
from harness.report import terminal
from harness.report.html.cases import Case, Entry, Problem
from harness.report.html.plotted import has_speedup, interval_text, place
from harness.verdict import Status

Facts = list[tuple[str, list[tuple[str, str]]]]


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
    rows = [
        _board_row(entry, records, wanted, time, rate) for entry, time, rate in zip(case.entries, times, rates)
    ]
    over = baselines.pop() if len(baselines) == 1 else "the baseline"
    return Board(unit, over, "GB/s" if by_bytes else "TFLOP/s", tuple(rows))


def _board_row(entry: Entry, group: Sequence[Record], wanted: str | None, time: str, rate: str) -> BoardRow:
    record = entry.record
    status, tone = _status(record, wanted)
    ratio, _, interval = interval_text(record).partition(" ") if has_speedup(record) else ("", "", "")
    eager_error = "" if record.err_max_u is None or record.candidate == "eager" else terminal.units_text(record.eager_err_max_u)
    return BoardRow(
        entry, status, tone, time, ratio, interval, (record.call or "") if ratio else "", rate,
        terminal.percent_text(record.percent_of_sol) if time else "", terminal.units_text(record.err_max_u), eager_error,
        _built(record), tuple(_remarks(record, group)),
    )


def _status(record: Record, wanted: str | None) -> tuple[str, str]:
    """The word for the status column, and which of the page's tones it has."""
    if record.role == "baseline" and record.status is Status.OK:
        outside = None not in (record.precision_class, wanted) and record.precision_class != wanted
        return ("outside class" if outside else "baseline"), "plain"
    tones = {"green": "good", "yellow": "open"}
    return record.status.value.replace("_", " "), tones.get(terminal.STATUS_STYLES.get(record.status.value, ""), "bad")


def _built(record: Record) -> str:
    how = "cached" if record.cached else "" if record.build_s is None else terminal.seconds_text(record.build_s)
    return ", ".join(part for part in (record.language, how) if part)


def _remarks(record: Record, group: Sequence[Record]) -> list[str]:
    said = []
    if record.status is not Status.OK:
        said.append(record.reason or "no reason was recorded")
    elif record.role == "candidate" and record.rank is None:
        said.append(f"ok, without a rank: {why_unranked(record, group)}")
    return said + [line for line in (record.warnings or "").splitlines() if line.strip()]


@dataclass(frozen=True)
class SideRow:
    """One source in every case of a problem; None where a case does not have it."""

    name: str
    entries: tuple[Entry | None, ...]


def side_by_side(problem: Problem) -> list[SideRow]:
    """Candidates joined by their source, baselines by name, best first; a name with two sources has two rows."""
    joined: dict[tuple[str, str], dict[int, Entry]] = {}
    for number, case in enumerate(problem.cases):
        for entry in case.entries:
            record = entry.record
            if record.candidate == "eager" and record.role == "baseline":
                continue  # 1 by definition
            joined.setdefault((record.source_hash or record.role, record.candidate), {})[number] = entry
    rows = [
        SideRow(next(iter(found.values())).label, tuple(found.get(number) for number in range(len(problem.cases))))
        for found in joined.values()
    ]
    return sorted(rows, key=_fastest_first)


def _fastest_first(row: SideRow) -> tuple[bool, float]:
    speedups = [each.record.speedup for each in row.entries if each is not None and has_speedup(each.record)]
    return not speedups, -(speedups[0] if speedups else 0.0)


def facts(record: Record) -> Facts:
    """What is known of one entry, in groups of (what, value); what was not measured is left out."""
    time, us = terminal.time_text, lambda value: None if value is None else terminal.time_text(value)
    spread = f"{time(record.p10_us)} to {time(record.p90_us)}" if None not in (record.p10_us, record.p90_us) else None
    groups = [
        ("Time", [
            ("median of one call", us(record.time_us)), ("p10 to p90", spread),
            ("launches kept", _whole(record.launches)), ("rounds kept", _whole(record.rounds)),
            ("rounds dropped", _whole(record.dropped)), (f"{record.baseline or 'baseline'} in the same rounds", us(record.baseline_us)),
            ("speedup", interval_text(record) or None), ("with launch overhead", us(record.e2e_us)),
        ]),
        ("Limits", [
            ("of the speed of light", record.percent_of_sol and f"{terminal.percent_text(record.percent_of_sol)} %"),
            ("speed of light", us(record.sol_us)), ("bound by", record.bound_by), ("floor", us(record.floor_us)),
            ("useful operations", _unit(record.tflops, "TFLOP/s")), ("useful bytes", _unit(record.gbytes_s, "GB/s")),
        ]),
        ("Result", [
            ("largest error", _unit_u(record.err_max_u)), ("root mean square", _unit_u(record.err_rms_u)),
            ("eager's largest", _unit_u(record.eager_err_max_u)), ("class", record.precision_class),
            ("compared with", record.truth), ("whose kernels", record.kind),
        ]),
        ("Build", [
            ("language", record.language), ("build", _built(record).partition(", ")[2] or None), ("for", record.arch),
            ("registers", _whole(record.registers)), ("spills", record.spills is not None and f"{record.spills} bytes" or None),
            ("shared memory", record.shared_bytes is not None and f"{record.shared_bytes:,} bytes" or None),
        ]),
        ("Device meanwhile", [
            ("SM clock", _unit(record.sm_mhz, "MHz")), ("memory clock", _unit(record.mem_mhz, "MHz")),
            ("power", _unit(record.watts, "W")), ("temperature", _unit(record.celsius, "°C")),
            ("throttle", record.throttle), ("other processes", _whole(record.other_processes)),
        ]),
    ]
    known = [(name, [(what, str(value)) for what, value in rows if value not in (None, "")]) for name, rows in groups]
    return [(name, rows) for name, rows in known if rows]


def method(case: Case) -> list[tuple[str, str]]:
    """What all rows of the case's run share: settings, versions, the wall, the device."""
    first = case.first
    timed = next((record for record in case.records if record.l2_policy), first)
    dirty = ", with uncommitted changes" if first.dirty else ""
    known = [
        ("file", str(case.run.path)), ("run", first.run_id), ("settings", first.config), ("cache", timed.l2_policy),
        ("clock", timed.timer), ("clock around nothing", first.event_floor_us and terminal.time_text(first.event_floor_us)),
        ("confidence", timed.confidence and f"{100 * timed.confidence:g} %"),
        ("this software", first.harness_version and f"{first.harness_version}{dirty}"), ("torch", first.torch),
        ("CUDA", first.cuda), ("driver", first.driver), ("GPU", first.uuid), ("architecture", first.sm),
        ("power limit", _unit(first.power_limit_w, "W")), ("copy bandwidth", _unit(first.canary_gbps, "GB/s")),
        ("matrix product", _unit(first.canary_tflops, "TFLOP/s")), ("wall", first.sandbox),
    ]
    return [(what, str(value)) for what, value in known if value]


def older(entry: Entry) -> list[tuple[str, str, str, str, str]]:
    """The history as text, newest first: run, status, speedup, call, source."""
    return [
        (terminal.date_text(each.utc), each.status.value.replace("_", " "), interval_text(each) if has_speedup(each) else "",
         each.call or "", each.source_hash or "")
        for each in reversed(entry.history)
    ]


def title_of(case: Case) -> str:
    return place(case)


def _whole(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{terminal.number_text(value, 4)} {unit}"


def _unit_u(value: float | None) -> str | None:
    return None if value is None else f"{terminal.units_text(value)} u"
