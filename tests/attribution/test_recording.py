"""From raw records to timed windows: what is not whole or not in its order proves nothing."""

from __future__ import annotations

import pytest

from harness.attribution.kernel_names import is_copy_with_host
from harness.attribution.recording import Call, Ran, Recording, Unproven, read_records, windows
from harness.protocol.markers import PLAIN, Markers, drawn, renamed
from harness.protocol.recorder import COPY, FILL, FROM_HOST, GRAPH_LAUNCH, KERNEL, LAUNCH, RECORD, TO_HOST

MARKERS = Markers("k0", "k1")
LAUNCHED = ("await_word", "apply_mask", "write_over", "add_up", "step_aside", "k0", "tile", "k1")


def recorded(*names, kinds=None):
    """Kernels of 10 µs one after the other, each with its call."""
    ran = [
        Ran(kinds.get(name, KERNEL) if kinds else KERNEL, number, 10_000 * number, 10_000 * (number + 1), name)
        for number, name in enumerate(names, 1)
    ]
    return Recording(ran, [Call(each.correlation) for each in ran if each.kind == KERNEL])


def names(spans):
    return [span.name for span in spans]


def refused(recording, count=1):
    with pytest.raises(Unproven) as caught:
        windows(recording, MARKERS, count)
    return str(caught.value)


def test_a_window_holds_what_ran_between_its_markers():
    one, two = windows(recorded(*LAUNCHED, *LAUNCHED), MARKERS, 2)
    assert (names(one.spans), names(two.spans), one.open_us, one.late) == (["tile"], ["tile"], 10.0, ())


def test_the_streams_that_had_a_part_in_a_window_are_counted_beside_that_of_the_markers():
    whole = recorded(*LAUNCHED[:-1], "other", "third", "k1", kinds={"third": FILL})
    streams = {"tile": 7, "other": 13, "third": 14}
    outside = {"await_word": 15, "write_over": 16}
    ran = [each._replace(stream={**streams, **outside}.get(each.name, 7)) for each in whole.ran]
    (window,) = windows(Recording(ran, whole.calls), MARKERS, 1)
    assert window.other_streams == 2


def test_what_is_called_as_a_step_of_the_harness_is_the_candidates_within_a_window():
    (window,) = windows(recorded(*LAUNCHED[:-1], "write_over", "add_up", "k1"), MARKERS, 1)
    assert names(window.spans) == ["tile", "write_over", "add_up"]


@pytest.mark.parametrize("name", ["Memcpy", "MemsetOwn", "_Z8Memcpy_xPf"])
def test_a_kernel_that_is_called_as_the_drivers_copies_are_proves_nothing(name):
    """By that name it would be nobody's, and its time would not count."""
    assert "what the driver's copies and fills are" in refused(recorded(*LAUNCHED[:-1], name, "k1"))


def test_what_runs_behind_a_window_is_told_but_for_the_harness_own_copies():
    copy = "void at::native::elementwise_kernel<direct_copy_kernel_cuda>"
    behind = recorded(*LAUNCHED, "Memcpy", "Memset", copy, "sgemm", *LAUNCHED, "Memset", kinds={"Memcpy": COPY, "Memset": FILL})
    one, two = windows(behind, MARKERS, 2)
    assert (names(one.spans), names(one.late), two.late) == (["tile"], ["sgemm"], ())


def test_a_kernel_behind_a_window_that_copies_for_long_is_told_too():
    """Its name is all that says that it copies. Filling takes 10 µs here, so a copy may take 5 and 16 times 8."""
    copy, kinds = "void at::native::elementwise_kernel<direct_copy_kernel_cuda>", {"Memset": FILL}
    (one,) = windows(recorded(*LAUNCHED, "Memset", copy, kinds=kinds), MARKERS, 1)
    assert (one.most_copy_us, one.has_copy_kernel, one.late) == (133.0, True, ())
    (two,) = windows(recorded(*LAUNCHED, "Memset", *[copy] * 14, kinds=kinds), MARKERS, 1)
    assert (two.has_copy_kernel, len(two.late)) == (False, 14)
    (of_two,) = windows(recorded(*LAUNCHED, "Memset", "Memset", *[copy] * 14, kinds=kinds), MARKERS, 1)
    assert (of_two.most_copy_us, of_two.has_copy_kernel) == (266.0, True)


def test_what_began_before_its_window_or_ended_after_it_counts_for_its_part_in_it():
    ran = [*recorded(*LAUNCHED).ran]
    ran[6] = ran[6]._replace(start_ns=ran[5].start_ns + 1, end_ns=ran[7].end_ns)
    (window,) = windows(Recording(sorted(ran, key=lambda each: each.start_ns), recorded(*LAUNCHED).calls), MARKERS, 1)
    assert [(span.start_us, span.time_us) for span in window.spans] == [(0.0, 20.0)]


@pytest.mark.parametrize("missing", [0, 1, 2, 3, 5, 7])
def test_no_step_of_the_harness_may_be_missing(missing):
    assert refused(recorded(*(name for at, name in enumerate(LAUNCHED) if at != missing)))


@pytest.mark.parametrize(("run", "words"), [
    (("await_word", "apply_mask", "add_up", "write_over", *LAUNCHED[4:]), "the harness's own kernels before a window"),
    ((*LAUNCHED[:6], "k0", "tile", "k1"), "a window opens within another"),
    ((*LAUNCHED, "k1"), "a window closes that never opened"),
    (LAUNCHED[:7], "the last window does not close"),
    ((*LAUNCHED, *LAUNCHED[:4]), "the last window does not close"),
    ((*LAUNCHED, *LAUNCHED), "2 of 1 windows"),
    ((), "0 of 1 windows"),
])
def test_the_steps_come_in_their_order_as_often_as_there_were_launches(run, words):
    assert words in refused(recorded(*run))


def test_a_call_without_its_kernel_and_a_kernel_without_its_call_are_told():
    whole = recorded(*LAUNCHED)
    assert "1 calls launched kernels" in refused(Recording(whole.ran, [*whole.calls, Call(99)]))
    assert "no call launched" in refused(Recording(whole.ran, whole.calls[:-1]))
    twice = [*whole.ran, whole.ran[6]._replace(start_ns=10**9, end_ns=10**9)]
    assert "no call launched" in refused(Recording(twice, whole.calls))
    graph = [*whole.calls[:6], whole.calls[6]._replace(is_graph=True), whole.calls[7]]
    assert len(windows(Recording(twice, graph), MARKERS, 1)) == 1


def packed(number, kind, name="", *, correlation=7, start=1, end=2, graph=0, length=None):
    text = name.encode()
    body = RECORD.pack(number, kind, correlation, 3, start, end, 1, 1, 1, 32, 1, 1, graph, len(text) if length is None else length)
    return body + text + bytes(-len(text) % 8)


def test_records_are_read_in_the_order_in_which_they_ran():
    content = packed(0, LAUNCH, graph=6) + packed(1, KERNEL, "later", start=5, end=9) + packed(2, FILL) + packed(3, GRAPH_LAUNCH)
    found = read_records(content, 4)
    assert [(each.name, each.start_ns) for each in found.ran] == [("Memset", 1), ("later", 5)]
    assert found.calls == [Call(7, 6, False), Call(7, 0, True)]


def test_a_copy_and_a_fill_tell_how_many_bytes_they_moved_and_a_kernel_none():
    content = RECORD.pack(0, COPY, 7, 3, 1, 2, -2, 1, 0, 0, 0, 0, 0, 0) + packed(1, KERNEL, "x")
    assert [each.bytes for each in read_records(content, 2).ran] == [(1 << 32) + (1 << 32) - 2, 0]


def test_a_copy_to_the_host_or_from_it_is_called_so_and_another_is_not():
    ways = [*FROM_HOST, *TO_HOST, 0, 8]  # the last is one from the device to itself
    content = b"".join(RECORD.pack(number, COPY, 7, 3, 1, 2, 1, 0, 0, way, 0, 0, 0, 0) for number, way in enumerate(ways))
    found = [each.name for each in read_records(content, len(ways)).ran]
    assert found == ["Memcpy HtoD", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoH", "Memcpy", "Memcpy"]
    assert [is_copy_with_host(name) for name in found] == [True] * 4 + [False] * 2
    fill = RECORD.pack(0, FILL, 7, 3, 1, 2, 1, 0, 0, 1, 0, 0, 0, 0)
    assert [each.name for each in read_records(fill, 1).ran] == ["Memset"]


@pytest.mark.parametrize(("content", "count", "words"), [
    (packed(0, LAUNCH), 2, "cut off"), (packed(0, LAUNCH) + packed(1, LAUNCH), 1, "follows the last"),
    (packed(1, LAUNCH), 1, "not numbered"), (packed(0, KERNEL, "x", length=4096), 1, "not numbered"),
    (packed(0, 77), 1, "is none"), (packed(0, KERNEL, "x", start=9, end=2), 1, "is none"),
])
def test_records_that_are_none_are_refused(content, count, words):
    with pytest.raises(Unproven, match=words):
        read_records(content, count)


def test_markers_have_other_names_in_each_worker_and_a_cubin_takes_them_in_all_its_tables():
    one, other = drawn(), drawn()
    assert {*one}.isdisjoint(other) and [len(each) for each in one] == [len(each) for each in PLAIN]
    cubin = b"\0.text.window_closes\0window_closes\0.text.await_and_complete\0add_up\0"
    assert renamed(cubin, one) == f"\0.text.{one.closes}\0{one.closes}\0.text.{one.opens}\0add_up\0".encode()
