"""Timed outputs whose truth takes far longer than eager's: most are held against strict eager, a drawn part against float64,
and none passes that the truth would not let pass.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from harness.judge import check, launch_figures
from harness.launch.conversation import Launch, Launches
from harness.launch.failures import Failed
from harness.reference import error_figures
from harness.reference.accuracy.classes import classify, within
from harness.reference.inputs.families import GIVEN
from harness.reference.inputs.one_way_rounding import to_tf32
from harness.reference.memory_plan import MemoryPlan

LINEAR = {
    "layers": "self.layer = torch.nn.Linear(512, 48)", "result": "self.layer(x[0])", "inputs": "torch.rand(64, 512)",
}


class Outputs:
    """The launches of a segment, each set's outputs made by `way`."""

    def __init__(self, sets, way):
        self._made = [way(inputs) for inputs in sets]

    def outputs(self, reference, index):
        return self._made[index]


def no_faults(count, values=()):
    return Launches([Launch(1.0, 1.0, 1.0, None, list(values))] * count, 1.0, None, [True] * count)


@pytest.fixture
def reference(undescribed):
    made = undescribed(**LINEAR)
    made.float64_one_of = 8
    return made


@pytest.fixture
def truths_made(reference, monkeypatch):
    """How many truths in float64 were made since, of whole launches and of slices."""
    counted = SimpleNamespace(count=0)
    of = reference._truths.of
    error_figures.usual_spreads(reference)  # its own truth is not one of a launch

    def counting(sets, **how):
        counted.count += len(sets)
        return of(sets, **how)

    monkeypatch.setattr(reference._truths, "of", counting)
    return counted


@pytest.fixture
def draws(monkeypatch):
    """`draws(is_drawn)`: chance has each, or none, held against its truth."""
    def have(is_drawn):
        monkeypatch.setattr(launch_figures, "is_drawn", lambda one_of: is_drawn)

    return have


def verified(reference, way, count=6, **how):
    sets = [reference.draw() for _ in range(count)]
    return check.verify(Outputs(sets, way), reference, sets, no_faults(count), "fp32", **how)


def tree_sum(reference):
    """The same product, added in another order than eager's."""
    layer = reference.model.layer

    def way(inputs):
        (x,) = inputs.tensors()
        parts = [x[:, at : at + 64] @ layer.weight[:, at : at + 64].T for at in range(0, 512, 64)]
        return [sum(parts).detach() + layer.bias.detach()]

    return way


def in_tf32(reference):
    layer = reference.model.layer

    def way(inputs):
        (x,) = inputs.tensors()
        return [torch.nn.functional.linear(to_tf32(x), to_tf32(layer.weight.detach()), layer.bias.detach())]

    return way


def test_what_is_near_eager_needs_no_truth(reference, truths_made, draws):
    draws(False)
    for way in (reference.eager, tree_sum(reference)):
        figures = verified(reference, way)
        assert len(figures) == 6 and all(map(within, figures))
    assert truths_made.count == 0


def test_what_is_drawn_is_held_against_its_truth(reference, truths_made, draws):
    draws(True)
    assert all(map(within, verified(reference, reference.eager)))
    assert truths_made.count == 6


def test_chance_draws_one_of_so_many():
    drawn = sum(error_figures.is_drawn(8) for _ in range(4000))
    assert 350 < drawn < 650  # seven standard deviations to either side


@pytest.mark.parametrize("is_drawn", [False, True])
def test_tf32_passes_neither_way(reference, draws, is_drawn):
    draws(is_drawn)
    figures = verified(reference, in_tf32(reference))
    assert classify(figures) != "fp32" and not any(map(within, figures))
    assert all(each.evidence is not None for each in figures)  # found against the truth, with its recipe


def test_what_is_not_near_has_the_figures_that_its_truth_gives(reference, draws):
    sets = [reference.draw()]
    made = Outputs(sets, in_tf32(reference))
    found = []
    for is_drawn in (False, True):
        draws(is_drawn)
        found += check.verify(made, reference, sets, no_faults(1), "fp32")
    assert found[0] == found[1]


def test_half_of_the_bound_around_eager_is_within_the_whole_around_the_truth(reference, draws):
    """Outputs moved away from eager step by step: where the short way lets one pass, the truth does too."""
    let_pass = 0
    for step in range(1, 40):
        def moved(inputs, by=step * 2.0**-24):
            (output,) = reference.eager(inputs)
            largest = output.abs().amax(dim=1, keepdim=True)
            return [output + by * largest * torch.sign(torch.randn(output.shape))]

        sets = [reference.draw()]
        outputs = moved(sets[0])
        near = error_figures.near_eager(
            reference, [error_figures.Returned(sets[0], reference.by_eager(sets[0]), outputs)], "fp32"
        )
        if near[0] is not None:
            let_pass += 1
            assert within(error_figures.judge_outputs(reference, sets[0], reference.truth(sets[0]), outputs, "fp32"))
    assert 0 < let_pass < 39


@pytest.fixture
def far_off(undescribed):
    """A reference that is itself hundreds of u off in rows that are nearly zero, as no order of summation explains."""
    made = undescribed("torch.relu(x[0] @ x[1] - 5.5)", "torch.rand(2048, 16), torch.rand(16, 48)")
    made.float64_one_of = 8
    assert error_figures.usual_spreads(made)[0].max_u > 100
    return made


def of_the_product(narrow=lambda tensor: tensor):
    """The way of a kernel that adds its terms in order; `narrow` is what it does to its inputs."""
    def way(inputs):
        first, second = map(narrow, inputs.tensors())
        product = torch.zeros(first.shape[0], second.shape[1])
        for k in range(first.shape[1]):
            product += first[:, k : k + 1] * second[k]
        return [torch.relu(product - 5.5)]

    return way


def test_where_eager_itself_is_far_off_what_is_as_far_off_needs_no_truth(far_off, draws, monkeypatch):
    draws(False)
    made, truth = [], far_off._truths.of
    monkeypatch.setattr(far_off._truths, "of", lambda sets, **how: made.extend(sets) or truth(sets, **how))
    assert all(map(within, verified(far_off, of_the_product())))
    assert len(made) <= 2  # of six
    assert not any(map(within, verified(far_off, of_the_product(to_tf32))))


def test_eager_that_overflows_where_float64_does_not_lets_nothing_pass(undescribed, draws):
    """Its error there is infinite, which is no measure of anybody else's elsewhere."""
    reference = undescribed(
        "(x[0] + 1) * self.scale * 1e3 * 1e-3", "torch.rand(64, 64)",
        "self.register_buffer('scale', torch.tensor([1e38] + [1.0] * 63))",
    )
    reference.float64_one_of = 8
    draws(False)

    def wrong_but_in_what_overflows(inputs):
        (output,) = reference.eager(inputs)
        output[:, 1:] = 0
        return [output]

    assert not any(map(within, verified(reference, wrong_but_in_what_overflows)))


def test_in_checks_all_are_held_against_their_truth(reference, truths_made, draws):
    draws(False)
    verified(reference, reference.eager, with_eager=True)
    assert truths_made.count == 6


def test_other_families_are_too(undescribed, draws):
    reference = undescribed("(x[0] - x[1]).square().mean()", "torch.rand(64, 64), torch.rand(64, 64)")
    reference.float64_one_of = 8
    other = next(each for each in reference.families if each is not GIVEN)
    assert not launch_figures._is_in_part(reference, reference.draw(other), with_eager=False)
    assert launch_figures._is_in_part(reference, reference.draw(), with_eager=False)


def test_whole_numbers_that_are_not_eagers_are_wrong(undescribed, draws):
    reference = undescribed("x[0].argmax(dim=1)", "torch.rand(64, 64)")
    reference.float64_one_of = 8
    draws(False)
    assert all(map(within, verified(reference, reference.eager)))
    wrong = verified(reference, lambda inputs: [reference.eager(inputs)[0] + 1])
    assert not any(map(within, wrong))


def test_plain_values_that_are_not_eagers_are_told(undescribed, draws):
    reference = undescribed("(x[0] * 2, 3)", "torch.rand(64, 64)")
    reference.float64_one_of = 8
    draws(False)
    sets = [reference.draw()]
    made = Outputs(sets, reference.eager)
    assert all(map(within, check.verify(made, reference, sets, no_faults(1, [3]), "fp32")))
    with pytest.raises(Failed, match="returned the values"):
        check.verify(made, reference, sets, no_faults(1, [4]), "fp32")


def test_lost_values_are_found(reference, draws):
    draws(False)

    def lost(inputs):
        (output,) = reference.eager(inputs)
        output[3, 4] = torch.nan
        return [output]

    with_nan = verified(reference, lost, count=1)
    assert not within(with_nan[0]) and with_nan[0].worst_index == (3, 4)


@pytest.fixture
def in_slices(undescribed, monkeypatch):
    """A reference whose outputs are compared in eight slices."""
    monkeypatch.setattr("harness.reference.reference_model.slices_wanted", lambda sizes, available: 8)
    monkeypatch.setattr(
        "harness.reference.reference_model.plan_memory", lambda sizes, available: MemoryPlan(sizes, 2, slices=8)
    )
    made = undescribed(**LINEAR)
    assert made.is_compared_in_slices
    made.float64_one_of = 8
    return made


def test_of_slices_a_drawn_part_is_held_against_its_truth(in_slices, monkeypatch):
    made, truth = [], in_slices._truths.of
    error_figures.usual_spreads(in_slices)
    monkeypatch.setattr(in_slices._truths, "of", lambda sets, **how: made.append(len(sets)) or truth(sets, **how))
    turns = iter([True, False] * 8)
    monkeypatch.setattr(launch_figures, "is_drawn", lambda one_of: next(turns))
    assert all(map(within, verified(in_slices, in_slices.eager, count=1)))
    assert made == [1] * 4


@pytest.mark.parametrize("row", [0, 17, 63])
def test_a_mistake_in_any_slice_is_found_in_its_place(in_slices, draws, row):
    draws(False)

    def wrong(inputs):
        (output,) = in_slices.eager(inputs)
        output[row, 5] += 1
        return [output]

    (figures,) = verified(in_slices, wrong, count=1)
    assert not within(figures) and figures.worst_index == (row, 5)


def test_a_truth_is_slow_where_it_takes_far_longer_than_eager(undescribed, monkeypatch):
    times = iter([0.1, 0.01])
    monkeypatch.setattr("harness.reference.reference_model.seconds_of", lambda call, device: next(times))
    assert undescribed(**LINEAR).float64_one_of == 10


@pytest.mark.parametrize(("truth_s", "one_of"), [(0.03, 8), (0.151, 16), (2.0, 32)])
def test_truths_of_a_part_take_about_as_long_as_eager_of_all(undescribed, monkeypatch, truth_s, one_of):
    times = iter([truth_s, 0.01])
    monkeypatch.setattr("harness.reference.reference_model.seconds_of", lambda call, device: next(times))
    assert undescribed(**LINEAR).float64_one_of == one_of


def test_a_long_truth_that_was_made_already_is_not_made_again_to_see_how_long_it_takes(undescribed, monkeypatch):
    made, asked = undescribed(**LINEAR), []

    def seconds_of(call, device, times=2):
        asked.append(call())
        return 0.2 if times == 1 else 0.01

    monkeypatch.setattr("harness.reference.reference_model.seconds_of", seconds_of)
    error_figures.usual_spreads(made)
    assert made.float64_one_of == 20 and len(asked) == 2  # that truth, and eager's outputs


def test_of_slices_it_is_the_truth_of_a_whole_call_that_is_slow(in_slices, monkeypatch):
    times = iter([0.001, 0.0002])
    monkeypatch.setattr("harness.reference.reference_model.seconds_of", lambda call, device: next(times))
    del in_slices.float64_one_of
    assert in_slices.float64_one_of == 8  # eight slices of a millisecond


@pytest.mark.parametrize("times", [[0.1, 0.09], [0.0015, 0.0005]])
def test_it_is_not_where_it_takes_little_longer_or_is_short(undescribed, monkeypatch, times):
    left = iter(times)
    monkeypatch.setattr("harness.reference.reference_model.seconds_of", lambda call, device: next(left))
    assert undescribed(**LINEAR).float64_one_of == 1


def test_a_problem_whose_error_scale_is_a_sum_of_magnitudes_has_all_truths(reference_of):
    assert reference_of().float64_one_of == 1  # a product with a YAML: the scale itself takes a float64 pass
