"""Devices side by side: one source on one line, whatever it is called, and never two kernels."""

from __future__ import annotations

from harness.report.html.cases import problems_of
from harness.report.html.chart_rows import side_by_side, speedups_beside
from harness.report.html.run_files import gather


def joined(folder, recorded, *runs):
    """The one problem of runs on as many devices, each given as its records."""
    for number, records in enumerate(runs):
        recorded.write_run(folder / str(number), "run", [(record, None) for record in records])
    (problem,) = problems_of(gather([folder]).runs, {})
    return problem


def speedups(problem):
    return {row.name: [entry and entry.record.speedup for entry in row.entries] for row in side_by_side(problem)}


def test_devices_are_set_beside_each_other_by_source(results):
    (problem,) = problems_of(gather([results]).runs, {})
    assert speedups(problem) == {"tiled": [4.5, 1.2], "wrong": [None, None]}


def test_two_sources_of_one_name_are_two_lines_told_apart(tmp_path, h200, recorded):
    one, other = h200(device_name="A", source_hash="1" * 16), h200(device_name="B", source_hash="2" * 16, speedup=2.0)
    problem = joined(tmp_path, recorded, [one], [other])
    assert speedups(problem) == {"tiled (111111)": [4.5, None], "tiled (222222)": [None, 2.0]}
    assert {row["name"] for row in speedups_beside(problem)} == {"tiled (111111)", "tiled (222222)"}


def test_a_source_that_was_renamed_stays_on_its_line(tmp_path, h200, recorded):
    one, other = (
        h200(device_name="A", source_hash="1" * 16),
        h200(device_name="B", source_hash="1" * 16, candidate="new"),
    )
    assert speedups(joined(tmp_path, recorded, [one], [other])) == {"tiled": [4.5, 4.5]}


def test_copies_of_one_source_are_joined_by_name_as_well(tmp_path, h200, recorded):
    def run(device):
        return [h200(device_name=device, source_hash="1" * 16, candidate=name) for name in ("tiled", "copy")]

    assert set(speedups(joined(tmp_path, recorded, run("A"), run("B")))) == {"tiled", "copy"}


def test_the_chart_names_device_and_sizes_and_leaves_the_baseline_out(results):
    (problem,) = problems_of(gather([results]).runs, {})
    found = {(row["name"], row["device"]) for row in speedups_beside(problem)}
    assert found == {("tiled", "NVIDIA H200 · M=4096"), ("tiled", "AMD EPYC · M=768")}


def test_a_device_over_another_baseline_is_on_the_line_and_not_in_the_chart(tmp_path, h200, recorded):
    one = h200(device_name="A", source_hash="1" * 16)
    other = h200(device_name="B", source_hash="1" * 16, baseline="expert", baseline_hash="e" * 16, speedup=1.5,
                 speedup_lo=1.4, speedup_hi=1.6)
    problem = joined(tmp_path, recorded, [one], [other])
    assert speedups(problem) == {"tiled": [4.5, 1.5]}
    assert [row["x"] for row in speedups_beside(problem)] == [4.5]
