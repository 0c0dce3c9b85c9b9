"""Digests by which two processes compare bytes that neither hands over."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.digest import digest_of_tensor

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (1 << 20,)], ids=str)
def test_a_copy_has_the_same_digest_and_one_other_element_gives_another(dtype, shape):
    tensor = torch.randint(0, 2, shape).to(dtype)
    assert digest_of_tensor(tensor) == digest_of_tensor(tensor.clone())
    if tensor.numel():
        other = tensor.clone()
        other.view(-1)[-1] = not bool(other.view(-1)[-1])
        assert digest_of_tensor(other) != digest_of_tensor(tensor)


def test_two_elements_that_changed_places_give_another():
    tensor = torch.arange(64.0)
    other = tensor.clone()
    other[3], other[40] = tensor[40], tensor[3]
    assert digest_of_tensor(other) != digest_of_tensor(tensor)


def test_strides_and_a_beginning_within_a_word_change_nothing():
    tensor = torch.rand(6, 9)
    within = torch.cat([torch.zeros(1), tensor.reshape(-1)])[1:].view(6, 9)
    assert {digest_of_tensor(each) for each in (tensor, tensor.t().contiguous().t(), within)} == {digest_of_tensor(tensor)}
    assert digest_of_tensor(torch.rand(33)[1:]) and digest_of_tensor(torch.nn.Parameter(tensor)) == digest_of_tensor(tensor)


def test_what_is_no_number_is_compared_by_its_bytes():
    tensor = torch.full((9,), torch.nan)
    assert digest_of_tensor(tensor) == digest_of_tensor(tensor.clone())


def test_pieces_of_a_large_tensor_are_told_apart_by_their_places():
    words = torch.zeros(3 << 22, dtype=torch.int64)
    first, last = words.clone(), words.clone()
    first[0], last[-1] = 1, 1
    assert len({digest_of_tensor(each) for each in (words, first, last)}) == 3
