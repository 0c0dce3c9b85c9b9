"""The page's tables as finished cells: the leaderboard, and what is known of an entry and of its run.
Nothing is shown as zero that was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.verdict import Status
from harness.report import terminal
from harness.report.html.cases import Case, Entry
from harness.report.html.chart_rows import has_speedup
from harness.report.remarks import times_at_odds
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
    """A leaderboard with the titles of the columns that depend on the run, and what is said of its times as a whole."""

    unit: str
    baseline: str
    rate_title: str
    rows: tuple[BoardRow, ...]
    at_odds: tuple[str, ...] = ()

    def has(self, column: str) -> bool:
        """Whether any row has something to show there."""
        return any(getattr(row, column) for row in self.rows)


def board(case: Case) -> Board:
    records = case.records
    unit, times = terminal.time_column([shown_time(record) for record in records])
    by_bytes = any(record.bound_by == "memory" for record in records)
    rate_of = "gbytes_s" if by_bytes else "tflops"
    rates = terminal.number_column([None if shown_time(each) is None else getattr(each, rate_of) for each in records])
    baselines = {record.baseline for record in records if record.baseline}
    wanted = class_of(records)
    rows = [_board_row(entry, records, wanted, time, rate) for entry, time, rate in zip(case.entries, times, rates)]
    over = baselines.pop() if len(baselines) == 1 else "the baseline"
    return Board(unit, over, "GB/s" if by_bytes else "TFLOP/s", tuple(rows), tuple(times_at_odds(records)))


def _board_row(entry: Entry, group: Sequence[Record], wanted: str | None, time: str, rate: str) -> BoardRow:
    record = entry.record
    word = terminal.baseline_word(record, wanted)
    tones = {"green": "good", "yellow": "open"}
    tone = tones.get(terminal.STATUS_STYLES.get(record.status.value, ""), "bad") if word is None else "plain"
    status = record.status.value.replace("_", " ") if word is None else word
    ratio, _, interval = terminal.speedup_text(record).partition(" ") if has_speedup(record) else ("", "", "")
    return BoardRow(
        entry, status, tone, time, ratio, interval, call=(record.call or "") if ratio else "", rate=rate,
        percent=terminal.percent_text(record.percent_of_sol) if time else "",
        error=terminal.units_text(record.err_max_u), eager_error=terminal.units_text(terminal.eager_error(record)),
        built=terminal.built(record), remarks=tuple(_remarks(record, group)),
    )


def _remarks(record: Record, group: Sequence[Record]) -> list[str]:
    remarks = []
    if record.status is not Status.OK:
        remarks.append(record.reason or "no reason was recorded")
    elif record.role == "candidate" and record.rank is None:
        remarks.append(f"ok, without a rank: {why_unranked(record, group)}")
    return remarks + [line for line in (record.warnings or "").splitlines() if line.strip()]


Rows = list[tuple[str, object]]  # what, and its value; None, or "", where it was not measured


def facts(record: Record) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is known of one entry, in groups of (what, value); what was not measured is left out."""
    temperature = None if record.celsius is None else f"{record.celsius:g} °C"
    groups = {
        "Time": _time(record),
        "Limits": [
            ("of the speed of light", f"{terminal.percent_text(record.percent_of_sol)} %" if record.percent_of_sol else None),
            ("speed of light", _us(record.sol_us)), ("bound by", record.bound_by), ("floor", _us(record.floor_us)),
            ("useful operations", _unit(record.tflops, "TFLOP/s")), ("useful bytes", _unit(record.gbytes_s, "GB/s")),
        ],
        "Result": [
            ("largest error", _unit_u(record.err_max_u)), ("root mean square", _unit_u(record.err_rms_u)),
            ("eager's largest", _unit_u(record.eager_err_max_u)), ("class", record.precision_class),
            ("compared with", record.truth), ("whose kernels", record.kind),
        ],
        "Build": [
            ("language", record.language), ("build", terminal.built(record).partition(", ")[2]), ("for", record.arch),
            ("registers", _whole(record.registers)),
            ("spills", None if record.spills is None else f"{record.spills} bytes"),
            ("shared memory", None if record.shared_bytes is None else f"{record.shared_bytes:,} bytes"),
        ],
        "Device meanwhile": [
            ("SM clock", _unit(record.sm_mhz, "MHz")), ("memory clock", _unit(record.mem_mhz, "MHz")),
            ("power", _unit(record.watts, "W")), ("temperature", temperature),
            ("throttle", record.throttle),
            ("held down by power", _unit(record.power_violation_ms, "ms")),
            ("held down by heat", _unit(record.thermal_violation_ms, "ms")),
            ("other processes", _whole(record.other_processes)),
        ],
    }
    known = {name: [(what, str(value)) for what, value in rows if value not in (None, "")]
             for name, rows in groups.items()}
    return [(name, rows) for name, rows in known.items() if rows]


def _time(record: Record) -> Rows:
    spread = None
    if record.p10_us is not None and record.p90_us is not None:
        spread = f"{terminal.time_text(record.p10_us)} to {terminal.time_text(record.p90_us)}"
    rounds = "its own row" if record.baseline_hash else "the same rounds"
    over_eager = terminal.ratio_text(record.eager_speedup, record.eager_speedup_lo, record.eager_speedup_hi)
    return [
        ("one call, mean of the middle half", _us(record.time_us)), ("p10 to p90", spread),
        ("forward pass of it", _us(record.forward_us)), ("backward pass of it", _us(record.backward_us)),
        ("launches kept", _whole(record.launches)), ("rounds kept", _whole(record.rounds)),
        ("rounds dropped", _whole(record.dropped)),
        (f"{record.baseline or 'baseline'} in {rounds}", _us(record.baseline_us)),
        (f"its mean of {record.baseline_processes} processes", _us(record.baseline_mean_us)),
        (f"speedup over {record.baseline or 'the baseline'}", terminal.speedup_text(record)),
        ("speedup over eager", over_eager), ("eager in the same rounds", _us(record.eager_us)),
        ("with launch overhead", _us(record.e2e_us)),
    ]


def method(case: Case) -> list[tuple[str, str]]:
    """What all rows of the case's run share: settings, versions, the sandbox, the device."""
    first = case.first
    timed = next((record for record in case.records if record.l2_policy), first)
    dirty = ", with uncommitted changes" if first.dirty else ""
    known = [
        ("file", str(case.run.path)), ("run", first.run_id), ("settings", first.config), ("cache", timed.l2_policy),
        ("clock", timed.timer),
        ("clock around nothing", first.event_floor_us and terminal.time_text(first.event_floor_us)),
        ("confidence", timed.confidence and f"{100 * timed.confidence:g} %"),
        ("this software", first.harness_version and f"{first.harness_version}{dirty}"), ("torch", first.torch),
        ("CUDA", first.cuda), ("driver", first.driver), ("GPU", first.uuid), ("architecture", first.sm),
        ("power limit", _unit(first.power_limit_w, "W")), ("copy bandwidth", _unit(first.canary_gbps, "GB/s")),
        ("fp32 multiply-adds", _unit(first.canary_tflops, "TFLOP/s")), ("wall", first.sandbox),
    ]
    return [(what, str(value)) for what, value in known if value]


def older(entry: Entry) -> list[tuple[str, str, str, str, str]]:
    """The history as text, newest first: run, status, speedup, call, source; over what, where that is not one thing."""
    is_mixed = len({each.baseline_hash for each in entry.history}) > 1
    rows = []
    for each in reversed(entry.history):
        over = f" over {each.baseline}" if is_mixed else ""
        speedup = f"{terminal.speedup_text(each)}{over}" if has_speedup(each) else ""
        status = each.status.value.replace("_", " ")
        rows.append((terminal.date_text(each.utc), status, speedup, each.call or "", each.source_hash or ""))
    return rows


def _us(value: float | None) -> str | None:
    return None if value is None else terminal.time_text(value)


def _whole(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{terminal.number_text(value, 4)} {unit}"


def _unit_u(value: float | None) -> str | None:
    return None if value is None else f"{terminal.units_text(value)} u"
