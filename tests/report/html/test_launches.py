"""Single launches placed in time, beside the clock and in bars: known samples in, known figures out."""

from __future__ import annotations

import json

import pytest

from harness.report.html import launches
from harness.report.html.raw_samples import Samples, read_samples


@pytest.fixture
def read(tmp_path):
    def samples_of(body) -> Samples:
        (tmp_path / "one.jsonl").write_text(json.dumps({"run_id": "r", "candidate": "x", "samples": body}))
        return read_samples(tmp_path / "one.csv", pytest.fail)["r", "x", "candidate"]

    return samples_of


def test_launches_are_placed_in_seconds(read, recorded):
    rows = launches.drift(read(recorded.samples()), most=1000)
    mine = [row for row in rows if row["arm"] == "candidate"]
    assert len(mine) == 16
    assert [row["at"] for row in mine[:3]] == [0.125, 0.375, 0.625]
    assert mine[-1]["off"] == pytest.approx(100 * (615 / 607.5 - 1))


def test_beside_eager_in_the_worker_the_judges_own_stands_once_in_each_round(read, recorded):
    body = recorded.worker()
    rounds = len(body["log_ratios"])
    body |= {"inside_log_ratios": body["log_ratios"], "baseline_us": [2000.0] * 3 * rounds}
    rows = launches.drift(read(recorded.samples(players=[body])), most=1000)
    places = [row["at"] for row in rows if row["arm"] == "eager"]
    assert places == pytest.approx([(number + 0.5) / 3 for number in range(3 * rounds)])


def once_a_round(body):
    """As it is written now, with one reading after each round."""
    return body | {name: body[name][1::2] for name in ("telemetry", "read_at_s", "read_kept")}


def test_with_one_reading_after_each_round_launches_are_spread_over_it(read, recorded):
    older, body = recorded.worker(), once_a_round(recorded.worker())
    rows = launches.drift(read(recorded.samples(players=[body])), most=1000)
    assert rows and rows == launches.drift(read(recorded.samples(players=[older])), most=1000)
    assert [row["at"] for row in launches.clocks(read(recorded.samples(players=[body])))] == [1.0, 2.0, 3.0, 4.0]
    beside = launches.against_clock(read(recorded.samples(players=[body])), most=1000)
    assert [(row["sm_mhz"], row["us"]) for row in beside] == [
        (1980, 601.5), (1950, 605.5), (1920, 609.5), (1890, 613.5)
    ]


def test_a_dropped_round_with_one_reading_keeps_its_place_too(read, recorded):
    body = once_a_round(recorded.worker(rounds=4))
    body["read_kept"][1] = False
    for name in ("candidate_us", "baseline_us"):
        body[name] = body[name][:4] + body[name][8:]
    body["log_ratios"] = body["log_ratios"][:3]
    one = read(recorded.samples(players=[body]))
    places = [row["at"] for row in launches.drift(one, most=1000) if row["arm"] == "candidate"]
    assert len(places) == 12 and [row["at"] for row in launches.clocks(one)] == [1.0, 2.0, 3.0, 4.0]
    assert 1950 not in [row["sm_mhz"] for row in launches.against_clock(one, most=1000)]


def test_a_worker_without_launches_or_without_the_times_of_its_readings_is_passed_over(read, recorded):
    empty, body = recorded.worker(), recorded.worker()
    empty["candidate_us"] = []
    assert len(launches.against_clock(read(recorded.samples(players=[empty, body])), most=1000)) == 8
    one_alone = launches.drift(read(recorded.samples(players=[body])), most=1000)
    untimed = recorded.worker()
    untimed["read_at_s"][2] = None
    beside = read(recorded.samples(players=[untimed, recorded.worker(times=False), body]))
    assert [row["at"] for row in launches.drift(beside, most=1000)] == [row["at"] for row in one_alone]
    assert launches.clocks(beside)[-1]["at"] == 4 and len(launches.against_clock(beside, most=1000)) == 8


def test_several_workers_follow_each_other_on_the_axis(read, recorded):
    two = read(recorded.samples(players=[recorded.worker(), recorded.worker()]))
    places = [row["at"] for row in launches.drift(two, most=1000) if row["arm"] == "candidate"]
    assert places == sorted(places) and max(places) > 4
    assert [row["at"] for row in launches.clocks(two)] == [0.5 * number for number in range(1, 17)]


def test_a_dropped_round_keeps_its_place_and_lends_its_clock_to_no_launch(read, recorded):
    body = recorded.worker(rounds=4)
    body["read_kept"][2:4] = [False, False]
    for name in ("candidate_us", "baseline_us"):
        body[name] = body[name][:4] + body[name][8:]
    body["log_ratios"] = body["log_ratios"][:3]
    one = read(recorded.samples(players=[body]))
    places = [row["at"] for row in launches.drift(one, most=1000) if row["arm"] == "candidate"]
    assert len(places) == 12 and [row["kept"] for row in launches.clocks(one)].count(False) == 2
    assert 1950 not in [row["sm_mhz"] for row in launches.against_clock(one, most=1000)]


def test_time_against_clock_sets_each_segments_median_beside_the_clock_read_after_it(read, recorded):
    rows = launches.against_clock(read(recorded.samples()), most=1000)
    assert [row["sm_mhz"] for row in rows] == [1980, 1980, 1950, 1950, 1920, 1920, 1890, 1890]
    assert rows[0]["us"] == 600.5


def test_a_device_without_a_clock_has_no_clock_chart(read, recorded):
    none = read(recorded.samples(players=[recorded.worker(clocks=[None] * 8)]))
    assert launches.clocks(none) == [] and launches.against_clock(none, most=100) == []
    assert launches.drift(none, most=100)


def test_shares_of_a_distribution_come_to_a_hundred_per_cent_outliers_included(read, recorded):
    body = recorded.worker()
    body["candidate_us"][3] = 1e6
    rows = launches.distribution(read(recorded.samples(players=[body])))
    for arm in ("candidate", "eager"):
        assert sum(row["share"] for row in rows if row["arm"] == arm) == pytest.approx(100)
    assert max(row["hi"] for row in rows) < 100  # the outlier is in the last bar, and does not flatten the others


def test_launches_that_all_took_the_same_time_have_a_distribution_too(read, recorded):
    body = recorded.worker()
    body["candidate_us"] = body["baseline_us"] = [5.0] * 16
    assert sum(row["launches"] for row in launches.distribution(read(recorded.samples(players=[body])))) == 32


def test_nothing_recorded_is_nothing_plotted():
    nothing = Samples()
    assert launches.drift(nothing, 100) == [] and launches.clocks(nothing) == []
    assert launches.distribution(nothing) == [] and launches.against_clock(nothing, 100) == []
