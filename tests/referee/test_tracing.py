"""A traced launch must be right and look like the timed ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.device.limits import CPU, CUDA
from harness.referee import failures, tracing
from harness.referee.failures import Failed
from harness.referee.judgement import Contestant
from harness.referee.timed import Timing
from harness.referee.tracing import trace, unlike_timed
from harness.verdict import ReasonCode, Status


def timing(time_us, *, host_us=5.0, hidden=True):
    return Timing(candidate_us=[time_us] * 3, host_us=[host_us] * 3, launch_hidden=hidden)


@pytest.mark.parametrize(
    ("traced_us", "timed_us"),
    [(2600, 2625), (3900, 2625), (1100, 2625), (3, 9), (24, 3), (0.5, 40), (2600, 2000)],
    ids=["alike", "a clock that slept", "gaps between kernels", "a tiny kernel", "a tiny kernel with a cold clock",
         "events cost more than the kernel", "a little slower"],
)
def test_honest_differences_between_a_traced_and_a_timed_launch_pass(traced_us, timed_us):
    assert unlike_timed(traced_us, timing(timed_us), CUDA) is None


@pytest.mark.parametrize(("traced_us", "timed_us"), [(8000, 2625), (100, 2625), (70, 30), (float("nan"), 100)])
def test_other_work_under_the_profiler_is_told_with_both_figures(traced_us, timed_us):
    sentence = unlike_timed(traced_us, timing(timed_us), CUDA)
    assert f"under the profiler it took {traced_us:.1f} µs" in sentence
    assert f"a timed call took {timed_us:.1f} µs" in sentence


def test_the_hosts_time_in_an_unhidden_launch_is_not_missed_among_the_kernels():
    assert unlike_timed(100, timing(1000, host_us=900, hidden=False), CUDA) is None
    assert unlike_timed(100, timing(1000, host_us=900, hidden=True), CUDA) is not None


@pytest.mark.parametrize(("traced_us", "hidden", "is_unlike"), [
    (430, True, False), (300, False, False), (430, False, True), (299, False, False), (320, False, True),
])
def test_where_the_device_waits_for_the_host_a_timed_call_holds_all_that_keeps_it_busy(traced_us, hidden, is_unlike):
    """A lie of a third of the call has no excuse there in a clock that had gone to sleep."""
    assert (unlike_timed(traced_us, timing(280, host_us=30, hidden=hidden), CUDA) is not None) == is_unlike


@pytest.mark.parametrize(("traced_us", "kernels", "is_unlike"), [
    (9_442, 1_081, False), (10_266, 1_081, False), (9_442, 30, True), (9_442, 0, True), (13_000, 9_000, True),
])
def test_the_profiler_takes_its_time_of_each_kernel_of_a_long_queue(traced_us, kernels, is_unlike):
    """A transposed convolution of 1,081 kernels on an H100, of which a call takes 8.2 ms; a half more is other work."""
    timed = timing(8_236, host_us=7_000, hidden=False)
    assert (unlike_timed(traced_us, timed, CUDA, kernels) is not None) == is_unlike


def test_a_pause_of_a_busy_cpu_is_no_other_work_and_a_slow_kernel_is():
    assert unlike_timed(6_000, timing(1_100), CPU) is None
    assert unlike_timed(300_000, timing(25_000), CPU) is not None


class Session:
    """A player that lists one own kernel on a GPU, of these times in turn; or fails."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0
        self.bench = SimpleNamespace(synchronize=lambda: None)

    def profile(self, inputs):
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, dict) else {"names": ["tile"], "spans": [[0, 0.0, answer]]}

    def outputs(self, reference, index):
        return []


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """`traced(SESSION, wrong=…)`: what comes of a candidate that was timed at 100 µs."""
    path = tmp_path / "candidate.py"
    path.write_text('SOURCE = "__global__ void tile(float* x) {}"\n')
    reference = SimpleNamespace(draw=lambda: None, truth=lambda inputs, with_eager: None, output_specs=(None,))

    def make(session, wrong=None):
        def decide(figures, reference, precision_class):
            if wrong is not None:
                raise wrong

        monkeypatch.setattr(tracing, "judge_launch", lambda *_: None)
        monkeypatch.setattr(tracing.checking, "decide", decide)
        contestant = Contestant("x", str(path), {}, (), None, "fp32", "cuda")
        return trace(session, CUDA, reference, contestant, timing(100.0))

    return make


def test_an_own_kernel_that_took_its_time_is_custom_at_the_first_try(traced):
    session = Session(95.0)
    assert traced(session).kind == "custom"
    assert session.asked == 1


def test_a_launch_that_was_disturbed_is_traced_again(traced):
    session = Session(900.0, 110.0)
    assert traced(session).kind == "custom"
    assert session.asked == 2


def test_a_candidate_that_does_less_under_the_profiler_is_unknown_with_the_figures(traced):
    session = Session(9.0, 8.0, 10.0)
    found = traced(session)
    assert (found.kind, found.own_share) == ("unknown", None)
    assert "under the profiler it took 10.0 µs, where a timed call took 100.0 µs" in found.notes[-1]
    assert session.asked == 3


def test_kernels_that_take_longer_than_the_clock_says_three_times_over_are_a_clock_that_lies(traced):
    with pytest.raises(Failed, match="kept the GPU busy for 910.0 µs under the profiler") as caught:
        traced(Session(900.0, 905.0, 910.0))
    assert caught.value.verdict.reason_code is ReasonCode.CLOCKS_DISAGREE


def test_a_candidate_that_is_wrong_under_the_profiler_is_unknown(traced):
    wrong = failures.failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "an error of 9000 u")
    found = traced(Session(95.0), wrong=wrong)
    assert found.kind == "unknown"
    assert found.notes == ("its kernels could not be traced; under the profiler: an error of 9000 u",)


def test_a_player_that_dies_under_the_profiler_costs_the_kind_alone(traced):
    death = failures.failed(Status.CRASHED, ReasonCode.EXITED, "its process exited with status 3")
    words = "its kernels could not be traced; under the profiler: its process exited with status 3"
    assert traced(Session(death)).notes == (words,)


@pytest.mark.parametrize(
    "listing",
    [{}, {"names": [], "spans": [[0, 0, 1]]}, {"names": ["x"], "spans": [["0", 0, 1]]}, {"names": 7, "spans": []},
     {"names": ["x"], "spans": [[0, 0]]}, {"names": ["x"], "spans": [[0, None, 1]]}, {"names": ["x"], "spans": 3}],
)
def test_a_listing_that_is_none_is_unknown(traced, listing):
    found = traced(Session(listing))
    assert found.kind == "unknown"
    assert found.notes == ("the profiler's listing could not be read",)


def on_a_cpu(own_share):
    """What a player on a CPU lists of a call of 1000 µs, so much of it in its extension and the rest in a product."""
    return {
        "operators": [{"name": "aten::mm", "us": 1000.0 * (1 - own_share)}], "own_us": 1000.0 * own_share,
        "total_us": 1000.0, "others_us": 0.0, "others_began": False, "called_back": False, "idle_us": 0.0, "addresses": [],
    }


@pytest.mark.parametrize(
    ("own_shares", "kind"),
    [([0.1, 0.01, 0.02], "library"), ([0.3, 0.01, 0.31], "mixed"), ([0.5, 0.6, 0.99], "mixed"),
     ([0.9, 0.99, 0.98], "custom"), ([0.01], "library"), ([0.99], "custom"),
     ([0.3, failures.failed(Status.CRASHED, ReasonCode.EXITED, "gone")], "mixed"), ([0.3, {}], "mixed"),
     ([0.3, 0.01, {}], "library")],
    ids=["a pause in its own part", "and in the library's", "in both", "in the library's", "a library's at once",
         "its own at once", "then it died", "then a listing that is none", "of two the lesser"],
)
def test_of_three_calls_on_a_cpu_that_come_out_as_mixed_the_middle_one_counts(tmp_path, monkeypatch, own_shares, kind):
    monkeypatch.setattr(tracing, "judge_launch", lambda *_: None)
    monkeypatch.setattr(tracing.checking, "decide", lambda *_: None)
    monkeypatch.setattr(tracing, "foreign_functions", lambda path: [])
    reference = SimpleNamespace(draw=lambda: None, truth=lambda inputs, with_eager: None, output_specs=(None,))
    session = Session(*[on_a_cpu(share) if isinstance(share, float) else share for share in own_shares])
    session.core_time_beside_us = lambda: 0.0
    contestant = Contestant("x", str(tmp_path / "x.py"), {}, (tmp_path / "x.so",), None, "fp32", "cpp")
    assert trace(session, CPU, reference, contestant, timing(1000.0)).kind == kind
    assert session.answers == []


@pytest.mark.parametrize(
    ("library_us", "built", "kind", "left"),
    [([400.0, 900.0, 900.0], False, "library", 0), ([400.0, 900.0, 400.0], False, "unknown", 0),
     ([900.0, 400.0], False, "library", 1), ([400.0, 950.0, 950.0], True, "library", 0)],
    ids=["a pause", "no pause", "a library's at once", "a pause beside an extension"],
)
def test_nothing_is_unknown_on_a_cpu_for_one_pause(tmp_path, monkeypatch, library_us, built, kind, left):
    monkeypatch.setattr(tracing, "judge_launch", lambda *_: None)
    monkeypatch.setattr(tracing.checking, "decide", lambda *_: None)
    monkeypatch.setattr(tracing, "foreign_functions", lambda path: [])
    reference = SimpleNamespace(draw=lambda: None, truth=lambda inputs, with_eager: None, output_specs=(None,))
    session = Session(*[
        {**on_a_cpu(0.0), "own_us": 0.0, "operators": [{"name": "aten::mm", "us": us}]} for us in library_us
    ])
    session.core_time_beside_us = lambda: 0.0
    extensions = (tmp_path / "x.so",) if built else ()
    contestant = Contestant("x", str(tmp_path / "x.py"), {}, extensions, None, "fp32", "torch")
    assert trace(session, CPU, reference, contestant, timing(1000.0)).kind == kind
    assert len(session.answers) == left


COPY = "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(at::TensorIteratorBase&)::lambda>"


def launched(*spans, reordered=True):
    names = list(dict.fromkeys(name for name, *_ in spans))
    return {"names": names, "spans": [[names.index(name), *when] for name, *when in spans], "reordered": reordered}


@pytest.mark.parametrize(
    ("listing", "kind"),
    [
        (launched(("tile", 0.0, 40.0), (COPY, 40.0, 60.0)), "custom"),
        (launched(("tile", 0.0, 40.0), (COPY, 40.0, 60.0), reordered=False), "mixed"),
        (launched((COPY, 0.0, 60.0), ("tile", 60.0, 40.0)), "mixed"),
        (launched(("tile", 0.0, 40.0), (COPY, 40.0, 30.0), (COPY, 70.0, 30.0)), "mixed"),
        (launched(("tile", 0.0, 40.0), ("ampere_sgemm_128x64_nn", 40.0, 60.0)), "mixed"),
    ],
    ids=["the harness's copy", "its own copy", "a copy before", "two copies of one output", "another kernel at the end"],
)
def test_the_copy_of_an_output_to_the_references_order_is_nobodys_kernel_and_its_time_counts(traced, listing, kind):
    found = traced(Session(listing))
    assert (found.kind, found.busy_us) == (kind, 100.0)
    assert found.launched == len(listing["spans"])
