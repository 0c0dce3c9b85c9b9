"""A comparison for other programs and for pages: Markdown, CSV with a row for each verdict, JSON with everything, and
JUnit XML for build servers that draw it, with a suite for each two runs and a case for each candidate.

The keys and columns are documented in docs/compare.md and change only together with `COMPARISON_VERSION`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from harness.model.files.text_files import shown
from harness.report import terminal
from harness.report.comparison_tables import (
    across_blocks, across_remarks, change_text, device_texts, difference_text, figure_blocks, figure_remarks,
    figures_json, letter, pair_columns, pair_remarks, refusal_texts, standing, unmatched_texts,
)
from harness.report.next_step import then_compare
from harness.report.table import Column
from harness.results.across_devices import CLOCKS, Figure, rows_with_baseline
from harness.results.changes import NOT_IN_BOTH
from harness.results.comparison import Compared, Tripped
from harness.results.joined_runs import Case
from harness.results.record import Record
from harness.timing.stats.trimmed_mean import Interval

COMPARISON_VERSION = 1
_MOST_PAIRS = 8  # of one case, in Markdown: a page of steps is read by people


def as_json(compared: Compared, show: Sequence[Figure] = ()) -> str:
    """The whole comparison under stable keys; with figures to `show`, those of several devices too."""
    return json.dumps({
        "comparison_version": COMPARISON_VERSION,
        "runs": [
            {"name": letter(number), "csv": shown(run.path), "utc": run.utc, "device_name": run.device_name,
             "device_kind": run.device_kind, "uuid": run.records[0].uuid, "rows": len(run.records)}
            for number, run in enumerate(compared.joined.runs)
        ],
        "notes": list(compared.notes), "unmatched": unmatched_texts(compared),
        "differences": [
            {"name": each.name, "group": each.group,
             "values": {letter(number): value for number, value in enumerate(each.values)}}
            for each in compared.joined.differences
        ],
        "refused": refusal_texts(compared), "changes": list(change_rows(compared)),
        "means": [
            {**_question(pair.case), "reference": letter(pair.reference), "run": letter(pair.run),
             "candidates": pair.mean_of, **_ratio("change", pair.mean)}
            for pair in compared.pairs if pair.mean is not None
        ],
        "devices": [
            {**_question(each.case), "runs": [letter(run) for run in each.runs], "shared": list(each.shared),
             "rows": [{"candidate": row.name, "runs": {
                 letter(run): _standing(row.records[run], each.places[run].get(row.name)) for run in each.runs
             }} for row in each.rows],
             "means": {letter(run): _ratio("speedup", mean) for run, mean in each.means.items()},
             "means_over_first": {letter(run): _ratio("ratio", mean) for run, mean in each.against.items()},
             **(figures_json(each, show) if show else {})}
            for each in compared.across
        ],
    })


def as_csv(compared: Compared, show: Sequence[Figure] = ()) -> str:
    """One row for each candidate in each run that is set against an earlier one, then one for each on each device."""
    rows = list(change_rows(compared))
    for each in compared.across:
        for row in rows_with_baseline(each) if show else each.rows:
            for run in each.runs:
                csv_path, place = shown(compared.joined.runs[run].path), each.places[run].get(row.name)
                rows.append({**_question(each.case), "candidate": row.name, "run": letter(run), "csv": csv_path,
                             **_standing(row.records[run], place),
                             **(standing(row.records[run], show) if show else {})})
    stream = io.StringIO()
    further = [*(figure.column for figure in show), *CLOCKS] if show else []
    names = list(dict.fromkeys([*CHANGE_COLUMNS, "percent_of_sol", "place", *further]))
    writer = csv.DictWriter(stream, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return stream.getvalue().rstrip("\n")


CHANGE_COLUMNS = (
    "problem", "sizes", "dtype", "mode", "candidate", "role", "reference", "run", "csv", "verdict", "reason", "change",
    "change_lo", "change_hi", "margin", "margin_from", "basis", "time_ratio", "drift", "status_before", "status",
    "speedup_before", "speedup", "speedup_lo", "speedup_hi", "next",
)


def change_rows(compared: Compared) -> Iterator[dict[str, Any]]:
    """Each verdict with what it rests on; `change` is how many times as fast it is now."""
    csvs = [shown(run.path) for run in compared.joined.runs]
    for pair in compared.pairs:
        reference = compared.joined.runs[pair.reference].path
        question, old, new = _question(pair.case), letter(pair.reference), letter(pair.run)
        for row, change in pair.changes:
            if change.reason == NOT_IN_BOTH:
                continue
            before, now = row.records[pair.reference], row.records[pair.run]
            is_open = change.verdict == "UNSURE" and now.role == "candidate"
            yield {
                **question, "candidate": row.name, "role": now.role, "reference": old, "run": new,
                "csv": csvs[pair.run], "verdict": change.verdict or None, "reason": change.reason,
                **_ratio("change", change.ratio), "margin": change.margin,
                "margin_from": change.margin_from if change.margin else None,
                "basis": change.basis if change.ratio else None, "time_ratio": change.time_ratio,
                "drift": change.drift, "status_before": before.status.value, "status": now.status.value,
                "speedup_before": before.speedup, "speedup": now.speedup, "speedup_lo": now.speedup_lo,
                "speedup_hi": now.speedup_hi, "next": then_compare([now], reference) if is_open else None,
            }


def as_markdown(compared: Compared, show: Sequence[Figure] = ()) -> str:
    """A page for a pull request or a run's summary: what does not match first, then a table for each problem."""
    lines, devices = ["# Comparison", ""], device_texts(compared)
    lines += [f"- **{letter(number)}** {devices[number]}, {terminal.date_text(run.utc)}, `{shown(run.path)}`"
              for number, run in enumerate(compared.joined.runs[:26])]
    for title, texts in (
        ("Noted", compared.notes), ("Did not match", unmatched_texts(compared)),
        ("Differs between the runs", [difference_text(each) for each in compared.joined.differences]),
        ("Not compared: measured by different methods", refusal_texts(compared)),
    ):
        lines += ["", f"**{title}**", "", *(f"- {_plain(text)}" for text in texts)] if texts else []
    for case in compared.joined.cases:
        pairs = [each for each in compared.pairs if each.case is case and each.changes]
        across = [each for each in compared.across if each.case is case and each.rows]
        lines += ["", f"## {_plain(case.title)}"] if pairs or across else []
        for pair in pairs[-_MOST_PAIRS:]:
            device = compared.joined.runs[pair.run].device_name
            lines += ["", f"{letter(pair.run)} against {letter(pair.reference)}, both on {device}", ""]
            lines += [*_table(pair_columns(compared, pair)), ""]
            lines += [f"- {_plain(text)}" for text in pair_remarks(compared, pair)]
        for each in across:
            blocks = figure_blocks(compared, each, show) if show else across_blocks(compared, each)
            remarks = figure_remarks(compared, each, show) if show else across_remarks(compared, each)
            columns = [column for block in blocks for column in block]
            lines += ["", *_table(columns), "", *(f"- {_plain(text)}" for text in remarks)]
    return "\n".join(lines)


def _question(case: Case) -> dict[str, str]:
    return {name: getattr(case, name) for name in ("problem", "sizes", "dtype", "mode")}


def _ratio(name: str, interval: Interval | None) -> dict[str, float | None]:
    figures = (None, None, None) if interval is None else (interval.estimate, interval.lo, interval.hi)
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), figures))


def _standing(record: Record | None, place: int | None) -> dict[str, Any]:
    if record is None:
        return {"status": None}
    figures = {name: getattr(record, name) for name in ("speedup", "speedup_lo", "speedup_hi", "percent_of_sol")}
    return {"status": record.status.value, **figures, "place": place}


def _table(columns: list[Column]) -> list[str]:
    titles = [_plain(" ".join(column.title.split("\n"))).strip() for column in columns]
    rows = zip(*(map(_plain, column.cells) for column in columns))
    bars = ["---:" if column.align == "right" else "---" for column in columns]
    return ["| " + " | ".join(cells) + " |" for cells in [titles, bars, *rows]]


def _plain(text: str) -> str:
    """On one line, and nothing in it that Markdown or HTML would take for its own."""
    text = terminal.one_line(text)
    for letter_of_markup in "\\`*_<>|[]":
        text = text.replace(letter_of_markup, f"\\{letter_of_markup}")
    return text


def as_junit(compared: Compared, stopped: Sequence[Tripped], *, gated: bool) -> str:
    """The XML. What the gates stopped has failed; without gates, what is SLOWER or LOST; UNSURE is skipped."""
    root = ElementTree.Element("testsuites", name="kernel-referee compare")
    reasons = {(id(each.case), each.run, each.name): f"{each.gate}: {each.reason}" for each in stopped}
    suites = [(pair.case, pair.run, f"{pair.case.title}: {letter(pair.run)} against {letter(pair.reference)}", [
        (row.name, change.verdict, f"{change_text(change)} {change.reason}".strip())
        for row, change in pair.changes if change.reason != NOT_IN_BOTH and not row.is_baseline
    ]) for pair in compared.pairs]
    known = {(id(case), run, name) for case, run, _, cells in suites for name, _, _ in cells}
    for each in stopped:
        if (id(each.case), each.run, each.name) not in known:
            title = f"{each.case.title}: {letter(each.run)}"
            suites.append((each.case, each.run, title, [(each.name, "", each.reason)]))
    for case, run, title, cells in suites:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(title), tests=str(len(cells)))
        for name, verdict, words in cells:
            test = ElementTree.SubElement(suite, "testcase", classname=_xml(case.problem), name=_xml(name))
            reason = reasons.get((id(case), run, name))
            if reason is None and not gated and verdict in ("SLOWER", "LOST"):
                reason = f"{verdict}: {words}"
            if reason is not None:
                ElementTree.SubElement(test, "failure", message=_xml(reason))
            elif verdict == "UNSURE":
                ElementTree.SubElement(test, "skipped", message=_xml(f"UNSURE: {words}"))
            else:
                ElementTree.SubElement(test, "system-out").text = _xml(f"{verdict} {words}".strip())
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _xml(text: str) -> str:
    """Without what XML 1.0 has no place for."""
    return "".join(each for each in text if each in "\t\n" or each.isprintable())
