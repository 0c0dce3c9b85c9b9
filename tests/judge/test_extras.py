"""What is measured besides, with a scripted worker: what is taken, and what becomes of a failure."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.judge import extras
from harness.launch.failures import failed
from harness.model.device_limits import limits_of
from harness.model.verdict import ReasonCode, Status
from harness.protocol.cuda_driver import DriverError


class ScriptedSession:
    """Answers a burst from `says`; its output is eager's own, or zeros where it is to be wrong."""

    def __init__(self, says, reference, *, wrong=False):
        self._says, self._reference, self._wrong, self.asked = says, reference, wrong, []

    def open(self, reference, count):
        assert count == 1

    def repeat(self, inputs, way, calls):
        self.asked.append((way, calls))
        self._inputs = inputs
        answer = self._says[way]
        if isinstance(answer, Exception):
            raise answer
        return answer(calls)

    def outputs(self, reference, index):
        made = reference.eager(self._inputs)
        return [tensor * 0 for tensor in made] if self._wrong else made


class Meter:
    is_readable = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def watts(self):
        return 500.0


GOOD = {
    "warm": lambda calls: {"times_us": [30.0] * calls}, "back_to_back": lambda calls: {"total_us": 40.0 * calls},
    "graph": lambda calls: {"total_us": 20.0 * calls},
}


@pytest.fixture
def measured(reference_of):
    """`measured(says, wanted, kind=…)`: (extras, what was asked of the worker)."""

    def make(says, wanted, *, kind="cuda", meter=Meter, **how):
        reference = reference_of()
        session = ScriptedSession(says, reference, **how)
        session.backend = SimpleNamespace(synchronize=lambda: None, limits=limits_of(kind), power_meter=meter)
        return extras.measure(session, reference, "fp32", 50.0, wanted), session.asked

    return make


def test_all_that_was_asked_for_is_there(measured):
    found, asked = measured(GOOD, ("times", "energy"))
    assert (found.warm_us, found.back_to_back_us, found.graph_us) == (30.0, 40.0, 20.0)
    assert found.joules == pytest.approx(500 * 40e-6)
    assert [way for way, _ in asked] == ["warm", "back_to_back", "back_to_back", "graph"]
    assert asked[2][1] == pytest.approx(2e6 / 40, abs=1)  # two seconds of calls
    assert found.notes == []


def test_what_was_not_asked_for_is_not_measured(measured):
    found, asked = measured(GOOD, ("energy",))
    assert found.warm_us is found.graph_us is None and found.joules is not None
    assert {way for way, _ in asked} == {"back_to_back"}
    assert measured(GOOD, ("times",))[0].joules is None


def test_energy_alone_takes_two_seconds_of_calls_by_what_one_in_a_row_takes(measured):
    """A call of 50 µs for which the host takes 5 ms: 40,000 of them would take 200 s, and the launch would time out."""
    says = {"back_to_back": lambda calls: {"total_us": 5000.0 * calls}}
    found, asked = measured({**GOOD, **says}, ("energy",))
    assert [calls for _, calls in asked] == [pytest.approx(0.2e6 / 50, abs=1), pytest.approx(2e6 / 5000, abs=1)]
    assert found.joules == pytest.approx(500 * 5e-3)


def test_a_cpu_has_no_graphs(measured):
    found, asked = measured(GOOD, ("times",), kind="cpu")
    assert [way for way, _ in asked] == ["warm", "back_to_back"] and found.graph_us is None


def test_what_cannot_be_captured_is_a_note_and_the_rest_is_there(measured):
    found, _ = measured({**GOOD, "graph": lambda calls: {"refused": "it synchronises"}}, ("times", "energy"))
    assert found.notes == ["it cannot be captured as a CUDA graph: it synchronises"]
    assert found.warm_us and found.joules and found.graph_us is None


@pytest.mark.parametrize("hidden", [True, False, None])
def test_warm_calls_that_could_not_be_queued_ahead_are_said_to_have_the_launch_in_them(measured, hidden):
    says = {"warm": lambda calls: {"times_us": [30.0] * calls, "hidden": hidden}}
    found, _ = measured({**GOOD, **says}, ("times",))
    assert found.warm_us == 30.0
    assert [("launch overhead" in note) for note in found.notes] == ([True] if hidden is False else [])


def test_a_call_that_fails_ends_it_with_a_note(measured):
    gone = failed(Status.CRASHED, ReasonCode.SIGNAL, "its process was killed by SIGSEGV")
    found, asked = measured({**GOOD, "back_to_back": gone}, ("times", "energy"))
    assert found.notes == ["its calls back to back were not timed: its process was killed by SIGSEGV"]
    assert [way for way, _ in asked] == ["warm", "back_to_back"] and found.joules is None


def test_after_a_burst_for_energy_that_fails_no_graph_is_asked_for(measured):
    gone = failed(Status.CRASHED, ReasonCode.SIGNAL, "its process was killed by SIGSEGV")
    answers = iter([{"total_us": 200_000.0}, gone])

    def once(calls):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found, asked = measured({**GOOD, "back_to_back": once}, ("times", "energy"))
    assert found.notes == ["its energy was not measured: its process was killed by SIGSEGV"]
    assert [way for way, _ in asked] == ["warm", "back_to_back", "back_to_back"] and found.graph_us is None


@pytest.mark.parametrize("problem", [torch.OutOfMemoryError("CUDA out of memory. Tried"), DriverError("cuMemAlloc_v2")])
def test_a_device_without_room_for_it_costs_these_figures_and_not_the_verdict(measured, problem):
    found, _ = measured({**GOOD, "graph": problem}, ("times",))
    assert found.notes == [f"its calls as a CUDA graph were not timed: this device has no room for them ({problem})"]
    assert found.back_to_back_us and found.graph_us is None


def test_wrong_output_of_replays_has_a_note_on_what_is_in_no_graph(measured, monkeypatch):
    def wrong(*_):
        raise failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "values are wrong")

    plain, decided = extras.check.decide, []

    def decide(*given):
        decided.append(given)
        (wrong if len(decided) == 3 else plain)(*given)  # after those with a warm cache and back to back

    monkeypatch.setattr(extras.check, "decide", decide)
    found, _ = measured(GOOD, ("times",))
    assert found.back_to_back_us and found.graph_us is None
    (note,) = found.notes
    assert note.startswith("its calls as a CUDA graph were not timed: values are wrong; ") and "current stream" in note


def test_wrong_output_in_the_last_call_leaves_no_figure(measured):
    found, _ = measured(GOOD, ("times",), wrong=True)
    assert found.warm_us is None and "were not timed" in found.notes[0] and "graph" not in found.notes[0]


@pytest.mark.parametrize("says", [{}, {"times_us": [0.0]}, {"times_us": ["x"]}, {"times_us": []}])
def test_a_report_that_is_none_leaves_no_figure(measured, says):
    found, _ = measured({**GOOD, "warm": lambda calls: says}, ("times",))
    assert found.warm_us is None and found.lost


def test_the_meter_watches_the_calls_and_not_the_truth_that_their_output_is_held_against(measured, monkeypatch):
    log = []

    class Logged(Meter):
        def __enter__(self):
            log.append("meter in")
            return self

        def __exit__(self, *_):
            log.append("meter out")

    def calls(count):
        log.append("calls")
        return {"total_us": 40.0 * count}

    plain = extras.judge_launch
    monkeypatch.setattr(extras, "judge_launch", lambda *given: log.append("judged") or plain(*given))
    found, _ = measured({**GOOD, "back_to_back": calls}, ("energy",), meter=Logged)
    assert found.joules is not None
    assert log == ["calls", "judged", "meter in", "calls", "meter out", "judged"]


def test_without_a_counter_nothing_is_run_for_it(measured):
    found, asked = measured(GOOD, ("energy",), meter=lambda: SimpleNamespace(is_readable=False))
    assert asked == [] and "no counter" in found.notes[0]
