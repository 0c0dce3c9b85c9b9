"""Calls in a row: what is timed, when the queue is said to be full, and whose output is kept."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import passes
from harness.protocol.layout import plan
from harness.reference.inputs.sets import draw_set
from harness.worker import repeats
from harness.worker.loop import Layout
from harness.worker.repeats import BACK_TO_BACK, GRAPH, WARM, repeated


class Slots:
    """Slots on the CPU whose clock counts calls."""

    stream, device = None, torch.device("cpu")

    def __init__(self, steps):
        self.steps, self.stopwatch = steps, self
        self.slot, self.box = torch.zeros(2048, dtype=torch.uint8), torch.zeros(2048, dtype=torch.uint8)

    def __getattr__(self, name):
        return lambda *_: self.steps.append(name)

    def fill_and_flush(self, index):
        self.steps.append("fill")
        self.slot.view(torch.float32).fill_(3.0)

    def inputs(self, index, specs):
        return [spec.view(self.slot) for spec in specs]

    def outbox(self, index, specs):
        return [spec.view(self.box) for spec in specs]

    def slot_range(self, index):
        return range(self.slot.data_ptr(), self.slot.data_ptr() + self.slot.numel())

    def start(self):
        return self.steps.count("call")

    def stop(self, mark):
        return self.steps.count("call") - mark

    def microseconds(self, lap):
        return float(lap)


@pytest.fixture
def make():
    """`make(way, calls)`: (report, steps, what lies in the outbox)."""

    def run(way, calls, wrapped=lambda model, steps: model):
        steps = []
        slots = Slots(steps)
        launcher = type("Launcher", (), {})()
        specs = [spec.to_json() for spec in plan([torch.zeros(4)])]
        launcher.reorders = False
        launcher.layout = Layout({"inputs": specs, "outputs": specs, "strides": [[1]], "shape": "tensor"})

        def model(x):
            steps.append("call")
            return x + 1

        skeleton = draw_set(lambda: [torch.zeros(4)], torch.device("cpu")).skeleton
        found = repeated(slots, launcher, wrapped(model, steps), 7, skeleton, way, calls, lambda: steps.append("queued"))
        return found, steps, slots.box.view(torch.float32)[:4].tolist()

    return run


def test_with_a_warm_cache_each_call_has_its_time_and_all_are_queued_before_any_wait(make):
    found, steps, kept = make(WARM, 5)
    assert found == {"times_us": [1.0] * 5}
    assert steps.index("queued") > max(at for at, step in enumerate(steps) if step == "call")
    assert steps.index("queued") < steps.index("synchronize")
    assert kept == [4.0] * 4


def test_back_to_back_the_first_calls_are_not_counted(make):
    found, steps, kept = make(BACK_TO_BACK, 5)
    assert found == {"total_us": 5.0}
    assert steps.count("call") == 8
    assert steps.index("queued") < steps.index("call")
    assert kept == [4.0] * 4


@pytest.mark.parametrize("way", [WARM, BACK_TO_BACK])
def test_calls_of_two_passes_make_no_marks_between_them_as_a_launch_before_did(make, way):
    """Two seconds of calls are thousands, and the native stopwatch keeps the last 1024 marks: the first would be gone."""

    def wrapped(model, steps):
        found = passes.ForwardBackward.__new__(passes.ForwardBackward)
        torch.nn.Module.__init__(found)
        passes.notice_backward(found, lambda: steps.append("mark"))

        def forward(x):
            if found.between is not None:
                found.between()
            return model(x)

        found.forward = forward
        return found

    _, steps, _ = make(way, 5, wrapped)
    assert "mark" not in steps and steps.count("call") == 8


def in_no_graph(call):
    """What a kernel on another stream than the captured one comes to: it runs once, and replays have what it left."""
    made = call()
    return lambda: made


@pytest.mark.parametrize(("captured", "value"), [(lambda call: call, 4.0), (in_no_graph, 1.0)], ids=["all", "nothing"])
def test_a_graph_is_captured_on_other_inputs_so_that_what_is_not_in_it_shows(make, monkeypatch, captured, value):
    """The slot holds zeros before, and threes from its turn on."""
    monkeypatch.setattr(repeats, "_captured", captured)
    found, steps, kept = make(GRAPH, 5)
    assert list(found) == ["total_us"] and kept == [value] * 4
    assert steps.index("fill") < steps.index("wait_for_window") < steps.index("queued")
    assert ("call" in steps[: steps.index("fill")]) == (captured is in_no_graph)


def test_a_capture_that_is_refused_leaves_the_device_alone(make, monkeypatch):
    def refuse(call):
        raise RuntimeError("operation not permitted when stream is capturing\nSearch for it in the documentation")

    monkeypatch.setattr(repeats, "_captured", refuse)
    found, steps, kept = make(GRAPH, 5)
    assert found == {"refused": "RuntimeError: operation not permitted when stream is capturing"}
    assert steps == ["before_queue", "restore_stream"] and kept == [0.0] * 4


class Capture:
    """One whose end raises, as that of a broken capture does."""

    def __init__(self, *, is_broken):
        self._is_broken = is_broken

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._is_broken:
            raise RuntimeError("operation failed due to a previous error during capture")


def test_what_broke_a_capture_is_said_and_not_that_something_did():
    def synchronises():
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted"):
        repeats._within(Capture(is_broken=True), synchronises)
    with pytest.raises(RuntimeError, match="not permitted"):
        repeats._within(Capture(is_broken=False), synchronises)
    with pytest.raises(RuntimeError, match="previous error"):  # by a candidate that caught its own
        repeats._within(Capture(is_broken=True), lambda: 7)
    assert repeats._within(Capture(is_broken=False), lambda: 7) == 7
