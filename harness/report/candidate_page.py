"""Everything known about one candidate on one screen, as text. What was not measured is left out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.model.device_limits import limits_of
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem_notes import notes_in
from harness.model.verdict import Status
from harness.reference.evidence import Evidence
from harness.report import terminal
from harness.report.evidence_text import evidence_lines
from harness.report.terminal import paint
from harness.results.ranking import shown_time
from harness.results.record import Record
from harness.results.samples import compiler_reports, compiler_warnings
from harness.timing.three_clocks import ThreeClocks

_MOST_KERNELS = 6


def render(
    record: Record, samples: Mapping[str, Any], evidence: Evidence | None, *, path: Path, others: Sequence[Path] = (),
    at_other_sizes: Sequence[Record] = (), width: int | None = 140, color: bool = False,
) -> str:
    """The page as text, without a newline at its end."""
    device = f"{record.device_name or '?'}{' (device=cpu)' if record.device_kind == 'cpu' else ''}"
    mode = None if record.mode == "forward" else record.mode
    date = terminal.date_text(record.utc)
    title = _joined(record.candidate, record.problem, record.sizes, record.dtype, mode, device, date)
    lines = [paint(title, "bold", color), *_verdict(record, width, color), ""]
    for label, text in _facts(record, samples, color):
        first, *rest = terminal.indented(text, width and width - 9, most_lines=99)
        lines += [f"{label:<9}{first[2:]}", *(f"{'':<9}{line[2:]}" for line in rest)]
    lines += [f"{label:<9}{text}" for label, text in _labelled("sizes", [_in_short(each) for each in at_other_sizes])]
    if evidence is not None:
        lines += ["", *evidence_lines(evidence)]
    lines += ["", f"{'record':<9}{shown(path)}"]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        lines.append(f"{'also in':<9}{', '.join(map(shown, others[:3]))}{more}")
    return "\n".join([*lines, *_next(record, evidence, path)])


def _verdict(record: Record, width: int | None, color: bool) -> list[str]:
    status = paint(record.status.value, terminal.STATUS_STYLES.get(record.status.value, "red"), color)
    code = f" ({record.reason_code.value})" if record.reason_code.value else ""
    rank = f", rank {record.rank}" if record.rank else ""
    role = ", a baseline" if record.role == "baseline" else ""
    lines = [f"{status}{code}{rank}{role}"]
    if record.reason:
        lines += terminal.indented(record.reason, width, most_lines=40)
    warnings = [line for line in (record.warnings or "").splitlines() if line.strip()]
    notes = [f"note: {text}" for text in warnings]
    notes += [f"note on {record.problem}: {note.sentence}" for note in notes_in(record.problem_note)]
    return lines + [line for text in notes for line in terminal.indented(text, width)]


def _facts(record: Record, samples: Mapping[str, Any], color: bool) -> Iterable[tuple[str, str]]:
    """Label and text of each line that has anything to say."""
    parts = (
        *_labelled("accuracy", [each for each in (_accuracy(record), *_errors(samples.get("errors"))) if each]),
        ("time", _time(record)), ("passes", _passes(record)), ("clocks", _clocks(record, samples)),
        ("besides", _besides(record)), ("speedup", _speedup(record, color)), ("physics", _physics(record)),
        *_labelled("kernels", _kernels(record, samples.get("kernels"))), *_labelled("build", _build(record, samples)),
        ("device", _device(record)), ("wall", record.sandbox or ""), ("source", _source(record)),
    )
    return [(label, text) for label, text in parts if text]


def _labelled(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _timed(time_us: float | None, what: str) -> str:
    return f"{terminal.time_text(time_us)} {what}" if time_us else ""


def _accuracy(record: Record) -> str:
    if record.err_max_u is None:
        return ""
    eager = "" if record.eager_err_max_u is None else f"eager's {terminal.units_text(record.eager_err_max_u)} u"
    own = f"largest error {terminal.units_text(record.err_max_u)} u"
    class_text = record.precision_class and f"{record.precision_class} class"
    return _joined(class_text, own, eager, record.truth and f"against {record.truth}")


def _errors(errors: Any) -> list[str]:
    """A line for each set of sizes: the largest error of each family over what is allowed."""
    by_sizes: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    for each in errors if isinstance(errors, list) else []:
        if isinstance(each, dict):
            families, family = by_sizes.setdefault(str(each.get("sizes")), {}), str(each.get("family"))
            max_u, before = each.get("max_u"), families.get(family, (0.0, 0.0))[0]
            if family not in families or max_u is None or (before is not None and max_u > before):
                families[family] = (max_u, each.get("allowed_max_u"))

    def text(family: str, max_u: float | None, allowed: float | None) -> str:
        over = "" if allowed is None else f"/{terminal.units_text(allowed)}"
        return f"{family} {'inf' if max_u is None else terminal.units_text(max_u)}{over}"

    return [f"{sizes}: {', '.join(text(family, *errors) for family, errors in families.items())}"
            for sizes, families in by_sizes.items()]


def _time(record: Record) -> str:
    if record.time_us is None:
        return ""
    spread = None
    if record.p10_us is not None and record.p90_us is not None:
        spread = f"80 % between {terminal.time_text(record.p10_us)} and {terminal.time_text(record.p90_us)}"
    counted = f"{record.launches} launches in {record.rounds} rounds" if record.launches and record.rounds else None
    return _joined(
        f"{terminal.time_text(record.time_us)}, mean of the middle half", spread, counted,
        f"{record.dropped} rounds dropped" if record.dropped else None, _timed(record.e2e_us, "with launch overhead"),
        "launch overhead not hidden" if record.launch_hidden is False and not record.on_cpu else None,
        f"cache {record.l2_policy}" if record.l2_policy else None,
    )


def _passes(record: Record) -> str:
    """Forward and backward of a call with gradients, beside the baseline's."""
    parts = []
    for what in ("forward", "backward"):
        time_us, baseline_us = getattr(record, f"{what}_us"), getattr(record, f"baseline_{what}_us")
        beside = f" ({record.baseline or 'baseline'} {terminal.time_text(baseline_us)})" if baseline_us else ""
        parts += [f"{what} {terminal.time_text(time_us)}{beside}"] if time_us else []
    return _joined(*parts)


def _clocks(record: Record, samples: Mapping[str, Any]) -> str:
    """A call by each clock that saw it; where they are far apart, a note of the row says so."""
    clocks = ThreeClocks.in_samples(samples)
    return "" if clocks is None else _joined(
        _timed(clocks.events_us, limits_of(record.device_kind or "cuda").whose_clock),
        _timed(clocks.traced_us, "under the profiler, one call"),
        _timed(clocks.wall_us, "by the judge's clock, less the harness's own steps"),
    )


def _besides(record: Record) -> str:
    """What was asked for beside the ranking time."""
    return _joined(
        _timed(record.warm_us, "with a warm cache"), _timed(record.back_to_back_us, "back to back"),
        _timed(record.graph_us, "as a CUDA graph"),
        f"{terminal.number_text(1e3 * record.joules)} mJ a call" if record.joules else None,
    )


def _in_short(record: Record) -> str:
    """The row of another size in a line."""
    timed = None if shown_time(record) is None else terminal.time_text(record.time_us)
    ratio = terminal.speedup_text(record) if timed else ""
    return _joined(f"at {record.sizes}: {record.status.value}", timed, ratio and f"{ratio} {record.call or ''}".strip())


def _speedup(record: Record, color: bool) -> str:
    ratio = terminal.speedup_text(record)
    over_eager = terminal.ratio_text(record.eager_speedup, record.eager_speedup_lo, record.eager_speedup_hi)
    eager_us = f"({terminal.time_text(record.eager_us)})" if record.eager_us else ""
    over_eager = f"{over_eager} over eager {eager_us}" if over_eager and eager_us else ""
    if not ratio:
        return over_eager
    word = paint(record.call or "", terminal.CALL_STYLES.get(record.call or "", "dim"), color)
    baseline = f"over {record.baseline}"
    if record.baseline_processes and record.baseline_mean_us:
        mean_us = terminal.time_text(record.baseline_mean_us)
        baseline += f" ({mean_us}, its mean of {record.baseline_processes} processes)"
    elif record.baseline_us:
        baseline += f" ({terminal.time_text(record.baseline_us)})"
    players = record.players or 0
    over = f" over {players} processes" if players > 1 else " from one process" if players else ""
    level = f"{record.confidence * 100:g} % interval{over}" if record.confidence else None
    return _joined(f"{ratio} {word} {baseline}".replace("  ", " "), over_eager, level)


def _physics(record: Record) -> str:
    bound = f", {record.bound_by}-bound" if record.bound_by else ""
    limit = f"speed of light {terminal.time_text(record.sol_us)}{bound}" if record.sol_us else None
    return _joined(
        f"{terminal.number_text(record.tflops)} TFLOP/s useful" if record.tflops else None,
        f"{terminal.number_text(record.gbytes_s)} GB/s useful" if record.gbytes_s else None,
        f"{terminal.percent_text(record.percent_of_sol)} % of the speed of light" if record.percent_of_sol else None,
        limit, f"floor {terminal.time_text(record.floor_us)}" if record.floor_us else None,
    )


def _kernels(record: Record, kernels: Any) -> list[str]:
    """What ran under the profiler, the longest first, and whose it is."""
    rows = [each for each in kernels if isinstance(each, list) and len(each) >= 3] if isinstance(kernels, list) else []
    rows.sort(key=lambda each: -(each[1] or 0.0))
    lines = [
        f"{terminal.time_text(each[1] or 0.0)} {each[2]}{f' ({each[3]})' if len(each) > 3 and each[3] else ''}: "
        f"{terminal.shortened(terminal.one_line(str(each[0])), 90)}"
        for each in rows[:_MOST_KERNELS]
    ]
    lines += [f"and {len(rows) - _MOST_KERNELS} more"] if len(rows) > _MOST_KERNELS else []
    return [*([f"{record.kind} kind"] if record.kind else []), *lines]


def _build(record: Record, samples: Mapping[str, Any]) -> list[str]:
    took = None if record.build_s is None else terminal.seconds_text(record.build_s)
    took = "from the cache" if record.cached else took
    headers = record.headers and f"{record.headers} headers"
    first = _joined(record.language if record.role == "candidate" else None, took, record.arch, headers)
    kernels = compiler_reports(samples)
    several = len({each.get("arch") for each in kernels}) > 1
    lines = [_compiled(each, with_arch=several) for each in kernels[:_MOST_KERNELS]]
    lines += [f"and {len(kernels) - _MOST_KERNELS} more"] if len(kernels) > _MOST_KERNELS else []
    lines += [f"warning: {terminal.one_line(each)}" for each in compiler_warnings(samples)[:_MOST_KERNELS]]
    if not lines and record.registers is not None:
        spilled, shared = f"{record.spills} bytes spilled", f"{record.shared_bytes} bytes shared"
        lines = [f"at most {record.registers} registers, {spilled}, {shared}"]
    return [*([first] if first else []), *lines]


def _compiled(kernel: Mapping[str, Any], with_arch: bool) -> str:
    """What the compiler said of one kernel; constant memory only where it said something of it."""
    where = f" for {kernel.get('arch')}" if with_arch else ""
    constant = f", {kernel['constant_bytes']} bytes constant" if kernel.get("constant_bytes") else ""
    memories = (("spill", "spilled"), ("shared", "shared"), ("stack", "stack"))
    sizes = ", ".join(f"{kernel.get(f'{name}_bytes')} bytes {what}" for name, what in memories)
    return f"{kernel.get('kernel')}{where}: {kernel.get('registers')} registers, {sizes}{constant}"


def _device(record: Record) -> str:
    known = (
        ("driver {}", record.driver), ("CUDA {}", record.cuda), ("torch {}", record.torch),
        ("SM {:.0f} MHz", record.sm_mhz), ("{:.0f} W", record.watts), ("{:.0f} °C", record.celsius),
        ("throttle {}", record.throttle), ("held down for {:.0f} ms by power", record.power_violation_ms),
        ("held down for {:.0f} ms by heat", record.thermal_violation_ms),
    )
    return _joined(*(text.format(value) for text, value in known if value))


def _source(record: Record) -> str:
    version = record.harness_version and f"harness {record.harness_version}{', changed' if record.dirty else ''}"
    return _joined(record.source_hash, record.parameters, record.config and f"settings {record.config}", version)


def _next(record: Record, evidence: Evidence | None, path: Path) -> list[str]:
    if evidence is not None:
        return [f"Next: {PROGRAM} reproduce {shlex.quote(shown(path))} {record.candidate}   makes that launch again"]
    if record.status is Status.OK and record.role == "candidate":
        return [f"Next: {PROGRAM} compare {shlex.quote(shown(path.parent.parent))}   sets it beside other devices"]
    return []
