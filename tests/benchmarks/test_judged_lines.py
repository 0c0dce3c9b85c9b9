"""Lines of JSON that survive a kill, answer what is still to be done, and merge."""

from __future__ import annotations

import json

import pytest

from harness.model.errors import InputError


@pytest.fixture(scope="module")
def lines(benchmark_named):
    return benchmark_named("judged_lines")


def line(problem="1/1", candidate="honest", status="ok", utc="2026-01-01T00:00:00", **more):
    return {"problem": problem, "candidate": candidate, "status": status, "utc": utc, **more}


def test_what_a_kill_left_of_a_line_costs_that_line_alone(lines, tmp_path):
    path = tmp_path / "sweep.jsonl"
    whole, next_one = line(), line(candidate="zeros", status="incorrect")
    path.write_text(json.dumps(whole) + "\n" + json.dumps(line(problem="1/2"))[:30])
    file = lines.LineFile(path)
    file.append(next_one)
    file.close()
    assert lines.read_lines([path]) == [whole, next_one]


def test_of_two_lines_on_one_question_the_later_counts_whichever_file_it_is_in(lines, tmp_path):
    early, late = line(status="unsure"), line(utc="2026-01-02T00:00:00")
    capped = line(memory_gb=24.0)
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(json.dumps(late) + "\n")
    second.write_text(json.dumps(early) + "\n" + json.dumps(capped) + "\n")
    assert lines.read_lines([first, second]) == [late, capped]
    assert lines.read_lines([second, first]) == [late, capped]


def test_other_json_is_no_line(lines, tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('[1]\n{"problem": "1/1"}\n\n')
    assert lines.read_lines([path]) == []


def test_a_file_that_cannot_be_is_refused_in_words(lines, tmp_path):
    with pytest.raises(InputError, match="nowhere.jsonl: cannot be read"):
        lines.read_lines([tmp_path / "nowhere.jsonl"])
    with pytest.raises(InputError, match="cannot be written"):
        lines.LineFile(tmp_path / "no folder" / "sweep.jsonl")


def test_lines_of_each_device_can_be_kept_apart(lines, tmp_path):
    path, other = tmp_path / "sweep.jsonl", line(utc="2026-01-02T00:00:00", device_name="another GPU")
    path.write_text(json.dumps(line()) + "\n" + json.dumps(other) + "\n")
    assert lines.read_lines([path]) == [other]
    assert lines.read_lines([path], of_each_device=True) == [line(), other]
