"""Roofs from what was measured and from the datasheet, every timed entry below them."""

from __future__ import annotations

import pytest

from harness.report.html.cases import problems_of
from harness.report.html.roofline import MEMORY_ROOF, rooflines
from harness.report.html.run_files import gather


def lines(results):
    return rooflines(problems_of(gather([results]).runs, {}))


def test_the_bandwidth_roof_runs_at_the_measured_copy_rate_up_to_the_highest_peak(results):
    rows = lines(results)["NVIDIA H200"]
    start, end = [row for row in rows if row["kind"] == "roof" and row["name"] == MEMORY_ROOF]
    assert start["y"] == pytest.approx(start["x"] * 4.0) and end["y"] == pytest.approx(989.5)


def test_a_point_is_useful_work_over_time_at_useful_flop_per_byte(results):
    (point,) = [row for row in lines(results)["NVIDIA H200"] if row["kind"] == "point" and row["name"] == "tiled"]
    assert (point["x"], point["y"]) == (pytest.approx(200), pytest.approx(2e10 / 600e-6 / 1e12))


def test_what_was_wrong_has_no_point(results):
    assert "wrong" not in [row.get("name") for row in lines(results)["NVIDIA H200"]]


def test_a_device_without_known_peaks_has_its_measured_roof_alone(results):
    roofs = {row["name"] for row in lines(results)["AMD EPYC"] if row["kind"] == "roof"}
    assert roofs == {MEMORY_ROOF}


def test_names_of_entries_that_lie_together_are_pushed_apart(tmp_path, h200, recorded):
    rows = [(h200(candidate=f"k{number}", time_us=600.0 + number), None) for number in range(6)]
    recorded.write_run(tmp_path, "run", rows)
    labels = sorted(row["y2"] for row in lines(tmp_path)["NVIDIA H200"] if row["kind"] == "label")
    assert len(labels) == 6 and all(above / below > 1.05 for below, above in zip(labels, labels[1:]))


def test_a_problem_that_names_no_useful_work_has_no_roofline(tmp_path, h200, recorded):
    recorded.write_run(tmp_path, "run", [(h200(useful_flops=None), None), (h200(useful_bytes=0.0), None)])
    assert lines(tmp_path) == {}
