"""Numbers and sentences as the terminal shows them."""

from __future__ import annotations

import io

import pytest

from harness.report import terminal


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0.0123, "0.0123 µs"),
        (9.2, "9.20 µs"),
        (152.0, "152 µs"),
        (721.3, "0.721 ms"),
        (2712.0, "2.71 ms"),
        (6.1e7, "61.0 s"),
    ],
)
def test_a_time_has_the_unit_a_person_reads(time_us, text):
    assert terminal.time_text(time_us) == text


def test_a_column_of_times_has_one_unit_and_no_zero_for_what_was_not_measured():
    assert terminal.time_column([721.3, None, 13412.0]) == ("ms", ["0.7213", "", "13.4120"])
    assert terminal.time_column([None, None]) == ("", ["", ""])


@pytest.mark.parametrize(
    ("ratio", "lo", "hi", "text"),
    [
        (1.0063, 1.0058, 1.0069, "1.006× [1.005, 1.007]"),
        (1.011, 1.009, 1.013, "1.011× [1.009, 1.013]"),
        (12.3456, 12.341, 12.349, "12.35× [12.34, 12.35]"),
        (0.0168, 0.01671, 0.01689, "0.0168× [0.0167, 0.0169]"),
        (1.314, 0.0001, 222018776060299.8, "1.314× [0.000, ∞]"),
        (1.5, None, None, "1.500×"),
        (None, None, None, ""),
    ],
)
def test_an_interval_is_rounded_outwards(ratio, lo, hi, text):
    assert terminal.ratio_text(ratio, lo, hi) == text


def test_small_is_never_shown_as_zero():
    assert [terminal.units_text(value) for value in (None, 0.0, 0.04, 6.3, 15503.0, 1e9)] == [
        "",
        "0",
        "<0.1",
        "6.3",
        "15,503",
        "1.0e+09",
    ]
    assert [terminal.percent_text(value) for value in (None, 0.01, 47.44)] == ["", "<0.1", "47.4"]


def test_other_texts():
    assert [terminal.seconds_text(value) for value in (0.21, 47.7, 125.4)] == ["0.2 s", "47.7 s", "2 min 5 s"]
    assert terminal.date_text("2026-05-01T12:30:05Z") == "2026-05-01 12:30 UTC"
    assert terminal.shortened("a_long_name_that_ends_in_v2", 12) == "a_long…in_v2"


def test_only_the_first_line_of_a_reason_is_wrapped_and_many_lines_are_counted():
    first = "nvcc found errors in this candidate's source that it could not pass over"
    lines = terminal.indented(first + "\n" + "\n".join(f"    line {n}" for n in range(14)), 40, most_lines=2)
    assert lines == [
        "  nvcc found errors in this candidate's",
        "    source that it could not pass over",
        "        line 0",
        "        line 1",
        "    … 12 more lines in the CSV",
    ]


def test_no_color_is_honoured(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.width_of(io.StringIO()) == 140
    assert terminal.color_wanted(Terminal()) and not terminal.color_wanted(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal.color_wanted(Terminal())
