"""JSON lines read back: typed where they are there, empty where they are not, and never in the way."""

from __future__ import annotations

import json

import pytest
from shipped import shipped

from harness.report.html.raw_samples import read_samples



def read(tmp_path, *lines: str):
    (tmp_path / "run.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    notes: list[str] = []
    return read_samples(tmp_path / "run.csv", notes.append), notes


def line(body, name="tiled", role="candidate", run_id="r") -> str:
    return json.dumps({"run_id": run_id, "candidate": name, "role": role, "samples": body})


def test_everything_that_was_recorded_comes_back(tmp_path, recorded):
    found, notes = read(tmp_path, line(recorded.samples()))
    one = found["r", "tiled", "candidate"]
    assert notes == []
    assert len(one.players[0].candidate_us) == 16 and one.players[0].readings[2].sm_mhz == 1950
    assert (one.players[0].readings[0].at_s, one.players[0].readings[0].kept) == (0.5, True)
    assert one.build.kernels[0].registers == 32 and one.kernels[0].whose == "own"
    assert one.errors[1].share == 0.75


def test_a_file_from_before_a_part_was_recorded_lacks_that_part_only(tmp_path, recorded):
    body = recorded.samples(players=[recorded.worker(times=False)])
    del body["build"]
    one = read(tmp_path, line(body))[0]["r", "tiled", "candidate"]
    assert one.build is None and one.players[0].readings[0].at_s is None and one.players[0].readings[0].kept is None


def test_a_candidate_named_like_a_baseline_keeps_its_own(tmp_path, recorded):
    found, _ = read(tmp_path, line({}, "eager", "baseline"), line(recorded.samples(), "eager"))
    assert not found["r", "eager", "baseline"].players and found["r", "eager", "candidate"].players


@pytest.mark.parametrize("broken", ["{", "[]", '"text"', '{"candidate": 3}', "[" * 100_000], ids=range(5))
def test_a_broken_line_costs_itself_and_a_note(tmp_path, broken):
    found, notes = read(tmp_path, line({}), broken, line({}, "other"))
    assert {name for _, name, _ in found} == {"tiled", "other"}
    (note,) = notes
    assert "run.jsonl:2" in note


@pytest.mark.parametrize("wrong", [None, 3, "text", [], {"players": 3, "errors": {}, "kernels": "x", "build": []}])
def test_samples_of_another_shape_are_empty(tmp_path, wrong):
    one = read(tmp_path, line(wrong))[0]["r", "tiled", "candidate"]
    assert (one.players, one.errors, one.kernels, one.build) == ((), (), (), None)


def test_what_is_no_finite_number_is_left_out(tmp_path):
    body = {"players": [{"candidate_us": [1.0, None, "2", True, 1e999, 3], "telemetry": [{"sm_mhz": "fast"}]}]}
    (one,) = read(tmp_path, line(body))[0]["r", "tiled", "candidate"].players
    assert one.candidate_us == (1.0, 3.0) and one.readings[0].sm_mhz is None


def test_no_file_is_no_samples(tmp_path):
    assert read_samples(tmp_path / "none.csv", lambda text: pytest.fail(text)) == {}


@pytest.mark.parametrize(
    "path", shipped("results/*/*/*.csv"), ids=lambda path: "/".join(path.parts[-3:-1])
)
def test_the_results_of_this_repository_are_read_without_a_note(path):
    found = read_samples(path, lambda text: pytest.fail(text))
    assert found and any(each.players for each in found.values())
