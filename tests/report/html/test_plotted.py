"""The rows of the charts: known samples in, known figures out."""

from __future__ import annotations

import json
import math

import pytest

from harness.report.html import plotted
from harness.report.html.cases import problems_of
from harness.report.html.gathering import gather
from harness.report.html.samples import Samples, read_samples


@pytest.fixture
def case(results):
    return problems_of(gather([results]).runs, {})[0].cases[0]


@pytest.fixture
def read(tmp_path):
    def samples_of(body) -> Samples:
        (tmp_path / "one.jsonl").write_text(json.dumps({"candidate": "x", "samples": body}))
        return read_samples(tmp_path / "one.csv", pytest.fail)["x", "candidate"]

    return samples_of


def test_only_what_was_right_has_a_speedup_to_show(case):
    rows = plotted.speedups(case)
    assert [row["name"] for row in rows] == ["tiled", "eager"]
    assert (rows[0]["lo"], rows[0]["x"], rows[0]["hi"]) == (4.4, 4.5, 4.6)


def test_labels_stand_where_they_have_room(case):
    by_name = {row["name"]: row["side"] for row in plotted.speedups(case)}
    assert by_name == {"tiled": "above", "eager": "right"}


def test_launches_are_placed_in_seconds_where_those_were_recorded(read, recorded):
    unit, rows = plotted.drift(read(recorded.samples()), most=1000)
    mine = [row for row in rows if row["arm"] == "candidate"]
    assert unit == "seconds" and len(mine) == 16
    assert [row["at"] for row in mine[:3]] == [0.125, 0.375, 0.625]
    assert mine[-1]["off"] == pytest.approx(100 * (615 / 607.5 - 1))


def test_launches_are_placed_in_rounds_in_older_files(read, recorded):
    older = read(recorded.samples(players=[recorded.player(times=False)]))
    unit, rows = plotted.drift(older, most=1000)
    assert unit == "rounds" and max(row["at"] for row in rows) < 4
    assert plotted.clocks(older)[-1]["at"] == 4


def test_several_players_follow_each_other_on_the_axis(read, recorded):
    two = read(recorded.samples(players=[recorded.player(), recorded.player()]))
    places = [row["at"] for row in plotted.drift(two, most=1000)[1] if row["arm"] == "candidate"]
    assert places == sorted(places) and max(places) > 4
    assert [row["at"] for row in plotted.clocks(two)] == [0.5 * number for number in range(1, 17)]


def test_a_dropped_round_keeps_its_place_and_lends_its_clock_to_no_launch(read, recorded):
    body = recorded.player(rounds=4)
    body["read_kept"][2:4] = [False, False]
    for name in ("candidate_us", "baseline_us"):
        body[name] = body[name][:4] + body[name][8:]
    body["log_ratios"] = body["log_ratios"][:3]
    one = read(recorded.samples(players=[body]))
    places = [row["at"] for row in plotted.drift(one, most=1000)[1] if row["arm"] == "candidate"]
    assert len(places) == 12 and [row["kept"] for row in plotted.clocks(one)].count(False) == 2
    assert 1950 not in [row["sm_mhz"] for row in plotted.against_clock(one, most=1000)]


def test_time_against_clock_sets_each_segments_median_beside_the_clock_read_after_it(read, recorded):
    rows = plotted.against_clock(read(recorded.samples()), most=1000)
    assert [row["sm_mhz"] for row in rows] == [1980, 1980, 1950, 1950, 1920, 1920, 1890, 1890]
    assert rows[0]["us"] == 600.5


def test_a_device_without_a_clock_has_no_clock_chart(read, recorded):
    none = read(recorded.samples(players=[recorded.player(clocks=[None] * 8)]))
    assert plotted.clocks(none) == [] and plotted.against_clock(none, most=100) == []
    assert plotted.drift(none, most=100)[1]


def test_shares_of_a_distribution_come_to_a_hundred_per_cent_outliers_included(read, recorded):
    body = recorded.player()
    body["candidate_us"][3] = 1e6
    rows = plotted.distribution(read(recorded.samples(players=[body])))
    for arm in ("candidate", "eager"):
        assert sum(row["share"] for row in rows if row["arm"] == arm) == pytest.approx(100)
    assert max(row["hi"] for row in rows) < 100  # the outlier is in the last bar, and does not flatten the others


def test_launches_that_all_took_the_same_time_have_a_distribution_too(read, recorded):
    body = recorded.player()
    body["candidate_us"] = body["baseline_us"] = [5.0] * 16
    assert sum(row["launches"] for row in plotted.distribution(read(recorded.samples(players=[body])))) == 32


def test_each_round_has_its_speedup_and_the_whole_its_interval(case):
    rows = plotted.rounds(case.best, most=1000)
    assert [row["kind"] for row in rows] == ["round"] * 4 + ["interval"]
    assert rows[0]["x"] == pytest.approx(math.exp(1.5)) and rows[-1]["lo"] == 4.4


def test_each_family_is_shown_where_it_came_nearest_to_its_bound(read, recorded):
    rows = plotted.errors(read(recorded.samples()))
    assert [(row["family"], row["what"], row["u"]) for row in rows[:3]] == [
        ("as given", "candidate", 3.0), ("as given", "eager", 2.0), ("as given", "allowed", 4.0),
    ]
    assert rows[0]["sizes"] == "M=31" and len(rows) == 6


def test_an_error_that_is_no_number_is_the_worst_of_its_family(read, recorded):
    errors = recorded.samples()["errors"]
    errors[0]["max_u"] = None
    assert [row["what"] for row in plotted.errors(read(recorded.samples(errors=errors)))][:2] == ["eager", "allowed"]


def test_history_numbers_the_versions_of_a_source(case):
    rows = plotted.history(case.best)
    assert [(row["x"], row["version"]) for row in rows] == [(3.0, "source 1"), (4.5, "source 2")]


def test_thinning_keeps_both_ends_and_the_count():
    rows = [{"n": number} for number in range(1000)]
    thin = plotted.thinned(rows, 10)
    assert len(thin) == 10 and thin[0]["n"] == 0 and thin[-1]["n"] == 999
    assert plotted.thinned(rows, 0) == [] and plotted.thinned(rows[:3], 10) == rows[:3]


def test_nothing_recorded_is_nothing_plotted():
    nothing = Samples()
    assert plotted.drift(nothing, 100) == ("rounds", []) and plotted.clocks(nothing) == []
    assert plotted.distribution(nothing) == [] and plotted.errors(nothing) == []
