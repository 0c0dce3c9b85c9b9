"""The loop of launches on scripted slots: the order of its steps, and what a candidate cannot get round."""

from __future__ import annotations

import pytest
import torch

from harness.protocol import tree
from harness.protocol.layout import plan
from harness.protocol.passes import ForwardBackward
from harness.worker.loop import Launcher, Layout


class ScriptedSlots:
    """Slots on the CPU that write down what happens, in order."""

    stream = None
    device = torch.device("cpu")

    def __init__(self):
        self.steps, self.stopwatch = [], self
        self.slot, self.box = torch.zeros(2048, dtype=torch.uint8), torch.zeros(2048, dtype=torch.uint8)

    def before_queue(self):
        self.steps.append("queue")

    def wait_for_turn(self, sequence):
        self.steps.append(f"turn {sequence}")

    def plant_guard(self, specs):
        self.steps.append("guard")

    def guard_broken(self, result):
        return [3, 252]

    def wait_for_window(self, sequence):
        self.steps.append(f"window {sequence}")

    def close_window(self):
        self.steps.append("window closed")

    def signal_end(self, sequence):
        self.steps.append(f"end {sequence}")

    def fill_and_flush(self, index):
        self.steps.append(f"fill {index}")
        self.slot.view(torch.float32).fill_(index + 1)

    def inputs(self, index, specs):
        return [spec.view(self.slot) for spec in specs]

    def outbox(self, index, specs):
        self.steps.append(f"take {index}")
        return [spec.view(self.box) for spec in specs]

    def slot_range(self, index):
        return range(self.slot.data_ptr(), self.slot.data_ptr() + self.slot.numel())

    def restore_stream(self):
        self.steps.append("stream restored")

    def synchronize(self):
        self.steps.append("synchronize")

    def start(self):
        self.steps.append("start")
        return len(self.steps)

    def stop(self, mark):
        self.steps.append("stop")
        return len(self.steps) - mark

    def microseconds(self, lap):
        return float(lap)


def launcher_of(forward):
    slots = ScriptedSlots()

    class Model(torch.nn.Module):
        def forward(self, *arguments):
            slots.steps.append("forward")
            return forward(*arguments)

    launcher = Launcher(slots, Model())
    specs = [spec.to_json() for spec in plan([torch.zeros(4)])]
    launcher.layout = Layout({"inputs": specs, "outputs": specs, "strides": [[1]], "shape": "tensor"})
    return slots, launcher


SKELETON = tree.flatten([torch.zeros(4)])[0]


def test_each_launch_goes_through_the_same_steps_in_the_same_order():
    slots, launcher = launcher_of(lambda x: x + 1)
    reports, laps, _ = launcher.queue(5, [SKELETON, SKELETON])
    assert slots.steps == [
        "queue",
        "turn 5", "fill 0", "window 5", "start", "forward", "stream restored", "stop", "window closed", "take 0",
        "turn 6", "fill 1", "window 6", "start", "forward", "stream restored", "stop", "window closed", "take 1",
        "end 7",
    ]
    assert [set(report) for report in reports] == [{"host_us", "values"}] * 2
    assert launcher.finish(laps) == ([3.0, 3.0], [])
    assert slots.steps[-1] == "synchronize"


def test_a_launch_on_its_own_is_waited_for_before_and_after_it():
    slots, launcher = launcher_of(lambda x: x + 1)
    _, _, host_us = launcher.queue(1, [SKELETON])
    assert slots.steps == [
        "queue", "turn 1", "fill 0", "guard", "synchronize", "window 1", "start", "forward", "stream restored", "stop",
        "window closed", "synchronize", "take 0", "end 2",
    ]
    assert host_us > 0


def test_the_device_is_waited_for_within_each_call_where_that_is_asked_for():
    slots, launcher = launcher_of(lambda x: x + 1)
    launcher.queue(1, [SKELETON, SKELETON], synchronised=True)
    within = [slots.steps[at + 1] for at, step in enumerate(slots.steps) if step == "forward"]
    assert within == ["synchronize", "synchronize"], "before the stopwatch stops"


def test_what_forward_returned_is_in_the_outbox():
    slots, launcher = launcher_of(lambda x: x * 10)
    launcher.queue(1, [SKELETON])
    assert slots.box[:16].view(torch.float32).tolist() == [10.0] * 4


def test_a_forward_that_raises_ends_the_queue_and_still_signals_its_end():
    calls = []

    def fragile(x):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("second call")
        return x + 1

    slots, launcher = launcher_of(fragile)
    reports, laps, _ = launcher.queue(1, [SKELETON] * 4)
    assert len(reports) == 2
    assert reports[1]["raised"]["message"] == "second call"
    assert len(laps) == 1
    assert slots.steps[-1] == "end 5"


def test_a_result_of_the_wrong_form_is_reported_and_not_taken():
    slots, launcher = launcher_of(lambda x: x[:2].clone())
    reports, laps, _ = launcher.queue(1, [SKELETON])
    assert reports[0]["fault"]["code"] == "wrong_shape"
    assert not any(step.startswith("take") for step in slots.steps)
    assert len(laps) == 1


def test_an_old_buffer_handed_back_unwritten_is_handed_back_as_nan():
    kept = []

    def lazy(x):
        if not kept:
            kept.append(x + 1)
        return kept[0]

    slots, launcher = launcher_of(lazy)
    launcher.queue(1, [SKELETON, SKELETON])
    assert bool(slots.box[:16].view(torch.float32).isnan().all())


def oblong_launcher_of(forward, strides=(3, 1)):
    """Of a reference that returns 2 × 3 elements in these strides, from as many inputs."""
    slots, launcher = launcher_of(forward)
    specs = [spec.to_json() for spec in plan([torch.zeros(2, 3)])]
    launcher.layout = Layout({"inputs": specs, "outputs": specs, "strides": [list(strides)], "shape": "tensor"})
    return slots, launcher


def transposed(x):
    """The same values, one column after the other in memory."""
    return (x + 1).T.contiguous().T


def test_after_a_first_result_in_another_order_every_call_has_its_copy_to_the_references_in_the_window():
    copied = []

    def forward(x):
        made = transposed(x)
        copied.append(made)
        return made

    slots, launcher = oblong_launcher_of(forward)
    placed = launcher.layout.in_order
    launcher.layout.in_order = lambda result: slots.steps.append("put in order") or placed(result)
    first, _, _ = launcher.queue(1, [SKELETON])
    assert first[0]["reordered"] is True and "put in order" not in slots.steps
    slots.steps.clear()
    reports, _, _ = launcher.queue(2, [SKELETON, SKELETON])
    assert not any("reordered" in report for report in reports)
    assert [step for step in slots.steps if step in ("start", "forward", "put in order", "stop")] == [
        "start", "forward", "put in order", "stop",
    ] * 2
    assert slots.box[:24].view(torch.float32).tolist() == [3.0] * 6
    assert all(bool(each.isnan().all()) for each in copied), "what forward returned is overwritten as well"


def test_an_old_buffer_in_another_order_handed_back_unwritten_is_nan_too():
    kept = []

    def lazy(x):
        if not kept:
            kept.append(transposed(x))
        return kept[0]

    slots, launcher = oblong_launcher_of(lazy)
    launcher.queue(1, [SKELETON])
    launcher.queue(2, [SKELETON])
    assert bool(slots.box[:24].view(torch.float32).isnan().all())


def test_a_result_in_the_references_order_is_never_copied_and_one_with_a_fault_is_reported_in_either():
    slots, launcher = oblong_launcher_of(transposed, (1, 2))
    reports, _, _ = launcher.queue(1, [SKELETON])
    assert set(reports[0]) == {"host_us", "values", "beyond"} and not launcher.reorders
    answers = [transposed, lambda x: torch._neg_view(-transposed(x)), lambda x: transposed(x)[:1], lambda x: None,
               lambda x: x.T.view(3, 2).T]
    slots, launcher = oblong_launcher_of(lambda x: answers.pop(0)(x))
    found = [launcher.queue(number, [SKELETON])[0][0] for number in range(1, 6)]
    codes = [each.get("fault", {}).get("code") for each in found]
    assert codes == [None, "wrong_layout", "wrong_shape", "wrong_type", "aliases_input"]


def test_no_gradient_is_recorded():
    seen = []
    _, launcher = launcher_of(lambda x: seen.append(torch.is_grad_enabled()) or x + 1)
    launcher.queue(1, [SKELETON])
    assert seen == [False]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_an_ending_of_the_process_is_not_taken_for_an_ordinary_exception(ending):
    def leave(x):
        raise ending

    _, launcher = launcher_of(leave)
    with pytest.raises(ending):
        launcher.queue(1, [SKELETON])


def test_where_a_backward_pass_follows_the_forward_pass_has_a_time_of_its_own():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    slots = ScriptedSlots()
    launcher = Launcher(slots, ForwardBackward(Twice()))
    x = torch.zeros(4)
    skeleton, tensors = tree.flatten([[x], [x]])
    launcher.layout = Layout({
        "inputs": [spec.to_json() for spec in plan(tensors)], "outputs": [spec.to_json() for spec in plan([x, x])],
        "strides": [[1], None], "shape": ["tensor", ["tensor"]],
    })
    reports, laps, _ = launcher.queue(1, [skeleton, skeleton])
    assert [set(report) for report in reports] == [{"host_us", "values"}] * 2
    assert launcher.finish(laps) == ([3.0, 3.0], [1.0, 1.0])  # the scripted clock counts steps
    assert [step for step in slots.steps if step in ("start", "stop")] == ["start", "stop", "stop"] * 2
