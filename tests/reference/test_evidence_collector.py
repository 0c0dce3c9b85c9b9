"""What is kept of a launch that failed, and that it is enough to draw its inputs again."""

from __future__ import annotations

import json
import math

import pytest
import torch

from harness.judge import check
from harness.launch.conversation import Launch, Launches
from harness.launch.failures import Failed
from harness.reference import element_errors as errors_module
from harness.reference.accuracy.bounds import Bounds
from harness.reference.element_errors import element_errors, errors_over, in_pieces
from harness.reference.error_figures import judge_outputs
from harness.reference.evidence import RAMP, Evidence
from harness.reference.evidence_collector import evidence_of, mistakes_in, picture_of, recipe_of
from harness.reference.inputs.families import PRODUCT_FAMILIES, family_named


def mistakes_of(wrong: torch.Tensor):
    """The mistakes of an output of zeros that is one where `wrong`, with a scale of one."""
    got = wrong.float()
    expected = torch.zeros(got.shape, dtype=torch.float64)
    return mistakes_in(0, got, expected, torch.ones_like(expected), wrong, 8.0)


def mask(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bool)


def test_a_right_output_has_no_evidence_and_a_wrong_one_names_its_first_elements(reference_of):
    reference = reference_of()
    inputs = reference.draw()
    truth, right = reference.truth(inputs), reference.eager(inputs)
    assert judge_outputs(reference, inputs, truth, right, "fp32").evidence is None
    wrong = [right[0].clone()]
    wrong[0][3, 5] = math.nan
    wrong[0][7, 1] += 1
    evidence = judge_outputs(reference, inputs, truth, wrong, "fp32").evidence
    assert [each.index for each in evidence.mistakes.first] == [(3, 5), (7, 1)]
    assert evidence.mistakes.first[0].got == "nan"
    assert evidence.mistakes.first[0].error_u == "inf"
    assert evidence.mistakes.first[1].expected == pytest.approx(evidence.mistakes.first[1].got - 1)
    assert (evidence.mistakes.wrong, evidence.mistakes.elements) == (2, 256)


def test_at_most_eight_elements_are_kept_and_all_are_counted():
    found = mistakes_of(~mask(40, 50))
    assert len(found.first) == 8
    assert found.first[-1].index == (0, 7)
    assert found.wrong == found.elements == 2000


@pytest.mark.parametrize("family", PRODUCT_FAMILIES, ids=lambda family: family.name)
def test_the_recipe_draws_the_same_inputs_again(reference_of, family):
    reference = reference_of()
    inputs = reference.draw(family)
    recipe = evidence_of(reference, inputs, reference.truth(inputs), reference.eager(inputs), Bounds(8.0, None)).recipe
    torch.manual_seed(1)
    again = reference.draw(family_named(recipe.family), recipe.seed)
    assert torch.equal(again.region, inputs.region)
    assert again.digest() == recipe.inputs_digest
    assert reference.draw(family).digest() != recipe.inputs_digest


def test_a_digest_sees_one_bit_and_two_words_exchanged(reference_of):
    inputs = reference_of().draw()
    before = inputs.digest()
    inputs.region[5] ^= 1
    assert inputs.digest() != before
    inputs.region[5] ^= 1
    words = inputs.region.view(torch.int64)
    words[[0, 1]] = words[[1, 0]]
    assert inputs.digest() != before


def test_evidence_comes_back_from_json_as_it_was(reference_of):
    reference = reference_of()
    inputs = reference.draw()
    wrong = [reference.eager(inputs)[0] + 1]
    evidence = judge_outputs(reference, inputs, reference.truth(inputs), wrong, "fp32").evidence
    body = json.loads(json.dumps(evidence.to_json()))
    assert isinstance(body["recipe"]["seed"], str)
    assert Evidence.from_json(body) == evidence
    assert len(json.dumps(body)) < 4000


def test_the_largest_of_several_outputs_and_whole_numbers_are_looked_at():
    from harness.reference.expected import Truth

    got = [torch.ones(4), torch.tensor([[1, 2], [3, 4]])]
    truth = Truth([torch.ones(4).double(), torch.tensor([[1, 2], [3, 5]])], [torch.ones(4).double(), None], [], None)
    from harness.reference.evidence_collector import _worst

    found = _worst(truth, got, Bounds(8.0, 2.0))
    assert (found.output, found.dtype, found.first[0].got, found.first[0].expected) == (1, "int64", 4, 5)
    assert _worst(truth, [got[0], truth.outputs[1]], Bounds(8.0, 2.0)) is None


def test_many_small_errors_are_found_by_the_root_mean_square_that_is_allowed():
    from harness.reference.evidence_collector import _worst
    from harness.reference.expected import Truth

    one = torch.ones(64).double()
    got = torch.ones(64)
    got[8:] += 4 * 2.0**-23
    found = _worst(Truth([one], [one], [], None), [got], Bounds(20.0, 5.0))
    assert (found.allowed_u, found.wrong, found.first[0].index) == (5.0, 56, (8,))


def test_an_edge_a_step_and_a_side_of_the_diagonal_are_seen():
    last_row = mask(100, 60)
    last_row[99] = True
    found = mistakes_of(last_row)
    assert (found.rows.count, found.rows.first, found.rows.step) == (1, 99, None)
    assert found.columns.count == 60
    columns = mask(64, 96)
    columns[:, 31::32] = True
    assert (mistakes_of(columns).columns.count, mistakes_of(columns).columns.step) == (3, 32)
    above = mistakes_of(torch.ones(9, 9).triu(1).bool())
    assert (above.below_diagonal, above.on_diagonal, above.above_diagonal) == (0, 0, 36)
    assert mistakes_of(~mask(7)).below_diagonal is None


def test_batches_are_told_apart_and_laid_over_each_other():
    wrong = mask(2, 3, 8, 8)
    wrong[1, 0, 2] = True
    found = mistakes_of(wrong)
    assert (found.batches.size, found.batches.count, found.batches.first) == (6, 1, 3)
    assert found.picture[2] == RAMP[2] * 8  # one of six: less than two eighths
    assert set("".join(found.picture[:2])) == {" "}


def test_a_picture_is_at_most_24_by_48_and_shows_a_single_element_of_millions():
    wrong = mask(1, 2000, 1500)
    wrong[0, 1999, 0] = True
    drawn = picture_of(wrong)
    assert (len(drawn), {len(line) for line in drawn}) == (24, {48})
    assert drawn[23][0] == "."
    assert "".join(drawn).count(" ") == 24 * 48 - 1
    assert set("".join(picture_of(~mask(1, 2000, 1500)))) == {"@"}
    nearly = ~mask(1, 2000, 1500)
    nearly[0, 0, 0] = False
    assert picture_of(nearly)[0][0] == "%"
    assert picture_of(mask(1, 1, 3) | torch.tensor([True, False, True])) == ("@ @",)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 4)])
def test_every_shape_has_its_mistakes(shape):
    found = mistakes_of(torch.ones(shape).bool())
    assert found.first[0].index == (0,) * len(shape)
    assert found.wrong == found.elements == torch.ones(shape).numel()


class OneWrong:
    """A session whose outputs are right but for those of launch `index`."""

    def __init__(self, sets, index):
        self._sets, self._index = sets, index

    def outputs(self, reference, index):
        outputs = reference.eager(self._sets[index])
        return [each + (index == self._index) for each in outputs]


def test_a_wrong_launch_of_a_segment_is_kept_with_what_was_queued_before_it(reference_of):
    reference = reference_of()
    sets = [reference.draw() for _ in range(4)]
    made = Launches([Launch(1.0, 1.0, 1.0, None, [], None)] * 4, 1.0, None, [True] * 4)
    figures = check.verify(OneWrong(sets, 2), reference, sets, made, "fp32")
    with pytest.raises(Failed) as caught:
        check.decide(figures, reference, "fp32")
    recipe = caught.value.evidence.recipe
    assert (recipe.seed, recipe.before, recipe.queued) == (sets[2].seed, (sets[0].seed, sets[1].seed), 4)
    assert caught.value.evidence.mistakes.wrong == 256


def test_a_queue_of_several_families_is_drawn_again_as_it_was(reference_of):
    from harness.runs.reproduction import _drawn

    reference = reference_of()
    sets = [reference.draw(family_named(name)) for name in ("signs", "as given", "one-hot last", "signs")]
    evidence = Evidence(recipe_of(reference, sets, 2))
    again = Evidence.from_json(json.loads(json.dumps(evidence.to_json()))).recipe
    assert again == evidence.recipe and again.families_before == ("signs", "as given")
    drawn = _drawn(reference, again)
    assert all(torch.equal(own.region, other.region) for own, other in zip(drawn, sets[:3], strict=True))
    assert recipe_of(reference, sets[:1] + sets[3:], 1).families_before == ()


def test_a_recipe_of_before_families_were_kept_is_read_as_one_family(reference_of):
    evidence = Evidence(recipe_of(reference_of(), [reference_of().draw()]))
    body = evidence.to_json()
    del body["recipe"]["families_before"]
    assert Evidence.from_json(body) == evidence


def test_a_fault_of_form_keeps_the_recipe_alone(reference_of):
    reference = reference_of()
    sets = [reference.draw()]
    fault = {"code": "wrong_shape", "detail": "the output is (1,)"}
    made = Launches([Launch(0.0, 0.0, 1.0, fault, [], None)], 1.0, None, [True])
    with pytest.raises(Failed) as caught:
        check.verify(OneWrong(sets, 0), reference, sets, made, "fp32")
    assert caught.value.evidence.mistakes is None
    assert caught.value.evidence.recipe.seed == sets[0].seed


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(errors_module, "_AT_ONCE", 10)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (25,), (1, 30), (7, 4), (3, 33), (1, 1, 12, 3), (2, 0, 50), (2, 3, 5, 7)])
def test_pieces_cover_each_element_once(small_pieces, shape):
    counted, numbers = torch.zeros(shape), torch.arange(math.prod(shape)).reshape(shape)
    for places, same, nothing in in_pieces(counted, numbers, None):
        assert nothing is None and places.shape == same.shape and places.numel() <= 10
        places += 1
    assert torch.equal(counted, torch.ones(shape))


@pytest.mark.parametrize("shape", [(25,), (7, 4), (3, 33), (2, 3, 5, 7)])
@pytest.mark.parametrize("is_whole", [False, True])
def test_errors_in_pieces_are_those_of_the_whole(small_pieces, shape, is_whole):
    torch.manual_seed(3)
    got, expected = torch.rand(shape), torch.rand(shape).double()
    got.view(-1)[4] = math.nan
    scale = None if is_whole else torch.rand(shape[:-1] + (1,)).double().expand(shape)
    if is_whole:
        got, expected = (10 * got.nan_to_num()).int(), (10 * expected).int()
    over, largest = errors_over(got, expected, scale, 5e6)
    whole = element_errors(got, expected, scale)
    assert torch.equal(over, whole > 5e6) and largest == float(whole.max())


def test_mistakes_of_an_output_in_pieces_are_those_of_the_whole(reference_of, monkeypatch):
    reference = reference_of()
    inputs = reference.draw()
    truth, wrong = reference.truth(inputs), [reference.eager(inputs)[0].clone()]
    wrong[0][5:9, 3] += 1
    found = []
    for at_once in (1 << 24, 50, 7):
        monkeypatch.setattr(errors_module, "_AT_ONCE", at_once)
        found.append(judge_outputs(reference, inputs, truth, wrong, "fp32").evidence.mistakes)
    assert found[0] == found[1] == found[2] and found[0].wrong == 4


def test_where_there_is_no_room_for_errors_the_verdict_stays(reference_of, monkeypatch):
    reference = reference_of()
    inputs = reference.draw()
    truth, wrong = reference.truth(inputs), [reference.eager(inputs)[0] + 1]

    def no_room(*_):
        raise torch.OutOfMemoryError

    figures = judge_outputs(reference, inputs, truth, wrong, "fp32")
    monkeypatch.setattr(errors_module, "element_errors", no_room)
    again = judge_outputs(reference, inputs, truth, wrong, "fp32")
    assert again == figures and again.evidence.mistakes is None and again.evidence.recipe is not None
