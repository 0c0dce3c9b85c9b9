"""The rows of the charts: known samples in, known figures out."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from harness.report.html import chart_rows, tables
from harness.report.html.cases import problems_of
from harness.report.html.raw_samples import Samples, read_samples
from harness.report.html.run_files import gather


@pytest.fixture
def case(results):
    return problems_of(gather([results]).runs, {})[0].cases[0]


@pytest.fixture
def read(tmp_path):
    def samples_of(body) -> Samples:
        (tmp_path / "one.jsonl").write_text(json.dumps({"run_id": "r", "candidate": "x", "samples": body}))
        return read_samples(tmp_path / "one.csv", pytest.fail)["r", "x", "candidate"]

    return samples_of


def test_only_what_was_right_has_a_speedup_to_show(case):
    rows = chart_rows.speedups(case)
    assert [row["name"] for row in rows] == ["tiled", "eager"]
    assert (rows[0]["lo"], rows[0]["x"], rows[0]["hi"]) == (4.4, 4.5, 4.6)


def test_labels_stand_where_they_have_room(case):
    by_name = {row["name"]: row["side"] for row in chart_rows.speedups(case)}
    assert by_name == {"tiled": "above", "eager": "right"}


def test_each_round_has_its_speedup_and_the_whole_its_interval(case):
    rows = chart_rows.rounds(case.best, most=1000)
    assert [row["kind"] for row in rows] == ["round"] * 4 + ["interval"]
    assert rows[0]["x"] == pytest.approx(math.exp(1.5)) and rows[-1]["lo"] == 4.4


def test_the_rounds_are_those_that_the_speedup_comes_from(case):
    """Where eager was timed in the candidate's process too, over that one, unless the two are apart."""
    (worker,) = case.best.samples.players
    for added, shown in ((0.0005, True), (1.0, False)):
        inside = tuple(ratio + added for ratio in worker.log_ratios)
        timed = replace(case.best.samples, players=(replace(worker, in_worker_log_ratios=inside),))
        rows = chart_rows.rounds(replace(case.best, samples=timed), most=1000)
        expected = inside if shown else worker.log_ratios
        assert [row["x"] for row in rows[:-1]] == pytest.approx([math.exp(ratio) for ratio in expected])


def test_each_family_is_shown_where_it_came_nearest_to_its_bound(read, recorded):
    rows = chart_rows.errors(read(recorded.samples()))
    assert [(row["family"], row["what"], row["u"]) for row in rows[:3]] == [
        ("as given", "candidate", 3.0),
        ("as given", "eager", 2.0),
        ("as given", "allowed", 4.0),
    ]
    assert rows[0]["sizes"] == "M=31" and len(rows) == 6


def test_an_error_that_is_no_number_is_the_worst_of_its_family(read, recorded):
    errors = recorded.samples()["errors"]
    errors[0]["max_u"] = None
    assert [row["what"] for row in chart_rows.errors(read(recorded.samples(errors=errors)))][:2] == ["eager", "allowed"]


def test_an_interval_that_dwarfs_its_estimates_is_cut_in_the_history_and_kept_in_its_text(tmp_path, h200, recorded):
    for day, hi in (("01", 4.6), ("02", 900.0)):
        row = h200(utc=f"2026-05-{day}T00:00:00Z", speedup_hi=hi)
        recorded.write_run(tmp_path, day, [(row, None)])
    rows = chart_rows.history(problems_of(gather([tmp_path]).runs, {})[0].cases[0].entries[0])
    assert [row["hi"] for row in rows] == [4.6, 9.0] and "900" in rows[1]["text"]


def test_history_numbers_the_versions_of_a_source(case):
    rows = chart_rows.history(case.best)
    assert [(row["x"], row["version"]) for row in rows] == [(3.0, "source 1"), (4.5, "source 2")]


def test_thinning_keeps_both_ends_and_the_count():
    rows = [{"n": number} for number in range(1000)]
    thin = chart_rows.thinned(rows, 10)
    assert len(thin) == 10 and thin[0]["n"] == 0 and thin[-1]["n"] == 999
    assert chart_rows.thinned(rows, 0) == [] and chart_rows.thinned(rows[:3], 10) == rows[:3]


def test_nothing_recorded_is_nothing_plotted():
    assert chart_rows.errors(Samples()) == []


def test_history_has_the_speedups_over_one_baseline_alone(tmp_path, h200, recorded):
    over_file = {"baseline": "expert", "baseline_hash": "e" * 16, "eager_speedup": 4.5}
    for day, changes in (("01", {}), ("02", {**over_file, "speedup": 1.5, "speedup_lo": 1.4, "speedup_hi": 1.6})):
        recorded.write_run(tmp_path, day, [(h200(utc=f"2026-05-{day}T00:00:00Z", **changes), None)])
    (entry,) = problems_of(gather([tmp_path]).runs, {})[0].cases[0].entries
    assert [row["x"] for row in chart_rows.history(entry)] == [1.5]
    assert [row[2].split(" over ")[1] for row in tables.older(entry)] == ["expert", "eager"]


def test_rounds_of_a_row_over_a_file_have_the_interval_over_eager_that_they_gave(case):
    over_file = {"baseline": "expert", "baseline_hash": "e" * 16, "speedup": 1.5, "speedup_lo": 1.4, "speedup_hi": 1.6,
                 "eager_speedup": 4.5, "eager_speedup_lo": 4.4, "eager_speedup_hi": 4.6}
    entry = replace(case.best, record=replace(case.best.record, **over_file))
    assert chart_rows.rounds(entry, most=1000)[-1] == {"kind": "interval", "x": 4.5, "lo": 4.4, "hi": 4.6}
