"""One launch's inputs: drawn afresh each time, packed, and given back as views."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from harness.model.errors import InputError
from harness.protocol.layout import fill
from harness.reference.inputs.families import PRODUCT_FAMILIES
from harness.reference.inputs.sets import draw_inputs, draw_set, still_hold

CPU = torch.device("cpu")
LARGE = (1536, 2048)  # six times 2 MiB: whole regions, and larger than what is packed in one step
SIGNS = next(family for family in PRODUCT_FAMILIES if family.name == "signs")


def two_matrices():
    return [torch.rand(8, 4), torch.rand(4, 6)]


def test_two_draws_are_never_the_same_even_after_the_same_seed():
    torch.manual_seed(0)
    first = draw_set(two_matrices, CPU)
    torch.manual_seed(0)
    second = draw_set(two_matrices, CPU)
    assert not torch.equal(first.region, second.region)


def test_a_draw_is_what_its_seed_gives():
    drawn = draw_set(two_matrices, CPU)
    torch.manual_seed(drawn.seed)
    assert all(torch.equal(own, other) for own, other in zip(drawn.arguments(), two_matrices()))


def test_a_draw_leaves_nothing_behind_that_grows(monkeypatch):
    kept = []
    monkeypatch.setattr("traceback.format_stack", lambda *a, **k: kept.append(1) or [])
    torch.manual_seed(1)
    assert kept, "torch.manual_seed no longer keeps the stack of each call: then a draw may use it"
    kept.clear()
    draw_set(two_matrices, CPU)
    assert not kept


def test_the_seed_of_a_draw_cannot_be_read_off_what_comes_after_it():
    draw_set(two_matrices, CPU)
    first = torch.initial_seed()
    draw_set(two_matrices, CPU)
    assert torch.initial_seed() != first


def test_arguments_come_back_in_the_structure_that_get_inputs_gave():
    inputs = draw_set(lambda: [torch.zeros(2), 3, {"mask": (torch.ones(3, dtype=torch.bool), None)}, "mode"], CPU)
    tensor, number, nested, text = inputs.arguments()
    assert torch.equal(tensor, torch.zeros(2))
    assert number == 3
    assert text == "mode"
    assert isinstance(nested["mask"], tuple)
    assert nested["mask"][0].dtype == torch.bool
    assert nested["mask"][1] is None


def test_a_tuple_of_inputs_is_as_good_as_a_list():
    assert len(draw_set(lambda: (torch.zeros(1), torch.ones(1)), CPU).arguments()) == 2


def test_the_bytes_are_all_there_is_of_a_set():
    inputs = draw_set(two_matrices, CPU)
    copied = inputs.region.clone()
    assert all(torch.equal(a, b) for a, b in zip(inputs.arguments(), inputs.arguments(copied)))
    copied.zero_()
    assert all(float(tensor.sum()) == 0 for tensor in inputs.arguments(copied))


def test_a_transposed_input_arrives_transposed():
    (given,) = draw_set(lambda: [torch.rand(3, 5).T], CPU).arguments()
    assert given.shape == (5, 3)
    assert given.stride() == (1, 5)


def test_parameters_among_the_inputs_lose_their_history():
    (given,) = draw_set(lambda: [torch.nn.Parameter(torch.ones(2)) * 2], CPU).arguments()
    assert not given.requires_grad


def test_integers_and_masks_are_never_transformed():
    def mixed():
        return [torch.rand(6, 6), torch.randint(1, 9, (6,)), torch.rand(6, 6)]

    inputs = draw_set(mixed, CPU, SIGNS, (1, 0))
    first, integers, last = inputs.arguments()
    assert bool((integers >= 1).all())
    assert bool((first < 0).any())
    assert bool((last < 0).any())
    assert inputs.family is SIGNS


def test_a_draw_of_another_form_than_the_first_is_refused():
    sizes = iter([4, 5])

    def growing():
        return [torch.rand(next(sizes))]

    first = draw_set(growing, CPU)
    with pytest.raises(InputError, match="from one call to the next"):
        draw_set(growing, CPU, specs=first.specs)


@pytest.mark.parametrize(
    ("get_inputs", "said"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: None, "TypeError"),
        (lambda: [object()], "a object cannot cross|an object cannot cross"),
        (lambda: [{1: torch.zeros(1)}], "dict cannot cross"),
    ],
    ids=["raises", "returns None", "an object", "a dict with numbers as keys"],
)
def test_a_get_inputs_that_fails_is_the_users_error_in_words(get_inputs, said):
    with pytest.raises(InputError, match=said) as caught:
        draw_inputs(get_inputs, CPU, 1)
    assert "get_inputs()" in str(caught.value)


def test_a_device_without_room_is_no_fault_of_the_reference_and_ends_nobody_elses_row():
    def full():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6.00 GiB.")

    with pytest.raises(torch.OutOfMemoryError):
        draw_set(full, CPU)


def test_inputs_are_drawn_on_the_device_itself():
    devices = []

    def noted():
        devices.append(torch.rand(1).device)
        return []

    draw_inputs(noted, torch.device("meta"), 1)
    assert devices == [torch.device("meta")]


def all_sorts():
    return [
        torch.rand(7, 3).T, torch.randint(0, 9, (5,)), torch.zeros(0, 4), torch.rand(()), torch.ones(3).expand(4, 3)
    ]


def one_that_fills_its_region():
    return [torch.rand(1024, 512)]


def of_one_type(dtype):
    return lambda: [torch.ones(7, 3, 1).to(dtype), torch.zeros(0, 4).to(dtype), torch.ones(1024, 30).to(dtype).mul(3)]


def no_tensor():
    return [3, "mode"]


@pytest.mark.parametrize("get_inputs", [
    two_matrices, all_sorts, one_that_fills_its_region, no_tensor, lambda: [torch.rand(1500, 1500), torch.rand(3)],
    *map(of_one_type, (torch.bool, torch.int64, torch.bfloat16, torch.complex64)),
])
def test_what_no_tensor_fills_is_zero_and_a_known_layout_gives_the_same_bytes(get_inputs):
    first = draw_set(get_inputs, CPU, seed=5)
    kept = first.region.clone()
    # Memory that was in use before, so that what is not written is not zero by chance.
    used = [torch.full((first.region.numel(),), 255, dtype=torch.uint8) for _ in range(4)]
    del used
    expected = torch.zeros_like(first.region)
    torch.manual_seed(5)
    for spec, tensor in zip(first.specs, get_inputs()):
        fill(spec.view(expected), tensor)
    again = draw_set(get_inputs, CPU, specs=first.specs, seed=5)
    assert torch.equal(first.region, expected) and torch.equal(again.region, expected)
    assert again.specs is first.specs
    assert again.digest() == first.digest()
    again.region.fill_(7)  # what one draw holds is no other's
    assert torch.equal(draw_set(get_inputs, CPU, specs=first.specs, seed=5).region, kept)


@pytest.mark.parametrize("other", [
    lambda: [torch.rand(8, 4).double(), torch.rand(4, 6)], lambda: [torch.rand(4, 8).T, torch.rand(4, 6)],
    lambda: [torch.rand(8, 4)], lambda: [torch.rand(8, 4), torch.rand(4, 6), torch.rand(1)],
], ids=["another type", "other strides", "too few", "too many"])
def test_a_draw_of_another_layout_is_refused_whatever_it_differs_in(other):
    with pytest.raises(InputError, match="from one call to the next"):
        draw_set(other, CPU, specs=draw_set(two_matrices, CPU).specs)


def test_what_lies_in_the_gaps_of_a_view_is_zero_in_every_family():
    def part_of_a_larger_one():
        larger = torch.full((8, 8), 7.0)
        return [larger[:, :4].uniform_(1, 2), torch.rand(4, 6)]

    for family in PRODUCT_FAMILIES:
        drawn = draw_set(part_of_a_larger_one, CPU, family, (1, 0), specs=draw_set(part_of_a_larger_one, CPU).specs)
        first = drawn.arguments()[0]
        assert first.stride() == (8, 1)
        assert not bool(drawn.region[: 4 * 60].view(torch.float32).as_strided((7, 4), (8, 1), 4).any())


def test_each_tensor_has_a_digest_of_its_own():
    one, other = (draw_set(lambda: [torch.rand(3), torch.arange(5.0), torch.zeros(0)], CPU).digests() for _ in range(2))
    assert len(one) == 2 and one[0] != other[0] and one[1] == other[1]


def test_inputs_that_do_not_lie_in_memory_by_strides_are_refused_in_a_sentence():
    with pytest.raises(InputError, match="returns a sparse_coo tensor, which has no place .* Return its dense form"):
        draw_set(lambda: [torch.ones(1), torch.eye(2).to_sparse()], CPU)


def test_elements_that_overlap_are_told_of_and_expanded_ones_stay_so():
    assert draw_set(lambda: [torch.rand(9).unfold(0, 4, 2)], CPU).overlapping
    drawn = draw_set(lambda: [torch.rand(3, 1).expand(3, 4)], CPU)
    assert not drawn.overlapping and drawn.arguments()[0].stride() == (1, 0)


def test_each_region_is_held_against_its_own_set_to_the_last_byte():
    sets = [draw_set(two_matrices, CPU) for _ in range(3)]
    regions = [torch.cat([each.region, torch.full((64,), 9, dtype=torch.uint8)]) for each in sets]
    assert list(still_hold(regions, sets)) == [True, True, True]
    regions[1][sets[1].region.numel() - 1] ^= 128
    regions[2][0] ^= 1
    assert list(still_hold(regions, sets)) == [True, False, False]
    assert list(still_hold(regions[:2], [sets[0], sets[0]])) == [True, False]
    assert list(still_hold(regions, [])) == []


def test_large_regions_are_held_against_their_sets_in_parts(monkeypatch):
    monkeypatch.setattr("harness.reference.inputs.sets._COMPARED_AT_ONCE", 1000)
    drawn = draw_set(two_matrices, CPU)
    regions = [drawn.region.clone() for _ in range(3)]
    assert drawn.size_bytes // 8 > 2 * 1000
    regions[1][-1] ^= 128
    regions[2][0] ^= 1
    assert list(still_hold(regions, [drawn] * 3)) == [True, False, False]


@pytest.mark.gpu
@pytest.mark.parametrize("get_inputs", [two_matrices, all_sorts, lambda: [torch.rand(1500, 1500), torch.rand(3)]])
def test_on_a_gpu_too_what_no_tensor_fills_is_zero(get_inputs):
    device = torch.device("cuda:0")
    used = [torch.full((16 << 20,), 255, dtype=torch.uint8, device=device) for _ in range(4)]
    del used
    drawn = draw_set(get_inputs, device, seed=5)
    expected = torch.zeros_like(drawn.region)
    torch.manual_seed(5)
    with device:
        for spec, tensor in zip(drawn.specs, get_inputs()):
            fill(spec.view(expected), tensor)
    assert torch.equal(drawn.region, expected)
    assert torch.equal(draw_set(get_inputs, device, specs=drawn.specs, seed=5).region, expected)


@pytest.mark.parametrize("kept", [torch.rand(LARGE), torch.randint(0, 9, LARGE)], ids=["changed", "left as it is"])
def test_a_draw_in_a_family_writes_to_nothing_that_the_file_keeps(kept):
    before = kept.clone()
    drawn = draw_set(lambda: [kept], CPU, SIGNS, seed=1)
    assert drawn.region.untyped_storage().data_ptr() != kept.untyped_storage().data_ptr()
    drawn.region.zero_()
    assert torch.equal(kept, before)


def test_one_tensor_in_a_family_is_not_copied_once_more():
    made = []
    family = replace(SIGNS, transform=lambda tensors, contracted: made.extend(each + 1 for each in tensors) or made)
    drawn = draw_set(lambda: [torch.rand(LARGE)], CPU, family, seed=1)
    assert drawn.region.data_ptr() == made[0].data_ptr()
    assert torch.equal(drawn.tensors()[0], made[0])
