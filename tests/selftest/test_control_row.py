"""What is said of eager against itself: how far the numbers of a device can be trusted."""

from __future__ import annotations

import pytest

from harness.results.record import Record
from harness.selftest import control_row


def eager(lo: float | None, hi: float | None, **changes) -> Record:
    parts = {"status": "ok", "speedup": 1.0, "speedup_lo": lo, "speedup_hi": hi, "call": "SAME", "time_us": 2700.0}
    return Record(
        run_id="r", utc="2026-01-01T00:00:00Z", problem="tril_matmul", sizes="M=4096", dtype="float32",
        candidate="eager", **{"role": "baseline", **parts, **changes},
    )


FAILED = eager(None, None, status="unsure", reason_code="throttled", reason="it slowed down", speedup=None)


@pytest.mark.parametrize(
    ("records", "trusted", "said"),
    [
        ([eager(0.999, 1.001), eager(0.998, 1.0005)], True, "above 0.20 % for calls from 1.00 ms on are real"),
        ([eager(0.97, 0.99)], True, "above 3.0 % for calls from 1.00 ms on are real"),
        (
            [eager(0.999, 1.001), eager(0.98, 1.01, time_us=20.0)], True,
            "above 0.10 % for calls from 1.00 ms on and 3.4 % for calls below 50.0 µs are real for a candidate of one kernel; what",
        ),
        ([eager(0.98, 1.01, time_us=20.0, device_kind="cpu")], True, "above 2.0 % for calls below 50.0 µs are real"),
        ([eager(0.93, 1.01, time_us=20.0)], False, "off itself by 7.0 %"),
        ([eager(0.93, 1.01, time_us=20.0, role="candidate")], True, "above 7.0 % for calls below 50.0 µs are real"),
        ([eager(0.93, 1.01, role="candidate")], False, "off itself by 7.0 %"),
        ([eager(0.999, 1.001), eager(0.9, 1.02)], False, "off itself by 10.0 %"),
        ([eager(0.4, 2.9)], False, "off itself by 190 %"),
        ([eager(0.999, 1.001), FAILED], False, "could not be measured against itself"),
        ([], False, "could not be measured against itself"),
    ],
)
def test_the_last_sentence_says_how_far_numbers_can_be_trusted(records, trusted, said):
    assert control_row.can_be_trusted(records) is trusted
    assert said in control_row.sentences(records)[-1]
    measured = all(record.speedup is not None for record in records) and bool(records)
    assert len(control_row.sentences(records)) == len(records) + (2 if measured else 1)


def test_eager_in_more_processes_makes_smaller_differences_real():
    said = control_row.sentences([eager(0.999, 1.001, time_us=20.0)], eager_players=3)[-1]
    assert "above 2.8 % for calls below 50.0 µs are real" in said


def test_what_they_come_to_says_how_little_so_few_tell():
    records = [eager(0.999, 1.001), eager(1.004, 1.006, speedup=1.005, call="FASTER")]
    assert control_row.sentences(records)[2] == (
        "2 times the same against itself: at most 0.50 % off and 0.50 % apart for calls from 1.00 ms on (2); called FASTER "
        "or SLOWER 1 times (so few tries cannot tell that from 97 %), and 1 of 2 intervals hold 1."
    )


def test_long_calls_and_short_ones_scatter_each_for_themselves():
    records = [
        eager(0.98, 1.01, speedup=0.99, time_us=16.0), eager(0.999, 1.001, speedup=1.0001),
        eager(0.999, 1.001, speedup=0.9998), eager(0.99, 1.03, speedup=1.02, time_us=16.0),
        eager(0.998, 1.004, speedup=1.002, time_us=360.0),
    ]
    together = control_row.sentences(records)[5]
    assert together.startswith(
        "5 times the same against itself: at most 0.020 % off and 0.030 % apart for calls from 1.00 ms on (2), 0.20 % off "
        "for calls from 50.0 µs to 1.00 ms (1), 2.0 % off and 3.0 % apart for calls below 50.0 µs (2); called FASTER or "
        "SLOWER 0 times"
    )
    assert together.endswith("and 5 of 5 intervals hold 1.")


def test_each_control_has_its_line_with_ratio_and_interval():
    first, second, _ = control_row.sentences([eager(0.999, 1.001), FAILED])
    assert first == "tril_matmul (M=4096): eager over itself 1.000× [0.999, 1.001] SAME, 2.70 ms"
    assert second == "tril_matmul (M=4096): eager over itself: unsure: it slowed down"
