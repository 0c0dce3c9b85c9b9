"""What is known of an entry and of its run, as pairs."""

from __future__ import annotations

from harness.report.html import tables
from harness.report.html.cases import problems_of
from harness.report.html.run_files import gather


def test_facts_that_were_not_measured_are_left_out(make_record):
    known = dict(tables.facts(make_record()))
    assert known == {}


def test_facts_carry_their_units(h200):
    known = {what: value for _, rows in tables.facts(h200(registers=32, spills=0, watts=400.0)) for what, value in rows}
    assert known["one call, mean of the middle half"] == "0.600 ms" and known["power"] == "400.0 W" and known["registers"] == "32"


def test_what_a_run_was_measured_with_is_told_once(results):
    case = problems_of(gather([results]).runs, {})[0].cases[0]
    known = dict(tables.method(case))
    assert known["copy bandwidth"] == "4,000 GB/s" and known["file"].endswith("20260508T090000Z.csv")
    assert "driver" not in known


def test_older_runs_are_listed_newest_first(results):
    (tiled,) = [each for each in problems_of(gather([results]).runs, {})[0].cases[0].entries if each.label == "tiled"]
    assert [(run[:10], ratio[:5]) for run, _, ratio, _, _ in tables.older(tiled)] == [
        ("2026-05-08", "4.500"),
        ("2026-05-01", "3.000"),
    ]
