"""The launches that show whose kernels ran must be right, whole, and look like the timed ones."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.attribution.kernel_ownership import Owners, owners_of
from harness.attribution.loaded_code import LoadedCode
from harness.attribution.recording import Call, Ran, Recording
from harness.judge import kernel_trace
from harness.judge.kernel_trace import other_streams, trace, unlike_timed
from harness.judge.judgement import Prepared
from harness.launch import failures
from harness.launch.conversation import Launch, Launches
from harness.launch.failures import Failed
from harness.model.device_limits import CPU, CUDA
from harness.model.verdict import ReasonCode, Status
from harness.protocol import recorder
from harness.protocol.markers import Markers
from harness.protocol.recorder import FILL, KERNEL
from harness.timing.timings import Timing

MARKERS = Markers("k0", "k1")
LIBRARYS = "ampere_sgemm_128x64_nn"


def timing(time_us, *, host_us=5.0, hidden=True, recorded=()):
    return Timing(
        candidate_us=[time_us] * 3, host_us=[host_us] * 3, launch_hidden=hidden, recorded=list(recorded)
    )


@pytest.mark.parametrize(
    ("traced_us", "timed_us", "kernels"),
    [(2600, 2625, 1), (2750, 2625, 1), (2500, 2625, 1), (13, 9, 1), (3, 9, 1), (9_900, 8_200, 1_081), (24, 20, 3)],
    ids=["alike", "a slower clock", "a faster clock", "the markers", "what the events take", "CUPTI's part of each kernel",
         "and of few"],
)
def test_honest_differences_between_a_recorded_and_a_timed_launch_pass(traced_us, timed_us, kernels):
    assert unlike_timed(traced_us, timing(timed_us), CUDA, kernels) is None


@pytest.mark.parametrize(
    ("traced_us", "timed_us"), [(8000, 2625), (2470, 2625), (2780, 2625), (70, 30), (60, 100), (float("nan"), 100)]
)
def test_other_work_in_a_recording_is_told_with_both_figures(traced_us, timed_us):
    sentence = unlike_timed(traced_us, timing(timed_us), CUDA, 1)
    assert f"when it was traced it took {traced_us:.1f} µs" in sentence
    assert f"a timed call took {timed_us:.1f} µs" in sentence


def test_where_the_hosts_time_is_in_the_window_its_scatter_and_what_recording_adds_to_a_launch_are_too():
    scattered = Timing(candidate_us=[900, 980, 1000, 1020, 1100] * 4, launch_hidden=False)
    assert unlike_timed(1150, scattered, CUDA, 1) is None
    assert unlike_timed(1150, timing(1000, hidden=False), CUDA, 1) is not None
    assert unlike_timed(1150, timing(1000, hidden=False), CUDA, 12) is None


@pytest.mark.parametrize(("traced_us", "timed_us", "is_unlike"), [
    (6_600, 1_100, False), (6_700, 1_100, True), (42_000, 25_000, False), (43_000, 25_000, True), (5_100, 25_000, False),
    (4_900, 25_000, True),
])
def test_a_pause_of_a_busy_cpu_is_no_other_work_and_a_slow_call_is(traced_us, timed_us, is_unlike):
    assert (unlike_timed(traced_us, timing(timed_us), CPU) is not None) == is_unlike


OUTPUT_BYTES = 4096


def made_of(
    *launches, hidden=True, gap_us=1.0, fault=None, early=(), beside=0, copied=OUTPUT_BYTES, filled=OUTPUT_BYTES, window_us=None,
    fill_us=1.0,
):
    """Recorded launches of kernels (name, µs) with a gap between each two, as the recorder writes them down; `early` ones
    run before each window and `beside` of them with the first in it.
    """
    ran, now_ns = [], 1_000_000

    def kernel(name, time_us, kind=KERNEL, bytes=0):
        nonlocal now_ns
        ran.append(Ran(kind, len(ran) + 1, now_ns, now_ns + int(1e3 * time_us), name, bytes=bytes))
        now_ns += int(1e3 * (time_us + gap_us))

    for kernels in launches:
        for step in ("await_word", "apply_mask", "write_over", "add_up"):
            kernel(step, 1.0)
        for each in early:
            kernel(*each)
        kernel(MARKERS.opens, 1.0)
        ran.extend(
            Ran(KERNEL, 1000 * (1 + now_ns) + number, now_ns + 1000 * number, now_ns + 1000 * number + 500, "tile")
            for number in range(beside)
        )
        for each in kernels:
            kernel(*each)
        kernel(MARKERS.closes, 1.0)
        kernel("Memcpy", 1.0, recorder.COPY, copied)
        kernel("Memset", fill_us, FILL, filled)
    recording = Recording(
        sorted(ran, key=lambda each: each.start_ns), [Call(each.correlation) for each in ran if each.kind == KERNEL], fault
    )
    launch = Launch(1.0, 1.0, 1.0, None, [], window_us=window_us)
    return Launches([launch] * len(launches), 1.0, hidden, [True] * len(launches), None, recording)


def tile(time_us, **how):
    """A lead-in and a call of one own kernel."""
    return made_of([("tile", time_us)], [("tile", time_us)], **how)


class Session:
    """A worker whose recorded launches, or listings on a CPU, are these in turn; or that fails."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0
        self.backend = SimpleNamespace(
            synchronize=lambda: None, markers=MARKERS, identity=SimpleNamespace(sm="9.0"), limits=CUDA,
            loaded_code=lambda: LoadedCode((), is_whole=True),
        )
        self.helped = self.reordered = False

    def launch(self, sets, *, gate, record):
        assert record
        self.held = gate
        return self.profile(sets)

    def profile(self, inputs):
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """`traced(SESSION, wrong=…, recorded=…)`: what comes of a candidate that was timed at 100 µs."""
    path = tmp_path / "candidate.py"
    kernel = 'SOURCE = "__global__ void tile(float* x) {}"\n'
    reference = SimpleNamespace(draw=lambda: None, output_specs=(SimpleNamespace(size_bytes=OUTPUT_BYTES),))

    def make(session, wrong=None, recorded=(), hidden=True, text="", owners=None):
        path.write_text(kernel + text)

        def decide(figures, reference, precision_class):
            if wrong is not None:
                raise wrong

        monkeypatch.setattr(kernel_trace, "judge_launch", lambda *_: None)
        monkeypatch.setattr(kernel_trace.check, "decide", decide)
        found = owners or (lambda *given: owners_of(*given, lambda names: (), lambda names: {}))
        monkeypatch.setattr(kernel_trace, "owners_of", found)
        prepared = Prepared("x", str(path), {}, (), None, "fp32", "cuda")
        return trace(session, reference, prepared, timing(100.0, recorded=recorded, hidden=hidden))

    return make


def with_streams(made, *launches):
    """`made`, whose kernels "a", "b" and "c" of each of `launches` are on streams of their own, and of the others none."""
    ran, window = [], -1
    for each in made.recording.ran:
        window += each.name == MARKERS.opens
        on_own = each.name in "abc" and window in launches
        ran.append(each._replace(stream=10 + "abc".index(each.name) if on_own else 7))
    return replace(made, recording=replace(made.recording, ran=ran))


def test_streams_count_that_have_a_part_in_every_recorded_call_but_the_lead_ins():
    calls = [[("a", 9.0), ("b", 9.0)], [("a", 9.0), ("b", 9.0), ("c", 9.0)], [("a", 9.0), ("b", 9.0)]]
    made = made_of(*calls)
    for launches, found in (((0, 1, 2), 2), ((1, 2), 2), ((0, 1), 0), ((), 0)):
        recorded = [with_streams(made, *launches)]
        assert other_streams(Session(), timing(100.0, recorded=recorded)) == found, launches
    seen = [with_streams(made, 1, 2)]
    assert other_streams(Session(), timing(100.0, recorded=[*seen, made])) == 0, "not in all that was recorded"
    assert other_streams(Session(), timing(100.0, recorded=seen, hidden=False)) == 0, "no queue waits there"
    assert other_streams(Session(), timing(100.0)) == 0
    early = with_streams(made_of(*calls, early=[("tile", 3.0)]), 1, 2)
    assert other_streams(Session(), timing(100.0, recorded=[early])) == 0
    cut = with_streams(made_of(*calls, fault="3 records had no room"), 1, 2)
    assert other_streams(Session(), timing(100.0, recorded=[cut])) == 0


def test_probes_among_the_rounds_are_enough_and_the_lead_in_counts_for_nothing(traced):
    session = Session()
    found = traced(session, recorded=[made_of([(LIBRARYS, 97.0)], [("tile", 97.0)], [("tile", 98.0)])])
    assert (found.kind, found.own_share, found.launched, found.busy_us) == ("custom", 1.0, 1, 97.5)
    assert session.asked == 0


def test_where_there_was_none_launches_are_made_for_it_queued_as_the_timed_ones(traced):
    session = Session(tile(97.0))
    assert traced(session).kind == "custom"
    assert (session.asked, session.held) == (1, True)


def test_a_librarys_kernel_in_one_call_of_one_probe_is_what_counts(traced):
    library = made_of([("tile", 97.0)], [("tile", 97.0)], [(LIBRARYS, 97.0)], [("tile", 97.0)])
    assert traced(Session(), recorded=[tile(97.0), library, tile(97.0)]).kind == "library"


def test_probes_of_queues_that_were_not_held_show_nothing_of_those_that_were(traced):
    session = Session(tile(97.0))
    assert traced(session, recorded=[tile(97.0, hidden=False)]).kind == "custom"
    assert session.asked == 1


def test_a_launch_that_was_disturbed_is_made_again(traced):
    session = Session(tile(900.0), tile(99.0))
    assert traced(session).kind == "custom"
    assert session.asked == 2


def test_a_candidate_that_does_less_when_it_is_recorded_is_unknown_with_the_figures(traced):
    session = Session(tile(60.0), tile(61.0), tile(59.0))
    found = traced(session)
    assert (found.kind, found.own_share) == ("unknown", None)
    assert "when it was traced it took 61.0 µs, where a timed call took 100.0 µs" in found.notes[-1]
    assert session.asked == 3


def test_kernels_that_take_longer_than_the_clock_says_three_times_over_are_a_clock_that_lies(traced):
    with pytest.raises(Failed, match="kept the GPU busy for 900.0 µs, and so in each of 3 recorded segments") as caught:
        traced(Session(tile(900.0), tile(905.0), tile(910.0)))
    assert caught.value.verdict.reason_code is ReasonCode.CLOCKS_DISAGREE


def test_a_candidate_that_is_wrong_when_it_is_recorded_is_unknown(traced):
    wrong = failures.failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "an error of 9000 u")
    found = traced(Session(tile(95.0)), wrong=wrong)
    assert found.kind == "unknown"
    assert found.notes == ("its kernels could not be traced; when they were: an error of 9000 u",)


def test_a_worker_that_dies_then_costs_the_kind_alone(traced):
    death = failures.failed(Status.CRASHED, ReasonCode.EXITED, "its process exited with status 3")
    words = "its kernels could not be traced; when they were: its process exited with status 3"
    assert traced(Session(death)).notes == (words,)


def test_one_listing_that_is_not_whole_makes_the_kind_unknown_whatever_the_others_show(traced):
    session = Session()
    found = traced(session, recorded=[tile(97.0), tile(97.0, fault="3 records had no room"), tile(97.0)])
    assert (found.kind, found.notes) == ("unknown", ("its kernels are not known: 3 records had no room",))


@pytest.mark.parametrize(("gap_us", "hidden", "kind"), [
    (1.5, True, "custom"), (20.0, True, "unknown"), (20.0, False, "custom"), (45.0, False, "unknown"),
])
def test_a_gpu_that_waits_for_somebody_else_is_nobodys_work(traced, gap_us, hidden, kind):
    """With launches queued ahead nothing but kernels takes long; else the host may take as long as they do."""
    busy_us = 100.0 - 2 * gap_us
    found = traced(Session(), recorded=[tile(busy_us, gap_us=gap_us, hidden=hidden)], hidden=hidden)
    assert found.kind == kind
    assert kind == "custom" or "the GPU stood idle" in found.notes[-1]


@pytest.mark.parametrize(("copies", "hidden", "kind"), [
    ("Memcpy", False, "custom"), ("Memcpy HtoD", False, "unknown"), ("Memcpy DtoH", False, "unknown"), ("Memcpy HtoD", True, "custom"),
])
def test_while_the_host_gets_and_gives_its_copies_it_may_do_the_work(traced, copies, hidden, kind):
    """40 µs of copies, 42 of an own kernel, and 15 of waiting around each; or 77 µs of copies in a queue that nobody waits for."""
    copied_us, gap_us = (77.0, 1.0) if hidden else (40.0, 15.0)
    call = [(copies, copied_us, recorder.COPY), ("tile", 97.0 - copied_us - gap_us)]
    found = traced(Session(), recorded=[made_of(call, call, hidden=hidden, gap_us=gap_us)], hidden=hidden)
    assert found.kind == kind
    assert kind == "custom" or "the GPU stood idle or copied to or from the host" in found.notes[-1]


@pytest.mark.parametrize(("kernel", "kind"), [(("prefetch", 20.0), "unknown"), (("step_aside", 2.0), "custom"), (("step_aside", 20.0), "unknown")])
def test_nothing_of_a_candidates_runs_between_its_turn_and_its_window(traced, kernel, kind):
    found = traced(Session(), recorded=[tile(97.0, early=[kernel])])
    assert found.kind == kind
    assert kind == "custom" or found.notes[-1] == (
        f"its kernels are not known: {kernel[0]} ran between a launch's turn and its window, where nothing of it has business"
    )


@pytest.mark.parametrize(("left_out", "words"), [
    ({"copied": 0}, "0 were copied and 4,096 written over"), ({"filled": 4095}, "4,096 were copied and 4,095 written over"),
])
def test_the_steps_of_the_harness_after_a_call_are_in_the_listing(traced, left_out, words):
    found = traced(Session(), recorded=[tile(97.0, **left_out)])
    assert found.kind == "unknown"
    assert words in found.notes[-1]


@pytest.mark.parametrize(("kernels", "takes_us", "beside", "kind"), [
    (1, 97.0, 0, "custom"), (40, 4.0, 0, "custom"), (1, 200.0, 40, "unknown"), (1, 97.0, 40, "custom"),
])
def test_a_recorded_call_may_take_longer_for_kernels_that_run_one_after_another_and_for_no_others(
    traced, kernels, takes_us, beside, kind
):
    made = [made_of(*[[("tile", takes_us)] * kernels] * 2, beside=beside) for _ in range(3)]
    if kind == "unknown":
        with pytest.raises(Failed, match="kept the GPU busy for 200.0 µs"):
            traced(Session(*made))
    else:
        assert traced(Session(), recorded=made).kind == kind


def test_empty_kernels_between_excuse_none_that_runs_for_longer_than_the_call_took(traced):
    """300 µs of work in one kernel and 100 empty ones after it, each of which may take 2.5 µs more when it is recorded."""
    made = [made_of(*[[("tile", 300.0), *[("tile", 0.5)] * 100]] * 2) for _ in range(3)]
    with pytest.raises(Failed, match="kept the GPU busy for"):
        traced(Session(*made))


@pytest.mark.parametrize(("window_us", "kind"), [(None, "custom"), (150.0, "custom"), (161.0, "custom"), (195.0, "unknown")])
def test_a_recording_whose_clock_is_slower_than_the_judges_is_no_launch_like_the_timed_ones(traced, monkeypatch, window_us, kind):
    """The harness's steps take 50 µs after a timed call here, and a recorded one is said to take 99."""
    monkeypatch.setattr(Timing, "typical_overhead_us", 50.0)
    found = traced(Session(*[tile(97.0, window_us=window_us)] * 3))
    assert found.kind == kind
    assert kind == "custom" or "46.0 µs more than that by the judge's" in found.notes[-1]


def test_kernels_of_a_source_that_carries_bytes_are_nobodys(traced, tmp_path):
    session = Session()
    assert traced(session, recorded=[tile(97.0)]).kind == "custom"
    code = random.Random(1).randbytes(3000)
    found = traced(session, recorded=[tile(97.0)], text=f"CODE = {code!r}\n")
    assert (found.kind, found.own_share) == ("unknown", None)
    assert "tile may be machine code that its source carries as bytes" in found.notes[-1]


def test_a_kernel_of_the_builds_name_that_was_loaded_with_other_code_is_nobodys(traced, monkeypatch):
    monkeypatch.setattr(kernel_trace, "not_of_the_build", lambda names, loaded, extensions, sm: dict.fromkeys(names, "is another"))
    found = traced(
        Session(), recorded=[tile(97.0)], owners=lambda names, evidence: Owners(dict.fromkeys(names, ("own", "extension")), {})
    )
    assert (found.kind, found.own_share) == ("unknown", None)
    assert "tile is another: whose it is is not known" in found.notes


def test_a_process_of_its_own_on_the_gpu_makes_the_kind_unknown(traced):
    session = Session()
    session.helped = True
    found = traced(session, recorded=[tile(97.0)])
    assert (found.kind, found.notes[-1]) == ("unknown", "another process that it began uses the GPU: what that does is not known")


COPY = "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(at::TensorIteratorBase&)::lambda>"


@pytest.mark.parametrize(
    ("kernels", "reordered", "kind"),
    [
        ([("tile", 40.0), (COPY, 60.0)], True, "custom"),
        ([("tile", 40.0), (COPY, 60.0)], False, "mixed"),
        ([(COPY, 60.0), ("tile", 40.0)], True, "mixed"),
        ([("tile", 40.0), (COPY, 30.0), (COPY, 30.0)], True, "mixed"),
        ([("tile", 40.0), (LIBRARYS, 60.0)], True, "mixed"),
    ],
    ids=["the harness's copy", "its own copy", "a copy before", "two copies of one output", "another kernel at the end"],
)
def test_the_copy_of_an_output_to_the_references_order_is_nobodys_kernel_and_its_time_counts(
    traced, kernels, reordered, kind
):
    session = Session()
    session.reordered = reordered
    found = traced(session, recorded=[made_of(kernels, kernels, gap_us=0.0, fill_us=6.0)])
    assert (found.kind, found.busy_us) == (kind, 100.0)
    assert found.launched == len(kernels)


@pytest.mark.parametrize(("copy_us", "kind"), [(4.9, "custom"), (69.0, "custom"), (69.1, "mixed")])
def test_a_copy_to_the_references_order_takes_no_longer_than_16_times_what_filling_takes(traced, copy_us, kind):
    """A library's kernel may be loaded under that name."""
    session, kernels = Session(), [("tile", 100.0 - copy_us), (COPY, copy_us)]
    session.reordered = True
    assert traced(session, recorded=[made_of(kernels, kernels, gap_us=0.0, fill_us=6.0)]).kind == kind
