"""`run.py selftest` to its end: eager against itself and waits of a known length, on this machine's CPU."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def told(new_bench):
    bench = new_bench("selftest")
    end = bench.run("selftest", "--device", "cpu", "--config", "quick", "--json", "--out", bench.folder / "records")
    assert end.code in (0, 3), end.err[-2000:]
    return end.code, json.loads(end.out)


def test_each_shipped_problem_has_eager_against_itself_in_a_row(told):
    rows = told[1]["records"]
    assert sorted(row["problem"] for row in rows) == ["matmul_transposed_a", "tril_matmul", "tril_matmul_backward"]
    assert {row["candidate"] for row in rows} == {"eager"}


def test_waits_are_once_twice_and_three_times_as_long(told):
    waits = told[1]["waits"]
    assert [wait["spin"] for wait in waits] == [200_000, 2_000_000]
    for wait in waits:
        by_name = {row["candidate"]: row for row in wait["records"]}
        assert {"eager", "itself", "twice", "thrice"} <= set(by_name)
        is_timed = all(by_name[name]["status"] == "ok" for name in ("itself", "twice", "thrice"))
        assert (wait["step_us"] is not None) == is_timed, "what a busy machine left unsure adds up to nothing"
        assert not is_timed or wait["step_us"] == pytest.approx(wait["asked_us"], rel=0.5)


def test_it_ends_in_sentences_with_what_they_come_to_and_a_code_that_agrees(told):
    code, body = told
    text = "\n".join(body["sentences"])
    assert "A row took" in text
    said = ("times the same against itself: at most", "intervals hold 1", "called FASTER or SLOWER")
    # Another load may leave no row with a time.
    assert all(each in text for each in said) or "could not be measured against itself" in text
    assert (code == 0) == body["as_expected"]
    assert ("are real" in text) != ("too far to rank kernels by" in text or "no number of this device" in text)
    assert body["clocks"] and body["seconds_per_row"] > 0
