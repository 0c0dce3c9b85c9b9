"""How much memory judging holds at once, and what it gives up where there is little."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.protocol.clocks.stopwatch import MARKS
from harness.reference.memory_plan import (
    MOST_LAUNCHES, CallSizes, MemoryPlan, MemoryStep, plan_memory, sentence_of, slices_wanted, smallest_plan,
)

GB = 10**9
SMALL = CallSizes(2 << 20, 2 << 20, 0, 2 << 20, 4 << 20)


def call(inputs, outputs, beyond=0.0, *, separable=True, state=0.0):
    """Sizes in GB; `beyond` are intermediates of an eager call."""
    sizes = [int(each * GB) for each in (inputs, outputs, state, outputs + beyond, 2 * inputs)]
    return CallSizes(*sizes, is_separable=separable)


def steps_from(plan):
    """The plan and all that are smaller."""
    steps = [plan]
    while (smaller := steps[-1].smaller()) is not None:
        steps.append(smaller)
    return steps


def test_where_there_is_plenty_nothing_is_given_up():
    plan = plan_memory(SMALL, 8 * GB)
    assert plan == MemoryPlan(SMALL)
    assert plan.step is MemoryStep.FULL and sentence_of(plan) == "nothing given up"


def test_a_call_with_gradients_has_marks_of_the_stopwatch_for_each_of_the_longest_queue():
    assert 3 * MOST_LAUNCHES <= MARKS


@pytest.mark.parametrize(("sizes", "available_gb", "step"), [
    (call(0.5, 0.5), 77, MemoryStep.FEWER), (call(2, 2, separable=False), 45, MemoryStep.SINGLE),
    (call(8, 8), 77, MemoryStep.SLICES), (call(8, 8, separable=False), 77, MemoryStep.HOST),
])
def test_the_first_step_that_has_room_is_taken(sizes, available_gb, step):
    plan = plan_memory(sizes, available_gb * GB)
    assert plan.step is step
    assert plan.needed_bytes <= 0.9 * available_gb * GB


def test_more_memory_never_gives_up_more():
    order = list(MemoryStep)
    for sizes in (call(0.1, 0.1), call(1, 4, 2), call(8, 0.001, separable=False), call(3, 3, 3)):
        taken = [order.index(plan_memory(sizes, gb * GB).step) for gb in range(4, 200, 4)]
        assert taken == sorted(taken, reverse=True)


@pytest.mark.parametrize("separable", [True, False])
def test_each_step_down_needs_no_more_than_the_one_before_and_the_last_has_none_below(separable):
    steps = steps_from(MemoryPlan(call(4, 4, 2, separable=separable)))
    needed = [plan.needed_bytes for plan in steps]
    assert needed == sorted(needed, reverse=True)
    assert len(set(steps)) == len(steps) and steps[-1].on_host and steps[-1].tight


@pytest.mark.parametrize("state", [0.0, 2.0])
@pytest.mark.parametrize("beyond", [0.0, 1.0, 8.0])
@pytest.mark.parametrize(("inputs", "outputs"), [(8, 8), (16, 0.001), (0.1, 4), (2, 1)])
@pytest.mark.parametrize("separable", [True, False])
def test_in_its_smallest_step_the_harness_adds_three_times_inputs_and_outputs_at_most(
    inputs, outputs, beyond, separable, state,
):
    """And the state in four more places; a float64 pass that cannot be cut has intermediates of twice their size."""
    intermediates = beyond * (inputs + outputs)
    sizes = call(inputs, outputs, intermediates, separable=separable, state=state)
    eager_call_bytes = sizes.inputs_bytes + sizes.state_bytes + max(sizes.eager_bytes, sizes.outputs_bytes)
    added = smallest_plan(sizes).needed_bytes - eager_call_bytes
    allowed = 3 * (sizes.inputs_bytes + sizes.outputs_bytes) + 4 * sizes.state_bytes
    assert added <= allowed + (0 if separable else intermediates * GB)


def test_the_state_counts_in_every_process_and_precision():
    with_state = call(1, 1, state=2)
    assert MemoryPlan(with_state).needed_bytes - MemoryPlan(replace(with_state, state_bytes=0)).needed_bytes == 10 * GB


def test_a_float64_pass_is_cut_only_where_slices_are_shown_to_be_right():
    large = call(8, 8)
    assert slices_wanted(large, 77 * GB) > 1
    assert plan_memory(large, 77 * GB).slices > 1
    assert plan_memory(replace(large, is_separable=False), 77 * GB).slices == 1


def test_what_was_given_up_is_told_in_words():
    last = smallest_plan(call(8, 8))
    assert sentence_of(last) == (
        "one launch at a time, its inputs drawn again where they are needed, expected outputs in 256 slices, "
        "outputs in host memory while they are compared"
    )
    assert sentence_of(MemoryPlan(call(1, 1), launches=5)) == "at most 4 timed launches in a row"
