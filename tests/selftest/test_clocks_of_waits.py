"""What is said of the three clocks: how far apart they are, and where that is more than chance."""

from __future__ import annotations

import json

from harness.results.record import Record
from harness.selftest.known_time import Seen, clock_sentences, clocks_of
from harness.timing.three_clocks import ThreeClocks


def row(name: str, **changes) -> Record:
    return Record(
        run_id="r", utc="2026-01-01T00:00:00Z", problem="spin", sizes="SPIN=1", dtype="float32", candidate=name,
        **{"device_kind": "cuda", "status": "ok", "time_us": 2000.0, **changes},
    )


def test_each_clock_is_said_to_be_as_far_off_as_it_is_at_most():
    seen = [
        Seen(row("itself"), ThreeClocks(2000.0, 2020.0, 2010.0)), Seen(row("twice"), ThreeClocks(4000.0, 4010.0, 3990.0)),
    ]
    assert clock_sentences(seen) == [
        "Other clocks beside the events: the profiler's at most 1.0 % (20.0 µs) off in 2 calls, the judge's own at most "
        "0.50 % (10.0 µs) off in 2 calls."
    ]


def test_where_they_disagree_it_says_of_which_call():
    seen = [Seen(row("itself"), ThreeClocks(2000.0, None, 3000.0))]
    first, second = clock_sentences(seen)
    assert "the profiler" not in first and "50 % (1.00 ms) off in 1 call." in first
    assert second.startswith("itself (spin, SPIN=1): the clocks disagree") and "3000.0 µs" in second


def test_calls_that_one_clock_saw_say_nothing():
    assert clock_sentences([]) == ["No call was seen by a second clock."]


def test_they_are_read_from_the_samples_of_the_rows_that_are_ok(tmp_path):
    rows = [row("itself"), row("twice"), row("thrice", status="unsure", reason_code="noisy", reason="busy", time_us=None)]
    clocks = [{"events_us": 2000.0, "profiler_us": 2010.0, "wall_us": None}, {"events_us": 4000.0, "profiler_us": None,
              "wall_us": None}, {"events_us": 1.0, "profiler_us": 2.0, "wall_us": 3.0}]
    lines = [
        json.dumps({"run_id": "r", "candidate": each.candidate, "role": each.role, "samples": {"clocks": told}})
        for each, told in zip(rows, clocks)
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [(each.record.candidate, each.clocks.traced_us) for each in clocks_of(rows, tmp_path / "run.csv")] == [
        ("itself", 2010.0)
    ]
