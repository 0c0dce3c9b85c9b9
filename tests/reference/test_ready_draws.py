"""Draws and truths that are there before their worker: the same as if they were made then, used once, and bounded."""

from __future__ import annotations

import gc
import math

import pytest
import torch

from harness.judge.check import families_checked
from harness.model.problem import AccuracyRule
from harness.reference.inputs.families import GIVEN
from harness.reference.memory_plan import CallSizes, MemoryPlan

NEEDS_NOTHING = MemoryPlan(CallSizes(0, 0, 0, 0, 0))
KEPT = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, A):
        if self.kept is None or self.kept.dtype != A.dtype:
            self.kept = torch.empty_like(A)
        return self.kept.copy_(A).mul_(2)


def get_inputs():
    return [torch.rand(8, 8)]
"""


def alike(first, second):
    lists = zip((first.outputs, first.scales, first.eager), (second.outputs, second.scales, second.eager))
    return all(torch.equal(a, b) for of_first, of_second in lists for a, b in zip(of_first, of_second, strict=True))


@pytest.fixture
def reference(reference_of):
    return reference_of()


def test_what_is_ready_is_what_would_have_been_drawn_and_found_then(reference):
    families = families_checked(reference, 3)
    assert families.count(GIVEN) == 3
    reference.make_ready(families)
    for family in families:
        inputs = reference.draw_ready(family)
        assert inputs.family is family
        assert torch.equal(inputs.region, reference.draw(family, inputs.seed).region)
        ready, again = reference.truth(inputs), reference.truth(inputs)  # the second is made anew
        assert ready is not again and alike(ready, again)


def test_nothing_is_made_ready_twice_nor_used_twice(reference):
    families = families_checked(reference, 2)
    reference.make_ready(families)
    reference.make_ready(families)
    ready = {inputs.seed for inputs, _ in reference._ready}
    assert len(ready) == len(families)
    seeds = [reference.draw_ready(family).seed for family in families]
    assert set(seeds) == ready
    assert reference.draw_ready(families[0]).seed not in ready


def test_what_was_left_by_a_candidate_that_failed_is_kept_and_the_rest_drawn(reference):
    families = families_checked(reference, 2)
    reference.make_ready(families)
    before = {inputs.seed for inputs, _ in reference._ready}
    shown = [reference.draw_ready(family).seed for family in families[:2]]  # and asked for no truth of
    reference.forget_shown()
    assert not reference._shown, "which holds their memory"
    reference.make_ready(families)
    after = {inputs.seed for inputs, _ in reference._ready}
    assert after & before == before - set(shown) and len(after) == len(families)


def test_among_fresh_inputs_each_has_its_own_truth(reference):
    reference.make_ready([GIVEN, GIVEN])
    sets = [reference.draw(), reference.draw_ready(GIVEN), reference.draw(), reference.draw_ready(GIVEN)]
    found = reference.truths(sets)
    assert all(alike(each, reference.truth(inputs)) for each, inputs in zip(found, sets))


def test_no_other_draw_gets_the_truth_of_one_that_was_dropped(reference):
    reference.make_ready([GIVEN] * 3)
    for _ in range(3):
        reference.draw_ready(GIVEN)  # which nobody holds on to
    gc.collect()
    for _ in range(10):
        inputs = reference.draw()
        assert torch.allclose(reference.truth(inputs).outputs[0].float(), reference.eager(inputs)[0], rtol=1e-3, atol=1e-3)


def each_bytes(reference):
    """What one draw and its truth are taken to take: outputs of four bytes, in float64 too, and their scales."""
    return reference.draw().region.numel() + sum(20 * math.prod(spec.shape) for spec in reference.output_specs)


@pytest.mark.parametrize(("rooms", "ready"), [(0.5, 0), (2.5, 2), (9.0, 3)])
def test_there_is_no_more_of_it_than_a_sixteenth_of_the_memory(reference, rooms, ready):
    reference.memory, reference._available_bytes = NEEDS_NOTHING, 16 * rooms * each_bytes(reference)
    reference.make_ready([GIVEN] * 3)
    assert len(reference._ready) == ready
    reference.forget_ready()
    assert not reference._ready


def test_there_is_none_where_launches_need_all_the_memory(reference):
    reference._available_bytes = 1 << 40
    reference.make_ready([GIVEN])
    assert reference._ready
    reference.forget_ready()
    reference._available_bytes = reference.memory.needed_bytes
    reference.make_ready([GIVEN])
    assert not reference._ready


def test_what_is_there_already_takes_of_the_room(reference):
    reference._available_bytes = 1 << 40
    reference.make_ready([GIVEN] * 3)
    reference.memory, reference._available_bytes = NEEDS_NOTHING, 16 * 4.5 * each_bytes(reference)
    for _ in range(3):
        reference.draw_ready(GIVEN)
        reference.make_ready([*reference.families, GIVEN, GIVEN, GIVEN])
    assert len(reference._ready) == 4


def test_where_memory_is_short_nothing_is_made_ready_nor_kept(reference):
    reference.make_ready([GIVEN] * 3)
    assert reference.have_less()
    assert not reference._ready
    reference.make_ready([GIVEN] * 3)
    assert not reference._ready


@pytest.mark.parametrize("count", [1, 3])
def test_a_model_that_keeps_its_outputs_writes_over_no_truth_that_is_ready(reference_of, count):
    reference = reference_of(KEPT, accuracy=AccuracyRule())
    reference.truth(reference.draw())
    reference.make_ready([GIVEN] * count)
    sets = [reference.draw_ready(GIVEN) for _ in range(count)]
    reference.truth(reference.draw())
    for inputs, truth in zip(sets, reference.truths(sets)):
        assert torch.equal(truth.outputs[0], 2 * inputs.arguments()[0].double())
