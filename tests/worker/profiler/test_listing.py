"""From the profiler's events to names and times."""

from __future__ import annotations

from harness.worker.profiler import Span, own_times_us


def span(name, start_ns, duration_ns, thread=1):
    return Span(start_ns, duration_ns, name, thread)


def test_each_moment_counts_for_the_innermost_event_of_its_thread():
    spans = [
        span("outer", 0, 10_000), span("inner", 2_000, 5_000), span("inmost", 3_000, 1_000),
        span("next", 10_000, 2_000), span("outer", 0, 4_000, thread=2),
    ]
    assert own_times_us(spans) == {"outer": 9.0, "inner": 4.0, "inmost": 1.0, "next": 2.0}


def test_an_operator_right_inside_a_mark_counts_for_the_mark_and_elsewhere_for_itself():
    spans = [
        span("mark", 0, 10_000), span("mine::f", 1_000, 6_000), span("aten::mm", 2_000, 1_000),
        span("mine::f", 4_000, 1_000), span("mine::f", 20_000, 3_000), span("aten::mm", 30_000, 5_000),
        span("mine::f", 31_000, 1_000),
    ]
    found = own_times_us(spans, "mark", {"mine::f"})
    assert found == {"mark": 9.0, "aten::mm": 5.0, "mine::f": 4.0}
